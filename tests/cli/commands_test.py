"""Every command does what its help says, as text and as JSON."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

import support
from support import CliCase, command_names, tiny, trained_runs

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
        for command in command_names(self.run_ok("help")):
            self.assertEqual(self.run_ok("help", command), self.run_ok(command, "--help"))

    def test_every_command_teaches_by_example(self):
        for command in command_names(self.run_ok("--help")):
            with self.subTest(command=command):
                text = self.run_ok(command, "--help")
                self.assertRegex(text, r"Examples:\n  \S*.*posattn ")
                if command not in ["show", "help"]:  # which draw or print alone
                    self.assertIn("--json", text)

    def test_examples_use_known_flags(self):
        for command in command_names(self.run_ok("--help")):
            text = self.run_ok(command, "--help")
            for line in re.findall(r"^  .*posattn ([\w-]+) (.*)$", text.split("Examples:")[1], re.M):
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
        nowhere = {"PATH": "/nowhere"}
        self.assertIsNone(self.run_json("doctor", env=nowhere)["gnuplot"])
        self.assertIn("apt install gnuplot-nox", " ".join(self.run_ok("doctor", env=nowhere).split()))
        self.assertIn("BLAS", self.run_ok("doctor"))
        self.assertIn("(chosen for this CPU)", self.run_ok("doctor"))
        self.assertIn("x86-64-v2 (asked for by POSATTN_ISA)",
                      self.run_ok("doctor", env={"POSATTN_ISA": "x86-64-v2"}))

    def test_products_where_openblas_lacks_kernels(self):
        def products(**env):
            return self.run_json("doctor", env=env)["blas"]["products"]

        old = {"OPENBLAS_CORETYPE": "Prescott"}
        self.assertEqual(products(**old, POSATTN_ISA="x86-64-v2"), "OpenBLAS")
        self.assertEqual(products(**old, POSATTN_PRODUCTS="openblas"), "OpenBLAS")
        self.assertEqual(products(POSATTN_PRODUCTS="portable"), "own")
        if "avx2" in self.run_json("doctor")["cpu_features"]:
            self.assertEqual(products(**old), "own")
            self.assertEqual(products(OPENBLAS_CORETYPE="Haswell"), "OpenBLAS")
            self.assertIn("by our own kernels", self.run_ok("doctor", env=old))


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
        self.assertEqual(rows, [(positions, form, length) for positions in ["relative", "sinusoidal", "kernel"]
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
        self.run_error(2, "bench", "--architecture", "standard:x", message="--architecture standard:x")

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
            for command in command_names(self.run_ok("--help")):
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
                             ["value-range", "value-range-homogeneous", "value-mine.toml"])
        self.assertEqual(self.complete("posattn", "programs", "--show", "sort-"), ["sort-odd-even"])
        self.assertEqual(self.complete("posattn", "experiments", "--show", "value-r"),
                         ["value-range", "value-range-homogeneous"])
        self.assertEqual(self.complete("posattn", "report", "--results", "results", "value-r"),
                         ["value-range", "value-range-homogeneous"])
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
            small = tiny(task=task["name"], length=max(4, task["shortest_length"]), heads=2, epochs=1,
                         schedule="constant", warmup_steps=0, architecture="positional")
            self.run_ok("train", *small, "--out", task["name"])
        # Pairs of nodes are those of one task; landmarks are four nodes.
        presets = ",".join(preset["name"] for preset in self.run_json("presets") if preset["name"] != "structural")
        self.run_ok("train", *tiny(epochs=1, length=4, architecture=presets), "--out", "presets")
        summary = self.run_json("evaluate", "presets", "--scales", "1")["models"]
        self.assertEqual(len(summary), presets.count(",") + 1)


class Report(CliCase):
    def test_page(self):
        result = self.run_json("report", trained_runs(), "--output", "page.html",
                               "--title", "Hello <world>")
        self.assertEqual(result, {"page": "page.html", "runs": 4})
        page = (self.folder / "page.html").read_text()
        self.assertIn("<svg", page)
        self.assertIn("Hello &lt;world&gt;", page)

    def test_page_without_gnuplot(self):
        _, told = self.run_code(0, "report", trained_runs(), "--output", "page.html", env={"PATH": "/nowhere"})
        self.assertIn("No figures: gnuplot was not found", told)
        page = (self.folder / "page.html").read_text()
        self.assertIn("No figures: gnuplot was not found", page)
        self.assertIn("<table", page)

    def test_no_runs(self):
        self.run_error(4, "report", ".", message="no run in")
        self.run_error(4, "report", "none", message="no such file or folder: 'none'")
        self.assertEqual(os.listdir(self.folder), [])

    def test_no_experiments(self):
        self.run_error(2, "report", message="nothing to report on")
        self.run_error(4, "report", "--results", "none", message="none")
        (self.folder / "results.db").touch()
        self.run_error(2, "report", ".", message="--results")


if __name__ == "__main__":
    unittest.main()
