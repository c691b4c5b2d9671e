"""Results beside the published ones and beside those of another folder."""

import csv
import functools
import pathlib
import re
import shutil
import sqlite3
import statistics
import tempfile
import unittest

from support import CliCase, call

EXPERIMENT = """
title = "Small"
tasks = ["cumulative-sum", "sort"]
seeds = "0..5"

[axis]
key = "test-scales"
values = [1, 2, 4, 10]
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
test-scales = "1,2,4,10"

[[lines]]
name = "positional"
architecture = "positional"

[[lines]]
name = "standard"
architecture = "standard"
"""

# Of results.db, the rows of tests in value ranges.
TEST_MSE = "split = 'test' AND axis = 'c' AND metric = 'mse'"


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

    def copy_of_results(self, statement, noticed=False):
        """Results changed by an SQL statement; without their checksums, unless it is to be noticed."""
        copy = pathlib.Path(tempfile.mkdtemp(prefix="changed-", dir=self.folder))
        shutil.copy(self.source / "results" / "results.db", copy)
        with sqlite3.connect(copy / "results.db") as database:
            database.execute(statement)
            if not noticed:
                database.execute("UPDATE runs SET checksum = '', version = '0.1.0'")
        database.close()
        return copy

    def test_a_changed_value_is_noticed(self):
        changed = self.copy_of_results(
            f"UPDATE measurements SET value = value * 1.01 WHERE {TEST_MSE} AND x = 4 "
            "AND key LIKE 'sort-positional-seed3-%'", noticed=True)
        for command in (["compare", self.small, "--results", changed],
                        ["compare", self.small, "--results", self.results, "--with", changed],
                        ["report", "--results", changed, self.small]):
            self.run_error(4, *command, message=["results.db': run sort-positional-seed3-",
                                                 "was changed after it was recorded"])

    def assert_readable(self, text):
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100, line)
            self.assertEqual(line, line.rstrip())

    def test_nothing_published(self):
        text = self.run_ok("compare", self.small, "--results", self.results)
        self.assert_readable(text)
        self.assertIn("No published results of an experiment of your own. --with DIR", text)
        self.assertIn("sort, standard: test MSE\n", text)
        self.assertIn("growth from c = 2 to 10: c^", text)
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
                self.assertEqual((ours["runs"], ours["missing"], ours["diverged"]), (6, 0, 0))
                points += 1
        self.assertEqual(points, len(table))
        self.assertEqual(points, 2 * 2 * (1 + 1 + 4))

    def test_lines_are_paired_by_seed(self):
        with sqlite3.connect(self.source / "results" / "results.db") as database:
            values = {key: value for key, value in database.execute(
                "SELECT key, mse FROM tests WHERE c = 4 AND key LIKE 'sort-%'")}
        database.close()
        lines = {line: [next(value for key, value in values.items()
                             if key.startswith(f"sort-{line}-seed{seed}-")) for seed in range(6)]
                 for line in ("positional", "standard")}
        comparison = self.run_json("compare", self.small, "--results", self.results)
        self.assertEqual(len(comparison["paired"]), 2 * 4)
        paired = next(point for point in comparison["paired"]
                      if point["task"] == "sort" and point["x"] == 4)
        self.assertEqual((paired["first"], paired["second"], paired["pairs"]),
                         ("positional", "standard", 6))
        self.assertAlmostEqual(paired["median_ratio"], statistics.median(lines["positional"]) /
                               statistics.median(lines["standard"]))
        self.assertTrue(2 / 64 <= paired["p_value"] <= 1)
        text = self.run_ok("compare", self.small, "--results", self.results)
        self.assertIn("sort: positional against standard, paired by seed", text)

    def test_printed_medians_lie_in_their_intervals(self):
        # 0.2346, not 0.235 [0.23, 0.23]
        close = self.copy_of_results(f"UPDATE measurements SET value = 0.2346 WHERE {TEST_MSE}")
        for results in (self.results, close):
            text = self.run_ok("compare", self.small, "--results", results)
            rows = re.findall(r"^ *\d+ +(\S+) +\[(\S+), (\S+)\] +6 +\[(\S+), (\S+)\]$", text, re.M)
            self.assertEqual(len(rows), 16)
            for row in rows:
                median, low, high, least, most = map(float, row)
                self.assertTrue(least <= low <= median <= high <= most, row)

    def test_too_few_runs_have_no_interval_and_no_p(self):
        other = self.copy_of_results("DELETE FROM runs WHERE key LIKE 'sort-standard-seed3-%'")
        text = self.run_ok("compare", self.small, "--results", other)
        self.assertEqual(len(re.findall(r"^ *\d+ +\S+ +- +5/6 ", text, re.M)), 4)
        self.assertIn("5 of 6 runs are there", text)
        self.assertNotIn("sort: positional against standard", text)
        curves = self.run_json("compare", self.small, "--results", other)["curves"]
        self.assertEqual([curve["points"][0]["ours"]["median_interval"] is None for curve in curves],
                         [False, False, False, True])
        # The same losses in both lines: pairs without a difference say nothing.
        equal = self.copy_of_results(f"UPDATE measurements SET value = 1 WHERE {TEST_MSE}")
        self.assertRegex(self.run_ok("compare", self.small, "--results", equal), r"\n +2 +0 +1 +-\n")
        self.assertEqual({point["p_value"] for point in self.run_json(
            "compare", self.small, "--results", equal)["paired"]}, {None})

    def test_names_what_is_missing(self):
        complete = self.run_ok("compare", self.small, "--results", self.results)
        self.assertNotIn("missing", complete)
        self.assertEqual(self.run_json("compare", self.small, "--results", self.results)["missing"], [])
        fewer = self.copy_of_results("DELETE FROM runs WHERE key LIKE 'sort-standard-%' "
                                     "OR key LIKE 'sort-positional-seed3-%'")
        text = self.run_ok("compare", self.small, "--results", fewer, "--with", self.results)
        self.assertIn("4 of their 16 test points cannot be compared", " ".join(text.split()))
        self.assertIn("7 of 24 runs are missing", text)
        self.assertIn("\n  sort, positional: 1 of 6 runs\n  sort, standard: 6 runs\n", text)
        self.assertRegex(text, r"To train them: posattn reproduce \S+small.toml --results ")
        failed = self.copy_of_results("UPDATE runs SET status = 'failed', message = 'disk full' "
                                      "WHERE key LIKE 'sort-positional-seed3-%'")
        self.assertIn("sort, positional: 1 of 6 runs [1 failed: disk full]",
                      self.run_ok("compare", self.small, "--results", failed))
        missing = self.run_json("compare", self.small, "--results", failed)["missing"]
        self.assertEqual(missing, [{"task": "sort", "line": "positional", "x": None, "runs": 6,
                                    "missing": 1, "failed": 1, "failure": "disk full"}])

    def test_with_itself_everything_agrees(self):
        text = self.run_ok("compare", self.small, "--results", self.results, "--with", self.results)
        self.assert_readable("\n".join(line for line in text.splitlines() if "posattn" not in line))
        self.assertIn("16 of 16 test points agree (100 %)", " ".join(text.split()))
        self.assertIn("\n4 of 4 points agree; 4 within a factor of 3 of their median, "
                      "4 inside their [q10, q90]\n", text)
        comparison = self.run_json("compare", self.small, "--results", self.results,
                                   "--with", self.results, "--split", "all")
        self.assertEqual([comparison[key] for key in
                          ("points", "agreeing", "within_factor", "in_quantiles")], [16] * 4)
        for curve in comparison["curves"]:
            self.assertEqual(curve["log10_ratio"], 0)
            self.assertEqual(curve["agreeing"], len(curve["points"]))
            if curve["split"] == "test":
                self.assertEqual(curve["growth"]["exponent"], curve["their_growth"]["exponent"])

    def growth(self, *arguments):
        """Our exponent and theirs by task and line."""
        return {(curve["task"], curve["line"]):
                (curve["growth"]["exponent"], curve.get("their_growth", {}).get("exponent"))
                for curve in self.run_json("compare", self.small, *arguments)["curves"]}

    def test_growth_is_of_a_curve_s_own_points(self):
        ours = {curve: exponent for curve, (exponent, _)
                in self.growth("--results", self.results).items()}
        holed = self.copy_of_results(f"DELETE FROM measurements WHERE {TEST_MSE} AND x = 4")
        short = self.copy_of_results(f"DELETE FROM measurements WHERE {TEST_MSE} AND x = 10")
        for curve, exponents in self.growth("--results", self.results, "--with", holed).items():
            self.assertEqual(exponents[0], ours[curve])
            self.assertNotEqual(exponents[1], ours[curve])
        self.assertEqual(self.growth("--results", self.results, "--with", short),
                         {curve: (exponent, None) for curve, exponent in ours.items()})
        self.assertEqual({exponent for exponent, _ in self.growth("--results", short).values()}, {None})
        self.assertNotIn("growth from", self.run_ok("compare", self.small, "--results", short))
        self.run_ok("report", self.small, "--results", self.results, "--output", "page.html")
        page = (self.folder / "page.html").read_text()
        for exponent in ours.values():
            self.assertIn(f"<td>{exponent:.2f}<small>", page)

    def test_a_file_of_an_embedded_name_is_refused(self):
        shutil.copy(self.small, self.folder / "value-range.toml")
        for command in ["compare", "reproduce"]:
            self.run_error(3, command, "./value-range.toml", "--results", self.results,
                           message=["would take the results folder of 'value-range'",
                                    "rename it"])
        self.assertFalse((self.source / "results/value-range").exists())

    def test_recorded_runs_are_read_beside_a_database(self):
        other = self.copy_of_results("DELETE FROM runs WHERE key LIKE 'sort-%'")
        before = (other / "results.db").read_bytes()
        (other / "theirs").mkdir()
        shutil.copy(self.source / "results/small/runs.jsonl", other / "theirs")
        whole = self.run_json("compare", self.small, "--results", self.results)
        self.assertEqual(self.run_json("compare", self.small, "--results", other) |
                         {"results": self.results}, whole)
        self.assertIn(" there, 0 to train",
                      self.run_ok("reproduce", self.small, "--results", other, "--dry-run"))
        self.assertEqual((other / "results.db").read_bytes(), before)

    def test_recorded_runs_are_enough_and_nothing_is_written(self):
        (self.folder / "recorded/small").mkdir(parents=True)
        shutil.copy(self.source / "results/small/runs.jsonl", self.folder / "recorded/small")
        whole = self.run_json("compare", self.small, "--results", self.results)
        recorded = self.run_json("compare", self.small, "--results", "recorded")
        self.assertEqual(recorded | {"results": self.results}, whole)
        self.run_ok("report", self.small, "--results", "recorded", "--output", "page.html")
        self.assertIn("24 runs in recorded: 24 there, 0 to train",
                      self.run_ok("reproduce", self.small, "--results", "recorded", "--dry-run"))
        self.assertEqual([path for path in (self.folder / "recorded").rglob("*") if path.is_file()],
                         [self.folder / "recorded/small/runs.jsonl"])
        self.run_error(2, "report", "recorded",
                       message=["'recorded' holds experiments", "posattn report --results recorded"])

    def test_disagreement_has_an_exit_code(self):
        other = self.copy_of_results(f"UPDATE measurements SET value = value * 1000 WHERE {TEST_MSE} AND x = 4")
        text, _ = self.run_code(6, "compare", self.small, "--results", self.results, "--with", other)
        self.assertIn("12 of 16 test points agree (75 %)", " ".join(text.split()))
        self.assertIn("less than 90 %", text)
        self.assertIn("12 within a factor of 3 of their median", " ".join(text.split()))
        self.assertRegex(text, r"\n +4 .* 0\.001 +no\n")

    def test_what_is_missing_is_said(self):
        other = self.copy_of_results(
            "DELETE FROM runs WHERE key LIKE 'sort-positional-seed3-%' OR key LIKE 'cumulative%'")
        text = self.run_ok("compare", self.small, "--results", other, "--with", self.results)
        self.assertRegex(text, r"\n +1 .* 5/6 ")
        self.assertIn("5 of 6 runs are there", text)
        self.assertIn(f"Not in {other}: cumulative-sum, positional; cumulative-sum, standard",
                      " ".join(text.split()))
        comparison = self.run_json("compare", self.small, "--results", other)
        self.assertEqual({curve["task"] for curve in comparison["curves"]}, {"sort"})
        self.assertEqual(comparison["paired"], [])  # five pairs are too few

    def test_a_diverged_run_is_the_worst(self):
        other = self.copy_of_results(
            "UPDATE runs SET status = 'diverged' WHERE key LIKE 'sort-standard-seed0-%'")
        text = self.run_ok("compare", self.small, "--results", other)
        self.assertIn("1 of 6 runs diverged: counted as infinite", text)
        self.assertEqual(len(re.findall(r", inf\]$", text, re.M)), 4)
        point = self.run_json("compare", self.small, "--results", other)["curves"][3]["points"][0]
        self.assertIsNone(point["ours"]["max"])
        self.assertGreater(point["ours"]["median"], 0)
        self.run_ok("report", self.small, "--results", other, "-o", "page.html")
        self.assertIn("<svg", (self.folder / "page.html").read_text())

    def test_points_where_most_runs_diverged_do_not_agree(self):
        other = self.copy_of_results("UPDATE runs SET status = 'diverged' "
                                     "WHERE key LIKE 'sort-standard-%' AND key NOT LIKE '%-seed0-%'")
        text, _ = self.run_code(6, "compare", self.small, "--results", other, "--with", self.results)
        self.assertIn("5 of 6 runs diverged", text)
        self.assertIn("12 of 16 test points agree", text)
        self.run_code(6, "compare", self.small, "--results", other, "--with", other)
        result = call("compare", self.small, "--results", other, "--json", cwd=self.folder)
        self.assertIn('"median": null', result.stdout.decode())

    def test_published(self):
        arguments = ["compare", "value-range", "--epochs", "1", "--results", self.paper]
        text, _ = self.run_code(6, *arguments)  # after one epoch nothing is as it should be
        self.assertIn("value-range: ", text)
        self.assertIn("[1 epochs]", text)
        self.assertIn("1 of 10 runs are there", text)
        self.assertRegex(text, r"\n 2 +\S+ +- +1/10 +0\.00125 +\[0\.000\d+, 0\.00\d+\] +10 ")
        self.assertIn("Published, but not in ", text)
        self.assertRegex(text, r"\d+ of 20 test points agree \(\d+ %\) with the published results: reduced;")
        self.assertRegex(text, r" reduced\n")
        self.assertNotRegex(text, r" no\n")
        self.assertIn("The published runs trained for 2001 epochs: a training of 1 is not expected to agree.\n",
                      text)
        document, _ = self.run_code(6, *arguments, "--json")
        self.assertIn('"with": "the published results"', document)

    def test_nothing_to_compare_is_an_error_of_data(self):
        self.run_error(4, "compare", "value-range", message="results")
        self.run_error(4, "compare", "value-range", "--results", self.results,
                       message=["no results of value-range in",
                                f"posattn reproduce value-range --results {self.results}"])
        self.run_error(4, "compare", "value-range", "--results", self.paper,
                       message=["no results of value-range in", "there is value-range-epochs1: posattn "
                                f"compare value-range --epochs 1 --results {self.paper}"])
        self.run_error(4, "compare", self.small, "--results", self.results, "--with", self.paper,
                       message=["no results of small in", f"--results {self.paper}"])
        self.run_error(4, "compare", self.small, "--results", self.results, "--with", "nowhere",
                       message=["no results in 'nowhere'", "check --with"])

    def test_usage(self):
        self.run_error(2, "compare", "value-rang", message="did you mean 'value-range'?")
        self.run_error(2, "compare", message="EXPERIMENT")
        self.run_error(2, "compare", "value-range", "--split", "train", message="--split")
        self.run_error(4, "compare", "absent.toml", message="absent.toml")


if __name__ == "__main__":
    unittest.main()
