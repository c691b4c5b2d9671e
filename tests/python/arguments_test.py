"""Arguments of the wrong kind: every public function says in a few words which one it was."""

import inspect
import os
import tempfile
import unittest

import numpy

import posattn
import posattn.errors

try:
    import posattn.torch
    import torch
except ImportError:  # PyTorch is not installed
    torch = None


class Strange:
    """Fits nothing, and would fill the screen."""

    def __repr__(self):
        return "strange" * 10000


WRONG = [Strange(), 1.5, "\udcff", b"\x00\xff" * 1000, numpy.zeros((200, 200)), [Strange()] * 3]


def public_calls(folder):
    """(name, function, arguments that are right) of everything public."""
    small = dict(length=3, width=8, mlp_width=8)
    fleet = posattn.train("sort", epochs=1, samples=16, batch=16, validation_samples=4,
                          test_samples=4, **small)
    model, program = posattn.new("sort", **small), posattn.compile("sort", length=3)
    builder = posattn.Builder("made", 3)
    word = builder.input()
    x = [1.0, 2.0, 3.0]
    given = {
        posattn.Builder: dict(name="a", length=3), posattn.Fleet: dict(folder=folder),
        posattn.Run: dict(folder=fleet[0].folder), posattn.Task: dict(name="walked", solve=len),
        posattn.bound: dict(run=fleet[0]), posattn.certify: dict(run=fleet[0], steps=0, draws=1),
        posattn.compare: dict(experiment="value-range", results=folder),
        posattn.compile: dict(program="sort", length=3), posattn.from_arrays: dict(arrays={}),
        posattn.from_bytes: dict(data=model.to_bytes()), posattn.load: dict(path=fleet[0].folder),
        posattn.load_fleet: dict(folder=fleet.folder), posattn.new: dict(task="sort", **small),
        posattn.maximum: dict(a=word, b=1), posattn.minimum: dict(a=word, b=1),
        posattn.relu: dict(a=word), posattn.plot: dict(lines={"a": ([1, 2], [1, 2])}),
        posattn.program_of: dict(model=program.model),
        posattn.reproduce: dict(experiment=Strange()), posattn.resume: dict(folder=folder),
        posattn.results: dict(experiment="value-range", results=folder),
        posattn.samples: dict(task="sort", samples=2), posattn.source: dict(name="sort"),
        posattn.train: dict(task="sort", epochs=1, samples=16, batch=16, test_samples=4, **small),
        posattn.where: dict(condition=word, a=1, b=2),
        model: dict(x=x), model.attention: dict(x=x), model.gradient: dict(x=x, y=x),
        model.evaluate: dict(samples=4), model.save: dict(path=os.path.join(folder, "model")),
        model.run: dict(x=x), model.show: dict(x=x), model.steps: dict(x=x),
        program: dict(x=x), program.run: dict(x=x), program.trace: dict(x=x),
        program.verify: dict(samples=2), program.steps: dict(x=x),
        fleet.tests: {}, fleet.show: {}, fleet.plot: {}, fleet.save: dict(folder=folder),
        fleet[0].tests: {}, builder.input: dict(name="b"), builder.word: dict(name="c"),
        word.set: dict(value=1), word.at: dict(place=int), word.send: dict(to=word),
    }
    if torch is not None:
        given[posattn.torch.Module] = dict(model=model)
        given[posattn.torch.from_state_dict] = dict(state={})
    return [(getattr(call, "__qualname__", type(call).__name__), call, arguments)
            for call, arguments in given.items()]


