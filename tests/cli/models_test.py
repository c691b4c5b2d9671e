"""What is asked of trained models: evaluate, predict, inspect, and where answers are written."""

import json
import math
import shutil
import struct
import subprocess
import sys
import unittest

import support
from support import ROOT, CliCase, tiny, trained_runs


class Evaluate(CliCase):
    def test_json_shape(self):
        result = self.run_json("evaluate", trained_runs(), "--scales", "1..3,1000", "--samples", 50)
        self.assertEqual(len(result["models"]), 4)
        for model in result["models"]:
            self.assertTrue(model["path"].endswith("model.safetensors"))
            self.assertEqual([scale["c"] for scale in model["scales"]], [1, 2, 3, 1000])
            for scale in model["scales"]:
                self.assertAlmostEqual(scale["mse_over_c2"], scale["mse"] / scale["c"] ** 2)
                self.assertTrue(0 <= scale["accuracy"] <= 1)
                self.assertEqual(len(scale["mse_per_node"]), 3)
        self.assertEqual([(group["architecture"], group["models"]) for group in result["summary"]],
                         [("positional", 2), ("standard", 2)])
        values = sorted(model["scales"][0]["mse"] for model in result["models"][:2])
        spread = result["summary"][0]["scales"][0]["mse"]
        self.assertEqual([spread["min"], spread["max"]], values)
        self.assertAlmostEqual(spread["median"], sum(values) / 2)

    def test_text(self):
        text = self.run_ok("evaluate", trained_runs(), "--per-node", "--scales", "1,2")
        for part in ["2 models", "median MSE", "accuracy", "per node", "side by side"]:
            self.assertIn(part, text)
        one = self.run_ok("evaluate", trained_runs() / "standard-seed1", "--scales", "1")
        self.assertNotIn("median", one)

    def test_seed_and_threads(self):
        arguments = ["evaluate", trained_runs() / "positional-seed0", "--samples", 20]
        first = self.run_json(*arguments, "--seed", 1, "--threads", 1)
        self.assertEqual(first, self.run_json(*arguments, "--seed", 1, "--threads", 2))
        self.assertNotEqual(first, self.run_json(*arguments, "--seed", 2))

    def test_per_length(self):
        self.run_ok("train", *tiny(variable_length=True), "--out", "out")
        scale = self.run_json("evaluate", "out", "--samples", 30)["models"][0]["scales"][0]
        self.assertEqual([part["length"] for part in scale["per_length"]], [1, 2, 3])
        self.assertIn("per length", self.run_ok("evaluate", "out"))

    def test_lengths(self):
        self.run_ok("train", *tiny(), "--out", "fixed")
        self.run_ok("train", *tiny(variable_length=True), "--out", "several")
        found = self.run_json("evaluate", "fixed", "--lengths", 3)["models"][0]["lengths"]
        inside = self.run_json("evaluate", "fixed", "--scales", 1)["models"][0]["scales"]
        self.assertEqual([str(test["length"]) for test in found], ["3"])
        for metric in ["mse", "accuracy"]:
            self.assertEqual(found[0][metric], inside[0][metric])
        self.assertNotIn("mse_over_c2", found[0])
        self.run_error(4, "evaluate", "fixed", "--lengths", "3,8", message="at length 8")
        self.run_error(2, "evaluate", "fixed", "--lengths", 3, "--scales", 1, message="together")
        self.run_error(2, "evaluate", "fixed", "--lengths", "2.5", message="2.5")
        named = self.run_json("evaluate", "fixed", "--axis", "length=3")
        self.assertEqual(named["models"][0]["lengths"], found)
        self.run_error(2, "evaluate", "fixed", "--axis", "c=1", "--scales", 1, message="together")
        self.run_error(2, "evaluate", "fixed", "--axis", "share", message="share=0.1,0.5")
        self.run_error(4, "evaluate", "fixed", "--axis", "share=1",
                       message=["cannot be tested along an axis 'share'", "one of its own: c"])
        text = self.run_ok("evaluate", "several", "--lengths", "1..3", "--per-node")
        self.assertRegex(text, r"\nlength +MSE +accuracy\n +1 .*\n +2 .*\n +3 ")
        self.assertNotIn("per length", text)

    def test_models_that_do_not_compare_are_kept_apart(self):
        self.run_ok("train", *tiny(), "--out", "real")
        self.run_ok("train", *tiny(integers=True), "--out", "integers")
        self.run_ok("train", *tiny(mlp_width=16), "--out", "wide")
        result = self.run_json("evaluate", "real", "integers", "wide", "--scales", "1")
        self.assertEqual([group["models"] for group in result["summary"]], [1, 1, 1])
        self.assertEqual([group["integers"] for group in result["summary"]], [False, True, False])
        self.assertEqual([group["spec"]["mlp_width"] for group in result["summary"]], [8, 8, 16])
        text = self.run_ok("evaluate", "real", "integers", "wide", "--scales", "1")
        for label in ["positional, length 3, values in [-2, 2], mlp width 8: ",
                      "positional, length 3, integers in [-2, 2), mlp width 8: ",
                      "positional, length 3, values in [-2, 2], mlp width 16: "]:
            self.assertIn(label, text)

    def test_a_model_named_twice_counts_once(self):
        run = trained_runs() / "positional-seed0"
        result = self.run_json("evaluate", run, trained_runs() / "." / "positional-seed0",
                               run / "model.safetensors", "--scales", "1")
        self.assertEqual(len(result["models"]), 1)

    def test_runs_without_a_model_are_named(self):
        shutil.copytree(trained_runs(), self.folder / "runs")
        (self.folder / "runs/standard-seed1/model.safetensors").unlink()
        output, errors = self.run_code(0, "evaluate", "runs", "--scales", "1", "--json")
        self.assertEqual(json.loads(output)["unfinished"], ["runs/standard-seed1"])
        self.assertEqual(errors, "note: 1 of 4 runs in runs has no model yet: standard-seed1\n")

    def test_a_node_without_outputs_that_count_has_no_error(self):
        self.run_ok("train", *tiny(task="path"), "--out", "out")
        result = self.run_json("evaluate", "out", "--scales", "1")
        errors = result["models"][0]["scales"][0]["mse_per_node"]
        self.assertEqual([error is None for error in errors], [False, False, True])
        text = self.run_ok("evaluate", "out", "--scales", "1", "--per-node")
        self.assertTrue(text.rstrip().endswith(" -"), text)

    def test_repeats_the_tests_of_training_in_kind(self):
        """Not the same samples, but the same measure: both are small or both are large."""
        last = support.read_metrics(trained_runs() / "positional-seed0")[-1]["tests"][0]
        scale = self.run_json("evaluate", trained_runs() / "positional-seed0", "--scales",
                              "1")["models"][0]["scales"][0]
        self.assertLess(abs(math.log(scale["mse"] / last["mse"])), math.log(5))


