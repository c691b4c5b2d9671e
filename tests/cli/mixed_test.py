"""Text and numbers in one sequence: training, baselines, the swapped question, figures."""

import json
import unittest

from support import CliCase

# Trained in a second or two; what is not said here the task suggests.
SMALL = ["--samples", 40, "--validation-samples", 20, "--test-samples", 20, "--batch", 20, "--epochs", 2,
         "--test-scales", "1,2", "--depth", 1, "--width", 8, "--mlp-width", 8, "--threads", 1]

EXPERIMENT = """
title = "Small"
tasks = ["mixed-min"]
seeds = "0..1"
baselines = ["query-blind", "oracle"]
[axis]
key = "test-scales"
values = [1, 2]
[settings]
length = 5
range = 5
samples = 40
validation-samples = 20
test-samples = 20
batch = 20
epochs = 2
depth = 1
width = 8
mlp-width = 8
test-scales = "1,2"
[[lines]]
name = "positional"
architecture = "positional"
"""


class Mixed(CliCase):
    def train(self, task):
        self.run_ok("train", "--task", task, *SMALL, "--length", 5, "--architecture", "positional,standard", "--out", task)
        return self.folder / task

    def test_models_beside_their_baselines(self):
        for task in ("mixed-min", "mixed-sum", "mixed-multitask"):
            runs = self.train(task)
            result = self.run_json("evaluate", runs, "--baselines", "--scales", "1,3", "--samples", 200)
            positional, standard = result["models"]
            for test, other in zip(positional["scales"], standard["scales"]):
                self.assertEqual(test["baselines"], other["baselines"])  # the same samples
                self.assertGreater(test["baselines"]["query-blind"]["mse"], 0)
                self.assertEqual(test["baselines"]["oracle"], {"mse": 0.0, "accuracy": 1.0})
            self.assertNotIn("baselines", self.run_json("evaluate", runs, "--samples", 20)["models"][0]["scales"][0])
            text = self.run_ok("evaluate", runs, "--baselines", "--scales", 1, "--samples", 20)
            self.assertRegex(text, r"query-blind +oracle +of query-blind\n")
            self.assertRegex(text, r" %\n")

    def test_what_the_task_suggests(self):
        settings = json.loads(self.run_ok("train", "--task", "mixed-min", "--dry-run", "--json"))
        self.assertEqual({key: settings[key] for key in ("width", "depth", "range", "samples", "plateau-patience")},
                         {"width": 32, "depth": 3, "range": 5, "samples": 50000, "plateau-patience": 10})

    def test_the_swapped_question(self):
        tests = self.run_json("evaluate", self.train("mixed-min"), "--baselines", "--axis", "swapped=0,1",
                              "--samples", 2000)["models"][0]["tests"]
        blind = [test["baselines"]["query-blind"]["mse"] for test in tests]
        oracle = [test["baselines"]["oracle"]["mse"] for test in tests]
        self.assertEqual(oracle[0], 0)
        self.assertAlmostEqual(blind[1] / blind[0], 1, delta=0.3)
        self.assertAlmostEqual(oracle[1] / blind[1], 2, delta=0.3)
        self.run_error(2, "evaluate", "mixed-min", "--axis", "swapped=2", message=["swapped = 2", "0 or 1"])

    def test_an_experiment_draws_them(self):
        (self.folder / "mine.toml").write_text(EXPERIMENT)
        points = self.run_json("reproduce", "mine.toml", "--threads", 1)["points"]
        medians = {(point["line"], point["x"]): point["median"] for point in points if point["split"] == "test"}
        self.assertEqual({line for line, _ in medians}, {"positional", "query-blind", "oracle"})
        self.assertGreater(medians["query-blind", 2], 0)
        self.assertEqual(medians["oracle", 2], 0)
        self.assertIn("mine,mixed-min,query-blind,test,1,2,", (self.folder / "results/mine/mine.csv").read_text())
        figure = (self.folder / "results/mine/mine.svg").read_text()
        self.assertIn("query-blind", figure)
        self.assertIn("oracle: no error at all", " ".join(figure.split()))

    def test_what_is_refused(self):
        self.run_error(3, "train", "--task", "mixed-min", *SMALL, "--length", 3, message=["length = 3", "at least 4"])
        self.run_error(3, "train", "--task", "mixed-min", *SMALL, "--length", 21, message=["21 categories", "4 to 20"])
        self.run_ok("train", "--task", "sort", "--samples", 20, "--batch", 20, "--epochs", 1, "--out", "sort")
        self.run_error(2, "evaluate", "sort", "--baselines", message=["task sort has none", "mixed-min"])


if __name__ == "__main__":
    unittest.main()
