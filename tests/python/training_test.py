"""Fleets in Python: histories, callbacks, interruption, resuming, tasks written in Python."""

import contextlib
import io
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

import numpy

import posattn
import posattn.progress

TINY = dict(length=3, samples=64, validation_samples=16, test_samples=16, batch=16, width=8,
            mlp_width=8, test_scales="1,2", validate_every=2, threads=2)


def tiny(**changes):
    return posattn.train(**{"task": "cumulative-sum", "epochs": 4, **TINY, **changes})


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Fleets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="posattn-python-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_architectures_times_seeds(self):
        fleet = tiny(architecture=["positional", "standard"], seeds=range(2))
        self.assertEqual([(run.architecture, run.seed) for run in fleet],
                         [("positional", 0), ("positional", 1), ("standard", 0), ("standard", 1)])
        run = fleet[1]
        self.assertEqual((run.status, run.epoch, run.config["batch"]), ("done", 4, 16))
        history = run.history
        self.assertEqual(history["epoch"].tolist(), [1, 2, 3, 4])
        self.assertTrue(numpy.isfinite(history["train_loss"]).all())
        self.assertEqual(numpy.isnan(history["validation_loss"]).tolist(),
                         [True, False, True, False])
        x, errors = fleet.tests("mse")["standard"]
        self.assertEqual((x.tolist(), errors.shape), ([1, 2], (2, 2)))
        with self.assertRaisesRegex(posattn.Error, "no tests of warmth"):
            fleet.tests("warmth")
        self.assertEqual(run.model(numpy.zeros((2, 3))).shape, (2, 3))
        self.assertIn("seed 1: done", repr(fleet))

    def test_a_temporary_folder_ends_with_its_fleet(self):
        fleet = tiny()
        folder, kept = fleet.folder, fleet.save(self.folder / "kept")
        numpy.testing.assert_array_equal(kept[0].history["train_loss"],
                                         fleet[0].history["train_loss"])
        run = fleet[0]
        del fleet
        self.assertTrue(folder.exists())
        del run
        self.assertFalse(folder.exists())

    def test_the_same_bits_as_the_program(self):
        program = os.environ.get("POSATTN")
        if not program:
            self.skipTest("$POSATTN does not name the program")
        flags = [part for key, value in TINY.items()
                 for part in (f"--{key.replace('_', '-')}", str(value))]
        subprocess.run([program, "train", "--task", "sort", "--epochs", "4", *flags, "--out",
                        self.folder / "program"], check=True, capture_output=True)
        ours = tiny(task="sort")[0].model
        theirs = posattn.load_fleet(self.folder / "program")[0].model
        for name in ours.parameters:
            numpy.testing.assert_array_equal(ours.parameters[name], theirs.parameters[name])

    def test_progress_reaches_the_callback_in_this_thread(self):
        seen = []

        def callback(progress):
            self.assertIs(threading.current_thread(), threading.main_thread())
            seen.append((progress["seed"], progress["epoch"], progress["status"]))

        tiny(seeds=[5], callback=callback, progress=False)
        self.assertEqual(seen, [(5, epoch, "running") for epoch in (1, 2, 3, 4)])

    def said(self, to=None, **changes):
        """What training writes to standard error."""
        with contextlib.redirect_stderr(to or io.StringIO()) as said:
            tiny(**changes)
        return said.getvalue()

    def test_a_terminal_shows_a_bar(self):
        self.assertRegex(self.said(Terminal(), seeds=range(2)),
                         r"\r█{20} 2 runs  32/32 steps  loss [\d.e-]+(  [\d.]+ steps/s)? *\n$")
        self.assertEqual(self.said(Terminal(), progress=False), "")
        plain = unittest.mock.patch.object(Terminal, "encoding", "ascii", create=True)
        with plain:
            self.assertRegex(self.said(Terminal()), r"\r#{20} 1 run  16/16 steps[^\r]*\n$")

    def test_a_notebook_shows_a_bar(self):
        shown = []
        page = types.ModuleType("IPython.display")
        page.HTML = str
        page.display = lambda bar, display_id: shown.append(bar) or types.SimpleNamespace(
            update=shown.append)
        with unittest.mock.patch.dict(sys.modules, {"ipykernel": page, "IPython": page,
                                                    "IPython.display": page}):
            self.assertEqual(self.said(), "")
            self.assertRegex(shown[-1], r'^<progress value="1.0000"></progress> 1 run  16/16 steps')
            shown.clear()
            tiny(progress=False)
        self.assertEqual(shown, [])

    def test_elsewhere_progress_is_lines_of_text(self):
        self.assertRegex(self.said(architecture=["positional", "standard"], progress=True),
                         r"2 runs  32/32 steps  loss [\d.e-]+ \(positional\), "
                         r"[\d.e-]+ \(standard\)(  [\d.]+ steps/s)?\n$")
        for quiet in (None, False):  # nothing of short work
            self.assertEqual(self.said(progress=quiet), "")

    def test_only_runs_with_a_loss_have_one_shown(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            progress = posattn.progress.FleetProgress(2, True)
            nothing = float("nan")
            for name, status, step, loss in [("positional", "running", 0, nothing), ("standard", "running", 0, nothing),
                                             ("positional", "done", 16, 0.25), ("standard", "running", 8, 0.5),
                                             ("standard", "diverged", 9, nothing)]:
                progress.report({"run": name, "architecture": name, "status": status, "step": step, "steps": 16,
                                 "train_loss": loss})
                progress._draw()
        shown = [re.sub("  [0-9.]+ steps/s.*", "", line) for line in said.getvalue().splitlines()]
        self.assertEqual(shown[:1] + shown[-3:], [
            "2 runs  0/32 steps", "2 runs  16/32 steps  loss 0.25 (positional)",
            "2 runs  24/32 steps  loss 0.25 (positional), 0.5 (standard)",
            "2 runs  25/32 steps  loss 0.25 (positional), nan (standard)"])

    def test_a_line_every_few_seconds(self):
        def said(seconds, show):
            now = 0.0
            with unittest.mock.patch.object(posattn.progress.time, "monotonic", lambda: now):
                with contextlib.redirect_stderr(io.StringIO()) as said:
                    progress = posattn.progress.Progress("work", show)
                    for second in range(seconds):
                        now = float(second)
                        progress.update(100 * second, 10000)
                    progress.close()
            return said.getvalue().splitlines()

        self.assertEqual(said(13, None),
                         ["work  500/10000 steps  100 steps/s  1 min 35 s left",
                          "work  1000/10000 steps  100 steps/s  1 min 30 s left",
                          "work  1200/10000 steps  100 steps/s  1 min 28 s left"])
        self.assertEqual(said(13, False), [])
        self.assertEqual(said(5, None), [])
        self.assertEqual(said(5, True), ["work  400/10000 steps  100 steps/s  1 min 36 s left"])

    def test_a_notebook_shows_a_table(self):
        fleet = tiny(seeds=range(2))
        self.assertIn("<fleet of 2 runs in", repr(fleet))
        self.assertIn("<fleet of 1 run in", repr(tiny()))
        table = fleet._repr_html_()
        self.assertEqual((table.count("<tr>"), table.count("<th>"), table.count("<td>")), (3, 6, 12))
        self.assertIn(f"<td>{fleet[1].history['train_loss'][-1]:.3g}</td>", table)

    def test_what_a_callback_raises_ends_the_fleet_with_a_checkpoint(self):
        def callback(progress):
            if progress["epoch"] == 3:
                raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            tiny(epochs=100000, callback=callback, out=self.folder)
        stopped = posattn.load_fleet(self.folder)[0]
        self.assertEqual(stopped.status, "interrupted")
        self.assertTrue((stopped.folder / "checkpoint.safetensors").exists())
        self.assertIsNone(stopped.model)

    def test_resume_goes_on_with_runs_that_had_not_begun(self):
        def callback(progress):
            raise LookupError("enough")

        with self.assertRaises(LookupError) as raised:
            tiny(epochs=50, seeds=[10, 2, 1], threads=1, callback=callback, out=self.folder)
        self.assertIn("posattn.resume", raised.exception.__notes__[0])
        self.assertLess(len(posattn.load_fleet(self.folder)), 3)
        fleet = posattn.resume(self.folder)
        self.assertEqual([(run.seed, run.status) for run in fleet],
                         [(10, "done"), (2, "done"), (1, "done")])
        saved = fleet.save(self.folder / "saved")
        self.assertEqual([run.seed for run in saved], [10, 2, 1])
        self.assertEqual([run.seed for run in posattn.load_fleet(self.folder / "saved")], [10, 2, 1])
        self.assertIs(saved.save(self.folder / "saved"), saved)
        with self.assertRaisesRegex(posattn.Error, "no tests after epoch 99"):
            saved[0].tests(epoch=99)

    def test_a_setting_that_is_wrong_leaves_nothing(self):
        with self.assertRaises(posattn.Error):
            tiny(task="srot", out=self.folder / "new")
        self.assertFalse((self.folder / "new").exists())

    def test_callbacks_come_once_an_epoch(self):
        seen = []
        tiny(callback=lambda progress: seen.append(progress["epoch"]))
        self.assertEqual(seen, [1, 2, 3, 4])

    def test_a_second_interrupt_waits_for_the_checkpoint_too(self):
        program = ("import os, signal, threading, time, posattn\n"
                   "def hit():\n"
                   "    for _ in range(2):\n"
                   "        os.kill(os.getpid(), signal.SIGINT); time.sleep(0.001)\n"
                   "threading.Timer(0.5, hit).start()\n"
                   "try:\n"
                   "    posattn.train('sort', length=4, epochs=10**6, samples=100, batch=50, width=8,\n"
                   f"                  mlp_width=8, out={str(self.folder / 'twice')!r})\n"
                   "except KeyboardInterrupt:\n"
                   "    print(posattn.load_fleet(" + repr(str(self.folder / "twice")) + ")[0].status)\n")
        found = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True)
        self.assertEqual((found.stdout, found.returncode), ("interrupted\n", 0), found.stderr)

    def test_runs_without_their_folder_say_so(self):
        fleet = tiny()
        with self.assertRaisesRegex(posattn.Error, "cannot go to another process"):
            pickle.dumps(fleet)
        shutil.rmtree(fleet.folder)
        with self.assertRaisesRegex(posattn.Error, "its folder is gone"):
            fleet[0].model

    def test_settings_as_numpy_has_them(self):
        fleet = tiny(seeds=numpy.int64(3), test_scales=numpy.array([1, 2]), test_samples=8)
        self.assertEqual(fleet[0].seed, 3)
        self.assertEqual(fleet[0].tests()[0].tolist(), [1, 2])
        with self.assertRaisesRegex(posattn.Error, "seed and seeds"):
            tiny(seed=1, seeds=[2])
        self.assertIn("from_", posattn.settings())
        with self.assertRaisesRegex(posattn.Error, "nowhere"):
            tiny(from_="nowhere.safetensors")

    def test_resume_gives_what_one_sitting_gives(self):
        tiny(out=self.folder, seeds=[1, 2])
        longer = posattn.resume(self.folder, epochs=6)
        self.assertEqual([run.epoch for run in longer], [6, 6])
        whole = tiny(epochs=6, seeds=[1, 2])
        for name, values in whole[1].model.parameters.items():
            numpy.testing.assert_array_equal(values, longer[1].model.parameters[name])
        with self.assertRaisesRegex(posattn.Error, "no runs"):
            posattn.resume(self.folder / "positional-seed1")

    def test_bad_settings(self):
        for bad, part in (({"task": "srot"}, "sort"), ({"batch": 1000}, "batch"),
                          ({"epochs": "many"}, "many"), ({"epochs": None, "lr": []}, "lr"),
                          ({"wdith": 3}, "width"), ({"seeds": []}, "seed"),
                          ({"seeds": [1, 1]}, "twice"), ({"architecture": "m9"}, "m9"),
                          ({"width": object()}, "width"), ({"resume": True}, "folder")):
            with self.subTest(bad=bad), self.assertRaisesRegex(posattn.Error, part):
                tiny(**bad)
        tiny(out=self.folder)
        with self.assertRaisesRegex(posattn.Error, "(?i)resume|out"):
            tiny(out=self.folder)

    def test_starting_from_weights(self):
        model = posattn.new(task="cumulative-sum", length=3, width=8, mlp_width=8)
        model.save(self.folder / "start.safetensors")
        fleet = posattn.train(**{"start": None, "epochs": 1, "samples": 64, "batch": 16,
                                 "test_samples": 16, "task": None, "architecture": "positional",
                                 "from": self.folder / "start.safetensors"})
        self.assertEqual(fleet[0].config["width"], 8)