class OutputFile(CliCase):
    """One file: -o, --out and --output name it, - is standard output."""

    def commands(self):
        model = trained_runs() / "positional-seed0"
        return {"compile": (["compile", "sort", "--length", 4], b""),
                "show": (["show", "sort", "--length", 4], b""),
                "report": (["report", trained_runs()], b""),
                "predict": (["predict", model], b"1,2,-1\n")}

    def test_every_spelling_writes_the_same(self):
        for name, (command, stdin) in self.commands().items():
            for number, flag in enumerate(["-o", "--out", "--output"]):
                self.run_ok(*command, flag, f"{name}{number}", stdin=stdin)
            files = [(self.folder / f"{name}{number}").read_bytes() for number in range(3)]
            result = support.call(*command, "-o", "-", cwd=self.folder, stdin=stdin)
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            for data in files:
                self.assertEqual(data, result.stdout, name)
        self.assertFalse((self.folder / "-").exists())

    def test_standard_output_into_a_file(self):
        with open(self.folder / "m.safetensors", "wb") as file:
            self.run_code(0, "compile", "sort", "--out", "-", stdout=file)
        self.run_ok("verify", "m.safetensors", "--samples", 5)

    def test_the_same_for_a_folder(self):
        for flag in ["-o", "--out", "--output"]:
            self.run_ok("train", *tiny(epochs=1), flag, flag.strip("-"))
            self.assertTrue((self.folder / flag.strip("-") / "positional-seed0").is_dir())

    def test_a_picture_of_attention(self):
        model = trained_runs() / "positional-seed0"
        self.run_ok("inspect", model, "--attention", "a.svg")
        self.assertEqual(self.run_ok("inspect", model, "--attention", "-"),
                         (self.folder / "a.svg").read_text())


