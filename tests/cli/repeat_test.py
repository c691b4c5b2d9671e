"""Runs give the same bits again: after a kill, in another fleet, on another number of threads."""

import json
import math
import re
import shlex
import signal
import struct
import unittest

import support
from support import CliCase, read_metrics, read_tensors, tiny

# Long enough to be interrupted, with a checkpoint after every epoch.
LONG = {"epochs": 600, "batch": 64, "test_every": 0, "checkpoint_every": 0, "threads": 1}


class Repeat(CliCase):
    def tensors(self, run, file="model.safetensors"):
        return read_tensors(self.folder / run / file)

    def test_config_repeats_a_run(self):
        self.run_ok("train", *tiny(seed=5, architecture="standard"), "--out", "a")
        self.run_ok("train", "--config", "a/standard-seed5/config.toml", "--out", "b")
        self.assertEqual(self.tensors("a/standard-seed5"), self.tensors("b/standard-seed5"))
        self.assertEqual(support.read_metrics(self.folder / "a/standard-seed5"),
                         support.read_metrics(self.folder / "b/standard-seed5"))

    def test_seed_alone_equals_seed_in_a_fleet(self):
        self.run_ok("train", *tiny(seeds="0..2,3"), "--out", "fleet")
        self.run_ok("train", *tiny(seeds="3"), "--out", "alone")
        self.assertEqual(self.tensors("fleet/positional-seed3"), self.tensors("alone/positional-seed3"))
        self.assertNotEqual(self.tensors("fleet/positional-seed3"),
                            self.tensors("fleet/positional-seed2"))

    def test_threads(self):
        for architecture in ["positional", "standard"]:
            for threads in [1, 2, 3]:
                self.run_ok("train", *tiny(architecture=architecture, samples=600, batch=300),
                            "--threads", threads, "--out", f"t{threads}")
            run = f"{architecture}-seed0"
            self.assertEqual(self.tensors(f"t1/{run}"), self.tensors(f"t2/{run}"))
            self.assertEqual(self.tensors(f"t1/{run}"), self.tensors(f"t3/{run}"))

    def assert_same_run(self, first, second):
        self.assertEqual(self.tensors(first), self.tensors(second))
        self.assertEqual(self.tensors(first, "checkpoint.safetensors"),
                         self.tensors(second, "checkpoint.safetensors"))
        self.assertEqual(support.read_metrics(self.folder / first),
                         support.read_metrics(self.folder / second))

    def test_resume_after_kill(self):
        plain = tiny(**LONG | {"checkpoint_every": 1000})  # how often it saves changes no result
        run = "out/positional-seed0"
        with self.background("train", *tiny(**LONG), "--out", "out") as process:
            self.wait_for_epochs(process, self.folder / run, 20)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.assertFalse((self.folder / run / "model.safetensors").exists())
        self.run_ok("train", *plain, "--out", "out", "--resume")
        self.run_ok("train", *plain, "--out", "whole")
        self.assert_same_run(run, "whole/positional-seed0")
        self.assert_nothing_partial()

    def test_a_cut_history_is_told(self):
        self.run_ok("train", *tiny(epochs=6), "--out", "out")
        metrics = self.folder / "out/positional-seed0/metrics.jsonl"
        data = metrics.read_bytes()
        more = ["train", *tiny(epochs=8), "--out", "out", "--resume"]
        metrics.write_bytes(data[:len(data) // 2])
        kept = metrics.read_text().count("\n")
        _, errors = self.run_code(0, *more)
        self.assertEqual(errors.count("metrics.jsonl has lost the records of"), 1, errors)
        self.assertIn(f"epochs {kept + 1} to 6;", errors)
        self.assertEqual([line["epoch"] for line in read_metrics(metrics.parent)],
                         [*range(1, kept + 1), 7, 8])
        _, errors = self.run_code(0, "train", *tiny(epochs=9), "--out", "out", "--resume")
        self.assertNotIn("lost", errors)

    def test_extended_to_more_epochs(self):
        """A finished run that goes on is the run that was longer from the start."""
        settings = {"architecture": "positional,standard", "validate_every": 2, "test_every": 4}
        self.run_ok("train", *tiny(epochs=7, **settings), "--out", "whole")
        self.run_ok("train", *tiny(epochs=3, **settings), "--out", "out")
        self.run_error(3, "train", *tiny(epochs=7, **settings), "--out", "out",
                       message=["already holds this run", "add --resume"])
        found = self.run_json("train", *tiny(epochs=7, **settings), "--out", "out", "--resume")
        self.assertEqual([run["epoch"] for run in found["runs"]], [7, 7])
        for name in ["positional-seed0", "standard-seed0"]:
            self.assert_same_run(f"out/{name}", f"whole/{name}")
            self.assertEqual((self.folder / f"out/{name}/model.safetensors").read_bytes(),
                             (self.folder / f"whole/{name}/model.safetensors").read_bytes())
            self.assertEqual((self.folder / f"out/{name}/config.toml").read_text(),
                             (self.folder / f"whole/{name}/config.toml").read_text())
        self.run_error(3, "train", *tiny(epochs=5, **settings), "--out", "out", "--resume",
                       message=["a run of 7 epochs, 5 are asked for", "another --out"])

    def test_a_schedule_that_ends_is_not_extended(self):
        settings = {"schedule": "warmup-linear", "warmup_steps": 4}
        self.run_ok("train", *tiny(**settings), "--out", "out")
        self.run_error(3, "train", *tiny(epochs=4, **settings), "--out", "out", "--resume",
                       message=["a run of 3 epochs, whose schedule warmup-linear ends there"])

    def test_interrupt_and_go_on(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            out = number.name
            run = self.folder / out / "positional-seed0"
            with self.background("train", *tiny(**LONG), "--out", out) as process:
                self.wait_for_epochs(process, run, 5)
                process.send_signal(number)
                _, errors = process.communicate(timeout=20)
            errors = errors.decode()
            self.assertEqual(process.returncode, 130, errors)
            self.assertEqual(json.loads((run / "manifest.json").read_text())["status"], "interrupted")
            command = shlex.split(re.search(r"^  (.* --resume)$", errors, re.M)[1])
            self.assertEqual(command[0], support.PROGRAM)
            self.run_ok(*command[1:], "--set", "checkpoint-every=1000")
        self.run_ok("train", *tiny(**LONG | {"checkpoint_every": 1000}), "--out", "whole")
        self.assert_same_run("SIGINT/positional-seed0", "whole/positional-seed0")
        self.assert_same_run("SIGTERM/positional-seed0", "whole/positional-seed0")

    def test_an_interrupt_tells_what_failed(self):
        fleet = tiny(**LONG | {"epochs": 20000, "seeds": "0,1"})
        runs = [self.folder / "out" / f"positional-seed{seed}" for seed in [0, 1]]

        def interrupt(run, *resume):
            with self.background("train", *fleet, "--out", "out", *resume) as process:
                self.wait_for_epochs(process, run, 5)
                process.send_signal(signal.SIGINT)
                errors = process.communicate(timeout=20)[1].decode()
            self.assertEqual(process.returncode, 130, errors)
            self.assertIn("interrupted; the checkpoint is saved. To go on:", errors)
            return errors

        self.assertNotIn("error: ", interrupt(runs[0]))
        (runs[0] / "checkpoint.safetensors").write_text("damaged")
        errors = interrupt(runs[1], "--resume")
        self.assertIn("error: 1 of 2 runs did not finish (0 diverged, 1 failed)\n", errors)
        self.assertIn("out/positional-seed0 failed: ", errors)
        self.assertRegex(errors, r" steps of 2 runs .* 1 failed\n")

    def test_runs_that_had_ended_are_not_still_to_do(self):
        self.run_ok("train", *tiny(seeds="0,1"), "--out", "out")
        _, errors = self.run_code(0, "train", *tiny(seeds="0..3"), "--out", "out", "--resume")
        self.assertIn(" 48/48 steps of 4 runs ", errors)
        self.assertNotIn(" left", errors)

    def test_a_run_that_diverges(self):
        """At this learning rate the first step already overflows. That the other runs of a fleet go
        on is tested in training/fleet_test.cc, where each run has a rate of its own."""
        fleet = tiny(lr=1e20, architecture="standard,positional")
        for resume in [[], ["--resume"]]:  # a diverged run stays diverged
            errors = self.run_error(
                1, "train", *fleet, "--out", "out", *resume,
                message=["2 of 2 runs did not finish", "2 diverged",
                         "out/standard-seed0 diverged", "the loss became"])
            self.assertNotIn("12/12 steps", errors)  # which were not done
            self.assertNotIn("-nan", errors)
        run = self.folder / "out/standard-seed0"
        self.assertEqual(json.loads((run / "manifest.json").read_text())["status"], "diverged")
        self.assertFalse((run / "model.safetensors").exists())
        for dtype, _, data in read_tensors(run / "checkpoint.safetensors").values():
            if dtype == "F32":
                values = struct.unpack(f"<{len(data) // 4}f", data)
                self.assertTrue(all(map(math.isfinite, values)))


if __name__ == "__main__":
    unittest.main()