class Interruption(unittest.TestCase):
    def test_ctrl_c_saves_checkpoints_and_says_how_to_go_on(self):
        code = ("import posattn, sys\n"
                "try:\n"
                "    posattn.train(task='sort', length=4, epochs=10**6, samples=100, batch=50,\n"
                "                  width=8, mlp_width=8, test_every=0, seeds=range(2),\n"
                "                  callback=lambda p: print(p['epoch'], flush=True))\n"
                "except posattn.Interrupted as stopped:\n"
                "    print('FOLDER', stopped.folder, flush=True)\n"
                "    assert 'posattn.resume' in str(stopped)\n")
        with subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE,
                              text=True, preexec_fn=default_interrupt) as process:
            for line in process.stdout:
                if line.strip() == "3":
                    process.send_signal(signal.SIGINT)
                    break
            lines = process.stdout.read().splitlines()
            self.assertEqual(process.wait(30), 0)
        folder = pathlib.Path(lines[-1].split(" ", 1)[1])
        stopped = posattn.load_fleet(folder)
        self.assertIn("interrupted", [run.status for run in stopped])
        self.assertTrue(list(folder.glob("*/checkpoint.safetensors")))
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()


def default_interrupt():
    signal.signal(signal.SIGINT, signal.default_int_handler)