class Predict(CliCase):
    def test_csv_and_npy_agree(self):
        model = trained_runs() / "positional-seed0"
        rows = b"1,2,3\n-0.5,0.25,8\n"
        text = self.run_ok("predict", model, stdin=rows)
        table = [[float(cell) for cell in line.split(",")] for line in text.splitlines()]
        self.assertEqual([len(row) for row in table], [3, 3])
        self.assertEqual(self.run_json("predict", model, stdin=rows)["outputs"][0][0],
                         struct.unpack("f", struct.pack("f", table[0][0]))[0])
        (self.folder / "x.csv").write_bytes(rows)
        self.run_ok("predict", model, "--input", "x.csv", "--output", "y.csv")
        self.assertEqual((self.folder / "y.csv").read_text(), text)
        self.run_ok("predict", model, "--input", "x.csv", "--output", "y.npy")
        data = (self.folder / "y.npy").read_bytes()
        self.assertTrue(data.startswith(b"\x93NUMPY"))
        self.assertEqual(list(struct.unpack("<6f", data[-24:])),
                         [struct.unpack("f", struct.pack("f", x))[0] for row in table for x in row])
        self.run_ok("predict", model, "--input", "y.npy", "--format", "npy", "--output", "z")
        self.assertTrue((self.folder / "z").read_bytes().startswith(b"\x93NUMPY"))

    def echo_model(self):
        """A model of three nodes, three tokens and three classes that says its tokens again."""
        spec = {"real_nodes": 3, "scratch_nodes": 1, "data_columns": 0, "output_columns": 3,
                "width": 4, "heads": 2, "depth": 1, "mlp_width": 4, "vocabulary": 3,
                "loss": "cross_entropy"}
        source = trained_runs() / "positional-seed0" / "model.safetensors"
        data = source.read_bytes()
        header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
        metadata = header["__metadata__"]
        known = {**json.loads(metadata["spec"]), **spec}
        metadata |= {"task": "", "spec": json.dumps(known)}
        del metadata["posattn.checksum"]
        nodes, layer = 4, "transformer_layers.0."
        shapes = {"tokens.weight": (3, 4), layer + "attn.qk_proj.weight": (4 * nodes, nodes),
                  layer + "attn.qk_proj.bias": (4 * nodes,), layer + "attn.v_proj.weight": (4, 4),
                  layer + "attn.v_proj.bias": (4,), layer + "attn.o_proj.weight": (4, 4),
                  layer + "attn.o_proj.bias": (4,), layer + "mlp.mlp.0.weight": (4, 8),
                  layer + "mlp.mlp.0.bias": (4,), layer + "mlp.mlp.2.weight": (4, 4),
                  layer + "mlp.mlp.2.bias": (4,), "decoding.weight": (3, 4), "decoding.bias": (3,)}
        passes = {"tokens.weight", layer + "mlp.mlp.0.weight", layer + "mlp.mlp.2.weight",
                  "decoding.weight"}
        tensors = {}
        for name, shape in shapes.items():
            columns = shape[-1]
            count = shape[0] * columns if len(shape) == 2 else columns
            tensors[name] = (shape, [float(name in passes and i // columns == i % columns)
                                     for i in range(count)])
        support.write_tensors(self.folder / "echo.safetensors", metadata, tensors)
        return "echo.safetensors"

    def test_weights_changed_by_our_scripts(self):
        """What scripts/safetensors_io.py reads and writes has no checksum, and is read as it is."""
        script = ("import sys; sys.path.insert(0, sys.argv[1])\nimport safetensors_io as io\n"
                  "tensors, metadata = io.read_safetensors(sys.argv[2])\n"
                  "tensors['decoding.bias'] += 1\nio.write_safetensors('m.safetensors', tensors, metadata)")
        model = trained_runs() / "positional-seed0/model.safetensors"
        subprocess.run([sys.executable, "-B", "-c", script, ROOT / "scripts", model], cwd=self.folder, check=True)
        before, after = (float(self.run_ok("predict", path, stdin=b"1,2,3\n").split(",")[0])
                         for path in [model, "m.safetensors"])
        self.assertAlmostEqual(after, before + 1, places=4)

    def test_tokens_in_and_classes_out(self):
        model = self.echo_model()
        rows = b"a,b,c\n0,1,2\n2,2,0\n"
        self.assertEqual(self.run_ok("predict", model, stdin=rows), "0,1,2\n2,2,0\n")
        self.assertEqual(self.run_json("predict", model, stdin=rows),
                         {"rows": 2, "columns": 3, "outputs": [[0, 1, 2], [2, 2, 0]]})
        self.assertEqual(self.run_ok("predict", model, "--scores", stdin=b"0,2,1\n"),
                         "1,0,0,0,0,1,0,1,0\n")
        (self.folder / "x.csv").write_bytes(rows)
        self.run_ok("predict", model, "--input", "x.csv", "--output", "y.npy")
        data = (self.folder / "y.npy").read_bytes()
        self.assertIn(b"'<i4'", data)
        self.assertEqual(struct.unpack("<6i", data[-24:]), (0, 1, 2, 2, 2, 0))
        self.assertEqual(self.run_ok("predict", model, "--input", "y.npy"), "0,1,2\n2,2,0\n")
        self.assertIn("layer 0", self.run_ok("inspect", model, "--input", "0,1,2"))

    def test_tokens_that_do_not_fit(self):
        model = self.echo_model()
        (self.folder / "x.csv").write_text("0,1,2\n0,3,1\n")
        self.run_error(4, "predict", model, "--input", "x.csv",
                       message=["x.csv: token 3 in row 2, column 2", "0 to 2"])
        self.run_error(4, "predict", model, stdin=b"0,1.5,2\n",
                       message=["standard input:1: '1.5' in column 2", "whole number"])
        self.run_error(4, "predict", model, stdin=b"0,1\n", message="3 numbers per row")
        self.run_error(2, "predict", trained_runs() / "positional-seed0", "--scores",
                       stdin=b"1,2,3\n", message="--scores")


class Inspect(CliCase):
    def test_text_and_json(self):
        model = trained_runs() / "positional-seed0"
        text = self.run_ok("inspect", model)
        for part in ["positional architecture", "cumulative-sum", "trained numbers", "layer 0"]:
            self.assertIn(part, text)
        found = self.run_json("inspect", model)
        tensors = support.read_tensors(model / "model.safetensors")
        self.assertEqual({tensor["name"]: tuple(tensor["shape"]) for tensor in found["tensors"]},
                         {name: entry[1] for name, entry in tensors.items()})
        for layer in found["attention"]["layers"]:
            for head in layer:
                for row in head:
                    self.assertAlmostEqual(sum(row), 1, places=5)

    def test_attention_picture(self):
        for name in ["positional-seed0", "standard-seed0"]:
            text = self.run_ok("inspect", trained_runs() / name, "--attention", "a.svg")
            self.assertTrue(text.endswith("attention maps in a.svg\n"))
            picture = (self.folder / "a.svg").read_text()
            self.assertIn("<svg", picture[:500])
            # Numbered as in the text and in the names of tensors: from 0.
            self.assertIn(">layer 0, head 0<", picture)
            self.assertIn("<title>0 → 0: ", picture)
            self.assertNotIn("3 → ", picture)  # the last of four nodes is the scratch node

    def test_shades_reach_the_darkest(self):
        for name in ["positional-seed0", "standard-seed0"]:
            text = self.run_ok("inspect", trained_runs() / name)
            self.assertIn("██", text.split("layer 0")[1])

    def test_attention_of_a_shorter_input(self):
        self.run_ok("train", *tiny(variable_length=True), "--out", "out")
        model = "out/positional-seed0"
        layers = self.run_json("inspect", model, "--input", "1,2")["attention"]["layers"]
        self.assertEqual(len(layers[0][0]), 3)  # two numbers and the scratch node
        self.run_error(4, "inspect", model, "--input", "1,2,3,4", message="1 to 3 numbers")

    def test_attention_of_an_input(self):
        model = trained_runs() / "standard-seed0"
        first = self.run_json("inspect", model, "--input", "1,2,3")["attention"]["layers"]
        self.assertNotEqual(
            first, self.run_json("inspect", model, "--input", "3,2,1")["attention"]["layers"])
        (self.folder / "x.csv").write_text("1,2,3\n7,8,9\n")
        self.assertEqual(
            first, self.run_json("inspect", model, "--input", "x.csv")["attention"]["layers"])


if __name__ == "__main__":
    unittest.main()
