"""Experiments: trained once, whatever interrupts them, and never twice."""

import csv
import json
import random
import re
import shlex
import shutil
import signal
import sqlite3
import time
import unittest

import support
from support import CliCase

# Runs of milliseconds; {epochs} makes them long enough to be interrupted.
EXPERIMENT = """
title = "A small grid"
tasks = {tasks}
seeds = "0..{last_seed}"

[axis]
key = "test-scales"
values = [1, 2, 4]

[settings]
samples = 64
validation-samples = 16
test-samples = 16
batch = 32
epochs = {epochs}
length = 3
width = 8
mlp-width = 8
validate-every = 0
test-every = 0
test-scales = "1,2,4"
checkpoint-every = {checkpoint_every}

[[lines]]
name = "positional"
architecture = "positional"

[[lines]]
name = "other"
architecture = "standard"
mlp-width = 12
"""


class Reproduce(CliCase):
    def write_experiment(self, tasks=("cumulative-sum", "sort"), last_seed=1, epochs=4,
                         checkpoint_every=0.05):
        text = EXPERIMENT.format(tasks=json.dumps(list(tasks)), last_seed=last_seed, epochs=epochs,
                                 checkpoint_every=checkpoint_every)
        (self.folder / "small.toml").write_text(text)

    def table(self, results="results"):
        return (self.folder / results / "small/small.csv").read_bytes()

    def database(self, results="results"):
        """Everything but times and messages."""
        with sqlite3.connect(self.folder / results / "results.db") as connection:
            runs = connection.execute(
                "SELECT key, configuration, status, epochs, steps FROM runs ORDER BY key").fetchall()
            return runs, connection.execute("SELECT * FROM measurements").fetchall()

    def test_kills_change_nothing(self):
        # On a machine with other work the first, timed run may take many times longer than the
        # rest, which then is over after a few kills: then once more, with longer runs.
        for epochs in [400, 1600, 6400]:
            for folder in ["results", "whole"]:
                shutil.rmtree(self.folder / folder, ignore_errors=True)
            self.write_experiment(last_seed=2, epochs=epochs)
            started = time.monotonic()
            self.run_ok("reproduce", "small.toml", "--results", "whole")
            if self.kill_ten_times(0.12 * (time.monotonic() - started)) >= 5:
                break
        else:
            self.fail("the grid is over after a few kills")
        output = self.run_ok("reproduce", "small.toml")
        self.assertEqual(output.replace("results/", "whole/"),
                         self.run_ok("reproduce", "small.toml", "--results", "whole"))
        self.assertEqual(self.table(), self.table("whole"))
        runs, tests = self.database()
        self.assertEqual((len(runs), len(tests)), (12, 12 * (2 + 3 * 2)))
        self.assertEqual((runs, tests), self.database("whole"))
        for key, *_ in runs:
            models = [support.read_tensors(self.folder / results / "runs" / key / "model.safetensors")
                      for results in ["results", "whole"]]
            self.assertEqual(*models)
        self.assertEqual(len(list((self.folder / "results/runs").iterdir())), 12)

    def kill_ten_times(self, longest_delay):
        """At random moments; how often there was something to kill."""
        delays = random.Random(5)
        killed = 0
        for _ in range(10):
            with self.background("reproduce", "small.toml") as process:
                time.sleep(delays.uniform(0, longest_delay))
                killed += process.poll() is None
                process.kill()
                process.communicate()
        return killed

    def test_interrupt_and_go_on(self):
        self.write_experiment(last_seed=0, epochs=800)
        with self.background("reproduce", "small.toml", "--threads", 1) as process:
            self.wait_for_results(process, 1)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors.decode())
        self.assertIn("small.csv", output.decode())  # of what is there
        command = shlex.split(re.search(r"To go on:\n  (.*)$", errors.decode(), re.M)[1])
        self.assertEqual(command[0], support.PROGRAM)
        _, errors = self.run_code(0, *command[1:])
        self.assertRegex(errors, r"4 runs in results: [123] there, [123] to train \([1-9] begun")
        self.run_ok("reproduce", "small.toml", "--results", "whole")
        self.assertEqual(self.table(), self.table("whole"))

    def test_interrupt_tells_what_failed(self):
        self.write_experiment(epochs=100000)
        with self.background("reproduce", "small.toml") as process:
            self.wait_for(process, lambda: list(self.folder.glob("results/runs/*/manifest.json")))
        run = next((self.folder / "results/runs").glob("*/manifest.json")).parent
        (run / "manifest.json").write_text("{")
        with self.background("reproduce", "small.toml") as process:
            self.wait_for_results(process, 1)  # that it failed is one
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors.decode())
        self.assertIn("error: 1 of 8 runs failed\n", errors.decode())
        self.assertIn(f"results/runs/{run.name}: ", errors.decode())
        self.assertIn("To go on:\n", errors.decode())

    def wait_for_results(self, process, count):
        def are_there():
            try:
                return ((self.folder / "results/results.db").exists() and
                        len(self.database()[0]) >= count)
            except sqlite3.OperationalError:  # still without its tables
                return False
        self.wait_for(process, are_there)

    def wait_for(self, process, condition):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertIsNone(process.poll(), "it ended too early")
            self.assertLess(time.monotonic(), deadline, "it takes too long")
            time.sleep(0.005)

    def test_one_process_at_a_time(self):
        self.write_experiment(epochs=100000)
        with self.background("reproduce", "small.toml") as process:
            deadline = time.monotonic() + 30
            while not list(self.folder.glob("results/runs/*")) and time.monotonic() < deadline:
                time.sleep(0.005)
            # Not run_error: the process at work may have a file half-written just now.
            _, errors = self.run_code(1, "reproduce", "small.toml", "--tasks", "sort")
            for part in ["'results' is in use by a running process", "HINT: wait", "--shard K/M", "'posattn submit'"]:
                self.assertIn(part, errors)
            self.assertIsNone(process.poll())

    def test_a_part_and_then_the_rest(self):
        self.write_experiment()
        part = self.run_json("reproduce", "small.toml", "--tasks", "sort", "--lines", "other",
                             "--seeds", "1")
        self.assertEqual(part["runs"], {"all": 1, "there": 0, "done": 1, "diverged": 0,
                                        "failed": 0, "missing": 0})
        self.assertEqual({(point["task"], point["line"], point["runs"])
                          for point in part["points"]}, {("sort", "other", 1)})
        self.assertRegex(self.run_ok("reproduce", "small.toml", "--runs", 1),
                         r"sort +positional +1/2 .*\n +other +2/2 ")
        whole = self.run_json("reproduce", "small.toml")
        self.assertEqual(whole["runs"]["there"], 5)
        self.assertEqual(whole["runs"]["done"], 3)
        again = self.run_json("reproduce", "small.toml")
        self.assertEqual(again["runs"]["there"], 8)
        self.assertEqual(again["points"], whole["points"])
        self.assertEqual(again["files"]["csv"], "results/small/small.csv")
        rows = list(csv.DictReader(self.table().decode().splitlines()))
        medians = [float(row["median"]) for row in rows]
        self.assertEqual(medians, [point["median"] for point in again["points"]])
        self.assertEqual(len(rows), 2 * 2 * 5)

    def test_fewer_epochs_are_another_experiment(self):
        self.write_experiment(tasks=["sort"], last_seed=0)
        self.run_ok("reproduce", "small.toml")
        before = self.table()
        output = self.run_ok("reproduce", "small.toml", "--epochs", 2)
        self.assertIn("results/small-epochs2/small-epochs2.csv", output)
        self.assertEqual(self.table(), before)
        self.assertEqual(len(self.database()[0]), 4)

    def test_dry_run(self):
        self.write_experiment()
        self.assertIn("8 runs in results: 0 there, 8 to train",
                      self.run_ok("reproduce", "small.toml", "--dry-run"))
        self.assertFalse((self.folder / "results").exists())
        self.run_ok("reproduce", "small.toml", "--tasks", "sort")
        found = self.run_json("reproduce", "small.toml", "--dry-run")
        self.assertEqual(found["all"], {"runs": 8, "done": 4, "diverged": 0, "failed": 0,
                                        "begun": 0, "missing": 4, "epochs": 16})
        self.assertEqual([(part["task"], part["missing"]) for part in found["parts"]],
                         [("cumulative-sum", 2), ("cumulative-sum", 2), ("sort", 0), ("sort", 0)])

    def test_a_broken_run_does_not_stop_the_others(self):
        self.write_experiment(tasks=["sort"])
        self.run_ok("reproduce", "small.toml")
        whole = self.table()
        run = next((self.folder / "results/runs").glob("sort-positional-seed1-*"))
        for file in ["results.db", "small/runs.jsonl"]:
            (self.folder / "results" / file).unlink()
        manifest = run / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"status": "done"', '"status": "running"'))
        checkpoint = run / "checkpoint.safetensors"
        checkpoint.write_bytes(checkpoint.read_bytes()[:50])
        for _ in range(2):
            self.run_error(1, "reproduce", "small.toml",
                           message=["1 of 4 runs failed", f"results/runs/{run.name}: ",
                                    "checkpoint.safetensors", "may be removed"])
            self.assertNotEqual(self.table(), whole)
        for file in run.iterdir():
            file.unlink()
        self.run_ok("reproduce", "small.toml")
        self.assertEqual(self.table(), whole)

    def test_that_runs_diverge_is_a_result(self):
        self.write_experiment(tasks=["sort"])
        file = self.folder / "small.toml"
        file.write_text(file.read_text().replace("[settings]\n", "[settings]\nlr = 1e30\n"))
        for there in [0, 4]:
            result = self.run_json("reproduce", "small.toml")
            self.assertEqual(result["runs"], {"all": 4, "there": there, "done": 0, "failed": 0,
                                              "diverged": 4 - there, "missing": 0})

    def test_what_is_refused(self):
        self.write_experiment()
        for code, arguments, message in [
                (2, ["value-rnge"], ["unknown experiment 'value-rnge'", "did you mean 'value-range'?"]),
                (2, [], ["EXPERIMENT"]),
                (4, ["missing.toml"], ["missing.toml"]),
                (2, ["small.toml", "--tasks", "path"], ["--tasks path", "cumulative-sum, sort"]),
                (2, ["small.toml", "--lines", "standard"], ["--lines standard"]),
                (2, ["small.toml", "--values", "3"], ["--values 3"]),
                (2, ["small.toml", "--runs", "3"], ["--runs 3"]),
                (2, ["small.toml", "--seeds", "x"], ["--seeds"]),
                (2, ["small.toml", "--quick"], ["--quick"]),
                (2, ["small.toml", "--threads", "-1"], ["-1"])]:
            with self.subTest(arguments=arguments):
                self.run_error(code, "reproduce", *arguments, message=message)
                self.assertFalse((self.folder / "results").exists())
        (self.folder / "results").mkdir()
        (self.folder / "results/results.db").write_bytes(b"x" * 3000)
        self.run_error(4, "reproduce", "small.toml",
                       message=["'results/results.db' cannot be used", "not a database"])


if __name__ == "__main__":
    unittest.main()
