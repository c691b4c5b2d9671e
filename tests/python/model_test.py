"""Models in Python: answers, weights, gradients, files, and everything that must not crash."""

import copy
import json
import multiprocessing
import pathlib
import pickle
import tempfile
import threading
import time
import unittest

import numpy

import posattn


def small(**settings):
    return posattn.new(**{"task": "sort", "length": 4, "width": 8, "mlp_width": 8, **settings})


class Answers(unittest.TestCase):
    def setUp(self):
        self.x = numpy.random.default_rng(1).normal(size=(5, 4)).astype(numpy.float32)

    def test_every_form_of_samples_has_the_same_answers(self):
        model = small()
        batch = model(self.x)
        self.assertEqual((batch.dtype, batch.shape), (numpy.float32, (5, 4)))
        numpy.testing.assert_array_equal(model(self.x[2]), batch[2])
        numpy.testing.assert_array_equal(model(self.x[..., None])[..., 0], batch)
        numpy.testing.assert_array_equal(model(self.x.astype(numpy.float64)), batch)
        numpy.testing.assert_array_equal(model(numpy.asfortranarray(self.x)), batch)
        numpy.testing.assert_array_equal(model(self.x.tolist()), batch)
        numpy.testing.assert_array_equal(model(self.x[::-1])[::-1], batch)
        numpy.testing.assert_array_equal(model(self.x, threads=2), batch)
        self.assertEqual(model(numpy.zeros((0, 4))).shape, (0, 4))

    def test_pairs(self):
        x, y, pairs = posattn.samples("neighbour-min", length=4, samples=6, seed=1)
        edges = pairs["pair_classes"]
        self.assertEqual((x.shape, y.shape, edges.shape, list(pairs)), ((6, 4), (6, 4), (6, 4, 4), ["pair_classes"]))
        seen = numpy.where(edges + numpy.eye(4) > 0, x[:, None, :], numpy.inf)
        numpy.testing.assert_array_equal(seen.min(2), y)
        model = small(task="neighbour-min", architecture="structural")
        for name in model.parameters:
            model.parameters[name] = numpy.random.default_rng(len(name)).normal(size=model.parameters[name].shape) \
                if "bias" not in name else model.parameters[name]
        batch = model(x, **pairs)
        numpy.testing.assert_array_equal(model(x[2], pair_classes=edges[2]), batch[2])
        numpy.testing.assert_array_equal(model(x, pair_classes=edges.tolist()), batch)
        kept = model.run(x, keep="layers.0.attention", **pairs)[1]["layers.0.attention"]
        numpy.testing.assert_allclose(model.attention(x, **pairs)[:, 0], kept, rtol=1e-5)
        self.assertFalse(numpy.allclose(kept[0], kept[1]))
        loss, gradients = model.gradient(x, y, **pairs)
        self.assertGreater(abs(gradients["transformer_layers.0.attn.pair_classes"]).max(), 0)
        self.assertIn("<", model.steps(x[0], pair_classes=edges[0]))

        for given, part in [({}, "no pair_classes"), (dict(pair_classes=edges[:5]), r"\(5, 4, 4\)"),
                            (dict(pair_classes=edges[0]), r"\(4, 4\)"), (dict(pair_classes=edges + 1), "class 2"),
                            (dict(pair_classes=edges - 1), "class -1"), (dict(pair_classes=edges * 1.0), "whole"),
                            (dict(pairs=x, **pairs), "pairs for a model that reads none")]:
            with self.assertRaisesRegex(posattn.Error, part):
                model(x, **given)
        with self.assertRaisesRegex(posattn.Error, "pair_classes for a model that reads none"):
            small()(x, **pairs)
        small(task="neighbour-min", architecture="m2")(x, **pairs)  # its task has them, and it need not read them

    def test_columns(self):
        model = posattn.new(task="path", length=3, width=8, mlp_width=8)
        x = numpy.random.default_rng(0).normal(size=(2, 3, 3))
        self.assertEqual(model(x).shape, (2, 3, 3))
        numpy.testing.assert_array_equal(model(x[1]), model(x)[1])
        task = posattn.Task("python-first-column", lambda x: x[..., 0],
                            lambda random, samples, length, low, high:
                            random.uniform(low, high, size=(samples, length, 2)))
        x, y = posattn.samples(task, length=3, samples=5)
        model = posattn.new(task=task, length=3, width=8, mlp_width=8)
        self.assertEqual((model(x).shape, model(x[0]).shape), (y.shape, y[0].shape))

    def test_tokens(self):
        model = posattn.new(task="k-hop", length=6, width=9, mlp_width=8, depth=1)
        tokens = numpy.zeros((2, model.spec["real_nodes"]), dtype=int)
        self.assertEqual(model(tokens=tokens).shape[:2], tokens.shape)
        with self.assertRaisesRegex(posattn.Error, "token 999"):
            model(tokens=tokens + 999)
        with self.assertRaisesRegex(posattn.Error, "whole numbers"):
            model(tokens=tokens + 0.5)
        with self.assertRaisesRegex(posattn.Error, "2147483647"):
            model(tokens=tokens + 2**40)
        with self.assertRaises(posattn.Error):
            model(self.x)

    def test_variable_length(self):
        model = small(variable_length=True)
        self.assertEqual(model(self.x[:, :2]).shape, (5, 2))
        with self.assertRaisesRegex(posattn.Error, "5 nodes"):
            model(numpy.zeros((1, 5)))

    def test_bad_samples_are_refused_in_three_parts(self):
        model = small()
        for bad in (None, "text", object(), self.x[:, :3], numpy.zeros((2, 4, 2)), 1.0,
                    numpy.zeros((1, 1, 1, 4)), self.x.astype(complex), [[1, 2], [3]],
                    numpy.array(["a"] * 4), numpy.zeros((2, 0)), numpy.array([None] * 4)):
            with self.subTest(bad=repr(bad)), self.assertRaises(posattn.Error) as caught:
                with numpy.testing.suppress_warnings() as quiet:
                    quiet.filter(numpy.VisibleDeprecationWarning)
                    model(bad)
            self.assertTrue(caught.exception.what)
            self.assertTrue(caught.exception.expected)
            self.assertEqual(caught.exception.code, 4)
        for bad, part in (([10**30] * 4, "64 bits"), ([None] * 4, "NoneType"),
                          (numpy.array([[1], [2, 3]], dtype=object), "different lengths")):
            with self.assertRaisesRegex(posattn.Error, part):
                model(bad)
        for threads in (0, -1, 10**6):
            with self.assertRaisesRegex(posattn.Error, "threads"):
                model(self.x, threads=threads)
        with self.assertRaises(TypeError):
            model(self.x, threads="two")

    def test_what_is_not_a_number_stays_in_its_sample(self):
        model = small()
        x = self.x.copy()
        x[1, 2] = numpy.nan
        x[3, 0] = numpy.inf
        answers = model(x)
        numpy.testing.assert_array_equal(answers[[0, 2, 4]], model(self.x)[[0, 2, 4]])
        self.assertFalse(numpy.isfinite(answers[[1, 3]]).all())