class Arguments(unittest.TestCase):
    def check(self, call, **arguments):
        """What it says, where it does not take the arguments."""
        try:
            call(**arguments)
        except (posattn.Error, TypeError, KeyError, OSError) as error:
            said = str(error)
            self.assertLess(len(said), 700, said[:2000])
            self.assertNotIn("strangestrange", said)
            self.assertNotIn("incompatible", said)
            if not isinstance(error, posattn.Error):
                self.assertNotIn("\n", said)
            return said
        return ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="posattn-python-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)  # some wrong folders are made
        self.folder = folder.name

    def test_every_parameter_of_every_public_function(self):
        refused = 0
        for name, call, arguments in public_calls(self.folder):
            for parameter in inspect.signature(call).parameters.values():
                if parameter.kind == inspect.Parameter.VAR_KEYWORD:
                    continue
                for wrong in WRONG:
                    with self.subTest(f"{name}({parameter.name}={type(wrong).__name__})"):
                        said = self.check(call, **{**arguments, parameter.name: wrong})
                        refused += bool(said)
        self.assertGreater(refused, 500)

    def test_all_public_functions_are_in_the_walk(self):
        walked = {getattr(call, "__name__", "") for _, call, _ in public_calls(self.folder)}
        functions = {name for name in posattn.__all__ if inspect.isfunction(getattr(posattn, name))}
        without_parameters = {"experiments", "presets", "programs", "settings", "tasks", "trained_models"}
        self.assertLessEqual(functions - without_parameters, walked)

    def test_the_message_names_the_argument_its_value_and_what_fits(self):
        model = posattn.new("sort", length=3, width=8, mlp_width=8)
        for call, part in (
                (lambda: posattn.samples("sort", length="x"), "length: 'x' (str)\n  expected: a whole"),
                (lambda: posattn.samples("sort", samples=2.5), "samples: 2.5 (float)"),
                (lambda: posattn.samples("sort", seed=-1), "seed: -1 (int)"),
                (lambda: posattn.load("x", heads="two"), "heads: 'two' (str)"),
                (lambda: posattn.load(3), "path: 3 (int)\n  expected: a path"),
                (lambda: posattn.compile("sort", pad_to=["a"] * 4).model, "pad_to: 'a' (str)"),
                (lambda: posattn.train(task=lambda x: x), "posattn.Task"),
                (lambda: posattn.train("sort", threads="two"), "threads: 'two' (str)"),
                (lambda: posattn.train("sort", callback=3), "callback: 3 (int)"),
                (lambda: model.evaluate(3), "scales: 3 (int)\n  expected: a list of numbers"),
                (lambda: model.evaluate("12"), "scales: '12' (str)"),
                (lambda: model([1, 2, 3], threads="two"), "threads: 'two' (str)"),
                (lambda: posattn.program_of(3), "model: 3 (int)\n  expected: a posattn.Model"),
                (lambda: posattn.Task("none", None), "solve: None")):
            with self.subTest(part), self.assertRaises(posattn.Error) as caught:
                call()
            self.assertIn(part, str(caught.exception))
            self.assertIsInstance(caught.exception, TypeError)

    def test_a_bound_speaks_of_its_argument(self):
        model = posattn.new("sort", length=3, width=8, mlp_width=8)
        with self.assertRaisesRegex(posattn.Error, "expected: samples=m"):
            posattn.bound(model)
        with self.assertRaisesRegex(posattn.Error, r"^clip=-1"):
            posattn.bound(model, samples=10, clip=-1)

    def test_flags_of_the_program_are_arguments(self):
        for text, ours in (("--samples m, or more", "samples=m, or more"),
                           ("the shapes contradict --task sort", "the shapes contradict task sort"),
                           ("--scratch-nodes 0", "scratch_nodes=0"), ("add --from MODEL", "add from_=MODEL"),
                           ("posattn train --samples 3", "posattn train --samples 3"),
                           ("a--b and 3 --", "a--b and 3 --")):
            self.assertEqual(posattn.errors.of_library(text, "", "", 1).what, ours)

    def test_threads_are_1_to_1024(self):
        model, program = posattn.new("sort", length=3), posattn.compile("sort", length=3)
        for threads in (-1, 10**6):
            for call in (model.evaluate, program.verify):
                with self.assertRaisesRegex(posattn.Error, "threads = "):
                    call(threads=threads)
            with self.assertRaisesRegex(posattn.Error, "threads = "):
                posattn.bound(model, samples=10, threads=threads)
            with self.assertRaisesRegex(posattn.Error, "threads = "):
                posattn.train("sort", threads=threads, epochs=1)

    def test_too_many_seeds_are_refused_at_once(self):
        for seeds in ([1] * 10**6, range(10**12), iter(range(10**12))):
            with self.assertRaisesRegex(posattn.Error, "10000"):
                posattn.train("sort", seeds=seeds)

    def test_a_name_that_is_no_text(self):
        with self.assertRaisesRegex(posattn.Error, r"\\xff"):
            posattn.load("\udcff")

    def test_masked_numbers_are_refused(self):
        model = posattn.new("sort", length=3, width=8, mlp_width=8)
        masked = numpy.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
        whole = numpy.ma.array([1.0, 2.0, 3.0])
        numpy.testing.assert_array_equal(model(whole), model(whole.data))
        numpy.testing.assert_array_equal(model(masked.filled(0)), model([1, 0, 3]))
        arrays = {name: numpy.ma.masked_greater(values, 0) for name, values in model.parameters.items()}
        for call in (lambda: model(masked), lambda: model.gradient(whole, masked),
                     lambda: posattn.compile("sort", length=3).run(masked),
                     lambda: posattn.plot({"a": (masked, [1, 2, 3])}),
                     lambda: posattn.plot({"a": ([1, 2, 3], masked)}),
                     lambda: posattn.from_arrays(arrays, task="sort")):
            with self.assertRaisesRegex(posattn.Error, "masked numbers"):
                call()


class Tasks(unittest.TestCase):
    """A `Task` wherever the name of one is taken."""

    def test_every_function(self):
        task = posattn.Task("taken-everywhere", lambda x: numpy.cumsum(x, 1))
        sizes = dict(length=3, width=8, mlp_width=8)
        model = posattn.new(task=task, **sizes)
        x, _ = posattn.samples(task, length=3, samples=5)
        with tempfile.TemporaryDirectory(prefix="posattn-python-") as folder:
            path = os.path.join(folder, "model.safetensors")
            model.save(path)
            again = [posattn.load(path, task=task), posattn.from_bytes(model.to_bytes(), task=task),
                     posattn.from_arrays(dict(model.parameters), task=task, heads=2)]
            if torch is not None:
                state = posattn.torch.Module(model).state_dict()
                again.append(posattn.torch.from_state_dict(state, task=task, heads=2))
            for other in again:
                self.assertEqual((other.task, other.length), (task.name, 3))
                numpy.testing.assert_array_equal(other(x), model(x))
        self.assertIn("mse", model.evaluate([1], task=task, samples=5))
        made = posattn.compile(lambda program: program.input("x"), length=3, task=task)
        self.assertEqual(made.task, task.name)
        fleet = posattn.train(task, epochs=1, samples=16, batch=16, validation_samples=4,
                              test_samples=4, **sizes)
        self.assertEqual(fleet[0].task, task.name)


if __name__ == "__main__":
    unittest.main()
