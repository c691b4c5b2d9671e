"""Files and folders that are broken, missing, someone else's or in the way: one clear error each."""

import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import unittest

import support
from support import CliCase, tiny, trained_runs


class ModelFiles(CliCase):
    def setUp(self):
        super().setUp()
        self.good = (trained_runs() / "positional-seed0" / "model.safetensors").read_bytes()
        self.header_size = struct.unpack("<Q", self.good[:8])[0]
        self.header = json.loads(support.unchecked(self.good[8:8 + self.header_size]))
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
        self.run_ok("report", "runs")  # from what was recorded
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
        self.assertIn(r"seed\x1b[1m: \x1b]0;title\x07\x0d\u009b2J\u202e", text)
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

    def test_rows_without_commas(self):
        self.check(b"1;2;3\n", "no rows of numbers",
                   "'1;2;3' is read as names of columns: separate numbers by commas")

    def test_fields_are_shown_as_they_are(self):
        self.check("1,zwölf,3\n".encode(), "'zwölf' in column 2")
        self.check(b"1,a\x1bb,3\n", r"'a\x1bb' in column 2")
        self.check(("1," + 30 * "ö" + ",3\n").encode(), "'" + 20 * "ö" + "...'")

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

    def test_no_flipped_bit_is_trained_on(self):
        good = (self.run_folder / "checkpoint.safetensors").read_bytes()
        header = struct.unpack("<Q", good[:8])[0]
        generator = random.Random(3)
        for _ in range(8):
            data = bytearray(good)
            data[generator.randrange(8 + header, len(good))] ^= 1 << generator.randrange(8)
            (self.run_folder / "checkpoint.safetensors").write_bytes(data)
            self.run_error(4, *self.resume, message=[
                "positional-seed0/checkpoint.safetensors", "do not have the checksum"])
        (self.run_folder / "checkpoint.safetensors").write_bytes(good)
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
            page, errors = self.run_code(0, "report", "out")
            self.assertIn("left out: out/positional-seed0/metrics.jsonl:3: ", errors)
            self.assertIn(part, errors)
            self.assertIn("3 runs in", page)
            self.assertNotIn("json.exception", errors)
            self.run_error(4, "report", self.run_folder, message=["metrics.jsonl:3: ", part])
            (self.run_folder / "metrics.jsonl").write_bytes(before)

    def test_manifest(self):
        manifest = json.loads((self.run_folder / "manifest.json").read_text())
        for key, value, part in [("epoch", "3", "'epoch' is \"3\""), ("seeds", [], "seeds: array"),
                                 ("status", None, "'status' is null")]:
            (self.run_folder / "manifest.json").write_text(json.dumps({**manifest, key: value}))
            for command in [self.resume, ["report", self.run_folder]]:
                errors = self.run_error(4, *command, message=["positional-seed0/manifest.json", part])
                self.assertNotIn("json.exception", errors)


    def test_a_report_leaves_out_a_run_without_a_manifest(self):
        (self.run_folder / "manifest.json").write_text("{}")
        page, errors = self.run_code(0, "report", "out")
        self.assertEqual(errors, "left out: out/positional-seed0/manifest.json: 'status' is missing\n")
        self.assertIn("3 runs in", page)


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
