"""Parallel programs from text to weights: every command, levels that agree, models that are wrong."""

import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from support import ROOT, CliCase, read_tensors, trained_runs, unchecked

PROGRAMS = {"broadcast", "cumulative-max", "cumulative-max-subarray", "cumulative-median",
            "cumulative-min", "cumulative-sum", "distances", "matrix-vector", "min-sum", "reduce",
            "sort", "sort-odd-even"}
# Their inputs are no single column of reals; see messages_test.py.
OTHERS = {"all-pairs", "automaton", "bellman-ford", "bfs-tree", "breadth-first", "components", "connectivity", "gather",
          "k-hop", "list-ranking", "one-two-cycle", "radix-sort", "scatter"}
# For tasks that hold their numbers in another form.
OF_TASKS = {"contextual-counting", "in-context-conjunction", "in-context-majority",
            "in-context-parity", "match-three", "match-two", "sparse-average"}

LARGER = """# is a number larger than its left neighbour?
program larger
word x : int[0..9] = input
receive y = x from i - 1
word b : bit = x > y
output b
"""

DEAD_STORE = """word x : real = input
word s : real = 2 * x
receive y = s from i + 1
x = x + y
s = 7
output x
"""

MILLIONS = """program millions
word x : int[0..%d] = input
receive y = x from i - 1
word s : int[0..%d] = x + y
output s
"""


def change_number(path, tensor, index, value):
    """Sets one number of a tensor in a safetensors file."""
    path = pathlib.Path(path)
    data = bytearray(path.read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + size])[tensor]
    kind = {"F32": "<f", "I32": "<i"}[entry["dtype"]]
    struct.pack_into(kind, data, 8 + size + entry["data_offsets"][0] + 4 * index, value)
    path.write_bytes(unchecked(data))


class Programs(CliCase):
    def test_list(self):
        text = self.run_ok("programs")
        self.assertTrue(text.startswith("n = 8\nprogram "))
        header, *rows = text.split("\n\n")[0].splitlines()[1:]
        column = header.index("what it computes")
        for row in rows:
            self.assertNotEqual(row[column], " ")
            self.assertEqual(row[column - 2:column], "  ")
        self.assertEqual({row.split()[0] for row in rows}, PROGRAMS | OTHERS | OF_TASKS)

    def test_cost_follows_the_length(self):
        layers = [{entry["name"]: entry["layers"] for entry in self.run_json("programs", "--length", n)}
                  for n in (8, 32, 128)]
        self.assertEqual([found["sort"] for found in layers], [6, 15, 28])
        self.assertEqual([found["cumulative-sum"] for found in layers], [3, 5, 7])
        entry = self.run_json("programs")[0]
        self.assertEqual(list(entry), ["name", "description", "task", "length", "processors", "rounds",
                                       "layers", "heads", "words", "hidden", "constants"])

    def test_programs_of_tasks_are_verified(self):
        for name in sorted(OF_TASKS):
            self.run_ok("compile", name, "--length", 6, "-o", "m.safetensors")
            self.assertIn("no mistake in", self.run_ok("verify", "m.safetensors", "--samples", 50))

    def test_a_program_that_is_too_large_does_not_end_the_list(self):
        entries = {entry["name"]: entry for entry in self.run_json("programs", "--length", 5000)}
        self.assertEqual(set(entries), PROGRAMS | OTHERS | OF_TASKS)
        self.assertEqual(entries["cumulative-sum"]["layers"], 13)
        large = [entry for entry in entries.values() if "problem" in entry]
        self.assertIn(entries["breadth-first"], large)
        self.assertIn("an array of 5000 words", entries["breadth-first"]["problem"])
        text = self.run_ok("programs", "--length", 5000)
        for entry in large:
            for key in ["processors", "rounds", "layers", "heads", "words", "hidden", "constants"]:
                self.assertIsNone(entry[key])
            row, = (line for line in text.splitlines() if line.startswith(entry["name"] + " "))
            self.assertRegex(row, r"^[a-z-]+( +-){5}  [^ ]")
            self.assertTrue(row.endswith(f"({entry['problem']})"), row)

    def test_programs_without_a_task(self):
        tasks = {entry["name"]: entry["task"] for entry in self.run_json("programs")}
        self.assertEqual((tasks["sort"], tasks["broadcast"]), ("sort", ""))

    def test_text_of_a_program(self):
        text = self.run_ok("programs", "--show", "sort")
        self.assertEqual(text, (ROOT / "programs" / "sort.par").read_text())
        (self.folder / "mine.par").write_text(text)
        self.assertEqual(self.run_ok("run", "mine.par", "--input", "3,1,2"), "1,2,3\n")

    def test_errors(self):
        self.run_error(2, "programs", "--show", "sorted", message="did you mean 'sort'?")
        self.run_error(2, "programs", "--length", 0, message="--length 0 expected 1 to 1048576")


