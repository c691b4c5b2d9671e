"""train --hints: what the program decides, what is refused, and that a run goes on after a kill."""

import json
import unittest

from support import CliCase, read_metrics, read_tensors

SMALL = ["--threads", 1, "--task", "cumulative-sum", "--length", 4, "--width", 8, "--mlp-width", 8, "--samples", 64,
         "--validation-samples", 16, "--test-samples", 16, "--batch", 16, "--test-scales", "1,2"]
PROGRAM = """word x : real = input
receive y = x from i - 1
x = x + y
output x
"""


class Hints(CliCase):
    def test_the_program_says_how_deep_the_model_is(self):
        for hints, depth in (("task", 2), ("cumulative-min", 2), ("sort", 3)):
            settings = json.loads(self.run_ok("train", *SMALL, "--hints", hints, "--dry-run", "--json"))
            self.assertEqual((settings["hints"], settings["depth"]), (hints.replace("task", "cumulative-sum"), depth))
            self.assertRegex(settings["hints-hash"], "^[0-9a-f]{16}$")
        self.assertNotIn("hints", json.loads(self.run_ok("train", *SMALL, "--dry-run", "--json")))

    def test_hints_are_measured_and_no_part_of_the_model(self):
        text = self.run_ok("train", *SMALL, "--epochs", 3, "--hints", "task", "--out", "out")
        self.assertIn("test hint MSE, c = 2", text)
        run = self.folder / "out/positional-seed0"
        rows = [row for row in read_metrics(run)[-1]["rows"] if row["metric"] == "hint_mse"]
        self.assertEqual([row["x"] for row in rows], [1, 2])
        self.assertFalse([name for name in read_tensors(run / "model.safetensors") if name.startswith("hints.")])
        self.assertIn("hints.1.weight", read_tensors(run / "checkpoint.safetensors"))

    def test_resume_after_kill(self):
        settings = [*SMALL, "--hints", "task", "--fresh", "--epochs", 200, "--validate-every", 0, "--test-every", 0]
        self.run_ok("train", *settings, "--out", "straight")
        with self.background("train", *settings, "--checkpoint-every", 0, "--out", "out") as process:
            self.wait_for_epochs(process, self.folder / "out/positional-seed0", 5)
            process.kill()
            process.wait()
        self.run_ok("train", *settings, "--out", "out", "--resume")
        model, other = (self.folder / out / "positional-seed0/model.safetensors" for out in ("straight", "out"))
        self.assertEqual(model.read_bytes(), other.read_bytes())

    def test_another_text_is_another_run(self):
        file = self.folder / "mine.par"
        file.write_text(PROGRAM)
        train = ["train", *SMALL, "--epochs", 2, "--hints", "mine.par", "--out", "out"]
        self.run_ok(*train)
        repeat = ["train", "--config", "out/positional-seed0/config.toml", "--out", "again"]
        file.rename(self.folder / "moved.par")
        self.run_error(4, *repeat, message="mine.par")
        file.write_text(PROGRAM + "# changed\n")
        self.run_error(3, *repeat, message=["mine.par' has the hash", "hints-hash ="])
        self.run_error(3, *train, "--resume", message=["holds another run", "hints-hash is"])
        self.run_ok(*repeat, "--hints", "moved.par")  # said anew, with the text as it was
        self.assertEqual(read_metrics(self.folder / "again/positional-seed0"),
                         read_metrics(self.folder / "out/positional-seed0"))

    def test_refusals(self):
        self.run_error(3, "train", *SMALL, "--hint-weight", 2, message="hint-weight = 2 without hints")
        self.run_error(2, "train", *SMALL, "--hints", "cumulative-summ", message="did you mean 'cumulative-sum'")
        hinted = ["train", *SMALL, "--hints", "task"]
        self.run_error(3, *hinted, "--loops", 2, message="loops = 2")
        self.run_error(3, *hinted, "--variable-length", message="variable-length")
        self.run_error(3, *hinted, "--device", "cuda", message="device = cuda")
        self.run_error(3, "train", *SMALL, "--hints", "min-sum", message=["8 processors with 1 inputs", "4 with 1"])


if __name__ == "__main__":
    unittest.main()
