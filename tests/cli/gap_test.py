"""What tracks the generalisation gap: the numbers of each run, their rank correlations, what is refused."""

import math
import unittest

from support import CliCase, tiny, trained_runs

MEASURES = ["inverse_samples", "training_loss", "distance", "jacobian", "path_norm", "norm_bound",
            "count_bound"]


class Gap(CliCase):
    def test_runs_and_correlations(self):
        self.run_ok("train", *tiny(architecture="positional,standard", seeds="0,1", samples=32),
                    "--out", "few")
        found = self.run_json("gap", "few", trained_runs(), "--fresh-samples", 500)
        self.assertEqual(len(found["runs"]), 8)
        self.assertEqual({run["samples"] for run in found["runs"]}, {32, 64})
        for run in found["runs"]:
            self.assertEqual(list(run["measures"]), MEASURES)
            self.assertTrue(math.isclose(run["gap"], run["fresh_loss"] - run["training_loss"]))
            self.assertGreater(run["measures"]["distance"], 0)
        self.assertEqual(list(found["kendall"]), MEASURES)
        for measure, by_pairs in found["kendall"].items():
            for pairs, correlation in by_pairs.items():
                tau = correlation["tau"]
                constant = measure == "inverse_samples" and pairs == "same_architecture_and_samples"
                self.assertEqual(tau is None, constant, measure)
                if not constant:
                    self.assertLessEqual(abs(tau), 1)
        bound = self.run_json("bound", "few/positional-seed0", "--fresh-samples", 500)["models"][0]
        run, = (run for run in found["runs"] if run["run"] == "few/positional-seed0")
        self.assertTrue(math.isclose(run["gap"], bound["measured"]["gap"], rel_tol=1e-6), bound)

    def test_a_run_named_twice_counts_once(self):
        runs = trained_runs()
        (self.folder / "link").symlink_to(runs)
        twice = [runs, runs / "positional-seed0", self.folder / "link"]
        self.assertEqual(self.run_json("gap", *twice, "--fresh-samples", 200),
                         self.run_json("gap", runs, "--fresh-samples", 200))
        for command, key, flags in [("bound", "models", ["--fresh-samples", 200]),
                                    ("certify", "certificates", ["--steps", 5, "--draws", 50]),
                                    ("scale", "models", ["--samples", 20])]:
            with self.subTest(command=command):
                once = runs / "positional-seed0"
                self.assertEqual(len(self.run_json(command, once, once, *flags)[key]), 1)

    def test_text(self):
        text = self.run_ok("gap", trained_runs(), "--fresh-samples", 200)
        for part in ["4 runs", "Kendall's tau", "path norm", "Jacobian on data", "bound by norms"]:
            self.assertIn(part, text)
        alone = self.run_ok("gap", trained_runs() / "positional-seed0", "--fresh-samples", 200)
        self.assertTrue(alone.startswith("1 run, medians\n"), alone)

    def test_certificates(self):
        self.run_ok("certify", trained_runs(), "--steps", 20, "--draws", 100, "--rows", "rows.jsonl")
        found = self.run_json("gap", trained_runs(), "--fresh-samples", 200, "--certificates", "rows.jsonl")
        self.assertEqual(list(found["kendall"]), [*MEASURES, "certificate"])
        for run in found["runs"]:
            self.assertLessEqual(run["measures"]["certificate"], 1)
        with open(self.folder / "one.jsonl", "w") as file:
            file.write('{"run": "another", "randomised": {"bound": 0.5}}\n')
        self.run_error(4, "gap", trained_runs(), "--certificates", "one.jsonl", message="no certificate of")
        self.run_error(4, "gap", trained_runs(), "--certificates", "none.jsonl", message="none.jsonl")

    def test_refusals(self):
        self.run_ok("compile", "sort", "--length", 4, "-o", "sort.safetensors")
        self.run_error(4, "gap", "sort.safetensors", message="a model file alone")
        self.run_error(4, "gap", "none", message="none")
        self.run_error(2, "gap", trained_runs(), "--fresh-samples", 0, message="fresh-samples 0")
        self.run_error(2, "gap", trained_runs(), "--clip", -1, message="clip")


if __name__ == "__main__":
    unittest.main()
