"""Whatever is wrong, there is one clear message, the documented exit code, and nothing half-written."""

import os
import subprocess
import unittest

from support import CliCase, tiny, trained_runs


class Usage(CliCase):
    def test_unknown_command(self):
        self.run_error(2, "trian", message=["unknown command 'trian'", "did you mean 'train'?"])

    def test_unknown_flag(self):
        errors = self.run_error(2, "train", "--epocs", 3,
                                message=["unknown flag '--epocs' of 'posattn train'",
                                         "expected one of:", "did you mean '--epochs'?"])
        self.assertRegex(errors, r"(?s)^error: .*\n  expected .*\n  HINT: ")
        self.run_error(2, "train", "--epocs=3", message="unknown flag '--epocs'")
        self.run_error(2, "evaluate", "m", "--sample", 3, message="did you mean '--samples'?")
        # What earlier versions had; no file is written.
        for command in [["train", *tiny(), "--data-parallel"], ["bench", "--sums", 1],
                        ["submit", "value-range", "--ranks", 2], ["submit", "value-range", "--mpi", "pmix"]]:
            flag = next(word for word in reversed(command) if str(word).startswith("--"))
            self.run_error(2, *command, message=f"unknown flag '{flag}' of 'posattn {command[0]}'")
        self.run_error(2, "run", "sort", "--input", "2,1", "--level", "mpi",
                       message=["unknown level 'mpi'", "mpc"])
        self.assertEqual(os.listdir(self.folder), [])
        self.run_error(2, "--verson", message="did you mean '--version'?")

    def test_help_of_what_does_not_exist(self):
        self.run_error(2, "help", "trian", message=["unknown command 'trian'", "did you mean 'train'?"])
        self.run_error(2, "train", "help", message="HINT: posattn train --help")

    def test_unexpected_argument(self):
        self.run_error(2, "tasks", "sort", message="unexpected argument 'sort'")

    def test_missing_and_malformed_values(self):
        self.run_error(2, "evaluate", message=["required", "posattn evaluate --help"])
        self.run_error(2, "train", "--seeds", message="--seeds")
        self.run_error(2, "evaluate", "m", "--samples", "many", message="--samples")
        self.run_error(2, "evaluate", trained_runs(), "--samples", 0, message="--samples 0")
        self.run_error(2, "evaluate", trained_runs(), "--scales", "1..x", message="1..x")
        self.run_error(2, "evaluate", trained_runs(), "--scales", "1..3,2",
                       message="2 appears twice")
        self.run_error(2, "evaluate", trained_runs(), "--threads", -1, message="--threads -1")
        for command in [["train"], ["reproduce", "value-range"]]:
            self.run_error(2, *command, "--threads", -1, "--dry-run", message="--threads -1")
        self.run_error(2, "experiments", "--threads", -1, message="--threads -1")
        self.run_error(2, "reproduce", "value-range", "--epochs", "1e9", "--dry-run",
                       message=["--epochs = 1e9", "expected a whole number, written in digits"])
        self.run_error(2, "reproduce", "value-range", "--threads", 2**40, "--dry-run",
                       message="expected a number nearer to 0")
        self.run_error(2, "train", *tiny(seeds="5..1"), message="5..1")
        self.run_error(2, "train", *tiny(seeds="1,1"), message="1")
        self.run_error(2, "train", *tiny(seed=1, seeds="1,2"), message="both --seed and --seeds")
        self.run_error(2, "train", "--set", "lr", message="--set 'lr'")
        self.run_error(2, "train", "--epochs", "x", message=["epochs = x in --epochs", "an integer"])
        self.run_error(2, "train", "--epochs", "1e9", message=["epochs = 1e9 in --epochs", "an integer"])
        self.run_error(2, "train", "--set", "lr=fast", message=["lr = fast in --set", "a number"])
        self.run_error(2, "predict", trained_runs() / "positional-seed0", "--format", "xml",
                       message="unknown format 'xml'")
        self.run_error(2, "predict", trained_runs() / "positional-seed0", "--json", "--output", "y.npy",
                       message="--json and NPY")
        self.run_error(2, "inspect", trained_runs() / "positional-seed0", "--attention", "a.png",
                       message=["a.png", ".svg"])
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_flag_is_no_value_of_another(self):
        for arguments, flag in [
                (["reproduce", "value-range", "--results", "--dry-run"], "--results"),
                (["reproduce", "value-range", "--results=", "--dry-run"], "--results"),
                (["reproduce", "value-range", "--dry-run", "--results"], "--results"),
                (["reproduce", "value-range", "--results", "--seeds=1", "--dry-run"], "--results"),
                (["reproduce", "value-range", "--dry-run="], "--dry-run"),
                (["compile", "sort", "-o", "--json"], "-o"),
                (["compile", "sort", "--length", "-o", "a"], "--length"),
                (["compile", "-o", "--", "sort"], "-o"),
                (["train", *tiny(), "--out", "--resume"], "--out"),
                (["train", *tiny(), "--encoding="], "--encoding"),
                (["bench", "--device", "cuda", "--seeds", "--json"], "--runs")]:
            with self.subTest(arguments=arguments):
                self.run_error(2, *arguments, message=[f"error: {flag} without a value", "HINT: "])
        self.assertEqual(os.listdir(self.folder), [])

    def test_values_that_look_like_flags(self):
        self.run_ok("compile", "sort", "--output=--json")
        self.assertEqual(os.listdir(self.folder), ["--json"])
        self.assertIn("compiled for sort", self.run_ok("inspect", "--", "--json"))
        self.run_ok("run", "cumulative-sum", "--input", "-1,2")
        self.assertEqual(self.run_ok("run", "cumulative-sum", "--input", "-1"), "-1\n")
        self.run_error(2, "certify", trained_runs(), "--delta", -1, message="--delta -1")
        self.run_ok("compile", "sort", "-o", "-", stdout=subprocess.DEVNULL)

    def test_empty_values(self):
        model = trained_runs() / "positional-seed0"
        for arguments, flag in [
                (["train", *tiny()], "--seeds"), (["train", *tiny()], "--config"),
                (["reproduce", "value-range", "--dry-run"], "--seeds"),
                (["reproduce", "value-range", "--dry-run"], "--values"),
                (["reproduce", "value-range", "--dry-run"], "--results"),
                (["compare", "value-range"], "--with"), (["evaluate", model], "--axis"),
                (["evaluate", model], "--task"), (["inspect", model], "--input"),
                (["compile", "sort"], "-o"), (["report", model], "-o"), (["programs"], "--show")]:
            with self.subTest(arguments=arguments, flag=flag):
                self.run_error(2, *arguments, flag, "", message=[f"{flag} without a value",
                                                                 "one that is not empty"])
        self.run_ok("train", *tiny(encoding="", epochs=1), "--dry-run")  # the preset's
        self.run_error(2, "train", *tiny(epochs=""), message="epochs")
        self.assertEqual(os.listdir(self.folder), [])

    def test_flags_without_effect_together(self):
        model = trained_runs() / "positional-seed0"
        for arguments, first, second in [
                (["run", "sort", "--input", "2,1", "--json", "--trace"], "--json", "--trace"),
                (["compile", "sort", "--sharpness", 15], "--sharpness", "--dense"),
                (["compile", "sort", "--json", "--precision-check"], "--json", "--precision-check"),
                (["compile", "sort", "--json", "-o", "-"], "--json", "standard output"),
                (["compile", "sort", "--precision-check", "-o", "-"], "--precision-check",
                 "standard output"),
                (["report", model, "--json", "-o", "-"], "--json", "standard output"),
                (["inspect", model, "--json", "--attention", "-"], "--json", "standard output"),
                (["predict", model, "--json", "--format", "csv"], "--json", "--format"),
                (["programs", "--show", "sort", "--length", 4], "--show", "--length"),
                (["programs", "--show", "sort", "--json"], "--show", "--json"),
                (["experiments", "--show", "value-range", "--json"], "--show", "--json"),
                (["experiments", "--show", "value-range", "--device", "cpu"], "--show", "--device"),
                (["experiments", "--show", "value-range", "--threads", 1], "--show", "--threads"),
                (["experiments", "value-range", "--show", "value-range"], "--show", "EXPERIMENTS"),
                (["bench", "--runs", 3], "--runs", "--device cuda"),
                (["bench", "--seeds=3"], "--runs", "--device cuda"),
                (["bench", "--precision", "fp32"], "--precision", "--device cuda"),
                (["bench", "--device", "cuda", "--tile", 3], "--tile", "--device cuda"),
                (["bench", "--device", "cuda", "--threads", 3], "--threads", "--device cuda"),
                (["bench", "--device", "cuda", "--repetitions", 3], "--repetitions", "--device cuda")]:
            with self.subTest(arguments=arguments):
                self.run_error(2, *arguments, stdin=b"1,2,3\n", message=[first, second])
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_file_is_what_its_name_says(self):
        model = trained_runs() / "positional-seed0"
        for arguments, flag, ending in [
                (["show", "sort"], "-o", ".svg"), (["scale", model], "--out", ".svg"),
                (["bound", "--crossing", 4], "-o", ".svg"), (["bench", "--long", 64], "-o", ".svg"),
                (["inspect", model], "--attention", ".svg"),
                (["show", "sort", "--input", "3,1,2"], "-o", ".html")]:
            with self.subTest(arguments=arguments):
                self.run_error(2, *arguments, flag, "picture.png",
                               message=["'picture.png'", f"a name that ends in {ending}"])
        self.run_error(2, "show", "sort", "--input", "3,1,2", "-o", "x.svg", message=".html")
        self.assertEqual(os.listdir(self.folder), [])

    def test_given_twice(self):
        self.run_error(2, "train", "--epochs", 1, "--epochs", 2,
                       message=["--epochs given 2 times", "expected once"])

    def test_names_in_another_case(self):
        self.run_error(2, "run", "k-hop", "--input", "1,2", "--input", 1, "--set", "Q=9",
                       message="did you mean 'q'?")
        self.run_error(2, "train", "--task", "SORT", message="did you mean 'sort'?")

    def test_a_folder_is_no_standard_output(self):
        self.run_error(2, "train", *tiny(), "--out", "-", message=["--out -", "a folder"])
        self.assertEqual(os.listdir(self.folder), [])

    def test_unknown_task_and_preset(self):
        self.run_error(2, "train", *tiny(task="cumulative-sun"),
                       message=["unknown task 'cumulative-sun'", "did you mean 'cumulative-sum'?"])
        self.run_error(2, "train", *tiny(architecture="positional,standart"),
                       message=["'standart'", "did you mean 'standard'?"])
        self.run_error(2, "train", *tiny(architecture="standard,standard"), message="twice")
        errors = self.run_error(2, "train", *tiny(architecture="positional,"),
                                message="an empty name in architecture 'positional,'")
        self.assertNotIn("did you mean", errors)
        errors = self.run_error(2, "train", *tiny(task="srot"), message="unknown task 'srot'")
        self.assertTrue(errors.startswith("error: "), errors)
        self.assertEqual(os.listdir(self.folder), [])

    def test_no_escape_sequence_reaches_the_terminal(self):
        errors = self.run_error(2, "train", "--task", "\x1b[2Jsort\x7f", message=r"\x1b[2Jsort\u007f")
        self.assertNotIn("\x1b", errors)


