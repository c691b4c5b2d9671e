"""Tasks with parameters: --task-set, in settings, model files and experiments."""

import json
import unittest

from support import CliCase, unchecked

TINY = ["--task", "sparse-average", "--task-set", "q=2", "--length", 5, "--samples", 64, "--validation-samples", 16,
        "--test-samples", 16, "--epochs", 1, "--batch", 16, "--width", 8, "--mlp-width", 8, "--depth", 1, "--test-scales", 1, "--threads", 1]

EXPERIMENT = """tasks = ["sparse-average"]
seeds = "0..1"
baselines = ["sums-of-heads"]
[axis]
key = "q"
values = [1, 2]
[settings]
task-set = "q=2"
length = 5
samples = 64
epochs = 1
batch = 16
width = 8
mlp-width = 8
test-axis = "q=1,2"
[[lines]]
name = "a line"
architecture = "positional"
"""


class Parameters(CliCase):
    def test_a_model_knows_its_task_again(self):
        self.run_ok("train", *TINY, "--out", "runs")
        run = "runs/positional-seed0"
        self.assertIn('task-set = "q=2"', (self.folder / run / "config.toml").read_text())
        self.assertIn("sparse-average with q=2", self.run_ok("inspect", run))
        # Other samples than those of q=3, and those of the axis: q=2 is what the task draws by itself.
        own = self.run_json("evaluate", run, "--scales", 1, "--baselines")["models"][0]["scales"][0]["mse"]
        again = self.run_json("evaluate", run, "--scales", 1, "--task-set", "q=2")["models"][0]["scales"][0]["mse"]
        self.assertEqual(own, again)
        self.run_error(2, "evaluate", run, "--task-set", "q=3", message=["--task-set q=3", "q=2"])
        row = ",".join(["1,1,1,0,0,0"] * 5)
        self.assertEqual(len(self.run_ok("predict", run, "--input", row).split(",")), 5)
        self.run_ok("train", "--resume", *TINY, "--out", "runs")
        text = self.run_ok("train", "--from", run, "--epochs", 1, "--samples", 64, "--batch", 16, "--threads", 1, "--dry-run")
        self.assertIn('task-set = "q=2"', text)

    def test_without_it_nothing_changes(self):
        text = self.run_ok("train", "--task", "sparse-average", "--length", 5, "--dry-run")
        self.assertNotIn("task-set", text)

    def test_what_does_not_exist_is_refused(self):
        for given in ("q=0", "q=65", "q", "p=3", "q=2,q=2", "q=two"):
            self.run_error(3, "train", "--task", "sparse-average", "--task-set", given, "--dry-run",
                           message=[f"task-set '{given}'", "q: 1 to 64"])
        self.run_error(3, "train", "--task", "sort", "--task-set", "q=2", "--dry-run", message="has no parameters")
        (self.folder / "bad.toml").write_text(EXPERIMENT.replace('"q=2"', '"q=0"'))
        self.run_error(3, "experiments", "bad.toml", message=["task-set 'q=0'", "bad.toml"])

    def test_a_file_with_parameters_that_do_not_exist(self):
        self.run_ok("train", *TINY, "--out", "runs")
        path = self.folder / "runs/positional-seed0/model.safetensors"
        data = path.read_bytes()
        self.assertEqual(data.count(b'"task_set":"q=2"'), 1)
        path.write_bytes(unchecked(data.replace(b'"task_set":"q=2"', b'"task_set":"p=2"')))
        self.run_error(4, "evaluate", path, message=["task-set 'p=2'", "model.safetensors"])

    def test_tasks_list_them(self):
        self.assertIn("--task-set q=3: places that a node names, 1 to 64", self.run_ok("tasks"))
        task = next(one for one in self.run_json("tasks") if one["name"] == "sparse-average")
        self.assertEqual(task["parameters"], [
            {"name": "q", "description": "places that a node names", "default": "3", "accepts": "1 to 64"}])

    def test_an_experiment_has_them(self):
        (self.folder / "mine.toml").write_text(EXPERIMENT)
        self.run_ok("reproduce", "mine.toml", "--results", "results", "--threads", 1)
        found = json.loads(self.run_ok("compare", "mine.toml", "--results", "results", "--with", "results", "--json"))
        self.assertTrue(found)


if __name__ == "__main__":
    unittest.main()
