"""Linear models of two streams: the matrix that their symbols write."""

import unittest

from support import CliCase, tiny

SAMPLE = "a 0.5, b -1, c 2, ? b"


class Matrix(CliCase):
    def train(self, architecture):
        self.run_ok("train", *tiny(task="recall", length=3, warmup_steps=2, architecture=architecture), "--out", "runs", "--seeds", 0)
        return f"runs/{architecture}-seed0"

    def test_a_sample(self):
        run = self.train("two-streams-linear")
        sample, = self.run_json("matrix", run, "--input", SAMPLE)["samples"]
        row, = sample["matrix"]
        self.assertEqual(len(row), 3)  # the node of the question has no number
        answer = 0.5 * row[0] - row[1] + 2 * row[2]
        self.assertAlmostEqual(sample["answer"][0], answer, places=4)
        rounded = sum(x for x, entry in zip((0.5, -1, 2), row) if entry > 0.5)
        self.assertEqual(sample["rounded_answer"], [rounded])
        distance = [min(abs(entry), abs(entry - 1)) for entry in row]
        self.assertAlmostEqual(sample["distance"], max(distance))
        self.assertAlmostEqual(sample["largest_error"], 2 * sum(distance))
        self.assertEqual(float(self.run_ok("matrix", run, "--input", SAMPLE, "--round")), rounded)
        text = self.run_ok("matrix", run, "--input", SAMPLE, "--range", 1000)
        for part in ("distance to the nearest matrix of 0 and 1", "numbers in [-1000, 1000]", "of the rounded matrix"):
            self.assertIn(part, text)

    def test_samples_of_the_task(self):
        run = self.train("two-streams-linear")
        found = self.run_json("matrix", run, "--samples", 200, "--confidence", 0.95)
        self.assertEqual((found["samples"], found["confidence"]), (200, 0.95))
        self.assertLessEqual(found["right_share_at_least"], found["right"] / 200)
        one, two = (self.run_ok("matrix", run, "--samples", 50, "--threads", threads) for threads in (1, 2))
        self.assertEqual(one, two)
        self.assertIn("with confidence 99 %", one)

    def test_all_symbol_inputs(self):
        run = self.train("two-streams-linear")
        found = self.run_json("matrix", run, "--all")
        self.assertEqual((found["samples"], found["confidence"]), (26 * 25 * 24 * 3, 1))
        self.assertEqual(found["right_share_at_least"], found["right"] / found["samples"])
        self.assertIn("symbol inputs", self.run_ok("matrix", run, "--all"))

    def test_refusals(self):
        run = self.train("two-streams")
        self.run_error(3, "matrix", run, "--input", SAMPLE, message=["has an MLP of values", "two-streams-linear"])
        self.run_error(2, "matrix", run, message="--input")
        self.run_error(2, "matrix", run, "--samples", 10, "--round", message="--round")
        self.run_error(2, "matrix", run, "--samples", 10, "--all", message="--all")
        self.run_error(2, "matrix", run, "--samples", 10, "--confidence", 1, message="between 0 and 1")
        self.run_error(3, "train", *tiny(architecture="standard", value_width=8), "--out", "none", message="value_width")
        self.run_error(3, "train", *tiny(architecture="two-streams", kinds="relative"), "--out", "none",
                       message="attention from positions")
        self.run_error(3, "train", *tiny(architecture="two-streams", kinds="tropical"), "--out", "none",
                       message="values added to scores")

    def test_their_degrees(self):
        run = self.train("two-streams-gated")
        text = self.run_ok("scale", run, "--degrees")
        self.assertIn("scores of degree 0, attention of degree 0", text)
        self.assertIn("homogeneous: f(c x) = c f(x)", text)


if __name__ == "__main__":
    unittest.main()
