"""Experiments, bounds and certificates in Python."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import numpy

import posattn

EXPERIMENT = """title = "tiny"
tasks = ["cumulative-sum"]
seeds = "0..1"
[axis]
key = "test-scales"
values = [1, 2]
label = "c"
[settings]
length = 3
samples = 64
validation-samples = 16
test-samples = 16
batch = 16
epochs = 2
width = 8
mlp-width = 8
[[lines]]
name = "positional"
architecture = "positional"
[[lines]]
name = "standard"
architecture = "standard"
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="posattn-python-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Experiments(Case):
    def test_reproduce_results_compare(self):
        path, results = self.folder / "tiny.toml", self.folder / "results"
        path.write_text(EXPERIMENT)
        with self.assertRaisesRegex(posattn.Error, "no results"):
            posattn.results(path, results=results)
        steps = []
        figure = posattn.reproduce(path, results=results, seeds=[0], threads=1,
                                   callback=lambda progress: steps.append(progress["step"]))
        self.assertTrue(steps)
        if figure is not None:  # without gnuplot there is none
            self.assertIn("<svg", figure)
        table = posattn.results(path, results=results)
        tests = [row for row in zip(table["line"], table["split"], table["x"], table["seed"])
                 if row[1] == "test"]
        self.assertEqual(sorted(tests), [("positional", "test", 1, 0), ("positional", "test", 2, 0),
                                         ("standard", "test", 1, 0), ("standard", "test", 2, 0)])
        self.assertTrue(numpy.isfinite(numpy.asarray(table["value"])).all())
        pandas = types.ModuleType("pandas")
        pandas.DataFrame = lambda columns: ("frame", sorted(columns))
        with unittest.mock.patch.dict(sys.modules, {"pandas": pandas}):
            self.assertEqual(posattn.results(path, results=results),
                             ("frame", ["line", "seed", "split", "task", "value", "x"]))
        posattn.reproduce(path, results=results, threads=1)
        self.assertEqual(set(posattn.results(path, results=results)["seed"]), {0, 1})
        same = posattn.compare(path, results=results, other=results)
        self.assertEqual((same.points, same.agreeing, same.agrees), (4, 4, True))
        self.assertEqual(list(same.table["ratio"]), [1, 1, 1, 1])
        self.assertIn("4 of 4", repr(same))

    def test_what_we_recorded_agrees_with_the_paper(self):
        recorded = pathlib.Path(__file__).resolve().parents[2] / "results"
        found = posattn.compare("value-range", results=recorded)
        self.assertEqual((found.points, found.agreeing), (100, 100))

    def test_bad_questions(self):
        with self.assertRaisesRegex(posattn.Error, "value-range"):
            posattn.reproduce("value-rnge", results=self.folder)
        with self.assertRaises(posattn.Error):
            posattn.results("value-range", results=self.folder / "nowhere")
        with self.assertRaises(posattn.Error):
            posattn.reproduce("value-range", quick=True, tasks=["srot"], results=self.folder)


class Bounds(Case):
    def setUp(self):
        super().setUp()
        self.run_ = posattn.train(task="cumulative-sum", architecture="homogeneous", length=3,
                                  samples=200, batch=50, epochs=3, width=8, mlp_width=8,
                                  test_samples=16, out=self.folder / "runs")[0]

    def test_bounds_are_those_of_the_program(self):
        found = posattn.bound(self.run_, fresh_samples=1000)
        self.assertEqual(found["samples"], 200)
        self.assertEqual(found["measured"]["training_samples"], 200)
        self.assertEqual(posattn.bound(self.run_.folder, fresh_samples=1000)["by_norms"],
                         found["by_norms"])
        alone = posattn.bound(self.run_.model, samples=200)
        self.assertEqual(alone["by_norms"]["log10"], found["by_norms"]["log10"])
        self.assertIsNone(alone["measured"])
        program = os.environ.get("POSATTN")
        if program:
            printed = subprocess.run([program, "bound", self.run_.folder, "--fresh-samples", "1000",
                                      "--json"], check=True, capture_output=True, text=True)
            self.assertEqual(json.loads(printed.stdout)["models"][0], found)
        with self.assertRaises(posattn.Error):
            posattn.bound(self.run_.model)
        with self.assertRaises(posattn.Error):
            posattn.bound(posattn.compile("sort", length=4).model, samples=10)

    def test_certificates(self):
        found = posattn.certify(self.run_, steps=20, draws=10, threads=1)
        self.assertEqual(found["samples"], 200)
        self.assertLessEqual(found["randomised"]["training_loss"], found["randomised"]["bound"])
        with self.assertRaisesRegex(posattn.Error, "no run"):
            posattn.certify(self.run_.model)
        with self.assertRaisesRegex(posattn.Error, "delta"):
            posattn.certify(self.run_, delta=2)
        with self.assertRaises(posattn.Error):
            posattn.certify(self.folder)


if __name__ == "__main__":
    unittest.main()
