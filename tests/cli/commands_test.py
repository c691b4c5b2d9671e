"""Every command does what its help says, as text and as JSON."""

import contextlib
import json
import fcntl
import math
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import unittest

import support
from support import CliCase, tiny, trained_runs

COMMANDS = ["train", "evaluate", "predict", "inspect", "report", "bench", "tasks", "presets", "doctor",
            "completion", "version"]
TASKS = {"cumulative-sum", "cumulative-min", "cumulative-max", "cumulative-median",
         "cumulative-max-subarray", "sort", "min-sum", "path"}


class General(CliCase):
    def test_no_arguments_welcome(self):
        text = self.run_ok()
        self.assertIn("posattn train --task", text)
        self.assertGreaterEqual(text.count("\n  posattn "), 3)

    def test_version(self):
        self.assertRegex(self.run_ok("--version"), r"^posattn \d+\.\d+\.\d+\n$")
        self.assertIn("commit", self.run_ok("version"))
        self.assertIn("compiler", self.run_json("version"))

    def test_help(self):
        self.assertEqual(self.run_ok("help"), self.run_ok("--help"))
        commands = re.findall(r"^  (\w+)  ", self.run_ok("help").split("Subcommands:")[1], re.M)
        self.assertGreaterEqual(len(commands), 20)
        for command in commands:
            self.assertEqual(self.run_ok("help", command), self.run_ok(command, "--help"))

    def test_every_command_teaches_by_example(self):
        overview = self.run_ok("--help")
        for command in COMMANDS:
            with self.subTest(command=command):
                self.assertIn(command, overview)
                text = self.run_ok(command, "--help")
                self.assertRegex(text, r"Examples:\n  \S*.*posattn ")
                self.assertIn("--json", text)

    def test_examples_use_known_flags(self):
        for command in COMMANDS:
            text = self.run_ok(command, "--help")
            for line in re.findall(r"^  .*posattn (\w+) (.*)$", text.split("Examples:")[1], re.M):
                known = self.run_ok(line[0], "--help")
                for flag in re.findall(r"--[a-z-]+", line[1]):
                    self.assertIn(flag, known, line)

    def test_tasks(self):
        self.assertEqual({task["name"] for task in self.run_json("tasks")} & TASKS, TASKS)
        text = self.run_ok("tasks")
        for task in self.run_json("tasks"):
            self.assertIn(task["name"], text)
            self.assertIn(task["description"], text)

    def test_presets(self):
        names = {preset["name"] for preset in self.run_json("presets")}
        self.assertLessEqual({"positional", "standard"}, names)
        self.assertIn("positional", self.run_ok("presets"))

    def test_doctor(self):
        found = self.run_json("doctor")
        self.assertEqual(found["problems"], [])
        self.assertGreaterEqual(found["cores"], 1)
        for key in ["cpu", "instruction_set", "blas", "cuda", "libraries", "version"]:
            self.assertTrue(found[key], key)
        cuda = found["cuda"]
        self.assertEqual(cuda["usable"], cuda["problem"] == "")
        self.assertIn(cuda["name"] if cuda["usable"] else "CUDA", self.run_ok("doctor"))
        self.assertIn("BLAS", self.run_ok("doctor"))
        self.assertIn("(chosen for this CPU)", self.run_ok("doctor"))
        self.assertIn("x86-64-v2 (asked for by POSATTN_ISA)",
                      self.run_ok("doctor", env={"POSATTN_ISA": "x86-64-v2"}))