class Configuration(CliCase):
    def test_unknown_key(self):
        (self.folder / "sweep.toml").write_text("task = 'sort'\n\n\nepocs = 3\n")
        self.run_error(3, "train", "--config", "sweep.toml",
                       message=["unknown key 'epocs' in sweep.toml:4", "expected one of: ",
                                "HINT: did you mean 'epochs'?"])
        self.run_error(3, "train", "--set", "epocs=3",
                       message=["unknown key 'epocs'", "did you mean 'epochs'?"])

    def test_broken_files(self):
        (self.folder / "a.toml").write_text("epochs = \n")
        self.run_error(3, "train", "--config", "a.toml", message="a.toml:1")
        (self.folder / "b.toml").write_text("epochs = 'three'\n")
        self.run_error(3, "train", "--config", "b.toml", message=["epochs", "b.toml:1", "integer"])
        self.run_error(4, "train", "--config", "none.toml", message="none.toml")
        (self.folder / "large.toml").write_text("#" * 2**20 + "\n")
        for command in [["train", "--config"], ["reproduce"]]:
            self.run_error(3, *command, "large.toml", message=["large.toml", "at most 1048576 bytes"])

    def test_lists_in_files(self):
        for line, parts in [('seeds = "5..1"', ["seeds: '5..1' in c.toml:2"]),
                            ('seeds = "0,0"', ["seeds: '0,0' in c.toml:2", "0 appears twice"]),
                            ('seeds = ""', ["seeds: '' in c.toml:2"]),
                            ('architecture = "positional,"',
                             ["an empty name in architecture 'positional,' in c.toml:2"]),
                            ('architecture = "positional,standrad"',
                             ["unknown architecture 'standrad' in c.toml:2",
                              "did you mean 'standard'?"]),
                            ('architecture = ["standard", "standard"]',
                             ["architecture 'standard' is given twice in c.toml:2"]),
                            ('architecture = [3]', ["wrong type of 'architecture' in c.toml:2",
                                                    "text in quotes, or a list of such"])]:
            (self.folder / "c.toml").write_text(f"epochs = 1\n{line}\n")
            self.run_error(3, "train", "--config", "c.toml", "--dry-run", message=parts)
        (self.folder / "c.toml").write_text('architecture = ["positional", "standard"]\n')
        self.run_ok("train", *tiny(epochs=1, seeds="0,1"), "--config", "c.toml", "--out", "out")
        self.assertEqual(sorted(os.listdir(self.folder / "out")),
                         ["positional-seed0", "positional-seed1", "standard-seed0", "standard-seed1"])
        self.assertIn('architecture = "standard"\n',
                      (self.folder / "out/standard-seed0/config.toml").read_text())
        self.run_error(2, "train", *tiny(architecture="positional,"), message="an empty name")
        self.run_error(2, "train", *tiny(architecture="positional,standrad"),
                       message="unknown architecture 'standrad'")

    def test_deep_files(self):
        key = ".".join(["a"] * 40000)
        for text in [f"{key} = 1\n", f"[{key}]\n", f"x = {{{key} = 1}}\n"]:
            (self.folder / "deep.toml").write_text("\n" + text)
            for command in [["train", "--dry-run", "--config"], ["reproduce", "--dry-run"],
                            ["experiments"]]:
                self.run_error(3, *command, "deep.toml",
                               message=["deep.toml:2: a key of too many parts", "at most 16"])

    def test_own_experiments(self):
        good = ("tasks = ['sort']\nseeds = '0'\n[axis]\nkey = 'samples'\nvalues = [64]\n"
                "[settings]\nbatch = 16\nepochs = 3\n[[lines]]\narchitecture = 'positional'\n")
        for change, parts in [
                (("batch = 16", "batch = 16\nsamples = 64"), ["'samples' among", "e.toml:8"]),
                (("[[lines]]", "[[lines]]\nname = \"a\\u0007\""), ["bad 'name' in e.toml:10"]),
                (("tasks", "title = \"a\\u202eb\"\ntasks"), ["bad 'title' in e.toml:1"])]:
            (self.folder / "e.toml").write_text(good.replace(*change))
            self.run_error(3, "reproduce", "e.toml", "--dry-run", message=parts)
        (self.folder / "e.toml").write_text(good)
        output = self.run_ok("experiments", "e.toml")
        self.assertRegex(output, r"\ne .* 1 +12 +~ ")  # runs and steps
        self.assertTrue(output.endswith("next:  posattn reproduce e.toml\n"), output)

    def test_bounds(self):
        for flags, parts in [
                (["--epochs", 2**63 - 1], ["epochs = 9223372036854775807", "at most 1000000000"]),
                (["--lr", "inf"], ["lr = inf", "above 0, at most 1e+30"])]:
            self.run_error(3, "train", *flags, message=parts)
        self.run_error(2, "train", "--seeds", 2**64 - 1,
                       message=["--seeds: '18446744073709551615'", "at most 9000000000000000000"])

    def test_impossible_sizes(self):
        for changes, parts in [
                ({"heads": 3}, ["heads", "width"]),
                ({"length": 0}, ["length", "0"]),
                ({"batch": 65}, ["batch", "samples"]),
                ({"epochs": 0}, ["epochs"]),
                ({"width": 10**9}, ["width"]),
                ({"lr": "nan"}, ["lr"]),
                ({"lr": -1}, ["lr"]),
                ({"range": 0}, ["range"]),
                ({"optimiser": "sgd"}, ["optimiser", "adam"]),
                ({"task": "path", "variable_length": True}, ["variable-length"]),
                ({"task": "path", "length": 1}, ["length"])]:
            with self.subTest(**changes):
                self.run_error(3, "train", *tiny(**changes), "--out", "out", message=parts)
        self.assertEqual(os.listdir(self.folder), [])

    def test_device(self):
        self.run_ok("train", *tiny(device="cpu", epochs=1))
        self.run_error(3, "train", *tiny(device="cpu", precision="tf32"), "--out", "b",
                       message=["precision = tf32 on the CPU", "--device cuda"])
        self.run_error(2, "bench", "--device", "gpu", message="--device")
        self.run_error(2, "bench", "--device", "cuda", "--peer", message="--peer")
        if not self.run_json("doctor")["cuda"]["usable"]:
            for command in [["train", *tiny(device="cuda"), "--out", "c"],
                            ["bench", "--device", "cuda", "--length", 2, "--batch", 8]]:
                self.run_error(5, *command, message=["device 'cuda'", "--device cpu"])
            self.assertFalse((self.folder / "c").exists())

    def test_resuming_on_another_device(self):
        self.run_ok("train", *tiny(device="cpu", epochs=1), "--out", "out")
        config = self.folder / "out/positional-seed0/config.toml"
        self.assertIn('device = "cpu"', config.read_text())
        self.run_ok("train", *tiny(device="auto", epochs=1), "--out", "out", "--resume")
        manifest = self.folder / "out/positional-seed0/manifest.json"
        manifest.write_text(manifest.read_text().replace('"device": "cpu"', '"device": "cuda"'))
        self.run_error(3, "train", *tiny(device="cpu", epochs=1), "--out", "out", "--resume",
                       message=["device is", "there", "here"])


if __name__ == "__main__":
    unittest.main()