class Tests(unittest.TestCase):
    def test_a_task_of_your_own(self):
        task = posattn.Task("python-same", lambda x: x)
        model = posattn.new(task=task, length=4, width=8, mlp_width=8)
        found, named = (model.evaluate([1], task=given, samples=50) for given in (task, task.name))
        self.assertEqual(found["mse"].tolist(), named["mse"].tolist())


class Attention(unittest.TestCase):
    def test_rows_are_distributions(self):
        x = numpy.random.default_rng(0).normal(size=(3, 4))
        for architecture in ("positional", "standard"):
            weights = small(architecture=architecture).attention(x)
            self.assertEqual(weights.shape, (3, 3, 2, 5, 5))
            numpy.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        self.assertEqual(small().attention().shape, (3, 2, 5, 5))
        with self.assertRaisesRegex(posattn.Error, "depends on data"):
            small(architecture="standard").attention()
        self.assertIn("<svg", small().show())


class Weights(unittest.TestCase):
    def setUp(self):
        self.model = small()
        self.x = numpy.random.default_rng(0).normal(size=(6, 4)).astype(numpy.float32)

    def test_what_is_written_counts_in_the_next_call(self):
        before = self.model(self.x)
        bias = self.model.parameters["decoding.bias"]
        bias += 2  # through an array
        numpy.testing.assert_allclose(self.model(self.x), before + 2, atol=1e-5)
        bias += 1
        numpy.testing.assert_allclose(self.model(self.x), before + 3, atol=1e-5)
        bias += 1
        del bias
        numpy.testing.assert_allclose(self.model(self.x), before + 4, atol=1e-5)
        self.model.parameters["decoding.bias"] = numpy.zeros(1)
        self.model.parameters["decoding.weight"] *= 0
        numpy.testing.assert_array_equal(self.model(self.x), 0 * before)

    def test_an_array_that_is_gone_has_changed_the_weights(self):
        before = self.model(self.x)
        repr(self.model.parameters)
        numpy.testing.assert_array_equal(self.model(self.x), before)
        self.model.parameters["decoding.bias"][:] += 100
        numpy.testing.assert_allclose(self.model(self.x), before + 100, atol=1e-4)

    def test_what_is_not_trained_keeps_its_value(self):
        model = small(architecture="standard-no-bias")
        bias = model.parameters["decoding.bias"]
        model.parameters["decoding.bias"] = 0 * bias
        with self.assertRaisesRegex(posattn.Error, "not train"):
            model.parameters["decoding.bias"] = bias + 1
        self.assertEqual(model.parameters["decoding.bias"].tolist(), [0])

    def test_names_are_texts(self):
        self.assertNotIn(3, self.model.parameters)
        self.assertIn("decoding.bias", self.model.parameters)
        self.assertIn("decoding.bias: [1]", repr(self.model.parameters))

    def test_an_array_outlives_its_model(self):
        weights = self.model.parameters["decoding.weight"]
        self.model.close()
        del self.model
        weights[:] = 3
        self.assertEqual(weights.sum(), 3 * weights.size)

    def test_bad_names_and_shapes(self):
        with self.assertRaisesRegex(KeyError, "decoding.bias"):
            self.model.parameters["decoding.bia"]
        for bad in (numpy.zeros(2), "text", None, numpy.zeros((1, 1))):
            with self.assertRaises(posattn.Error):
                self.model.parameters["decoding.bias"] = bad
        with self.assertRaises(TypeError):
            del self.model.parameters["decoding.bias"]
        self.assertIn("decoding.weight", dict(self.model.parameters))

    def test_routes_are_read_only(self):
        model = posattn.compile("sort", length=4).model
        name = next(name for name in model.parameters if name.endswith("routes"))
        with self.assertRaises(ValueError):
            model.parameters[name][:] = 1000
        with self.assertRaisesRegex(posattn.Error, "routes"):
            model.parameters[name] = model.parameters[name]
        with self.assertRaisesRegex(posattn.Error, "routed|gradient"):
            model.gradient(self.x, self.x)

    def test_gradient_against_differences(self):
        y = numpy.sort(self.x)
        loss, gradients = self.model.gradient(self.x, y)
        self.assertAlmostEqual(loss, float(((self.model(self.x) - y) ** 2).mean()), places=5)
        self.assertEqual(set(gradients), set(self.model.parameters))
        for name in ("encoding.weight", "transformer_layers.1.attn.qk_proj.weight"):
            weights, step = self.model.parameters[name], 1e-2
            place = numpy.unravel_index(abs(gradients[name]).argmax(), weights.shape)
            start = weights[place]
            weights[place] = start + step
            above, _ = self.model.gradient(self.x, y)
            weights[place] = start - step
            below, _ = self.model.gradient(self.x, y)
            weights[place] = start
            self.assertAlmostEqual((above - below) / (2 * step), float(gradients[name][place]),
                                   delta=2e-3 + 0.03 * abs(float(gradients[name][place])))

    def test_mask_and_bad_answers(self):
        y = numpy.sort(self.x)
        _, gradients = self.model.gradient(self.x, y, mask=numpy.zeros((4, 1), dtype=int))
        self.assertEqual(max(abs(array).max() for array in gradients.values()), 0)
        for bad in (y[:, :3], y[:5], None, "text"):
            with self.assertRaises(posattn.Error):
                self.model.gradient(self.x, bad)
        with self.assertRaisesRegex(posattn.Error, "mask"):
            self.model.gradient(self.x, y, mask=numpy.ones(3, dtype=int))
        with self.assertRaisesRegex(posattn.Error, "no samples"):
            self.model.gradient(self.x[:0], y[:0])