class TasksOfYourOwn(unittest.TestCase):
    def test_solve_alone_trains_as_the_built_in_task(self):
        task = posattn.Task("python-sums", lambda x: numpy.cumsum(x, axis=1))
        ours, built_in = tiny(task=task, epochs=2)[0], tiny(epochs=2)[0]
        numpy.testing.assert_allclose(ours.history["train_loss"], built_in.history["train_loss"],
                                      rtol=1e-5)
        self.assertEqual(ours.task, "python-sums")
        errors = ours.model.evaluate([1, 3], samples=50)
        self.assertEqual(errors["mse"].shape, (2,))

    def test_draw_has_any_shape_and_does_not_depend_on_how_many(self):
        def draw(random, samples, length, low, high):
            weights = random.integers(0, 2, size=(samples, length, 1))
            return numpy.concatenate([random.uniform(low, high, (samples, length, 1)), weights], -1)

        task = posattn.Task("python-masked", lambda x: x[..., 0] * x[..., 1], draw)
        x, y = posattn.samples(task, length=5, samples=1500, seed=3)
        self.assertEqual((x.shape, y.shape), ((1500, 5, 2), (1500, 5)))
        numpy.testing.assert_allclose(y, x[..., 0] * x[..., 1], rtol=1e-6)
        few, _ = posattn.samples(task, length=5, samples=30, seed=3)
        numpy.testing.assert_array_equal(few, x[:30])
        other, _ = posattn.samples(task, length=5, samples=30, seed=4)
        self.assertFalse(numpy.array_equal(few, other))
        fleet = tiny(task=task, seeds=range(3))
        self.assertEqual([run.status for run in fleet], ["done"] * 3)
        self.assertEqual(fleet[0].model.spec["data_columns"], 2)

    def test_pairs_of_nodes(self):
        def draw(random, samples, length, low, high):
            x = random.uniform(low, high, (samples, length))
            weights = random.normal(size=(samples, length, length, 2))
            return x, {"pairs": weights, "pair_classes": random.integers(0, 3, (samples, length, length))}

        def solve(x, pairs, pair_classes):
            return (pairs[..., 0] * (pair_classes == 1) * x[:, None, :]).sum(2)

        task = posattn.Task("weighted", solve, draw, pair_classes=3)
        x, y, given = posattn.samples(task, length=4, samples=7)
        self.assertEqual({name: array.shape for name, array in given.items()},
                         {"pairs": (7, 4, 4, 2), "pair_classes": (7, 4, 4)})
        numpy.testing.assert_allclose(solve(x, **given), y, rtol=1e-4, atol=1e-5)
        fewer = posattn.samples(task, length=4, samples=3)
        numpy.testing.assert_array_equal(fewer[2]["pairs"], given["pairs"][:3])
        fleet = posattn.train(task, "structural", length=4, width=8, mlp_width=8, epochs=2, samples=40, batch=20,
                              validation_samples=10, test_samples=10)
        self.assertEqual(fleet[0].status, "done")
        self.assertEqual(fleet[0].model(x, **given).shape, (7, 4))
        self.assertEqual(fleet[0].model.spec["pair_columns"], 2)

    def test_bad_pairs_of_nodes_are_refused_before_training(self):
        def task(pairs, classes=0):
            def draw(random, samples, length, low, high):
                return numpy.zeros((samples, length)), {
                    name: numpy.broadcast_to(array, (samples, *numpy.shape(array))) for name, array in pairs.items()}
            return posattn.Task("bad-pairs", lambda x, **given: x, draw, pair_classes=classes)

        square, whole = numpy.zeros((4, 4)), numpy.zeros((4, 4), int)
        for pairs, classes, part in [
                (dict(pairs=numpy.zeros((4, 3))), 0, r"as pairs has shape \(3, 4, 3, 1\)"),
                (dict(pairs=square * numpy.nan), 0, "nan for the pair of nodes 0 and 0 in sample 0"),
                (dict(pair_classes=whole), 0, "has 0 classes of pairs"),
                (dict(pairs=square), 2, "has 2 classes of pairs"),
                (dict(pair_classes=whole + 2), 2, "class 2 of the pair of nodes 0 and 0"),
                (dict(pair_classes=square), 2, "whole numbers"),
                (dict(edges=square), 0, "'edges'")]:
            with self.subTest(part), self.assertRaisesRegex(posattn.Error, part):
                posattn.samples(task(pairs, classes), length=4, samples=3)

    def test_a_cell_may_be_run_again(self):
        posattn.Task("python-again", lambda x: x)
        task = posattn.Task("python-again", lambda x: -x, description="the second")
        x, y = posattn.samples(task, length=2, samples=3)
        numpy.testing.assert_array_equal(y, -x)
        self.assertEqual(posattn.tasks()["python-again"], "the second")

    def test_what_is_wrong_in_python_is_an_error(self):
        for number, (solve, part) in enumerate((
                (lambda x: x[:, :1], "nodes"), (lambda x: x[0], "shape"),
                (lambda x: x * numpy.nan, "finite"), (lambda x: None, "array of numbers"),
                (lambda x: x.nothing, "AttributeError"), (lambda x: 1 / 0, "ZeroDivisionError"))):
            task = posattn.Task(f"python-bad-{number}", solve)
            with self.subTest(part), self.assertRaisesRegex(posattn.Error, part):
                posattn.samples(task, length=3, samples=8)
            with self.subTest(part), self.assertRaisesRegex(posattn.Error, part):
                tiny(task=task)
        for bad in ("Upper", "", "sort"):
            with self.assertRaises(posattn.Error):
                posattn.Task(bad, lambda x: x)
        with self.assertRaises(TypeError):
            posattn.Task("python-none", None)

    def test_solve_may_change_what_it_gets(self):
        def solve(x):
            x.sort(1)
            return x

        x, y = posattn.samples(posattn.Task("in-place", solve), 4, 50)
        self.assertFalse(numpy.array_equal(x, y))
        numpy.testing.assert_array_equal(numpy.sort(x, 1), y)

    def test_a_task_is_its_functions_and_not_its_name(self):
        first = posattn.Task("twice", lambda x: x)
        posattn.Task("twice", lambda x: -x)
        x, y = posattn.samples(first, 4, 5)
        numpy.testing.assert_array_equal(x, y)

    def test_an_error_where_every_run_fails(self):
        task = posattn.Task("later", lambda x: x if len(x) < 4 else x[:2])
        with self.assertRaisesRegex(posattn.Error, "what solve returns has shape"):
            tiny(task=task)

    def test_no_definitions_while_a_fleet_trains(self):
        caught = []

        def callback(progress):
            try:
                posattn.Task("python-late", lambda x: x)
            except posattn.Error as error:
                caught.append(error.what)

        tiny(callback=callback)
        self.assertIn("python-late", caught[0])

    def test_a_fleet_in_another_thread(self):
        fleets = []
        threads = [threading.Thread(target=lambda: fleets.append(tiny())) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        numpy.testing.assert_array_equal(fleets[0][0].history["train_loss"],
                                         fleets[1][0].history["train_loss"])


class Lock(unittest.TestCase):
    def test_other_threads_work_while_one_trains(self):
        ticks, ended = [], threading.Event()

        def tick():
            while not ended.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        tiny(epochs=200, seeds=range(2), test_every=0)
        ended.set()
        thread.join()
        self.assertGreater(len(ticks), 10)


if __name__ == "__main__":
    unittest.main()