class Run(CliCase):
    def test_levels_agree(self):
        for name in sorted(PROGRAMS):
            for n in (1, 4, 7):
                count = 2 * n if name == "min-sum" else n
                numbers = [((7 * k) % 11) / 4 - 1 for k in range(count)]
                arguments = ["run", name, "--length", n, "--input=" + ",".join(map(str, numbers))]
                exact = self.run_json(*arguments, "--level", "static")
                network = self.run_json(*arguments)
                self.assertEqual((exact["level"], network["level"]), ("static", "network"))
                self.assertEqual(exact["input"], numbers)
                for a, b in zip(exact["output"], network["output"], strict=True):
                    self.assertTrue(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5), (name, n, a, b))

    def test_text_and_trace(self):
        self.assertEqual(self.run_ok("run", "cumulative-sum", "--input", "1,2,3,4"), "1,3,6,10\n")
        text = self.run_ok("run", "cumulative-sum", "--input", "1,2,3,4", "--trace")
        for line in ["start", "after round 1"]:
            self.assertIn(line + "\n", text)
        self.assertRegex(text, r"after round 0\n  x +1 +3 +5 +7\n")
        self.assertRegex(text, r"after round 0\n  x .*\n  y +0 +1 +2 +3\n")
        self.assertTrue(text.endswith("\n\n1,3,6,10\n"))

    def test_trace_shows_what_the_output_does_not_need(self):
        (self.folder / "dead.par").write_text(DEAD_STORE)
        text = self.run_ok("run", "dead.par", "--input", "1,2,3", "--trace")
        self.assertRegex(text, r"after round 0\n  x +1 +2 +3\n  s +2 +4 +6\n")
        self.assertRegex(text, r"after round 1\n  x +5 +8 +3\n  s +7 +7 +7\n  y +4 +6 +0\n\n")

    def test_whole_numbers(self):
        (self.folder / "larger.par").write_text(LARGER)
        self.assertEqual(self.run_ok("run", "larger.par", "--input", "0,9,3,3,4"), "0,1,0,0,1\n")
        self.run_error(4, "run", "larger.par", "--input", "0,10", message="int[0..9]")
        self.run_error(4, "run", "larger.par", "--input", "0,1.5", message="int[0..9]")

    def test_numbers_beyond_fp32(self):
        self.assertEqual(self.run_ok("run", "sort", "--input", "1,1e39,2", "--level", "mpc"), "1,2,1e+39\n")
        self.run_error(4, "run", "sort", "--input", "1,1e39,2", message="1e+39 of 'x' on processor 1")
        self.run_error(4, "run", "sort", "--input", "3e38,-3e38,1", message="an overflow in the network")

    def test_errors(self):
        self.run_error(4, "run", "sort", "--input", "1,x", message="expected a number")
        self.run_error(4, "run", "sort", "--input", "1,2", "--length", 3,
                       message="2 numbers in --input expected 3, one for each processor")
        self.run_error(4, "run", "min-sum", "--input", "1,2,3",
                       message=["expected 6", "HINT: --length says what n is"])
        (self.folder / "pairs.par").write_text(
            "word a[2] : real = input\noutput a\n")
        self.run_error(2, "run", "pairs.par", "--input", "1,2",
                       message="expected 2 times, once for each input of 'pairs': a[0], a[1]")
        pairs = ["run", "pairs.par", "--input", "1,2", "--input", "3,4"]
        self.assertEqual(self.run_ok(*pairs), "1,2\n3,4\n")
        self.assertEqual(self.run_json(*pairs)["output"], [1, 3, 2, 4])
        self.run_error(2, "run", "sort", "--input", "1,2", "--level", "networks",
                       message="did you mean 'network'?")
        self.run_error(2, "run", "sorted", "--input", "1,2", message="unknown program 'sorted'")
        self.run_error(4, "run", "none.par", "--input", "1", message="cannot read 'none.par'")
        self.run_error(2, "run", "sort", message="--input")
        (self.folder / "bad.par").write_text("program bad\nword x : real = input\nx = x * x\noutput x\n")
        self.run_error(3, "run", "bad.par", "--input", "1", message="bad.par:3:")