class Files(unittest.TestCase):
    def test_saved_copied_and_pickled_models_answer_alike(self):
        model = small()
        x = numpy.random.default_rng(0).normal(size=(6, 4))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.safetensors"
            model.save(path)
            for again in (posattn.load(path), posattn.load(folder), copy.deepcopy(model),
                          pickle.loads(pickle.dumps(model)), posattn.from_bytes(model.to_bytes())):
                numpy.testing.assert_array_equal(again(x), model(x))
                self.assertEqual(again.spec, model.spec)
            path.write_bytes(b"no model")
            with self.assertRaises(posattn.Error):
                posattn.load(path)
        with self.assertRaisesRegex(posattn.Error, "nowhere.*\n.*one of: cumulative-max-subarray-positional, "):
            posattn.load("nowhere.safetensors")
        with self.assertRaisesRegex(posattn.Error, "did you mean 'sort-positional'"):
            posattn.load("sort-postional")
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(posattn.Error, "no model.safetensors in '.*'\n.*a run that is done$"):
                posattn.load(folder)
            (pathlib.Path(folder) / "checkpoint.safetensors").touch()
            with self.assertRaisesRegex(posattn.Error, "has not finished; posattn.resume goes on"):
                posattn.load(folder)
        with self.assertRaises(posattn.Error):
            posattn.from_bytes(b"")

    def test_what_load_would_refuse_is_not_written(self):
        nan, biased = small(), small(architecture="standard-no-bias")
        nan.parameters["decoding.bias"][:] = numpy.nan
        biased.parameters["decoding.bias"][:] = 1
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.safetensors"
            for model, part in ((nan, "holds nan"), (biased, "no biases")):
                for write in (lambda: model.save(path), model.to_bytes):
                    with self.assertRaisesRegex(posattn.Error, part):
                        write()
                self.assertFalse(path.exists())
                again = model.copy()
                for name, values in model.parameters.items():
                    numpy.testing.assert_array_equal(again.parameters[name], values)

    def test_copies_are_apart(self):
        model = posattn.compile("sort", length=4).model
        again = model.copy()
        self.assertEqual((again.spec, again.notes), (model.spec, model.notes))
        model.parameters["decoding.weight"] *= 2
        self.assertEqual(again([4, 3, 2, 1]).tolist(), [1, 2, 3, 4])

    def test_facts(self):
        model = small()
        self.assertEqual((model.task, model.length, model.architecture), ("sort", 4, "positional"))
        self.assertEqual(model.spec["width"], 8)
        self.assertIn("positional for sort", repr(model))