class Bench(CliCase):
    def test_text_and_json(self):
        small = ["bench", "--architecture", "positional", "--length", 2, "--batch", 8, "--threads", 1,
                 "--repetitions", 1, "--seconds", 0]
        result = self.run_json(*small)
        self.assertEqual((len(result["steps"]), result["peers"]), (1, []))
        text = self.run_ok(*small)
        self.assertIn(", 1 thread, peak ", text)
        self.assertIn("Peak memory", text)

    def test_inference_over_many_nodes(self):
        bench = ["bench", "--architecture", "positional", "--length", 2, "--batch", 8, "--threads", 1,
                 "--repetitions", 1, "--seconds", 0, "--long", "8,600"]
        result = self.run_json(*bench, "-o", "long.svg")
        rows = [(row["positions"], row["form"], row["length"]) for row in result["long"]]
        self.assertEqual(rows, [(positions, form, length) for positions in ["relative", "sinusoidal"]
                                for form in ["matrices", "chosen"] for length in [8, 600]])
        self.assertIn("relative, as chosen", (self.folder / "long.svg").read_text())
        self.run_error(2, *bench[:-2], "-o", "other.svg", message="--long")

    def test_models_of_another_task(self):
        result = self.run_json("bench", "--task", "k-hop", "--architecture", "standard:1,positional:2",
                               "--length", 5, "--batch", 2, "--threads", 1, "--repetitions", 1,
                               "--seconds", 0)
        rows = [(row["task"], row["architecture"], row["layers"], row["length"], row["batch"])
                for row in result["steps"]]
        self.assertEqual(rows, [("k-hop", "standard", 1, 5, 2), ("k-hop", "positional", 2, 5, 2)])
        self.assertTrue(all(row["gflops"] > 0 for row in result["steps"]))
        self.run_error(2, "bench", "--task", "k-hopp", message="k-hop")
        self.run_error(3, "bench", "--architecture", "standard:x", message="--architecture standard:x")

    def test_an_old_name_is_known_but_not_shown(self):
        text = self.run_ok("help", "bench")
        self.assertIn("--runs", text)
        self.assertNotIn("--seeds", text)
        for flag in ["--runs", "--seeds"]:
            self.run_error(2, "bench", "--device", "cuda", flag, "0", message="--runs: Value 0")
        if not self.run_json("doctor")["cuda"]["usable"]:
            for flag in ["--runs", "--seeds"]:  # accepted: what is missing is the device
                self.run_error(5, "bench", "--device", "cuda", flag, "1,2", message="device 'cuda'")


class Completion(CliCase):
    def test_scripts_name_every_command_and_flag(self):
        flags = set(re.findall(r"--[a-z0-9-]+", self.run_ok("train", "--help")))
        for shell, prefix in [("bash", "--"), ("zsh", "--"), ("fish", "-l ")]:
            script = self.run_ok("completion", shell)
            for command in COMMANDS:
                self.assertIn(command, script, shell)
            for flag in flags - {"--help"}:
                self.assertIn(prefix + flag[2:], script, shell)
            self.assertEqual(self.run_json("completion", shell)["script"], script)

    def complete(self, *words):
        script = self.folder / "completion.bash"
        script.write_text(self.run_ok("completion", "bash"))
        program = (f"source {script}; COMP_WORDS=({' '.join(map(repr, words))});"
                   f"COMP_CWORD={len(words) - 1}; _posattn; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        result = subprocess.run(["bash", "-c", program], capture_output=True, check=True, text=True,
                                cwd=self.folder)
        return result.stdout.split()

    def test_bash_completes(self):
        self.assertEqual(self.complete("posattn", "tr"), ["train"])
        self.assertEqual(self.complete("posattn", "train", "--task", "cumulative-ma"),
                         ["cumulative-max", "cumulative-max-subarray"])
        self.assertEqual(self.complete("posattn", "evaluate", "--scal"), ["--scales"])
        self.assertEqual(self.complete("posattn", "completion", "z"), ["zsh"])
        self.assertEqual(self.complete("posattn", "help", "comp"), ["compare", "compile", "completion"])
        self.assertEqual(self.complete("posattn", "bench", "--see"), [])
        (self.folder / "model.safetensors").touch()
        self.assertEqual(self.complete("posattn", "inspect", "mod"), ["model.safetensors"])

    def test_bash_completes_names_and_files(self):
        (self.folder / "sort-mine.par").touch()
        (self.folder / "value-mine.toml").touch()
        for command in ["compile", "run", "show"]:
            self.assertEqual(self.complete("posattn", command, "sort"),
                             ["sort", "sort-odd-even", "sort-mine.par"])
        for command in ["reproduce", "compare", "experiments", "report"]:
            self.assertEqual(self.complete("posattn", command, "value-"),
                             ["value-range", "value-mine.toml"])
        self.assertEqual(self.complete("posattn", "programs", "--show", "sort-"), ["sort-odd-even"])
        self.assertEqual(self.complete("posattn", "experiments", "--show", "value-r"), ["value-range"])
        self.assertEqual(self.complete("posattn", "report", "--results", "results", "value-r"),
                         ["value-range"])
        self.assertEqual(self.complete("posattn", "verify", "sort"), ["sort-mine.par"])  # files alone

    def test_other_shells_know_the_names(self):
        for shell in ["zsh", "fish"]:
            script = self.run_ok("completion", shell)
            for name in ["sort-odd-even", "value-range", "bash"]:
                self.assertIn(name, script, shell)

    def test_bash_script_is_valid(self):
        script = self.run_ok("completion", "bash")
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)

    def test_unknown_shell(self):
        self.run_error(2, "completion", "fissh", message=["unknown shell 'fissh'", "did you mean 'fish'"])


