"""Whatever is wrong, there is one clear message, the documented exit code, and nothing half-written."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import unittest

import support
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
        self.run_error(2, "predict", trained_runs() / "positional-seed0", "--format", "xml",
                       message="unknown format 'xml'")
        self.run_error(2, "predict", trained_runs() / "positional-seed0", "--json", "--output", "y.npy",
                       message="--json and NPY")
        self.run_error(2, "inspect", trained_runs() / "positional-seed0", "--attention", "a.png",
                       message=["a.png", ".svg"])
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
        errors = self.run_error(2, "train", "--task", "\x1b[2Jsort\x7f", message=r"\x1b[2Jsort\x7f")
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
                ({"samples": "1e3"}, ["samples"]),
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


class ModelFiles(CliCase):
    def setUp(self):
        super().setUp()
        self.good = (trained_runs() / "positional-seed0" / "model.safetensors").read_bytes()
        self.header_size = struct.unpack("<Q", self.good[:8])[0]
        self.header = json.loads(self.good[8:8 + self.header_size])
        self.body = self.good[8 + self.header_size:]

    def with_header(self, header):
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + self.body

    def check(self, data, *parts, code=4):
        (self.folder / "m.safetensors").write_bytes(data)
        for command in ["evaluate", "inspect", "predict"]:
            self.run_error(code, command, "m.safetensors", message=["m.safetensors", *parts],
                           stdin=b"1,2,3\n")

    def test_the_good_file_is_accepted(self):
        (self.folder / "m.safetensors").write_bytes(self.with_header(self.header))
        self.run_ok("inspect", "m.safetensors")

    def test_missing(self):
        for command in ["evaluate", "inspect", "predict"]:
            self.run_error(4, command, "none.safetensors", message="none.safetensors")
        (self.folder / "empty").mkdir()
        self.run_error(4, "evaluate", "empty", message="no model.safetensors in 'empty'")
        self.run_error(4, "inspect", trained_runs(), message=["holds 4 models", "one model"])

    def test_truncated(self):
        for size in [0, 4, 8, 8 + self.header_size // 2, 8 + self.header_size, len(self.good) - 1]:
            with self.subTest(size=size):
                self.check(self.good[:size])

    def test_oversized(self):
        self.check(self.good + b"\0")
        self.check(struct.pack("<Q", 1 << 62) + self.good[8:])
        self.check(struct.pack("<Q", 100_000_001) + self.good[8:])

    def test_corrupt(self):
        self.check(b"not a model at all, but long enough to be read as one" * 20)
        self.check(self.good[:8] + b"[" + self.good[9:])
        name = next(key for key in self.header if key != "__metadata__")
        for change in [{"dtype": "F64"}, {"shape": [1]}, {"data_offsets": [0, 4]},
                       {"shape": [1 << 62, 4]}]:
            with self.subTest(**change):
                entry = {**self.header[name], **change}
                self.check(self.with_header({**self.header, name: entry}))
        missing = dict(self.header)
        missing["other"] = missing.pop(name)
        self.check(self.with_header(missing))

    def test_corrupt_metadata(self):
        metadata = self.header["__metadata__"]
        for key, value in [("spec", "{"), ("spec", "{}"), ("length", "-3"), ("range", "wide")]:
            with self.subTest(key=key, value=value):
                changed = {**self.header, "__metadata__": {**metadata, key: value}}
                self.check(self.with_header(changed))

    def with_metadata(self, **changes):
        metadata = {**self.header["__metadata__"], **changes}
        return self.with_header({**self.header, "__metadata__": metadata})

    def test_unknown_task(self):
        run = self.folder / "runs/positional-seed0"
        shutil.copytree(trained_runs() / "positional-seed0", run)
        (run / "model.safetensors").write_bytes(
            self.with_metadata(task="srot", variable_length="true"))
        for command in ["evaluate", "predict", "inspect"]:
            self.run_error(4, command, "runs", stdin=b"1,2,3\n",
                           message=["unknown task 'srot' in runs/positional-seed0/model.safetensors",
                                    "did you mean 'sort'?"])
        shutil.copy(trained_runs() / "positional-seed0/model.safetensors", run)
        for name in ["manifest.json", "config.toml"]:
            text = (run / name).read_text().replace("cumulative-sum", "srot")
            (run / name).write_text(text)
        self.run_error(4, "report", "runs",
                       message="unknown task 'srot' in runs/positional-seed0/manifest.json")
        self.run_error(4, "train", "--config", run / "config.toml", "--out", "again",
                       message=["unknown task 'srot' in", "positional-seed0/config.toml"])
        self.run_ok("train", "--config", run / "config.toml", "--task", "sort", "--dry-run")
        header = {key: value for key, value in self.header.items() if key != "__metadata__"}
        (self.folder / "theirs.safetensors").write_bytes(self.with_header(header))
        self.run_error(2, "evaluate", "theirs.safetensors", "--task", "srot",
                       message="unknown task 'srot'")

    def test_control_characters_are_shown(self):
        (self.folder / "m.safetensors").write_bytes(self.with_metadata(
            **{"note.seed\x1b[1m": "\x1b]0;title\x07\r\u009b2J\u202e", "note.two": "a\nlayer: 1\n\x00"}))
        text = self.run_ok("inspect", "m.safetensors")
        self.assertIn(r"seed\x1b[1m: \x1b]0;title\x07\x0d\xc2\x9b2J\xe2\x80\xae", text)
        self.assertIn("two:\n  a\n  layer: 1\n  \\x00\n", text)
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")

    def test_foreign_file(self):
        header = {key: value for key, value in self.header.items() if key != "__metadata__"}
        (self.folder / "theirs.safetensors").write_bytes(self.with_header(header))
        self.run_error(4, "evaluate", "theirs.safetensors", message=["task", "--task"])
        same = self.run_json("evaluate", "theirs.safetensors", "--task", "cumulative-sum")
        ours = self.run_json("evaluate", trained_runs() / "positional-seed0")
        self.assertEqual(same["models"][0]["scales"], ours["models"][0]["scales"])
        for flag, value in [("--architecture", "standard"), ("--length", 5), ("--heads", 4)]:
            self.run_error(2, "inspect", "theirs.safetensors", flag, value, message=flag)
        self.run_error(2, "inspect", trained_runs() / "positional-seed0", "--heads", 4,
                       message="--heads 4")

    def test_runs_without_a_model(self):
        shutil.copytree(trained_runs() / "positional-seed0", self.folder / "run")
        (self.folder / "run/model.safetensors").unlink()
        self.run_error(4, "evaluate", "run", message=["no model.safetensors in 'run'", "--resume"])
        manifest = json.loads((self.folder / "run/manifest.json").read_text())
        manifest |= {"status": "diverged", "message": "the loss became nan in step 3"}
        (self.folder / "run/manifest.json").write_text(json.dumps(manifest))
        for command in ["evaluate", "inspect", "predict"]:
            errors = self.run_error(4, command, "run", stdin=b"1,2,3\n",
                                    message=["diverged: the loss became nan", "lower --lr"])
            self.assertNotIn("--resume", errors)

    def test_damaged_file_in_a_folder_of_runs(self):
        shutil.copytree(trained_runs(), self.folder / "runs")
        (self.folder / "runs/standard-seed1/model.safetensors").write_bytes(self.good[:100])
        output, errors = self.run_code(4, "evaluate", "runs", "--json")
        self.assertEqual(output, "")
        self.assertIn("standard-seed1", errors)


class Data(CliCase):
    def check(self, rows, *parts):
        self.run_error(4, "predict", trained_runs() / "positional-seed0", "--output", "y.csv",
                       stdin=rows, message=parts)
        self.assertEqual(os.listdir(self.folder), [])

    def test_wrong_number_of_columns(self):
        self.check(b"1,2\n", "2", "3")
        self.check(b"1,2,3,4\n", "4", "3")
        self.check(b"1,2,3\n1,2\n", "standard input:2")

    def test_no_numbers(self):
        self.check(b"", "standard input")
        self.check(b"1,2,three\n", "three")
        self.check(b"1,,3\n", "standard input:1")

    def test_not_finite(self):
        for value in [b"nan", b"inf", b"-inf", b"1e39"]:
            self.check(b"1,2,3\n1,%s,3\n" % value, "standard input:2")

    def test_broken_npy(self):
        self.check(b"\x93NUMPY\x01\x00\xff\xff{}", "standard input")

    def test_missing_input(self):
        self.run_error(4, "predict", trained_runs() / "positional-seed0", "--input", "x.csv",
                       message="x.csv")

    def test_input_of_inspect(self):
        self.run_error(4, "inspect", trained_runs() / "standard-seed0", "--input", "1,2",
                       message="--input")
        self.run_error(4, "inspect", trained_runs() / "standard-seed0", "--input", "none.csv",
                       message="--input 'none.csv': there is no such file")


class Places(CliCase):
    """Full disks and places that cannot be written."""

    def test_below_a_file(self):
        (self.folder / "file").touch()
        model = trained_runs() / "positional-seed0"
        self.run_error(1, "train", *tiny(), "--out", "file/out", message="file/out")
        self.run_error(1, "predict", model, "--output", "file/y", stdin=b"1,2,3\n",
                       message="file/y")
        self.run_error(1, "inspect", model, "--attention", "file/a.svg", message="file/a.svg")
        self.run_error(1, "report", trained_runs(), "--output", "file/r.html", message="file/r")
        self.run_error(1, "report", trained_runs(), "--output", "none/r.html",
                       message=["none/r.html", "create the folder first"])
        self.assertEqual(os.listdir(self.folder), ["file"])

    def test_full_disk_while_training(self):
        self.run_error(1, "train", *tiny(), "--out", "out", file_limit=3000,
                       message=["1 of 1 runs did not finish", "1 failed", "cannot write"])
        run = self.folder / "out/positional-seed0"
        self.assertFalse((run / "model.safetensors").exists())
        self.assertFalse((run / "checkpoint.safetensors").exists())
        self.run_ok("train", *tiny(), "--out", "out", "--resume")
        self.assertEqual(support.read_tensors(run / "model.safetensors"), support.read_tensors(
            trained_runs() / "positional-seed0" / "model.safetensors"))

    def test_full_disk_elsewhere(self):
        model = trained_runs() / "positional-seed0"
        self.run_error(1, "predict", model, "--output", "y.csv", stdin=b"1,2,3\n" * 100,
                       file_limit=100, message="y.csv")
        self.run_error(1, "inspect", model, "--attention", "a.svg", file_limit=100,
                       message="a.svg")
        self.assertEqual(os.listdir(self.folder), [])
        self.run_error(1, "predict", model, "--output", "/dev/full", stdin=b"1,2,3\n",
                       message=["/dev/full", "No space left"])

    def test_standard_output_full(self):
        for arguments in [["tasks"], ["--help"], ["--version"], [],
                          ["evaluate", trained_runs(), "--json"]]:
            with open("/dev/full", "wb") as full:
                self.run_error(1, *arguments, stdout=full,
                               message=["standard output", "No space left"])

    def test_standard_output_closed(self):
        read, write = os.pipe()
        os.close(read)
        _, errors = self.run_code(1, "tasks", stdout=write)
        self.assertEqual(errors, "")  # as in `posattn tasks | head -1`
        os.close(write)
        result = subprocess.run(["sh", "-c", '"$POSATTN" tasks >&-'], capture_output=True,
                                cwd=self.folder, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"standard output", result.stderr)


class DamagedRuns(CliCase):
    """Files of a run folder that the program wrote itself, and that something changed since."""

    def setUp(self):
        super().setUp()
        shutil.copytree(trained_runs(), self.folder / "out")
        self.run_folder = self.folder / "out/positional-seed0"
        self.resume = ["train", *tiny(architecture="positional,standard", seeds="0,1", epochs=4),
                       "--out", "out", "--resume"]

    def damage(self, name, change):
        (self.run_folder / name).write_bytes(change((self.run_folder / name).read_bytes()))

    def test_checkpoint(self):
        for change in [lambda good: good[:100], lambda good: b"", lambda good: good[:-1],
                       lambda good: good.replace(b'"posattn.checkpoint":"1"', b'"posattn.checkpoint":"2"'),
                       lambda good: good.replace(b'\\"lr\\":', b'\\"lr\\";')]:
            before = (self.run_folder / "checkpoint.safetensors").read_bytes()
            self.damage("checkpoint.safetensors", change)
            self.run_error(4, *self.resume, message=["1 of 4 runs did not finish", "1 failed",
                                                     "positional-seed0/checkpoint.safetensors"])
            (self.run_folder / "checkpoint.safetensors").write_bytes(before)
        self.run_ok(*self.resume)

    def test_missing_checkpoint(self):
        (self.run_folder / "checkpoint.safetensors").unlink()
        self.run_error(4, *self.resume, message=["positional-seed0/checkpoint.safetensors' is missing",
                                                 "cannot go on from epoch 3", "another --out"])

    def test_metrics(self):
        for change, part in [((b'"lr":', b'"rate":'), "'lr' is missing"),
                             ((b'"train_loss":', b'"train_loss":true,"x":'), "'train_loss' is true"),
                             ((b'"step":', b'"step":"'), "not valid JSON at byte"),
                             ((b'"mse":', b'"mse":[1],"x":'), "tests: 'mse' is [1]"),
                             ((b'"seconds":', b'"seconds":1e999,"x":'), "out of range")]:
            before = (self.run_folder / "metrics.jsonl").read_bytes()
            lines = before.splitlines(keepends=True)
            lines[2] = lines[2].replace(*change)
            (self.run_folder / "metrics.jsonl").write_bytes(b"".join(lines))
            errors = self.run_error(4, "report", "out",
                                    message=["positional-seed0/metrics.jsonl:3: ", part])
            self.assertNotIn("json.exception", errors)
            (self.run_folder / "metrics.jsonl").write_bytes(before)

    def test_manifest(self):
        manifest = json.loads((self.run_folder / "manifest.json").read_text())
        for key, value, part in [("epoch", "3", "'epoch' is \"3\""), ("seeds", [], "seeds: array"),
                                 ("status", None, "'status' is null")]:
            (self.run_folder / "manifest.json").write_text(json.dumps({**manifest, key: value}))
            for command in [self.resume, ["report", "out"]]:
                errors = self.run_error(4, *command, message=["positional-seed0/manifest.json", part])
                self.assertNotIn("json.exception", errors)


class OutputFolder(CliCase):
    def test_holds_this_run(self):
        self.run_ok("train", *tiny(), "--out", "out")
        before = support.read_tensors(self.folder / "out/positional-seed0/model.safetensors")
        self.run_error(3, "train", *tiny(), "--out", "out", message=["positional-seed0", "--resume"])
        output = self.run_json("train", *tiny(), "--out", "out", "--resume")
        self.assertEqual(output["runs"][0]["status"], "done")
        self.assertEqual(
            before, support.read_tensors(self.folder / "out/positional-seed0/model.safetensors"))

    def test_holds_another_run(self):
        self.run_ok("train", *tiny(), "--out", "out")
        for resume in [[], ["--resume"]]:
            self.run_error(3, "train", *tiny(lr=0.25), "--out", "out", *resume,
                           message=["holds another run", "lr", "another --out"])

    def test_holds_something_else(self):
        run = self.folder / "out/positional-seed0"
        run.mkdir(parents=True)
        (run / "thesis.txt").write_text("dear reader")
        self.run_error(3, "train", *tiny(), "--out", "out", message="something else")
        self.assertEqual((run / "thesis.txt").read_text(), "dear reader")

    def test_in_use(self):
        arguments = ["train", *tiny(epochs=1000000, test_every=0, checkpoint_every=0), "--out", "out"]
        with self.background(*arguments) as process:
            self.wait_for_epochs(process, self.folder / "out/positional-seed0", 1)
            _, errors = self.run_code(1, *arguments, "--resume")
            self.assertIn("in use by a running process", errors)

    def test_nothing_is_taken_when_one_folder_is_refused(self):
        self.run_ok("train", *tiny(seeds="1"), "--out", "out")
        self.run_error(3, "train", *tiny(seeds="0,1"), "--out", "out", message="positional-seed1")
        left = [path for path in pathlib.Path(self.folder / "out/positional-seed0").glob("*")
                if path.name != "lock"]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