class Parameters(unittest.TestCase):
    def test_a_task_may_have_some(self):
        model = posattn.new("sparse-average", length=5, task_set="q=2", width=8, mlp_width=8)
        self.assertEqual(model.task_set, "q=2")
        self.assertEqual(posattn.from_bytes(model.to_bytes()).task_set, "q=2")
        x, _ = posattn.samples("sparse-average", length=5, samples=3, task_set="q=2")
        self.assertEqual(x[:, :, 1:].sum(2).tolist(), [[2.0] * 5] * 3)
        with self.assertRaisesRegex(posattn.Error, "q: 1 to 64"):
            posattn.samples("sparse-average", task_set="q=0")


class Vocabularies(unittest.TestCase):
    """A model of texts in tokens of its own: here one for each byte, and one for the end."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        printing = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = iter(range(256, 512))
        self.tokens = [*(chr(byte if byte in printing else next(others)) for byte in range(256)),
                       "<|endoftext|>"]

    def bytes_with(self, **metadata):
        small = {"length": 4, "width": 8, "heads": 2, "depth": 1, "mlp_width": 8, "encoding_size": 8}
        data = posattn.new("mixed-min-written", "standard", **small).to_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + size])
        del header["__metadata__"]["posattn.checksum"]
        header["__metadata__"] |= {"task": "mixed-min-gpt2"} | metadata
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + data[8 + size:]

    def test_a_model_brings_its_own(self):
        model = posattn.from_bytes(self.bytes_with(vocabulary="\n".join(self.tokens), merges=""))
        self.assertNotIn("mixed-min-gpt2", posattn.tasks())
        found = model.evaluate([1], samples=2)
        self.assertIn("unparsable", found)
        again = pickle.loads(pickle.dumps(model))
        self.assertEqual(again.evaluate([1], samples=2)["unparsable"], found["unparsable"])
        self.assertIn("unparsable", model.evaluate([1], samples=2, task="mixed-min-gpt2"))

    def test_a_file_of_an_older_version(self):
        path = self.folder / "old.safetensors"
        path.write_bytes(self.bytes_with(**{"note.tokeniser": str(self.folder)}))
        with self.assertRaisesRegex(posattn.Error, "does not hold its vocabulary"):
            posattn.load(path)
        (self.folder / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(self.tokens)}))
        (self.folder / "merges.txt").write_text("#version: 0.2\n")
        posattn.load(path, vocabulary=self.folder).save(path)
        self.assertIn("unparsable", posattn.load(path).evaluate([1], samples=2))

    def test_damage_is_noticed(self):
        data = bytearray(posattn.new("sort", length=4, width=8, mlp_width=8).to_bytes())
        data[-3] ^= 4
        with self.assertRaisesRegex(posattn.Error, "do not have the checksum"):
            posattn.from_bytes(bytes(data))


class Closed(unittest.TestCase):
    def test_a_closed_model_says_so(self):
        with small() as model:
            parameters = model.parameters
            model(numpy.zeros(4))
        self.assertTrue(model.is_closed)
        model.close()
        for call in (lambda: model(numpy.zeros(4)), model.attention, model.to_bytes,
                     lambda: parameters["decoding.bias"], lambda: list(parameters),
                     lambda: model.gradient(numpy.zeros((1, 4)), numpy.zeros((1, 4))),
                     lambda: model.save("nowhere"), lambda: model.evaluate([1])):
            with self.assertRaisesRegex(posattn.Error, "closed"):
                call()
        self.assertIn("closed", repr(model))


class Threads(unittest.TestCase):
    def test_a_forked_child_computes_too(self):
        model = small()
        x = numpy.random.default_rng(0).normal(size=(500, 4)).astype(numpy.float32)
        expected = model(x, threads=2)
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        child = context.Process(target=lambda: results.put(model(x, threads=2)), daemon=True)
        child.start()
        try:
            numpy.testing.assert_array_equal(results.get(timeout=20), expected)
        finally:
            child.kill()
            child.join()
        numpy.testing.assert_array_equal(model(x, threads=2), expected)

    def test_calls_from_many_threads_give_the_same(self):
        x = numpy.random.default_rng(0).normal(size=(50, 4)).astype(numpy.float32)
        for model, lengths in ((small(variable_length=True), (4, 3, 2)),
                               (small(architecture="standard"), (4,)),
                               (posattn.compile("sort", length=4).model, (4,))):
            expected = {length: model(x[:, :length]) for length in lengths}
            attention = model.attention(x[:1])
            gradient = None if model.is_compiled else model.gradient(x, x)[1]["decoding.bias"]
            wrong = []

            def work(kind):
                for number in range(30):
                    if kind == 0 and gradient is not None:
                        same = numpy.array_equal(model.gradient(x, x)[1]["decoding.bias"], gradient)
                    elif kind == 1:
                        same = numpy.array_equal(model.attention(x[:1]), attention)
                    else:
                        length = lengths[number % len(lengths)]
                        same = numpy.array_equal(model(x[:, :length], threads=1 + kind // 4),
                                                 expected[length])
                    if not same:
                        wrong.append(kind)

            threads = [threading.Thread(target=work, args=(kind,)) for kind in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])

    def test_a_short_call_does_not_wait_for_a_long_one(self):
        model = posattn.new("sort")
        x = numpy.random.default_rng(0).normal(size=(100000, 8)).astype(numpy.float32)
        for _ in range(5):  # on a busy machine the long one may end first
            ended = threading.Event()
            thread = threading.Thread(target=lambda: (model(x), ended.set()))
            thread.start()
            time.sleep(0.05)
            model(x[:1])
            time.sleep(0.02)  # the other thread could say that it has ended
            overtaken = not ended.is_set()
            thread.join()
            if overtaken:
                return
        self.fail("the short call waited")

    def test_a_weight_is_set_between_calls(self):
        model = small()
        x = numpy.random.default_rng(0).normal(size=(50, 4)).astype(numpy.float32)
        bias = "transformer_layers.0.attn.v_proj.bias"
        values = [numpy.array(model.parameters[bias]), numpy.array(model.parameters[bias]) + 1]
        expected = []
        for value in values:
            model.parameters[bias] = value
            expected.append(model(x))
        self.assertFalse(numpy.array_equal(*expected))
        stop, wrong = threading.Event(), []

        def work():
            while not stop.is_set():
                answer = model(x)
                if not any(numpy.array_equal(answer, each) for each in expected):
                    wrong.append(answer)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(100):
            model.parameters[bias] = values[number % 2]
            numpy.testing.assert_array_equal(model(x), expected[number % 2])
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_closing_while_others_compute(self):
        model = small()
        x = numpy.zeros((100, 4))

        def work():
            try:
                while True:
                    model(x)
            except posattn.Error:
                pass

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        model.close()
        for thread in threads:
            thread.join(10)
            self.assertFalse(thread.is_alive())


if __name__ == "__main__":
    unittest.main()
