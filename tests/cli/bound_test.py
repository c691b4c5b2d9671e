"""Bounds from weights: what is printed, what follows from what, what is refused."""

import math
import unittest

from support import CliCase, ROOT, tiny, trained_runs


class Bound(CliCase):
    def run_folder(self, architecture="positional"):
        return trained_runs() / f"{architecture}-seed0"

    def bound(self, *arguments):
        return self.run_json("bound", *arguments, "--fresh-samples", 1000)["models"]

    def test_of_runs(self):
        positional, standard = self.bound(self.run_folder(), self.run_folder("standard"))
        self.assertEqual((positional["by_norms"]["kind"], standard["by_norms"]["kind"]), ("a", "b"))
        for found in (positional, standard):
            measured = found["measured"]
            self.assertEqual(measured["training_samples"], 64)
            self.assertEqual(found["samples"], 64)
            self.assertAlmostEqual(measured["gap"], measured["fresh_loss"] - measured["training_loss"])
            self.assertGreater(found["by_norms"]["log10"], 0)
            self.assertLessEqual(found["by_count"]["risk"], 1)
            self.assertEqual(len(found["weights"]), found["depth"])
            for layer in found["weights"]:
                self.assertLessEqual(layer["mlp_jacobian"], layer["mlp_lipschitz"])

    def test_samples_help_and_query_keys_hurt_one(self):
        for architecture in ("positional", "standard"):
            run = self.run_folder(architecture)
            base, more, scaled = (self.bound(run, *flags)[0]["by_norms"]["log10"] for flags in
                                  ([], ["--samples", 64 * 10**4], ["--query-key-scale", 100]))
            self.assertLess(more, base - 1.5)
            if architecture == "positional":
                self.assertEqual(scaled, base)
            else:
                self.assertGreater(scaled, base + 2)

    def test_samples_that_promise_a_gap(self):
        for architecture in ("positional", "standard"):
            run = self.run_folder(architecture)
            needed = self.bound(run, "--samples-for", 0.01)[0]["samples_for"]
            self.assertEqual(needed["gap"], 0.01)
            samples = math.ceil(10**needed["log10_by_count"])
            self.assertLess(self.bound(run, "--samples", samples)[0]["by_count"]["log10"], -2)
            text = self.run_ok("bound", run, "--samples-for", 0.01, "--fresh-samples", 1000)
            self.assertIn("samples that promise a gap of 0.01: ", text)
        table = self.run_ok("bound", run.parent, "--samples-for", 0.01, "--fresh-samples", 1000)
        self.assertIn("m by norms", table.splitlines()[0])
        self.run_error(2, "bound", run, "--samples-for", 0, message="a gap above 0")

    def test_of_a_file(self):
        found, = self.bound(self.run_folder() / "model.safetensors", "--samples", 100)
        self.assertIsNotNone(found["measured"])  # it lies in its run's folder
        (self.folder / "alone.safetensors").write_bytes(
            (self.run_folder() / "model.safetensors").read_bytes())
        alone, = self.bound("alone.safetensors", "--samples", 100)
        self.assertIsNone(alone["measured"])
        self.assertIsNone(alone["by_count"]["risk"])
        self.assertTrue(math.isclose(alone["by_norms"]["log10"], found["by_norms"]["log10"]))
        self.run_error(2, "bound", "alone.safetensors", message="--samples m")

    def test_a_run_named_twice_counts_once(self):
        runs = trained_runs()
        (self.folder / "link").symlink_to(runs)
        once = runs / "positional-seed0"
        self.assertEqual(len(self.bound(runs, once, self.folder / "link")), len(self.bound(runs)))
        for command, key, flags in [("bound", "models", ["--fresh-samples", 200]),
                                    ("certify", "certificates", ["--steps", 5, "--draws", 50]),
                                    ("scale", "models", ["--samples", 20])]:
            with self.subTest(command=command):
                self.assertEqual(len(self.run_json(command, once, once, *flags)[key]), 1)

    def test_a_model_beside_the_settings_of_another_is_refused(self):
        mixed = self.folder / "mixed"
        mixed.mkdir()
        for name, architecture in (("config.toml", "standard"), ("model.safetensors", "positional"),
                                   ("manifest.json", "positional")):
            (mixed / name).write_bytes((self.run_folder(architecture) / name).read_bytes())
        for command in ("bound", "certify"):
            self.run_error(4, command, mixed, message="holds another model than its config.toml says")

    def test_text(self):
        text = self.run_ok("bound", self.run_folder("standard"), "--norms", "--fresh-samples", 100)
        for part in ["m = 64 samples", "||QK.0||", "MLP on data", "max ||M_h||", "Lambda", "B_2,1",
                     "(b) by norms, with query-key norms", "vacuous by", "measured: training loss",
                     "Frobenius"]:
            self.assertIn(part, text)
        table = self.run_ok("bound", trained_runs(), "--fresh-samples", 100)
        self.assertIn("log10 norms", table)
        self.assertIn("standard-seed0", table)

    def test_of_an_experiment(self):
        (self.folder / "mine.toml").write_text("""
title = "Bounds over training"
tasks = ["cumulative-sum"]
seeds = "0"
[axis]
key = "epochs"
values = [1, 20]
label = "epochs"
[settings]
length = 3
width = 8
mlp-width = 8
samples = 64
batch = 16
test-scales = "1"
[[lines]]
name = "positional"
architecture = "positional"
[[lines]]
name = "standard"
architecture = "standard"
""")
        arguments = ["bound", "--experiment", "mine.toml", "--fresh-samples", 100]
        self.run_error(4, *arguments, message=["no trained models of mine", "posattn reproduce"])
        self.run_ok("reproduce", "mine.toml")
        self.assertIn("bounds.csv", self.run_ok(*arguments))
        rows = (self.folder / "results/mine/bounds.csv").read_text().splitlines()
        self.assertEqual(len(rows), 5)
        self.assertTrue(rows[1].startswith("cumulative-sum,positional,0,1,64,"), rows[1])
        figure = (self.folder / "results/mine/bounds-cumulative-sum.svg").read_text()
        self.assertIn("standard norms", figure)
        self.assertEqual(len(self.run_json(*arguments)["models"]), 4)
        self.assertIn("standard", self.run_ok(*arguments, "--query-key-scale", 2))  # nothing measured
        self.run_error(3, "bound", "--experiment", "value-range", message="tests each run along c")

    def test_crossing(self):
        found = self.run_json("bound", "--crossing", "2,8", "--hops", "1", "-o", "crossing.svg")
        self.assertEqual([point["standard_depth"] for point in found["crossings"]], [2, 2])
        self.assertLess(found["crossings"][0]["log10_norm"] or -math.inf,
                        found["crossings"][1]["log10_norm"])
        self.assertIn("<svg", (self.folder / "crossing.svg").read_text())
        text = self.run_ok("bound", "--crossing", "8", "-o", "eight.svg")
        self.assertIn("L_pos = 8", text)
        self.assertTrue(text.endswith("\nfigure in eight.svg\n"), text)
        self.run_error(2, "bound", "--crossing", "65", message="1 to 64 layers")
        self.run_error(2, "bound", "--crossing", "4", "--hops", "0", message="--hops 0")
        self.run_error(2, "bound", self.run_folder(), "--crossing", "4", message="one of MODEL")

    def test_refusals(self):
        run = self.run_folder()
        for flags, message in [(("--samples", 0), "--samples 0"), (("--delta", 1), "--delta 1"),
                               (("--clip", -1), "--clip -1"), (("--range", 1), "--range 1"),
                               (("--query-key-scale", 0), "--query-key-scale 0"),
                               (("--fresh-samples", 0), "--fresh-samples 0")]:
            self.run_error(2, "bound", run, *flags, message=message)
        self.run_error(2, "bound", message="MODEL")
        self.run_error(4, "bound", "none.safetensors", message="none.safetensors")
        models = ROOT / "tests" / "corpus" / "0.1.0" / "models"
        for model, message in [("sort-routed", "routes"), ("path", "several numbers per node"),
                               ("m2", "architecture m2"), ("standard-rope", "RoPE"),
                               ("variable-length", "several lengths")]:
            self.run_error(3, "bound", models / f"{model}.safetensors", "--samples", 10,
                           message=message)
        self.run_ok("train", *tiny(fresh=True), "--out", "fresh")
        self.run_error(3, "bound", "fresh/positional-seed0", message="every epoch")


if __name__ == "__main__":
    unittest.main()