class Compile(CliCase):
    def test_summary(self):
        text = self.run_ok("compile", "sort", "-o", "s.safetensors", "--precision-check")
        for part in ["sort, n = 8: 6 rounds -> 6 layers, 2 heads, 2 words, 4 hidden units, ", "M5: ",
                     "attention as routes", "rounding: for inputs of 1",
                     "written to s.safetensors", "posattn verify s.safetensors",
                     "posattn evaluate s.safetensors --scales 1..10,1000\n"]:
            self.assertIn(part, text)
        self.assertLess(len(self.run_ok("compile", "k-hop").splitlines()), 10)
        self.assertTrue(self.run_ok("compile", "radix-sort").endswith("evaluate radix-sort.safetensors\n"))
        text = self.run_ok("compile", "sort", "--layers")
        self.assertIn("min or max(x, p)", text)
        self.assertRegex(text, r"\n0 +0 +[\d,-]+ +2 +4 ")  # layers and rounds count from 0
        self.assertIn("M1: ", self.run_ok("compile", "distances"))
        self.assertTrue((self.folder / "distances.safetensors").exists())

    def test_json(self):
        found = self.run_json("compile", "cumulative-median", "--length", 8)
        self.assertEqual((found["model"], found["rounds"], found["layers"], found["words"],
                          found["hidden"], found["architecture"], found["attention"]),
                         ("cumulative-median.safetensors", 6, 12, 16, 38, "m5", "routes"))
        (self.folder / "larger.par").write_text(LARGER)
        found = self.run_json("compile", "larger.par")
        self.assertEqual(found["architecture"], "m1")
        self.assertGreater(found["largest_integer_sum"], 0)
        self.assertIn("of the 16777216 that fp32 holds exactly",
                      self.run_ok("compile", "larger.par", "--precision-check"))

    def test_dense_and_routes_are_one_function(self):
        rows = b"3,1,2,-5,4,8,7,6\n0,0,1e3,-1e3,2.5,2.5,1,0\n"
        outputs = []
        for how in ([], ["--dense"], ["--dense", "--sharpness", 104], ["--pad-to", "64,2,64,8"]):
            self.run_ok("compile", "sort", "-o", "m.safetensors", *how)
            outputs.append(self.run_ok("predict", "m.safetensors", stdin=rows))
            self.assertTrue(self.run_json("verify", "m.safetensors", "--samples", 50)["holds"], how)
        self.assertEqual(outputs[0].splitlines()[0], "-5,1,2,3,4,6,7,8")
        self.assertEqual(set(outputs), {outputs[0]})

    def test_soft_attention_is_not_exact(self):
        self.run_ok("compile", "sort", "--dense", "--sharpness", 8, "-o", "m.safetensors")
        self.run_error(6, "verify", "m.safetensors", "--samples", 20,
                       message="does not compute what the program says")

    def test_padding(self):
        self.run_ok("compile", "sort", "--pad-to", "64,2,64,8", "-o", "m.safetensors")
        found = self.run_json("inspect", "m.safetensors")
        self.assertEqual([found["spec"][key] for key in ("width", "heads", "mlp_width", "depth")],
                         [64, 2, 64, 8])
        self.run_error(3, "compile", "sort", "--pad-to", "2,2,2,6", message="at least 4")
        self.run_error(3, "compile", "sort", "--pad-to", "3,2,4,6", message="heads divide")
        self.run_error(2, "compile", "sort", "--pad-to", "64,2", message="width,heads,hidden,layers")

    def test_whole_numbers_beyond_fp32_are_refused(self):
        (self.folder / "small.par").write_text(MILLIONS % (8_000_000, 16_000_000))
        (self.folder / "large.par").write_text(MILLIONS % (9_000_000, 18_000_000))
        self.run_ok("compile", "small.par")
        for command in (["compile"], ["run", "--input", "1,2"]):
            self.run_error(3, *command, "large.par",
                           message=["whole numbers up to 1.8e+07 in round 0",
                                    "less than 2^24"])
        # The interpreter is in double and knows no such limit.
        self.assertEqual(self.run_ok("run", "large.par", "--input", "9000000,8999999", "--level",
                                     "static"), "9000000,17999999\n")

    def test_errors(self):
        self.run_error(2, "compile", "sort", "--length", 0, message="1 to 1048576")
        self.run_error(2, "compile", "sort", "--dense", "--sharpness", 0, message="a number above 0")
        self.run_error(3, "compile", "sort", "--dense", "--length", 129, message="leave out --dense")
        self.run_error(1, "compile", "sort", "-o", "none/m.safetensors", message="cannot write")
        self.run_error(4, "compile", "none.par", message="cannot read 'none.par'")


