"""Programs whose messages go where data says: levels and ways that agree, promises, switches."""

import unittest

from programs_test import OTHERS, change_number
from support import CliCase

SHIFT = """program shift
word x : int[0..9] = input
word s : int[0..3] = input same
send y = x to i + s if x > 2 else nothing
output y
"""


class Run(CliCase):
    def test_levels_and_ways_agree(self):
        cases = [("scatter", ["2,0,1", "1.5,2.5,3.5"], "2.5,3.5,1.5"),
                 ("gather", ["2,0,1", "1.5,2.5,3.5"], "3.5,1.5,2.5"),
                 ("list-ranking", ["2,-1,1,0"], "2,0,1,3"),
                 ("k-hop", ["1,2,1,3,1,2", "2"], "0,0,0,0,0,2"),
                 ("radix-sort", ["5,63,0,5,7"], "0,5,5,7,63"),
                 ("automaton", ["1,1,0,1,1,0,1"], "0,1,1,0,1,1,0")]
        for name, columns, expected in cases:
            inputs = [part for column in columns for part in ("--input", column)]
            self.assertEqual(self.run_ok("run", name, *inputs, "--level", "mpc"), expected + "\n")
            for routing in ("auto", "gather", "sort", "benes"):
                for level in ("static", "network"):
                    found = self.run_ok("run", name, *inputs, "--level", level, "--routing", routing)
                    self.assertEqual(found, expected + "\n", (name, routing, level))

    def test_some_send_nothing(self):
        (self.folder / "shift.par").write_text(SHIFT)
        for routing in ("gather", "sort", "benes"):
            self.assertEqual(self.run_ok("run", "shift.par", "--input", "2,3,4,5", "--input", "1",
                                         "--routing", routing), "0,0,3,4\n")

    def test_errors(self):
        self.run_error(4, "run", "scatter", "--input", "0,0,1", "--input", "1,2,3",
                       message="0 twice, where a permutation must be")
        self.run_error(4, "run", "list-ranking", "--input", "1,0,-1", message="one list that ends")
        self.run_error(4, "run", "k-hop", "--input", "1,2", "--input", "1,2",
                       message="where all must be the same")
        self.run_error(2, "run", "scatter", "--input", "0,1", message="once for each input")
        self.run_error(3, "run", "scatter", "--input", "0,1", "--input", "1,2", "--routing", "static", message="which depends on the input")
        self.run_error(2, "run", "scatter", "--input", "0,1", "--input", "1,2", "--routing", "bens", message="benes")
        (self.folder / "meet.par").write_text(
            "program meet\nword x : int[0..9] = input\nsend y = x to x\noutput y\n")
        self.run_error(4, "run", "meet.par", "--input", "1,1,1",
                       message="machine 1 receives 3 messages for 'y' in round 0")


