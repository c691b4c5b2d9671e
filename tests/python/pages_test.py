"""The examples in Python of README, docs/python.md and docs/site/ run, each page from its first to its last."""

import contextlib
import io
import math
import os
import pathlib
import re
import sys
import tempfile
import types
import unittest
import unittest.mock

import matplotlib
import posattn
import posattn.torch  # before the modules are put back
import torch

matplotlib.use("Agg")  # no window
import matplotlib.pyplot  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "site"
NUMBER = re.compile(r"\d+\.\d*")


class Pages(unittest.TestCase):
    def run_page(self, name):
        code = "\n".join(re.findall(r"^```python\n(.*?)^```", (PAGES / name).read_text(), re.M | re.S))
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                exec(compile(code, name, "exec"), {"__name__": "page"})
            finally:
                os.chdir(here)
            return {str(file.relative_to(folder)): file.read_bytes() for file in pathlib.Path(folder).rglob("*.*")
                    if file.is_file()}

    def test_logging(self):
        # Debian has no tensorboard: its writer is a stand-in that counts.
        writer = unittest.mock.MagicMock()
        stand_in = types.SimpleNamespace(SummaryWriter=lambda folder: writer)
        with unittest.mock.patch.dict(sys.modules, {"torch.utils.tensorboard": stand_in}):
            files = self.run_page("logging.md")
        self.assertEqual(len(files["training.csv"].splitlines()), 1 + 2 * 5)
        written = [call[0] for call in writer.add_scalar.call_args_list]
        self.assertEqual([(tag, epoch) for tag, _, epoch in written],
                         [("positional-seed0/loss", epoch) for epoch in (1, 2, 3, 4, 5)]
                         + [("positional-seed0/validation loss", 5)])
        self.assertTrue(all(isinstance(value, float) for _, value, _ in written))

    def test_readme(self):
        """It prints what stands below it, with errors of the same size."""
        shown = re.search(r"^```python\n.*?^```\n+```\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[1]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.run_page("../../README.md")
        self.assertEqual(NUMBER.sub("", printed.getvalue()), NUMBER.sub("", shown))
        for found, expected in zip(NUMBER.findall(printed.getvalue()), NUMBER.findall(shown)):
            self.assertLess(abs(math.log((float(found) + 0.001) / (float(expected) + 0.001))), math.log(3))

    def test_python(self):
        """Until the experiments, which train for minutes; with inputs for the names that the page leaves open."""
        text = (ROOT / "docs" / "python.md").read_text().split("## Experiments")[0]
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
        self.assertEqual(len(blocks), 9)
        x, y = posattn.samples("sort", samples=3)
        _, other = posattn.load("sort-positional").run(x[::-1].copy(), keep="all")
        known = {"ax": matplotlib.pyplot.figure().subplots()}
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            os.chdir(folder)
            try:
                torch.save(posattn.torch.Module(posattn.load("sort-positional")).state_dict(), "theirs.pt")
                for block in blocks:
                    known.update(x=x, y=y, other=other)
                    exec(compile(block, "python.md", "exec"), known)
                self.assertTrue(os.path.exists("changed.safetensors"))
            finally:
                os.chdir(here)
        self.assertEqual(known["kept"]["layers.1.attention"].shape, (3, 2, 9, 9))

    def test_resume(self):
        self.assertIn("runs/short/positional-seed0/model.safetensors", self.run_page("resume.md"))

    def test_pytorch(self):
        self.assertIn("sort.safetensors", self.run_page("pytorch.md"))


if __name__ == "__main__":
    unittest.main()