class Train(CliCase):
    def test_writes_run_folders(self):
        runs = trained_runs()
        self.assertEqual(sorted(path.name for path in runs.iterdir()),
                         ["positional-seed0", "positional-seed1", "standard-seed0", "standard-seed1"])
        for run in runs.iterdir():
            files = {path.name for path in run.iterdir()}
            self.assertLessEqual({"model.safetensors", "checkpoint.safetensors", "config.toml",
                                  "metrics.jsonl", "manifest.json"}, files)
            self.assertEqual(len(support.read_metrics(run)), support.TINY["epochs"])

    def test_text_output(self):
        output, errors = self.run_code(0, "train", *tiny(seeds="0..2"), "--out", "out")
        first = errors.splitlines()[0]
        for part in ["posattn", "thread", "OpenBLAS", "CUDA"]:
            self.assertIn(part, first)
        self.assertNotIn("\x1b", errors)
        for part in ["positional", "train loss", "validation loss", "test MSE, c = 2", "median"]:
            self.assertIn(part, output)
        self.assertIn("posattn evaluate out", output)

    def test_json_output(self):
        result = self.run_json("train", *tiny(seeds="4,7"))
        self.assertEqual(result["out"], "runs/cumulative-sum")
        self.assertEqual([run["seed"] for run in result["runs"]], [4, 7])
        self.assertEqual({run["status"] for run in result["runs"]}, {"done"})
        measures = result["summary"][0]["measures"]
        self.assertEqual(measures["train loss"]["runs"], 2)
        losses = sorted(run["last"]["train_loss"] for run in result["runs"])
        self.assertEqual([measures["train loss"]["min"], measures["train loss"]["max"]], losses)
        self.assertAlmostEqual(measures["train loss"]["median"], sum(losses) / 2)

    def test_precedence_of_settings(self):
        (self.folder / "c.toml").write_text("epochs = 5\nlr = 0.25\nwidth = 16\nseeds = \"1,2\"\n")
        config = self.run_json("train", "--dry-run", "--config", "c.toml", "--lr", "0.5",
                               "--set", "width=32")
        self.assertEqual((config["epochs"], config["lr"], config["width"]), (5, 0.5, 32))
        self.assertEqual(config["batch"], 1000)
        text = self.run_ok("train", "--dry-run", "--config", "c.toml")
        self.assertIn("runs/cumulative-sum/positional-seed2", text)
        text = self.run_ok("train", "--dry-run", "--config", "c.toml", "--seed", "9")
        self.assertIn("seed9", text)
        self.assertNotIn("seed2", text)
        self.assertEqual(os.listdir(self.folder), ["c.toml"])

    def test_dry_run_is_a_configuration_file(self):
        text = self.run_ok("train", "--dry-run", *tiny(lr=0.125, variable_length=True))
        (self.folder / "c.toml").write_text(text)
        self.assertEqual(self.run_ok("train", "--dry-run", "--config", "c.toml"), text)

    def test_dry_run_of_several_runs_repeats_them(self):
        flags = tiny(architecture="positional,standard", seeds="0..2")
        text = self.run_ok("train", "--dry-run", *flags)
        self.assertEqual(text.count("# would train"), 6)
        self.assertIn('architecture = "positional,standard"\nseeds = "0,1,2"\n', text)
        (self.folder / "c.toml").write_text(text)
        self.assertEqual(self.run_ok("train", "--dry-run", "--config", "c.toml"), text)
        config = self.run_json("train", "--dry-run", *flags)
        self.assertEqual((config["architecture"], config["seeds"]), ("positional,standard", "0,1,2"))
        self.assertNotIn("seed", config)

    def train_on_a_terminal(self, columns, *arguments):
        """Standard output, and what a terminal of this width shows of standard error."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
        process = subprocess.run([support.PROGRAM, "train", *arguments],
                                 cwd=self.folder, stdout=subprocess.PIPE, stderr=slave, timeout=60,
                                 env=support.environment({"TERM": "xterm"}), check=True)
        os.close(slave)
        text = b""
        with contextlib.suppress(OSError):  # EIO: all is read, and the other side is closed
            while part := os.read(master, 1 << 16):
                text += part
        os.close(master)
        return process.stdout.decode(), text.decode()

    def test_live_progress_on_a_terminal(self):
        output, text = self.train_on_a_terminal(150, *tiny(seeds="0,1"), "--out", "out")
        self.assertIn("█" * 20, text)
        self.assertIn("24/24 steps of 2 runs", text)
        self.assertNotIn("█", output)

    def test_live_progress_on_a_narrow_terminal(self):
        """The steps per second are worth more than the bar."""
        _, text = self.train_on_a_terminal(60, *tiny(seeds="0,1"), "--out", "out")
        last = text.split("\x1b[2K")[-1].strip()
        self.assertRegex(last, r"24/24 steps.* steps/s$")
        self.assertNotIn("█", last)
        self.assertLess(len(last), 60)

    def test_every_task_and_preset_trains(self):
        for task in self.run_json("tasks"):
            # What a task suggests for its own size does not suit so small a run.
            small = tiny(task=task["name"], length=max(3, task["shortest_length"]), heads=2, epochs=1,
                         schedule="constant", warmup_steps=0, architecture="positional")
            self.run_ok("train", *small, "--out", task["name"])
        presets = ",".join(preset["name"] for preset in self.run_json("presets"))
        self.run_ok("train", *tiny(epochs=1, architecture=presets), "--out", "presets")
        summary = self.run_json("evaluate", "presets", "--scales", "1")["models"]
        self.assertEqual(len(summary), presets.count(",") + 1)


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
                "predict": (["predict", model], b"1,2,3\n")}

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


class Report(CliCase):
    def test_page(self):
        result = self.run_json("report", trained_runs(), "--output", "page.html",
                               "--title", "Hello <world>")
        self.assertEqual(result, {"page": "page.html", "runs": 4})
        page = (self.folder / "page.html").read_text()
        self.assertIn("<svg", page)
        self.assertIn("Hello &lt;world&gt;", page)

    def test_no_runs(self):
        self.run_error(4, "report", ".", message="no run in")
        self.assertEqual(os.listdir(self.folder), [])

    def test_no_experiments(self):
        self.run_error(2, "report", message="nothing to report on")
        self.run_error(4, "report", "--results", "none", message="none")
        (self.folder / "results.db").touch()
        self.run_error(2, "report", ".", message="--results")


if __name__ == "__main__":
    unittest.main()
