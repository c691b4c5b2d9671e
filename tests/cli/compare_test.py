"""Results beside the published ones and beside those of another folder."""

import csv
import functools
import pathlib
import shutil
import sqlite3
import statistics
import tempfile
import unittest

from support import CliCase, call

EXPERIMENT = """
title = "Small"
tasks = ["cumulative-sum", "sort"]
seeds = "0..4"

[axis]
key = "test-scales"
values = [1, 2, 4]
label = "c"

[settings]
length = 3
samples = 64
validation-samples = 16
test-samples = 16
batch = 16
epochs = 3
width = 8
mlp-width = 8
test-scales = "1,2,4"

[[lines]]
name = "positional"
architecture = "positional"

[[lines]]
name = "standard"
architecture = "standard"
"""


def reproduce(folder, *arguments):
    result = call("reproduce", *arguments, cwd=folder)
    if result.returncode != 0:
        raise AssertionError(result.stderr.decode())


@functools.cache
def reproduced():
    """A folder with small.toml and results of all its runs, and one epoch of the paper's first
    experiment, a part of it, in `paper`. Made once; tests only read it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="posattn-compare-"))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    (folder / "small.toml").write_text(EXPERIMENT)
    reproduce(folder, "small.toml")
    reproduce(folder, "value-range", "--tasks", "sort", "--runs", "1", "--epochs", "1",
              "--results", "paper")
    return folder


class Compare(CliCase):
    def setUp(self):
        super().setUp()
        self.source = reproduced()
        self.small = str(self.source / "small.toml")
        self.results = str(self.source / "results")
        self.paper = str(self.source / "paper")

    def copy_of_results(self, statement):
        """Results changed by an SQL statement."""
        copy = self.folder / "changed"
        copy.mkdir()
        shutil.copy(self.source / "results" / "results.db", copy)
        with sqlite3.connect(copy / "results.db") as database:
            database.execute(statement)
        database.close()
        return copy

    def assert_readable(self, text):
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100, line)
            self.assertEqual(line, line.rstrip())

    def test_nothing_published(self):
        text = self.run_ok("compare", self.small, "--results", self.results)
        self.assert_readable(text)
        self.assertIn("No published numbers to compare with", text)
        self.assertIn("sort, standard: test MSE\n", text)
        self.assertIn("growth from c = 2 to 4: c^", text)
        self.assertNotIn("agrees", text)
        comparison = self.run_json("compare", self.small, "--results", self.results)
        self.assertEqual((comparison["points"], comparison["agrees"]), (0, True))
        self.assertEqual([(c["task"], c["line"], c["split"]) for c in comparison["curves"]],
                         [(task, line, "test") for task in ("cumulative-sum", "sort")
                          for line in ("positional", "standard")])

    def test_medians_are_those_of_the_table(self):
        with open(self.source / "results" / "small" / "small.csv", newline="") as file:
            table = {(row["task"], row["architecture"], row["split"], row["x"]): row
                     for row in csv.DictReader(file)}
        comparison = self.run_json("compare", self.small, "--results", self.results, "--split", "all")
        points = 0
        for curve in comparison["curves"]:
            for point in curve["points"]:
                x = "" if point["x"] is None else f"{point['x']:g}"
                row = table[curve["task"], curve["line"], curve["split"], x]
                ours = point["ours"]
                for key in ("min", "q10", "median", "q90", "max"):
                    self.assertEqual(ours[key], float(row[key]))
                low, high = ours["median_interval"]
                self.assertTrue(ours["min"] <= low <= ours["median"] <= high <= ours["max"])
                self.assertEqual((ours["runs"], ours["missing"], ours["diverged"]), (5, 0, 0))
                points += 1
        self.assertEqual(points, len(table))
        self.assertEqual(points, 2 * 2 * (1 + 1 + 3))

    def test_lines_are_paired_by_seed(self):
        with sqlite3.connect(self.source / "results" / "results.db") as database:
            values = {key: value for key, value in database.execute(
                "SELECT key, mse FROM tests WHERE c = 4 AND key LIKE 'sort-%'")}
        database.close()
        lines = {line: [next(value for key, value in values.items()
                             if key.startswith(f"sort-{line}-seed{seed}-")) for seed in range(5)]
                 for line in ("positional", "standard")}
        comparison = self.run_json("compare", self.small, "--results", self.results)
        self.assertEqual(len(comparison["paired"]), 2 * 3)
        paired = next(point for point in comparison["paired"]
                      if point["task"] == "sort" and point["x"] == 4)
        self.assertEqual((paired["first"], paired["second"], paired["pairs"]),
                         ("positional", "standard", 5))
        self.assertAlmostEqual(paired["median_ratio"], statistics.median(lines["positional"]) /
                               statistics.median(lines["standard"]))
        self.assertTrue(2 / 32 <= paired["p_value"] <= 1)
        text = self.run_ok("compare", self.small, "--results", self.results)
        self.assertIn("sort: positional against standard, paired by seed", text)

    def test_with_itself_everything_agrees(self):
        text = self.run_ok("compare", self.small, "--results", self.results, "--with", self.results)
        self.assert_readable("\n".join(line for line in text.splitlines() if "posattn" not in line))
        self.assertIn("12 of 12 test points agree (100 %)", " ".join(text.split()))
        comparison = self.run_json("compare", self.small, "--results", self.results,
                                   "--with", self.results, "--split", "all")
        self.assertEqual((comparison["points"], comparison["agreeing"]), (12, 12))
        for curve in comparison["curves"]:
            self.assertEqual(curve["log10_ratio"], 0)
            self.assertEqual(curve["agreeing"], len(curve["points"]))
            if curve["split"] == "test":
                self.assertEqual(curve["growth"]["exponent"], curve["their_growth"]["exponent"])

    def test_disagreement_has_an_exit_code(self):
        other = self.copy_of_results("UPDATE tests SET mse = mse * 1000 WHERE c = 4")
        text, _ = self.run_code(6, "compare", self.small, "--results", self.results, "--with", other)
        self.assertIn("8 of 12 test points agree (67 %)", " ".join(text.split()))
        self.assertIn("less than 90 %", text)
        self.assertRegex(text, r"\n4 .* 0\.001 +no\n")

    def test_what_is_missing_is_said(self):
        other = self.copy_of_results(
            "DELETE FROM runs WHERE key LIKE 'sort-positional-seed3-%' OR key LIKE 'cumulative%'")
        text = self.run_ok("compare", self.small, "--results", other, "--with", self.results)
        self.assertRegex(text, r"\n1 .* 4/5 ")
        self.assertIn("1 of 5 runs not finished", text)
        self.assertIn("Not in changed: cumulative-sum, positional; cumulative-sum, standard"
                      .replace("changed", str(other)), " ".join(text.split()))
        comparison = self.run_json("compare", self.small, "--results", other)
        self.assertEqual({curve["task"] for curve in comparison["curves"]}, {"sort"})
        self.assertEqual(comparison["paired"], [])  # four pairs are too few

    def test_a_diverged_run_does_not_agree(self):
        other = self.copy_of_results(
            "UPDATE runs SET status = 'diverged' WHERE key LIKE 'sort-standard-seed0-%'")
        text, _ = self.run_code(6, "compare", self.small, "--results", other, "--with", self.results)
        self.assertIn("1 of 5 runs diverged", text)
        self.assertIn("9 of 12 test points agree", text)
        result = call("compare", self.small, "--results", other, "--json", cwd=self.folder)
        self.assertIn('"median": null', result.stdout.decode())

    def test_published(self):
        arguments = ["compare", "value-range", "--epochs", "1", "--results", self.paper]
        text, _ = self.run_code(6, *arguments)  # after one epoch nothing is as it should be
        self.assertIn("value-range: ", text)
        self.assertIn("[1 epochs]", text)
        self.assertIn("9 of 10 runs not finished", text)
        self.assertRegex(text, r"\n 2 +\S+ +\[\S+ \S+\] +1/10 +0\.00125 +\[0\.00063, 0\.0021\] +10 ")
        self.assertIn("Published, but not in ", text)
        self.assertRegex(text, r"\d+ of 20 test points agree \(\d+ %\) with the published results: less")
        document, _ = self.run_code(6, *arguments, "--json")
        self.assertIn('"with": "the published results"', document)

    def test_nothing_to_compare_is_an_error_of_data(self):
        self.run_error(4, "compare", "value-range", message="results")
        self.run_error(4, "compare", "value-range", "--results", self.results,
                       message=["no results of value-range in",
                                f"posattn reproduce value-range --results {self.results}"])
        self.run_error(4, "compare", self.small, "--results", self.results, "--with", self.paper,
                       message=["no results of small in", f"--results {self.paper}"])

    def test_usage(self):
        self.run_error(2, "compare", "value-rang", message="did you mean 'value-range'?")
        self.run_error(2, "compare", message="EXPERIMENT")
        self.run_error(2, "compare", "value-range", "--split", "train", message="--split")
        self.run_error(4, "compare", "absent.toml", message="absent.toml")


if __name__ == "__main__":
    unittest.main()