class Verify(CliCase):
    def test_every_program_at_several_lengths(self):
        for name in sorted(PROGRAMS):
            for n in (1, 5, 8, 13):
                self.run_ok("compile", name, "--length", n, "-o", "m.safetensors")
                found = self.run_json("verify", "m.safetensors", "--samples", 20)
                self.assertTrue(found["holds"], (name, n))
                self.assertEqual((found["program"], found["length"]), (name, n))
                self.assertEqual([scale["mismatches"] for scale in found["scales"]], [0, 0, 0])

    def test_text(self):
        self.run_ok("compile", "sort", "-o", "m.safetensors")
        text = self.run_ok("verify", "m.safetensors", "--samples", 10, "--scales", "1,5")
        self.assertIn("in fp32: against the program and the exact answer of task sort", text)
        self.assertTrue(text.endswith("the weights are those that `posattn compile` writes\n"))
        found = self.run_json("verify", "m.safetensors", "--samples", 10, "--double")
        self.assertEqual(found["precision"], "double")
        for scale in found["scales"]:
            self.assertLessEqual(scale["mse_over_c2"], 1e-26)
            self.assertLess(scale["rounding_bound"], 1e-12 * scale["c"])

    def test_the_same_numbers_every_time(self):
        self.run_ok("compile", "cumulative-sum", "-o", "m.safetensors")

        def verify(*arguments):
            found = self.run_json("verify", "m.safetensors", "--samples", 30, *arguments)
            for scale in found["scales"]:
                self.assertGreaterEqual(scale.pop("network_seconds"), 0)
            return found

        first = verify("--threads", 1)
        self.assertEqual(first, verify("--threads", 2))
        self.assertNotEqual(first, verify("--seed", 1))

    def test_a_changed_weight_is_found(self):
        for name, tensor, index, value in [
                ("cumulative-sum", "transformer_layers.1.attn.routes", 5, 2),
                ("sort", "transformer_layers.3.mlp.mlp.2.weight", 1, 1.001),
                ("cumulative-max", "decoding.weight", 0, -1.0)]:
            with self.subTest(program=name):
                self.run_ok("compile", name, "-o", "m.safetensors")
                before = read_tensors(self.folder / "m.safetensors")[tensor][2]
                change_number(self.folder / "m.safetensors", tensor, index, value)
                self.assertNotEqual(before, read_tensors(self.folder / "m.safetensors")[tensor][2])
                self.run_error(6, "verify", "m.safetensors", "--samples", 50,
                               message=["m.safetensors does not compute what the program says",
                                        "the simplest input found: ", "its outputs: "])
                output, _ = self.run_code(6, "verify", "m.safetensors", "--samples", 50, "--json")
                found = json.loads(output)
                self.assertFalse(found["holds"])
                example = found["counter_example"]
                self.assertLessEqual(sum(x != 0 for x in example["input"]), 3)
                self.assertNotEqual(example["expected"], example["found"])
                # It is a counter-example: predict gives the same wrong outputs.
                row = ",".join(map(str, example["input"])).encode() + b"\n"
                again = self.run_json("predict", "m.safetensors", stdin=row)["outputs"][0]
                self.assertEqual(again, example["found"])

    def test_a_program_keeps_its_name(self):
        text = "word x : real = input\noutput x\n"
        for line, name in [("", "count"), ("program other\n", "other")]:
            (self.folder / "count.par").write_text(line + text)
            self.run_ok("compile", "count.par", "-o", "sort.safetensors")
            verified = self.run_json("verify", "sort.safetensors", "--samples", 5)
            self.assertEqual(verified["program"], name)

    def test_tables_have_a_range(self):
        (self.folder / "table.par").write_text(
            "word x : real = input\nword y : real = square(x) on [-10, 10] within 0.01\noutput y\n")
        self.run_ok("compile", "table.par", "--length", 2, "-o", "m.safetensors")
        self.run_error(4, "verify", "m.safetensors",
                       message=["square of ", "at c = 10 (inputs in [-20, 20])",
                                "expected a number from -10 to 10", "--scales 1", "min and max"])
        self.run_ok("verify", "m.safetensors", "--scales", 1, "--samples", 50)

    def test_a_long_counter_example_is_told_in_short(self):
        self.run_ok("compile", "cumulative-sum", "--length", 300, "-o", "m.safetensors")
        change_number(self.folder / "m.safetensors", "transformer_layers.0.attn.routes", 200, 7)
        errors = self.run_error(6, "verify", "m.safetensors", "--samples", 5,
                                message=["of processor 200", ", else zeros", " more"])
        self.assertLess(len(errors), 1000)

    def test_wrong_outputs_are_counted_by_outputs(self):
        # More inputs than outputs, and more outputs than inputs.
        (self.folder / "thrice.par").write_text(
            "word x : real = input\noutput x\noutput 2 * x\noutput 3 * x\n")
        for name, length, wrong_outputs in [("scatter", 20, 20), ("thrice.par", 7, 7)]:
            with self.subTest(program=name):
                self.run_ok("compile", name, "--length", length, "-o", "m.safetensors")
                change_number(self.folder / "m.safetensors", "decoding.bias", 0, 1.0)
                output, errors = self.run_code(6, "verify", "m.safetensors", "--samples", 20)
                wrong = re.search(r"expected outputs (.*) and (\d+) more", errors.replace("\n   ", ""))
                listed = wrong[1].count("of processor") + int(wrong[2])
                self.assertEqual(listed, wrong_outputs, errors)

    def test_other_weights_must_be_accepted(self):
        self.run_ok("compile", "sort", "-o", "m.safetensors")
        change_number(self.folder / "m.safetensors", "transformer_layers.0.mlp.mlp.0.bias", 0, -1e-30)
        self.run_error(6, "verify", "m.safetensors", "--samples", 20,
                       message=["is not what `posattn compile` makes of its program",
                                "1 number of transformer_layers.0.mlp.mlp.0.bias", "--any-weights"])
        text = self.run_ok("verify", "m.safetensors", "--samples", 20, "--any-weights")
        self.assertIn("the weights are not the compiler's", text)

    def test_whole_numbers_have_no_scale(self):
        self.run_ok("compile", "breadth-first", "--length", 4, "-o", "m.safetensors")
        text = self.run_ok("verify", "m.safetensors", "--samples", 20)
        self.assertIn("inputs  hard  mismatches", text.splitlines()[1])
        self.assertEqual(len(text.splitlines()), 4)
        self.assertEqual(self.run_json("verify", "m.safetensors", "--samples", 20)["inputs"], 40)

    def test_errors(self):
        for name in ("positional-seed0/model.safetensors", "positional-seed0"):
            self.run_error(4, "verify", trained_runs() / name,
                           message=["carries no program", "posattn compile", "posattn evaluate"])
        self.run_error(4, "verify", "none.safetensors", message="'none.safetensors'")
        self.run_ok("compile", "sort", "--dense", "-o", "m.safetensors")
        self.run_error(3, "verify", "m.safetensors", "--double", message="without --dense")
        self.run_error(2, "verify", "m.safetensors", "--samples", 0, message="1 to 100000000")
        self.run_error(2, "verify", "m.safetensors", "--scales", "0", message="scales above 0")
        (self.folder / "text.safetensors").write_text("no model\n")
        self.run_error(4, "verify", "text.safetensors", message="text.safetensors")


