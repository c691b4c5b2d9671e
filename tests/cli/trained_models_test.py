"""The trained models of the tree: their page describes them, and they do what it says."""

import pathlib
import re
import subprocess
import sys
import unittest

from support import CliCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"


class TrainedModels(CliCase):
    def test_the_page_describes_the_files(self):
        subprocess.run([sys.executable, ROOT / "scripts" / "models.py", "--check"], check=True)

    def test_errors_are_those_of_the_page(self):
        rows = re.findall(r"^\| `(\S+)` \|[^|]*\| (\S+) \| (\S+) at c = 10", (MODELS / "README.md").read_text(), re.M)
        self.assertEqual(len(rows), 10)
        for name, inside, outside in rows:
            model, = self.run_json("evaluate", MODELS / f"{name}.safetensors", "--scales", "1,10")["models"]
            at = {row["c"]: row["mse"] for row in model["scales"]}
            for c, told in [(1, float(inside)), (10, float(outside))]:  # other samples, so not equal
                self.assertLess(at[c], 3 * told, f"{name} at c = {c}")
                self.assertGreater(at[c], told / 3, f"{name} at c = {c}")

    def test_three_standard_layers_solve_k_hop_and_positional_ones_do_not(self):
        wrong = {}
        for architecture in ["positional", "standard"]:
            found = self.run_json("evaluate", MODELS / f"k-hop-{architecture}.safetensors", "--axis", "k=3",
                                  "--samples", 200)
            wrong[architecture] = found["models"][0]["tests"][0]["label_error"]
        self.assertLess(wrong["standard"], 0.001)
        self.assertGreater(wrong["positional"], 0.3)


if __name__ == "__main__":
    unittest.main()
