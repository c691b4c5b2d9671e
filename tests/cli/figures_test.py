"""Figures and tables in the tree are those that the program draws today: pictures of programs, and every experiment under
results/ that is complete."""

import json
import re
import shutil
import subprocess
import sys
import unittest

from support import ROOT, CliCase


class Figures(CliCase):
    def assert_same(self, path, picture):
        self.assertTrue(path.read_bytes() == (ROOT / picture).read_bytes(), f"{picture} is stale: draw it again")

    def test_pictures_of_programs(self):
        for program in ["sort", "cumulative-sum"]:
            self.run_ok("show", program, "--length", 8, "-o", "rounds.svg")
            self.assert_same(self.folder / "rounds.svg", f"docs/images/{program}-rounds.svg")
        self.run_ok("compile", "sort", "--length", 8, "-o", "sort.safetensors")
        self.run_ok("inspect", "sort.safetensors", "--attention", "attention.svg")
        self.assert_same(self.folder / "attention.svg", "docs/images/sort-attention.svg")

    def test_figures_of_measurements(self):
        subprocess.run([sys.executable, "-B", ROOT / "bench/draw.py", "--output", self.folder], check=True)
        for path in ["results/from-compiled/from-compiled.svg", "docs/images/simulated-error.svg",
                     "docs/images/compiled-time.svg"]:
            self.assert_same(self.folder / path.rpartition("/")[2], path)
        self.run_ok("bound", "--crossing", "4,8,16", "--hops", "1,4,16", "-o", "crossing.svg")
        self.assert_same(self.folder / "crossing.svg", "docs/images/bounds-crossing.svg")
        done = subprocess.run([sys.executable, "-B", ROOT / "scripts/speed_chart.py", "--check"], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_figures_of_complete_experiments(self):
        known = {line["name"] for line in json.loads(self.run_ok("experiments", "--json"))}
        drawn = []
        for recorded in sorted((ROOT / "results").iterdir()):
            name, _, epochs = recorded.name.partition("-epochs")
            precision = "tf32" if name.endswith("-tf32") else "fp32"
            name = re.sub("-tf32$", "", name)
            if name not in known:
                continue
            shutil.copytree(recorded, self.folder / "results" / recorded.name, ignore=shutil.ignore_patterns("*.svg", "*.csv"))
            command = ["reproduce", name, "--precision", precision, "--results", "results"]
            command += ["--epochs", epochs] if epochs else []
            state = json.loads(self.run_ok(*command, "--dry-run", "--json"))["all"]
            if state["done"] == state["runs"]:
                self.run_ok(*command)
                for ending in ["svg", "csv"]:
                    picture = f"results/{recorded.name}/{recorded.name}.{ending}"
                    self.assert_same(self.folder / picture, picture)
                    drawn.append(recorded.name)
            shutil.rmtree(self.folder / "results")
        self.assertIn("value-range", drawn)


if __name__ == "__main__":
    unittest.main()