class Compiled(CliCase):
    def test_gathering_is_within_the_theorem_where_messages_fit(self):
        text = self.run_ok("compile", "scatter", "--length", 32, "-o", "m.safetensors")
        self.assertIn("2 s = 6 heads; here 3 and 32", text)
        self.assertIn("do not fit into memory (s < 2 N)", text)
        (self.folder / "wide.par").write_text(
            "program wide\nword x : real = input\nword d : int[0..1] = input permutation\n"
            "word a : real = input\nword b : real = input\npermute y = x to d\noutput y + a + b\n")
        text = self.run_ok("compile", "wide.par", "--length", 2, "-o", "m.safetensors")
        self.assertIn("as N messages fit into memory (s >= 2 N)", text)

    def test_every_program_is_verified(self):
        for name in sorted(OTHERS):
            for routing in ("auto", "sort", "benes"):
                self.run_ok("compile", name, "--length", 6, "--routing", routing, "-o", "m.safetensors")
                text = self.run_ok("verify", "m.safetensors", "--samples", 50, "--scales", 1)
                self.assertIn("no mistake in", text)
                self.assertIn("the exact answer", text)

    def test_attention_from_the_data(self):
        for name in ("gather", "k-hop", "list-ranking", "radix-sort", "scatter"):
            text = self.run_ok("compile", name, "--length", 6, "--attention", "data", "-o", "m.safetensors")
            self.assertIn("looks for the sender in the data", text)
            text = self.run_ok("verify", "m.safetensors", "--samples", 50, "--scales", 1)
            self.assertIn("no mistake in", text)
        self.assertEqual(self.run_ok("predict", "m.safetensors", "--input", "1,10,2,20,3,30,4,40,5,50,0,60"),
                         self.run_ok("run", "scatter", "--input", "1,2,3,4,5,0", "--input", "10,20,30,40,50,60",
                                     "--routing", "attention"))
        report = self.run_json("compile", "scatter", "--length", 100, "--attention", "data", "-o", "m.safetensors")
        self.assertEqual((report["layers"], report["attention"], report["architecture"]), (2, "data", "custom"))
        self.run_error(3, "compile", "scatter", "--length", 257, "--attention", "data", message="at most 256")
        self.run_error(3, "compile", "sort", "--attention", "data", message="sends no messages")
        self.run_error(2, "compile", "scatter", "--attention", "data", "--routing", "sort", message="--routing")
        self.run_error(2, "compile", "scatter", "--attention", "dta", message="did you mean 'data'?")

    def test_the_report_names_the_theorem(self):
        text = self.run_ok("compile", "k-hop", "--length", 40, "--set", "K=16", "-o", "m.safetensors")
        self.assertIn("Theorem 5.1 for N = 40, s = ", text)
        self.assertIn("the network finds the way itself", text)
        report = self.run_json("compile", "scatter", "--length", 100, "--routing", "benes", "-o",
                               "m.safetensors")
        self.assertEqual(report["layers"], 14)
        self.assertEqual(report["messages"]["theorem_layers"], 14)
        self.assertEqual([row["way"] for row in report["messages"]["sending"]], ["benes"])
        self.assertNotIn("messages", self.run_json("compile", "sort", "-o", "m.safetensors"))

    def test_rounds_as_written_and_of_the_network(self):
        listed = {entry["name"]: entry["rounds"] for entry in self.run_json("programs")}
        report = self.run_json("compile", "scatter", "-o", "m.safetensors")
        self.assertEqual(report["messages"]["rounds"], listed["scatter"])
        self.assertGreater(report["rounds"], listed["scatter"])

    def test_wrong_weights_are_found(self):
        self.run_ok("compile", "k-hop", "--length", 12, "--set", "K=3,q=2", "-o", "m.safetensors")
        change_number(self.folder / "m.safetensors", "encoding.weight", 0, 7.0)
        self.run_error(6, "verify", "m.safetensors", "--samples", 200, "--scales", 1,
                       message="does not compute")

    def test_evaluate_and_predict_find_switches(self):
        for routing in ("auto", "benes"):
            self.run_ok("compile", "scatter", "--length", 4, "--routing", routing, "-o",
                        "m.safetensors")
            scale = self.run_json("evaluate", "m.safetensors", "--scales", 1)["models"][0]["scales"][0]
            self.assertEqual((scale["mse"], scale["accuracy"]), (0, 1))
            # Destination and word of every processor.
            self.assertEqual(self.run_ok("predict", "m.safetensors", stdin=b"3,1,0,2,1,3,2,4\n"),
                             "2,3,4,1\n")
            self.run_error(4, "predict", "m.safetensors", stdin=b"3,1,0,2,1,3,2,4\n3,1,3,2,1,3,2,4\n", message="row 2: 3 twice")

    def test_messages_that_meet_are_an_error(self):
        # Networks would answer, each routing in its own way.
        (self.folder / "meet.par").write_text(
            "word x : int[0..n - 1] = input\nword one : int[0..1] = 1\nsend y = one to x\noutput y\n")
        for routing in ("gather", "sort", "benes"):
            self.run_ok("compile", "meet.par", "--length", 4, "--routing", routing, "-o", "m.safetensors")
            self.assertEqual(self.run_ok("predict", "m.safetensors", stdin=b"3,1,0,2\n"), "1,1,1,1\n")
            self.run_error(4, "predict", "m.safetensors", stdin=b"3,1,0,2\n0,0,1,2\n",
                           message=["row 2: machine 0 receives 2 messages for 'y'", "at most 1"])
            self.run_error(4, "evaluate", "m.safetensors", message="messages for 'y'")
            self.run_error(4, "verify", "m.safetensors", message="messages for 'y'")

    def test_switches_that_carry_something_else_are_refused(self):
        self.run_ok("compile", "scatter", "--length", 2, "--routing", "benes", "-o", "m.safetensors")
        self.assertEqual(self.run_ok("predict", "m.safetensors", stdin=b"1,5,1,0,6,1\n"), "6,5\n")
        self.run_error(4, "predict", "m.safetensors", stdin=b"1,5,0,0,6,0\n",
                       message="row 1: switches that do not carry")
        self.run_error(4, "predict", "m.safetensors", stdin=b"1,5,1\n", message="3")


if __name__ == "__main__":
    unittest.main()