class Show(CliCase):
    def test_picture(self):
        text = self.run_ok("show", "sort", "--length", 4)
        self.assertEqual(text, "3 rounds of 4 processors in sort.svg\n")
        text = self.run_ok("show", "broadcast", "--length", 4)
        self.assertEqual(text, "1 round of 4 processors in broadcast.svg\n")
        for name in sorted(PROGRAMS):
            self.run_ok("show", name, "-o", "p.svg")
            root = xml.etree.ElementTree.parse(self.folder / "p.svg").getroot()
            self.assertTrue(root.tag.endswith("svg"))

    def test_rounds_count_from_0(self):
        picture = self.run_ok("show", "sort", "--length", 4, "-o", "-")
        for name, shown in [("round 0", True), ("round 2", True), ("round 3", False)]:
            self.assertEqual(f">{name}<" in picture, shown, name)

    def test_errors(self):
        self.run_error(2, "show", "sort", "--length", 129, message="at most 128 and 200")
        self.run_error(1, "show", "sort", "-o", "none/p.svg", message="cannot write")


class CompiledModels(CliCase):
    """The commands on models take compiled ones."""

    def setUp(self):
        super().setUp()
        self.run_ok("compile", "sort", "-o", "routes.safetensors")
        self.run_ok("compile", "sort", "--dense", "-o", "dense.safetensors")

    def test_evaluate(self):
        for model in self.run_json("evaluate", "routes.safetensors", "dense.safetensors", "--scales",
                                   "1,10,1000", "--samples", 100)["models"]:
            for scale in model["scales"]:
                self.assertLess(scale["mse_over_c2"], 1e-13)
                self.assertEqual(scale["accuracy"], 1)

    def test_evaluate_without_a_task(self):
        """The program that the model carries says what is right."""
        (self.folder / "larger.par").write_text(LARGER)
        for program in ("distances", "reduce", "larger.par"):
            text = self.run_ok("compile", program, "-o", "m.safetensors")
            self.assertIn("posattn evaluate m.safetensors", text)
            found = self.run_json("evaluate", "m.safetensors", "--scales", "1,1000", "--samples", 50)
            name = program.removesuffix(".par")
            for entry in (found["models"][0], found["summary"][0]):
                self.assertEqual((entry["task"], entry["program"]), (None, name))
            for scale in found["models"][0]["scales"]:
                self.assertLess(scale["mse_over_c2"], 1e-12)
                self.assertEqual(scale["accuracy"], 1)
            self.assertTrue(self.run_ok("evaluate", "m.safetensors").startswith(f"program {name}, "))
        change_number(self.folder / "m.safetensors", "decoding.weight", 0, 7.0)
        wrong = self.run_json("evaluate", "m.safetensors", "--scales", "1")["models"][0]["scales"][0]
        self.assertGreater(wrong["mse"], 0.1)
        task = self.run_json("evaluate", "routes.safetensors", "--scales", "1", "--samples", 2)["models"][0]
        self.assertEqual(list(task), ["path", "task", "architecture", "length", "scales"])

    def test_predict(self):
        for name in ("routes", "dense"):
            self.assertEqual(self.run_ok("predict", name + ".safetensors", stdin=b"8,7,6,5,4,3,2,1\n"),
                             "1,2,3,4,5,6,7,8\n")

    def test_inspect(self):
        found = [self.run_json("inspect", name + ".safetensors") for name in ("routes", "dense")]
        # The first round compares neighbours; a row of attention is one-hot either way.
        self.assertEqual(found[0]["attention"]["layers"], found[1]["attention"]["layers"])
        head = found[0]["attention"]["layers"][0][0]
        for i in range(8):
            self.assertEqual(head[i], [float(j == i ^ 1) for j in range(9)])
        text = self.run_ok("inspect", "routes.safetensors", "--attention", "a.svg")
        self.assertIn("program sort", text)
        self.assertIn("<svg", (self.folder / "a.svg").read_text()[:500])

    def test_pytorch(self):
        """Both forms are PyTorch modules; dense weights convert to the authors' state dict."""
        script = [sys.executable, ROOT / "scripts" / "convert.py", "to-torch"]
        done = subprocess.run([*script, "routes.safetensors", "m.pt"], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--dense", done.stderr)
        subprocess.run([*script, "dense.safetensors", "m.pt"], cwd=self.folder, check=True)
        sys.path.insert(0, str(ROOT / "scripts"))
        import posattn_torch  # needs Debian's python3-torch
        import torch
        network = posattn_torch.load_model(self.folder / "dense.safetensors")
        network.load_state_dict(torch.load(self.folder / "m.pt"), strict=True)
        rows = torch.tensor([[3.0, 1, 2, -5, 4, 8, 7, 6]])
        for module in network, posattn_torch.load_model(self.folder / "routes.safetensors"):
            with torch.no_grad():
                outputs = module(rows.reshape(1, 8, 1)).reshape(-1)[:8].tolist()
            self.assertEqual(outputs, sorted(rows[0].tolist()))


if __name__ == "__main__":
    unittest.main()
