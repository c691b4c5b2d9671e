"""Pairs of nodes: a task that has them, models that read them, and --pairs."""

import json
import struct
import unittest

from support import CliCase

EDGES = [0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]  # of four nodes
NPY = (b"\x93NUMPY\x01\x00\x46\x00{'descr': '<i4', 'fortran_order': False, 'shape': (1, 4, 4), }".ljust(79) + b"\n" +
       struct.pack("<16i", *EDGES))


class Pairs(CliCase):
    def train(self, *settings, out="runs", architecture="structural", task="neighbour-min", length=4):
        self.run_ok("train", "--task", task, "--architecture", architecture, "--length", length, "--samples", 400,
                    "--epochs", 3, "--batch", 20, "--width", 8, "--mlp-width", 8, "--test-scales", 1, "--out", out,
                    "--seeds", 0, *settings)
        return f"{out}/{architecture}-seed0"

    def outputs(self, run, pairs, *flags):
        text = self.run_ok("predict", run, "--input", "1,-1,0.5,2", "--pairs", pairs, *flags)
        return [float(y) for y in text.strip().split(",")]

    def test_predict_reads_pairs_in_every_form(self):
        run = self.train("--variable-length")
        typed = ",".join(map(str, EDGES))
        (self.folder / "edges.csv").write_text(typed + "\n")
        (self.folder / "edges.npy").write_bytes(NPY)
        found = self.outputs(run, typed)
        self.assertEqual(len(found), 4)
        for form in ("edges.csv", "edges.npy"):
            self.assertEqual(self.outputs(run, form), found)
        no_edges = self.outputs(run, ",".join("0" * 16))
        self.assertNotEqual(found[:3], no_edges[:3])
        self.assertEqual(len(self.run_ok("predict", run, "--input", "1,2", "--pairs", "0,1,1,0").split(",")), 2)
        inspected = json.loads(self.run_ok("inspect", run, "--input", "1,-1,0.5,2", "--pairs", typed, "--json"))
        layer = inspected["attention"]["layers"][0][0]
        self.assertEqual(layer[0][2], layer[0][3])  # both are of class 0
        self.assertIn("<svg", self.run_ok("show", run, "--input", "1,-1,0.5,2", "--pairs", typed, "-o", "-"))
        self.assertIn("random input", json.dumps(json.loads(self.run_ok("inspect", run, "--json"))))

    def test_bad_pairs(self):
        run, other = self.train(), self.train(out="others", architecture="m2")
        four, ok = "1,-1,0.5,2", ",".join("0" * 16)
        self.run_error(4, "predict", run, "--input", four, message=["without pairs of nodes", "--pairs"])
        for pairs, message in [("0,1,1,0", "1 x 4 numbers of pairs"), (ok[:-1] + "2", "class 2 of the pair of nodes 3 and 3"),
                               (ok[:-1] + "0.5", "0.5"), (ok[:-1] + "nan", "nan"), ("none.csv", "no such file")]:
            self.run_error(4, "predict", run, "--input", four, "--pairs", pairs, message=message)
        self.run_error(4, "predict", other, "--input", four, "--pairs", ok, message="for a model that reads none")
        self.run_ok("predict", other, "--input", four)

    def test_models_and_tasks_that_do_not_fit(self):
        for flags, message in [(["--architecture", "structural"], "of which the samples have none"),
                               (["--kinds", "neighbours"], "of pairs without classes"),
                               (["--kinds", "data score-bias=pairs"], "of which the samples have none")]:
            self.run_error(3, "train", "--task", "sort", *flags, "--out", "no", message=message)
        run = self.train("--causal", "--kinds", "neighbours", architecture="m2")
        self.run_error(3, "predict", run, "--stream", stdin=b"1\n", message="reads pairs of nodes")

    def test_evaluate_at_other_lengths_with_the_baseline(self):
        run = self.train("--variable-length")
        found = json.loads(self.run_ok("evaluate", run, "--lengths", "3,4,9", "--samples", 50, "--baselines", "--json"))
        tests = found["models"][0]["lengths"]
        self.assertEqual([test["length"] for test in tests], [3, 4, 9])
        for test in tests:
            self.assertGreater(test["mse"], 0)
            self.assertGreater(test["baselines"]["graph-blind"]["mse"], 0)

    def test_structural_positions(self):
        for structure in ("distances,size=2", "edges+laplacian"):
            run = self.train("--task-set", f"structure={structure}", "--variable-length", out=structure,
                             task="neighbour-mean")
            found = json.loads(self.run_ok("evaluate", run, "--axis", "graphs=0,1,2", "--samples", 20, "--json"))
            self.assertEqual([test["graphs"] for test in found["models"][0]["tests"]], [0, 1, 2])
        self.run_error(3, "train", "--task", "neighbour-mean", "--task-set", "structure=walk", "--out", "no",
                       message=["structure=walk", "walks"])
        self.run_error(3, "train", "--task", "neighbour-mean", "--task-set", "structure=walks", "--architecture", "m2",
                       "--kinds", "neighbours", "--out", "no", message="pairs without classes")

    def test_questions_about_graphs(self):
        for task, form, architecture in (("graph-count", "edges", "positional"), ("graph-distance", "rows", "m2"),
                                         ("one-two-cycle", "pairs", "structural")):
            run = self.train("--task-set", f"form={form}", out=task, architecture=architecture, task=task, length=6)
            axis = "cycles=1,2" if task == "one-two-cycle" else "graphs=0,1"
            found = json.loads(self.run_ok("evaluate", run, "--axis", axis, "--samples", 20, "--baselines", "--json"))
            baseline = "graph-blind" if task == "graph-count" else "degree-only"
            for test in found["models"][0]["tests"]:
                self.assertIn(baseline, test["baselines"])

    def test_tasks_name_them(self):
        task, = (task for task in json.loads(self.run_ok("tasks", "--json")) if task["name"] == "neighbour-min")
        self.assertEqual((task["pair_columns"], task["pair_classes"]), (0, 2))
        self.assertIn("8 numbers, 8 x 8 pairs", self.run_ok("tasks"))


if __name__ == "__main__":
    unittest.main()
