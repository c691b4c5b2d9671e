"""Shards of an experiment, trained apart and merged, are the results of one process."""

import sqlite3
import unittest

import support
from support import CliCase

EXPERIMENT = """
title = "A small grid"
tasks = ["cumulative-sum", "sort"]
seeds = "0..1"

[axis]
key = "test-scales"
values = [1, 2]

[settings]
samples = 64
validation-samples = 16
test-samples = 16
batch = 32
epochs = 2
length = 3
width = 8
mlp-width = 8
test-scales = "1,2"

[[lines]]
name = "positional"
architecture = "positional"

[[lines]]
name = "standard"
architecture = "standard"
"""


class Shards(CliCase):
    def setUp(self):
        super().setUp()
        (self.folder / "small.toml").write_text(EXPERIMENT)

    def rows(self, results):
        with sqlite3.connect(self.folder / results / "results.db") as connection:
            runs = connection.execute(
                "SELECT key, configuration, status, epochs, steps FROM runs ORDER BY key").fetchall()
            return runs, connection.execute("SELECT * FROM measurements").fetchall()

    def shard(self, shard, *arguments):
        return self.run_json("reproduce", "small.toml", "--shard", shard, "--results", "parts",
                             "--threads", 1, *arguments)

    def test_merged_they_are_one_sweep(self):
        self.run_ok("reproduce", "small.toml", "--results", "whole", "--threads", 1)
        planned = self.shard("2/3", "--dry-run")["all"]["runs"]
        done = [self.shard(f"{number}/3")["runs"]["done"] for number in range(3)]
        self.assertEqual(sum(done), 8)
        self.assertEqual(done[2], planned)
        self.assertTrue(all(done), done)
        self.assertFalse((self.folder / "parts/results.db").exists())
        self.assertEqual(self.shard("0/2")["runs"]["done"], 0)  # the others have trained it
        # Readers see the shards before they are merged.
        compared = self.run_json("compare", "small.toml", "--results", "parts", "--with", "whole")
        self.assertEqual(compared["points"], compared["in_quantiles"])
        self.assertFalse((self.folder / "parts/results.db").exists())

        self.assertIn("8 results added", self.run_ok("merge", "parts"))
        self.assertEqual(self.rows("parts"), self.rows("whole"))
        for run in (self.folder / "whole/runs").iterdir():
            self.assertEqual(
                support.read_tensors(run / "model.safetensors"),
                support.read_tensors(self.folder / "parts/runs" / run.name / "model.safetensors"))
        merged = self.run_json("merge", "parts")
        self.assertEqual((merged["added"], merged["there"]), (0, 8))
        self.run_ok("reproduce", "small.toml", "--results", "parts")
        tables = [(self.folder / name / "small/small.csv").read_bytes()
                  for name in ["parts", "whole"]]
        self.assertEqual(*tables)

        with sqlite3.connect(self.folder / "parts/shards/0-of-3/results.db") as connection:
            connection.execute("UPDATE measurements SET value = 1")
        _, errors = self.run_code(4, "merge", "parts")
        self.assertIn("left out: parts/shards/0-of-3: ", errors)
        self.assertIn("was changed after it was recorded", errors)

    def test_bad_input(self):
        for shard in ["16/16", "0/0", "x"]:
            self.run_error(2, "reproduce", "small.toml", "--shard", shard,
                           message=[f"--shard '{shard}'", "K/M with 0 <= K < M", "HINT"])
        self.run_error(4, "merge", "nowhere", message="there are no shards in 'nowhere'")


if __name__ == "__main__":
    unittest.main()
