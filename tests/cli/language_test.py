"""The language at the command line: parameters that are set, notes, whole numbers that stay exact, and
every program of docs/language.md."""

import re
import unittest

from support import ROOT, CliCase, call

STEPS = """# every number and the K before it, a share of each
program steps
parameter K in 1 .. n = 2
parameter share = 0.5
word x : real = input
for k in 1 .. K:
  receive y = x from i - 1
  x += share * y
output x
"""

# Whole sums whose weights are no powers of two, quotients, inferred ranges.
WHOLE = """program whole
word x : int[0..9] = input
receive total = sum of (1 + (i + j) % 3) * x over j
receive largest = max of x over j where abs(i - j) <= 1
word count : int
for k in 1 .. n - 1:
  receive y = x from (i + k) % n
  count += y < largest
output total / 7
output total % 7
output count
output x xor 5
"""


class Parameters(CliCase):
    def setUp(self):
        super().setUp()
        (self.folder / "steps.par").write_text(STEPS)

    def test_settings_reach_every_command(self):
        self.assertEqual(self.run_ok("run", "steps.par", "--input", "4,0,0"), "4,4,1\n")
        self.assertEqual(self.run_ok("run", "steps.par", "--input", "4,0,0", "--set", "K=1,share=1"),
                         "4,4,0\n")
        self.assertIn("3 rounds", self.run_ok("show", "steps.par", "--set", "K=3", "-o", "s.svg"))
        self.assertEqual(self.run_json("compile", "steps.par", "--length", 4, "--set", "K=3")["rounds"], 3)

    def test_the_file_keeps_them(self):
        self.run_ok("compile", "steps.par", "--length", 4, "--set", "share=0.25,K=3", "-o", "m.safetensors")
        self.assertIn("K=3,share=0.25", self.run_ok("inspect", "m.safetensors"))
        self.assertTrue(self.run_json("verify", "m.safetensors", "--samples", 50)["holds"])
        self.assertEqual(self.run_ok("predict", "m.safetensors", stdin=b"64,0,0,0\n"), "64,48,12,1\n")
        self.assertIn("steps", self.run_ok("evaluate", "m.safetensors", "--samples", 10))

    def test_errors(self):
        for text, message in [("k=1", "unknown parameter 'k'"), ("K=4", "from 1 to 3"),
                              ("K=1.5", "a whole number from 1 to 3"), ("K", "NAME=NUMBER"),
                              ("K=1,K=2", "twice"), ("K=x", "finite number")]:
            self.run_error(2, "run", "steps.par", "--input", "1,2,3", "--set", text, message=message)
        self.run_error(2, "run", "sort", "--input", "1,2", "--set", "K=1",
                       message="the program has no parameters")
        self.run_error(2, "programs", "--set", "none=1", message="parameters that a program of the list has")

    def test_sizes_that_a_program_is_not_for(self):
        (self.folder / "even.par").write_text(
            "word x : real = input\nassert n % 2 == 0\noutput x\n")
        self.assertEqual(self.run_ok("run", "even.par", "--input", "1,2"), "1,2\n")
        self.run_error(3, "run", "even.par", "--input", "1,2,3",
                       message=["even.par:2:1: the program is not for n = 3", "n % 2 == 0"])


class WholeNumbers(CliCase):
    def test_are_exact_in_the_network(self):
        (self.folder / "whole.par").write_text(WHOLE)
        for n in (3, 8, 13):
            self.run_ok("compile", "whole.par", "--length", n, "-o", "m.safetensors")
            found = self.run_json("verify", "m.safetensors", "--samples", 300)
            self.assertEqual([scale["largest_error"] for scale in found["scales"]], [0])
        self.run_error(3, "compile", "whole.par", "--dense", message="a sum of whole numbers")


class Notes(CliCase):
    def test_a_loop_that_never_runs(self):
        (self.folder / "loop.par").write_text(
            "word x : real = input\nfor k in 3 .. 1:\n  x = x + k\noutput x\n")
        done = call("run", "loop.par", "--input", "1,2,3", cwd=self.folder)
        self.assertEqual(done.stdout, b"1,2,3\n")
        self.assertEqual(done.stderr, b"note: loop.par:2:1: the loop over 'k' never runs for n = 3\n")


class Page(CliCase):
    def test_every_program_compiles(self):
        page = (ROOT / "docs" / "language.md").read_text()
        programs = re.findall(r"```par\n(.*?)```", page, re.S)
        self.assertGreater(len(programs), 8)
        for text in programs:
            with self.subTest(text=text.splitlines()[0]):
                (self.folder / "page.par").write_text(text)
                self.run_ok("compile", "page.par", "--length", 8, "-o", "page.safetensors")
                if "send" not in text:  # two messages may meet on random inputs
                    self.run_ok("verify", "page.safetensors", "--samples", 20)


if __name__ == "__main__":
    unittest.main()
