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

    def test_the_law_of_a_model(self):
        self.run_ok("train", *tiny(architecture="homogeneous,m2"), "--out", "runs")
        self.run_ok("train", *tiny(architecture="standard", wrap="scale"), "--out", "wrapped")
        text = self.run_ok("scale", "runs", "wrapped", trained_runs(), "--degrees")
        for part in ["positions: scores of degree 0, attention of degree 0", "homogeneous: f(c x) = c f(x)",
                     "data: scores of degree 2, attention of no degree", "qk_proj.weight",
                     "the wrap divides the scale out", "positions in the input", "encoding.weight",
                     "biases, which do not scale (encoding.bias, ...)"]:
            self.assertIn(part, text)
        found = self.run_json("scale", "runs", "wrapped", "--degrees")["models"]
        self.assertEqual([model["homogeneous"] for model in found], [True, False, True])
        self.assertEqual(found[0]["layers"][0], {"kind": "positions", "scores_degree": 0, "attention_degree": 0})
        self.run_error(2, "scale", "runs", "--degrees", "-o", "x.svg", message="--degrees")

    def test_wrapped_models_are_homogeneous(self):
        self.run_ok("train", *tiny(architecture="standard", wrap="scale"), "--out", "runs")
        model, = self.run_json("scale", "runs", "--scales", "1,2,10", "--samples", 2000)["models"]
        self.assertTrue(model["homogeneous"])
        self.assertLess(model["deviation"], 1e-5)
        inside = model["scales"][0]["mse"]
        for point in model["scales"]:
            self.assertTrue(math.isclose(point["mse"], point["c"] ** 2 * inside, rel_tol=1e-6))
            law = inside if point["c"] == 1 else (point["c"] ** 2 + 1) * inside
            self.assertTrue(math.isclose(point["predicted"], law, rel_tol=1e-6))
            self.assertTrue(math.isclose(point["evaluate"], law, rel_tol=0.15), point)
        self.run_error(3, "train", "--task", "k-hop", "--wrap", "scale", message="wrap 'scale' with tokens")

    def test_cooled_attention(self):
        self.run_ok("train", *tiny(architecture="m2"), "--out", "runs")
        text = self.run_ok("scale", "runs", "--scales", "1,10", "-o", "cooled.svg")
        for part in ["c^2 MSE cooled", "with attention cooled", "evaluate", "predicted"]:
            self.assertIn(part, text)
        self.assertIn("cooled, at c = 1", (self.folder / "cooled.svg").read_text())
        model, = self.run_json("scale", "runs", "--scales", "1,3,10", "--samples", 2000)["models"]
        self.assertLess(model["deviation"], 1e-4)
        for point in model["scales"]:
            self.assertTrue(math.isclose(point["mse"], point["c"] ** 2 * point["mse_cooled"], rel_tol=1e-3))
            self.assertTrue(math.isclose(point["evaluate"], point["predicted"], rel_tol=0.15), point)

    def test_mixed_scales(self):
        table = self.run_ok("evaluate", self.model(), "--mixed-scales", "0,0.5,1", "--samples", 50)
        self.assertIn("mixed-scales", table)
        same = self.run_ok("evaluate", self.model(), "--axis", "mixed-scales=0,0.5,1", "--samples", 50)
        self.assertEqual(table, same)
        self.run_ok("train", *tiny(), "--test-mixed-scales", "0,1", "--out", "runs")
        self.run_error(2, "evaluate", self.model(), "--mixed-scales=-1", message="0 or more powers of ten")
        self.run_error(3, "train", *tiny(), "--integers", "--test-mixed-scales", "1", "--out", "none", message="whole numbers")
        self.run_error(3, "train", "--task", "k-hop", "--test-mixed-scales", "1", "--out", "none", message="mixed scales")

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
