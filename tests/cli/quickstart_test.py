"""README's way in: ./quickstart, its training shortened, whose terminal and page show the same numbers; the numbers
that README shows; and its commands that install."""

import json
import math
import os
import re
import shutil
import subprocess
import unittest

from browser import browser
from support import PROGRAM, ROOT, CliCase

# Stands for the program that quickstart builds, and trains for an instant.
SHORT = """#!/bin/bash
args=("$@")
for (( k = 0; k < $#; ++k )); do
  [[ ${args[k]} == --samples ]] && args[k + 1]=300
  [[ ${args[k]} == --epochs ]] && args[k + 1]=2
done
exec "$POSATTN" "${args[@]}"
"""


class Quickstart(CliCase):
    def test_terminal_and_page_show_the_same_rows(self):
        shutil.copy(ROOT / "quickstart", self.folder)
        for path, text in {"build/release/posattn": SHORT, "scripts/install_packages": "#!/bin/sh\n",
                           "bin/cmake": "#!/bin/sh\n"}.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755)
        done = subprocess.run(["./quickstart"], cwd=self.folder, capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "POSATTN": os.path.abspath(PROGRAM), "OMP_NUM_THREADS": "1",
                                   "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^ *(\d+) +(\S+) +(\S+)$", done.stdout, re.M)
        self.assertEqual([row[0] for row in rows], [str(c) for c in range(1, 11)], done.stdout)
        page = (self.folder / "quickstart-report" / "index.html").read_text()
        for c, *medians in rows:
            shown = re.search(rf"<tr><td>{c}</td><td>[^<]*</td><td>([^<]*)<.*?<td>([^<]*)<", page)
            self.assertEqual(list(shown.groups()), medians)
        self.assertIn("quickstart-report/index.html", done.stdout)
        # The maps that are to be compared lie next to each other.
        with browser() as tab:
            tab.open(self.folder / "quickstart-report" / "index.html", 1300, 900)
            tops = tab.evaluate("[...document.querySelectorAll('.maps figure')].map((map) => map.offsetTop)")
        self.assertEqual(len(tops), 3)
        self.assertEqual(len(set(tops)), 1)

    def test_table_figure_and_caption_of_readme_agree(self):
        readme = (ROOT / "README.md").read_text()
        rows = re.findall(r"^ *(\d+) +(\S+) +(\S+)$", readme, re.M)
        self.assertEqual(len(rows), 10)
        ratio = float(rows[-1][2]) / float(rows[-1][1])
        said = int(re.search(r"squared error is (\d+) times as large", readme)[1])
        self.assertAlmostEqual(said / ratio, 1, delta=0.01)
        for shape in ["", "-narrow"]:
            drawing = (ROOT / f"docs/images/quickstart-error{shape}.svg").read_text()
            tics = re.findall(r',([\d.]+)\)"[^>]*text-anchor="end">\s*<text><tspan[^>]*>10</tspan><tspan[^>]*>(-?\d+)<',
                              drawing)
            (y, power), (other_y, other_power) = tics[0], tics[-1]
            pixels = (float(y) - float(other_y)) / (int(other_power) - int(power))  # of a factor of ten
            for column, name in enumerate(["positional", "standard"], 1):
                curve = drawing.split(f"<title>{name}</title>")[1].split("<title>")[0]
                heights = [float(y) for y in re.findall(r"<use [^>]*translate\([\d.]+,([\d.]+)\)", curve)][:10]
                for row, height in zip(rows, heights):
                    drawn = (heights[0] - height) / pixels
                    self.assertAlmostEqual(drawn, math.log10(float(row[column]) / float(rows[0][column])), delta=0.02)

    def test_commands_that_install(self):
        blocks = re.sub(r"^```.*?^```", "", (ROOT / "README.md").read_text(), flags=re.M | re.S)
        lines = [line.split("#")[0] for line in blocks.splitlines() if line.startswith("    ")]
        commands = [command.split() for line in lines for command in line.split("&&")]
        presets = json.loads((ROOT / "CMakePresets.json").read_text())
        seen = set()
        for program, *words in commands:
            seen.add(program)
            if program == "cmake":
                kind = "buildPresets" if "--build" in words else "configurePresets"
                self.assertIn(words[words.index("--preset") + 1], [preset["name"] for preset in presets[kind]])
                for option in re.findall(r"-D(\w+)", " ".join(words)):
                    self.assertIn(f"option({option} ", (ROOT / "CMakeLists.txt").read_text())
            elif program.startswith("scripts/"):
                subprocess.run([program, *words], cwd=ROOT, check=True, env={**os.environ, "POSATTN_SKIP_INSTALL": "1"})
            elif program in ("python3", "env/bin/pip"):  # tests/python/package_test.py installs so
                self.assertIn("python3 -m venv env && env/bin/pip install .", (ROOT / "docs/python.md").read_text())
                self.assertIn(words, [["-m", "venv", "env"], ["install", "."]])
        self.assertEqual(seen, {"git", "cd", "cmake", "scripts/install_packages", "python3", "env/bin/pip"})


if __name__ == "__main__":
    unittest.main()
