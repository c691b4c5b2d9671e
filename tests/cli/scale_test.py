"""The error over the scale of the input: what the parts are, that the identity behind them holds, what is refused."""

import math
import unittest
from xml.etree import ElementTree

from support import CliCase, tiny, trained_runs


class Scale(CliCase):
    def model(self):
        return trained_runs() / "positional-seed0"

    def test_parts_add_up_and_biases_fade(self):
        found = self.run_json("scale", self.model(), "--samples", 100)
        model, = found["models"]
        self.assertEqual([model["task"], model["architecture"], found["samples"]],
                         ["cumulative-sum", "positional", 100])
        self.assertLess(model["deviation"], 1e-4)
        points = model["scales"]
        self.assertEqual([points[0]["c"], points[-1]["c"]], [1, 1000])
        for point in points:
            self.assertTrue(math.isclose(point["from_weights"] + point["from_biases"],
                                         point["mse"], rel_tol=1e-9))
            self.assertTrue(math.isclose(point["from_weights"],
                                         point["c"] ** 2 * model["mse_without_biases"], rel_tol=1e-9))
        self.assertLess(abs(points[-1]["from_biases"]), 0.02 * points[-1]["mse"])
        evaluated = self.run_json("evaluate", self.model(), "--scales", 1, "--samples", 100)
        self.assertTrue(math.isclose(evaluated["models"][0]["scales"][0]["mse"], points[0]["mse"],
                                     rel_tol=1e-5))

    def test_without_biases_nothing_comes_from_them(self):
        self.run_ok("train", *tiny(architecture="homogeneous"), "--out", "runs")
        self.run_ok("compile", "sort", "--length", 4, "-o", "sort.safetensors")
        for name in ("runs/homogeneous-seed0", "sort.safetensors"):
            for point in self.run_json("scale", name, "--scales", "1,7,1000")["models"][0]["scales"]:
                self.assertEqual([point["from_biases"], point["bias_output"]], [0, 0], name)
        self.assertLess(point["mse"], 1e-12 * 1000 ** 2)  # sort, exact at every scale

    def test_text_and_figure(self):
        self.run_ok("train", *tiny(architecture="positional,homogeneous", seeds="0,1"), "--out", "runs")
        text = self.run_ok("scale", "runs", "--scales", "1,10", "-o", "scale.svg")
        for part in ["cumulative-sum, positional, length 3: medians of 2 models", "MSE / c^2",
                     "from weights", "from biases", "without biases", "f_b(c x) = c f_(b/c)(x)"]:
            self.assertIn(part, text)
        self.assertTrue(text.endswith("\nfigure in scale.svg\n"), text)
        ElementTree.parse(self.folder / "scale.svg")
        drawn = self.run_ok("scale", "runs", "--scales", "1,10", "-o", "-")
        self.assertEqual(drawn, (self.folder / "scale.svg").read_text())

    def test_same_bytes_for_any_number_of_threads(self):
        one, two = (self.run_ok("scale", self.model(), "--json", "--threads", threads)
                    for threads in (1, 2))
        self.assertEqual(one, two)

    def test_refusals(self):
        def refused(code, *arguments, message):
            self.run_error(code, "scale", *arguments, message=message)

        refused(3, trained_runs() / "standard-seed0", message="attention from the data")
        refused(3, trained_runs(), message=["standard-seed0", "name those that scale: " + str(self.model())])
        self.run_ok("train", *tiny(architecture="m1"), "--out", "runs")
        refused(3, "runs/m1-seed0", message="positions in the input")
        self.run_ok("train", *tiny(activation="gelu"), "--out", "gelu")
        refused(3, "gelu", message="only ReLUs")
        self.run_ok("compile", "broadcast", "-o", "broadcast.safetensors")
        refused(4, "broadcast.safetensors", message="which task")
        refused(4, "none.safetensors", message="none.safetensors")
        refused(2, self.model(), "--scales", "0", message="scales above 0")
        refused(2, self.model(), "--scales", "1e7", message="up to 1000000")
        refused(2, self.model(), "--samples", 0, message="1 to 1000000")
        refused(2, self.model(), "-o", "-", "--json", message="--json")


if __name__ == "__main__":
    unittest.main()
