"""--input means the same in predict, run, show and inspect: what is typed, a file, or standard input."""

import json
import unittest

from support import CliCase, trained_runs

NPY = (b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }".ljust(79) + b"\n" +
       bytes.fromhex("0000000000000840" "000000000000f03f" "0000000000000040"))  # 3, 1, 2


class Input(CliCase):
    def setUp(self):
        super().setUp()
        (self.folder / "x.csv").write_text("a,b,c\n3,1,2\n")
        (self.folder / "x.txt").write_text("3 1 2  # without a header\n")
        (self.folder / "x.npy").write_bytes(NPY)
        (self.folder / "5").write_text("3,1,2\n")
        self.run_ok("compile", "sort", "--length", 3)
        trained = str(trained_runs() / "standard-seed0")
        self.commands = {
            "run": ["run", "sort"], "predict": ["predict", "sort.safetensors"],
            "predict trained": ["predict", trained, "--json"],
            "inspect": ["inspect", "sort.safetensors", "--json"],
            "inspect trained": ["inspect", trained, "--json"],
            "show": ["show", "sort", "-o", "-"], "show compiled": ["show", "sort.safetensors", "-o", "-"],
            "show trained": ["show", trained, "-o", "-"]}

    def test_every_form_in_every_command(self):
        for name, command in self.commands.items():
            with self.subTest(command=name):
                expected = self.run_ok(*command, "--input", "3,1,2")
                for form in ["3 1 2", "+3, 1.0,2e0", "x.csv", "x.txt", "x.npy", "./5"]:
                    self.assertEqual(self.run_ok(*command, "--input", form), expected, form)
                self.assertEqual(self.run_ok(*command, "--input", "-", stdin=b"3,1,2\n"), expected)

    def test_what_cannot_be_read(self):
        (self.folder / "bad.csv").write_text("1,2,x\n")
        for name, command in self.commands.items():
            with self.subTest(command=name):
                for missing in ["none.csv", "none", "none/1", "1,2.npy"]:
                    self.run_error(4, *command, "--input", missing, message=[
                        f"--input '{missing}': there is no such file", "a file, or '-' for standard input"])
                self.run_error(4, *command, "--input", "1,2,x", message="--input:1: 'x' in column 3")
                self.run_error(4, *command, "--input", "bad.csv", message="bad.csv:1: 'x' in column 3")
                self.run_error(4, *command, "--input", "-", message="standard input: no rows")
                self.run_error(4, *command, "--input", ".", message="cannot read")
                if name not in ["run", "show"]:  # a program takes any length
                    self.run_error(4, *command, "--input", "3,1", message=["--input", "3"])

    def test_another_count_than_the_length(self):
        for command in (["run", "sort"], ["show", "sort"]):
            self.run_error(4, *command, "--length", 8, "--input", "3,1,2", message=[
                "3 numbers in --input", "expected 8, one for each processor of 'sort' at length 8",
                "HINT: --length 3"])
            self.run_error(4, *command, "--length", 8, "--input", "x.csv", message="3 numbers in x.csv")
        self.run_error(4, "run", "scatter", "--input", "1,0", "--input", "1,2,3",
                       message=["3 numbers in --input", "--length says what n is"])

    def test_lists_of_several_inputs(self):
        (self.folder / "to.csv").write_text("2,0,1\n")
        self.assertEqual(self.run_ok("run", "scatter", "--input", "to.csv", "--input", "-", stdin=b"5,6,7"),
                         "6,7,5\n")
        self.run_error(2, "run", "scatter", "--input", "-", "--input", "-",
                       message=["--input - given several times", "into files"])

    def test_one_row_alone_is_stepped_through(self):
        (self.folder / "two.csv").write_text("3,1,2\n1,2,3\n")
        for name in ["run", "show", "show compiled", "show trained"]:
            self.run_error(4, *self.commands[name], "--input", "two.csv", message=["2 rows", "one row"])

    def test_inspect_finds_the_way_of_messages_as_predict_does(self):
        self.run_ok("compile", "scatter", "--length", 4, "--routing", "benes")
        row = "2,5,0,6,1,7,3,8"  # destination and number of each processor
        self.assertEqual(self.run_ok("predict", "scatter.safetensors", "--input", row), "6,7,5,8\n")
        self.run_ok("inspect", "scatter.safetensors", "--input", row)


class OutsideTheTrainingRange(CliCase):
    NOTE = ("note: 3 of 6 numbers lie outside the training range [-2, 2]; posattn evaluate --scales 1..10 "
            "tests how the model holds there\n")

    def test_a_note_once(self):
        model = trained_runs() / "positional-seed0"
        rows = b"1,2,3\n-4,2,5\n"
        self.assertEqual(self.run_code(0, "predict", model, stdin=rows)[1], self.NOTE)
        self.assertEqual(self.run_code(0, "predict", model, "--json", stdin=rows)[1], "")
        self.assertEqual(self.run_code(0, "predict", model, stdin=b"1,-2,2\n")[1], "")

    def test_a_compiled_model_has_no_such_range(self):
        self.run_ok("compile", "sort", "--length", 3)
        self.assertEqual(self.run_code(0, "predict", "sort.safetensors", "--input", "3,100,2")[1], "")


class WholeNumbers(CliCase):
    def test_no_scale_where_it_changes_nothing(self):
        self.run_ok("compile", "k-hop", "--length", 4, "--set", "K=3")
        text = self.run_ok("evaluate", "k-hop.safetensors", "--samples", 20)
        self.assertEqual(text.splitlines()[1].split(), ["MSE", "accuracy"])
        self.assertEqual(len(text.splitlines()), 3)
        found = json.loads(self.run_ok("evaluate", "k-hop.safetensors", "--samples", 20, "--json"))
        self.assertEqual([(test["c"], test["accuracy"]) for test in found["models"][0]["scales"]], [(1, 1)])


if __name__ == "__main__":
    unittest.main()
