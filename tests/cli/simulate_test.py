"""A standard Transformer inside a positional one: what the copy is, what it promises, what is refused."""

import math
import unittest

from support import CliCase, tiny, trained_runs


class SimulateStandard(CliCase):
    def original(self):
        return trained_runs() / "standard-seed0"

    def simulate(self, *arguments):
        return self.run_json("simulate-standard", self.original(), "-o", "copy.safetensors",
                             "--samples", 200, *arguments)

    def test_copy_is_an_ordinary_model(self):
        found = self.simulate("--scales", "3")
        self.assertEqual(found["copies"], 2)
        self.assertEqual(found["nodes"], 9)  # n = 3 and a scratch node, twice, and one that stays zero
        self.assertEqual(found["layers"], found["original"]["layers"] * (2 + 1 + 3) + 1)
        at_1, at_3 = found["check"], found["scales"][0]
        self.assertLess(at_1["error"], 0.01)
        self.assertEqual(at_1["outside"], 0)
        self.assertGreater(found["bound"], at_1["largest_error"])
        self.assertEqual(set(found["original_layers"][0]["table_sizes"]), set("AGSD"))
        self.assertGreater(at_3["outside"], 0)
        self.assertTrue(math.isclose(at_1["copy_mse"], at_1["original_mse"], rel_tol=0.1))

        evaluated = self.run_json("evaluate", self.original(), "copy.safetensors", "--scales", 1)
        original, copy = (model["scales"][0]["mse"] for model in evaluated["models"])
        self.assertTrue(math.isclose(copy, original, rel_tol=0.1), (original, copy))
        rows = b"0.5,-1,1.5\n0,0.25,-2\n"
        expected = self.run_ok("predict", self.original(), stdin=rows).splitlines()
        predicted = self.run_ok("predict", "copy.safetensors", stdin=rows).splitlines()
        self.assertEqual(len(predicted), len(expected))
        for ours, theirs in zip(predicted, expected):
            for a, b in zip(map(float, ours.split(",")), map(float, theirs.split(","))):
                self.assertAlmostEqual(a, b, delta=0.1)
        text = self.run_ok("inspect", "copy.safetensors")
        self.assertIn("simulates: a standard Transformer of 4 nodes", text)
        self.assertIn("scratch_nodes       6", text)

    def test_copies_trade_nodes_for_layers(self):
        depth = self.simulate()["original"]["layers"]
        for copies, nodes, layers in (1, 5, 4 + 3), (3, 13, 2 + 2 + 3), (4, 17, 2 + 3):
            found = self.simulate("--copies", copies, "--table-size", 32)
            self.assertEqual(found["nodes"], nodes)
            self.assertEqual(found["layers"], depth * layers + (copies > 1))
            self.assertLess(found["check"]["error"], 0.05)

    def test_tables_decide_the_error(self):
        coarse, fine = (self.simulate("--table-size", size)["check"] for size in (8, 32))
        self.assertLess(fine["error"], coarse["error"] / 6)
        self.assertEqual(coarse["control"], fine["control"])

    def copy_of_trained(self, folder, *arguments, **settings):
        self.run_ok("train", *tiny(depth=2, **settings), "--out", folder)
        run = f"{folder}/{settings['architecture']}-seed0"
        found = self.run_json("simulate-standard", run, "-o", "copy.safetensors", "--samples", 200, *arguments)
        self.assertLess(found["check"]["error"], 0.01)
        self.assertGreater(found["bound"], found["check"]["largest_error"])
        return run, found

    def test_tokens_and_classes(self):
        run, found = self.copy_of_trained("hop", architecture="standard", task="one-hop", length=5, positions="added",
                                          join="concatenate", normalisation="none", activation="relu")
        check = found["check"]
        self.assertGreater(check["same_class"], 0.9)
        self.assertAlmostEqual(check["original_accuracy"], check["copy_accuracy"], delta=0.05)
        self.assertNotIn("copy_mse", check)
        rows = b"3,1,3,7,3\n0,2,0,2,0\n"
        expected, predicted = (self.run_ok("predict", model, stdin=rows) for model in (run, "copy.safetensors"))
        self.assertEqual(len(predicted.splitlines()), len(expected.splitlines()))
        evaluated = self.run_json("evaluate", run, "copy.safetensors", "--samples", 200)
        self.assertEqual(len(evaluated["models"]), 2)

    def test_tokens_or_numbers(self):
        self.copy_of_trained("counting", architecture="standard", task="contextual-sum", length=8, positions="added")

    def test_rope(self):
        for causal, layers in ((True, 4 + 3), (False, 7 + 3)):
            extra = {"causal": True} if causal else {}
            run, found = self.copy_of_trained(f"rope-{causal}", architecture="standard-rope", **extra)
            self.assertEqual((found["nodes"], found["layers"]), (5, 2 * layers))
            self.run_error(3, "simulate-standard", run, "-o", "c", "--copies", 2, message="--copies 1")

    def test_one_of_several_lengths(self):
        run, found = self.copy_of_trained("several", "--at-length", 2, architecture="standard", variable_length=True)
        self.assertEqual((found["length"], found["original"]["nodes"]), (2, 3))
        rows = b"0.5,-1\n"
        self.assertAlmostEqual(float(self.run_ok("predict", run, stdin=rows).split(",")[0]),
                               float(self.run_ok("predict", "copy.safetensors", stdin=rows).split(",")[0]), delta=0.1)
        self.run_error(4, "simulate-standard", self.original(), "-o", "c", "--at-length", 2, message="length 3 alone")

    def test_text(self):
        text = self.run_ok("simulate-standard", self.original(), "-o", "c.safetensors", "--samples", 200)
        for part in ["k = 2 of each node", "9 = N k + 1", "control", "outside", "bound: no error above",
                     "written to c.safetensors", "posattn evaluate"]:
            self.assertIn(part, text)

    def test_same_samples_same_file(self):
        for name, threads in (("a", 1), ("b", 2)):
            self.run_ok("simulate-standard", self.original(), "-o", name, "--samples", 100,
                        "--threads", threads)
        files = [(self.folder / name).read_bytes() for name in "ab"]
        self.assertEqual(*files)

    def test_refusals(self):
        def refused(code, *arguments, message):
            self.run_error(code, "simulate-standard", *arguments, "-o", "c.safetensors",
                           message=message)
            self.assertFalse((self.folder / "c.safetensors").exists())

        refused(3, trained_runs() / "positional-seed0", message="the paper's standard Transformer")
        self.run_ok("train", *tiny(architecture="standard", normalisation="before"), "--out", "normalised")
        refused(3, "normalised/standard-seed0", message="LayerNorm between its layers")
        refused(4, "none.safetensors", message="none.safetensors")
        refused(4, trained_runs(), message="such as " + str(self.original() / "model.safetensors"))
        refused(2, self.original(), "--tolerance", 0, message="--tolerance 0")
        refused(2, self.original(), "--table-size", 1, message="4 to 4096")
        refused(2, self.original(), "--table-size", 8, "--tolerance", 0.1, message="--tolerance")
        refused(2, self.original(), "--samples", 1, message="100 to 100000")
        refused(2, self.original(), "--range", -1, message="a number above 0")
        refused(2, self.original(), "--scales", 0, message="scales above 0")
        refused(3, self.original(), "--copies", 5, message=["5 copies", "1 to N = 4"])
        refused(3, self.original(), "--copies", 0, message="0 copies")
        self.run_ok("train", *tiny(architecture="standard", length=150, width=2, heads=1, depth=1),
                    "--out", "large")
        refused(3, "large/standard-seed0", "--copies", 151, message=["22802 nodes: N k + 1", "up to 20000"])
        self.run_error(2, "simulate-standard", self.original(), "-o", "-", "--json", message="--json")


if __name__ == "__main__":
    unittest.main()
