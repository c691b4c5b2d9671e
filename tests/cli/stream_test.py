"""predict --stream answers each line as the whole sample would; evaluate --loops."""

import unittest

from support import CliCase


class Stream(CliCase):
    def train(self, *settings):
        self.run_ok("train", "--task", "cumulative-sum", "--length", 6, "--samples", 200, "--epochs", 2, "--batch", 20,
                    "--width", 8, "--mlp-width", 8, "--test-scales", 1, "--out", "runs", "--seeds", 0, *settings)
        return "runs"

    def answers(self, run, text, *flags):
        return self.run_ok("predict", run, *flags, stdin=text.encode())

    def test_each_line_is_answered_as_the_whole_sample(self):
        run = self.train("--architecture", "relative", "--causal")
        rows = [[1, -0.5, 0.25, 2, -1, 1.5], [0.5, 0.5, 1, -2, 0.125, 0]]
        whole = self.answers(run, "".join(",".join(map(str, row)) + "\n" for row in rows))
        stream = self.answers(run, "\n\n".join("\n".join(map(str, row)) for row in rows), "--stream")
        expected = [float(y) for line in whole.split() for y in line.split(",")]
        found = [float(y) for y in stream.split()]
        self.assertEqual(len(found), 12)
        for one, other in zip(found, expected):
            self.assertAlmostEqual(one, other, delta=1e-4)
        longer = self.answers(run, "1\n" * 40, "--stream")
        self.assertEqual(len(longer.split()), 40)

    def test_one_layer_answers_for_the_last_nodes(self):
        self.run_ok("train", "--task", "stream-mean", "--architecture", "low-rank", "--length", 8, "--depth", 1,
                    "--samples", 200, "--epochs", 2, "--batch", 20, "--width", 8, "--mlp-width", 8, "--test-scales", 1,
                    "--out", "runs", "--seeds", 0)
        row = [0.5, 1, -1.5, 2, 0.25, -0.75, 1.25, 0]
        whole = float(self.answers("runs", ",".join(map(str, row)) + "\n"))
        for before in ([], [3, -2], [1.5, 0.5, 1, 2, -2, 0, 1, 1, 1, -1]):  # whole parts of a landmark, of 2 nodes
            stream = self.answers("runs", "\n".join(map(str, before + row)), "--stream").split()
            self.assertEqual(len(stream), len(before) + 8)
            self.assertAlmostEqual(float(stream[-1]), whole, delta=1e-4)

    def test_what_cannot_be_streamed_is_refused(self):
        run = self.train("--architecture", "positional")
        self.run_error(3, "predict", run, "--stream", stdin=b"1\n", message="attend to later ones")

    def test_bad_lines(self):
        run = self.train("--architecture", "positional", "--causal")
        self.run_error(4, "predict", run, "--stream", stdin=b"1\n1 2\n", message="line 2")
        self.run_error(4, "predict", run, "--stream", stdin=b"1\n" * 7, message="at most 6")
        self.run_error(2, "predict", run, "--stream", "--json", stdin=b"1\n", message="--stream alone")

    def test_loops(self):
        run = self.train("--architecture", "relative", "--depth", 1, "--loops", 3, "--test-loops", "2,3")
        table = self.run_ok("evaluate", run, "--loops", "1..4", "--samples", 20)
        self.assertIn("loops", table)
        self.run_ok("compile", "sort", "--length", 4, "-o", "sort.safetensors")
        self.run_error(4, "evaluate", "sort.safetensors", "--loops", "1,2", message="loops of a compiled model")


if __name__ == "__main__":
    unittest.main()
