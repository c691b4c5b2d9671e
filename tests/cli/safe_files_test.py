"""What is read and written is safe: permissions, links, pipes, memory, and names that would act upon a
terminal."""

import json
import os
import resource
import sqlite3
import stat
import struct
import subprocess
import unittest

import support
from shards_test import EXPERIMENT
from support import PROGRAM, CliCase, tiny, trained_runs

ESCAPE = "\x1b[31m\u009b\u202e"  # red text, an 8-bit control sequence, writing from right to left


def with_metadata(data, **changes):
    """A model file's bytes with other metadata; __ in a name stands for a dot."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header["__metadata__"].pop("posattn.checksum", None)
    header["__metadata__"] |= {key.replace("__", "."): value for key, value in changes.items()}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size:]


class Writing(CliCase):
    def compile(self, output, code=0):
        return self.run_code(code, "compile", "sort", "--length", 4, "-o", output)

    def test_permissions_stay(self):
        file = self.folder / "s.safetensors"
        for mode in [0o600, 0o640]:
            file.write_bytes(b"old")
            file.chmod(mode)
            self.compile(file)
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), mode)

    def test_write_protected_files_stay(self):
        file = self.folder / "s.safetensors"
        file.write_bytes(b"old")
        file.chmod(0o444)
        self.run_error(1, "compile", "sort", "-o", file, message=["s.safetensors", "write-protected"])
        self.assertEqual(file.read_bytes(), b"old")

    def test_a_named_link_is_followed(self):
        (self.folder / "link").symlink_to("target")
        self.compile("link")
        self.assertTrue((self.folder / "link").is_symlink())
        self.run_ok("verify", "target", "--samples", 10)

    def test_links_in_folders_of_the_program_are_replaced(self):
        (self.folder / "small.toml").write_text(EXPERIMENT)
        mine, folder = self.folder / "mine", self.folder / "results/small"
        mine.touch()
        folder.mkdir(parents=True)
        names = ["small.csv", "small.svg", "small.png", "runs.jsonl", "manifest.json"]
        for name in names:
            (folder / name).symlink_to(mine)
        (self.folder / "results/report.html").symlink_to(mine)
        self.run_ok("reproduce", "small.toml", "--results", "results")
        self.run_ok("report", "--results", "results", "small.toml")
        for file in [*(folder / name for name in names), self.folder / "results/report.html"]:
            self.assertFalse(file.is_symlink(), file)
        self.assertEqual(mine.read_bytes(), b"")
        (self.folder / "results/results.db").rename(self.folder / "away.db")
        (self.folder / "results/results.db").symlink_to(self.folder / "away.db")
        self.run_error(4, "reproduce", "small.toml", "--results", "results", message="a symbolic link")

    def test_standard_output_by_its_file_name(self):
        with open(self.folder / "out", "wb") as file:
            file.write(b"before\n")
            file.flush()
            self.run_code(0, "compile", "sort", "--length", 4, "-o", "/dev/stdout", stdout=file)
        self.compile("s.safetensors")
        self.assertEqual((self.folder / "out").read_bytes(),
                         b"before\n" + (self.folder / "s.safetensors").read_bytes())


class Reading(CliCase):
    def test_a_pipe_or_a_device_is_no_model(self):
        os.mkfifo(self.folder / "pipe")
        for model in ["pipe", "/dev/zero"]:
            for command in ["inspect", "verify", "predict", "evaluate"]:
                self.run_error(4, command, model, message=[model, "it is a pipe or a device"])
        os.mkfifo(self.folder / "results.db")
        (self.folder / "small.toml").write_text(EXPERIMENT)
        self.run_error(4, "compare", "small.toml", "--results", ".", message="results.db")

    def test_input_may_be_a_pipe(self):
        model = trained_runs() / "positional-seed0"
        expected = self.run_ok("predict", model, stdin=b"1,2,3\n")
        command = f"echo 1,2,3 | {PROGRAM} predict {model} --input /dev/stdin; " \
                  f"{PROGRAM} predict {model} --input <(echo 1,2,3)"
        found = subprocess.run(["bash", "-c", command], capture_output=True, check=True, timeout=60)
        self.assertEqual(found.stdout.decode(), 2 * expected)

    def call_within(self, memory, *arguments):
        """The program with so many bytes of address space."""
        return subprocess.run(
            [PROGRAM, *map(str, arguments)], cwd=self.folder, capture_output=True, timeout=60,
            env=support.environment(),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)))

    def test_a_model_too_large_for_the_memory(self):
        (self.folder / "wide.par").write_text("word a[2048] : real = input\noutput min(a)\n")
        done = self.call_within(1 << 31, "compile", "wide.par")
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs 2.4 GB of memory", done.stderr.decode())
        self.assertNotIn("--batch", done.stderr.decode())

    def test_the_hint_names_options_of_the_command(self):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({1 << 26}, 3), }}".ljust(117) + "\n"
        with open(self.folder / "x.npy", "wb") as file:  # 0.8 GB, of which the disk holds none
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            file.truncate(10 + len(header) + (12 << 26))
        done = self.call_within(1 << 30, "predict", trained_runs() / "positional-seed0", "--input", "x.npy")
        self.assertEqual(done.returncode, 1)
        self.assertIn("memory", done.stderr.decode())
        for flag in ["--batch", "--length"]:
            self.assertNotIn(flag, done.stderr.decode())

    def test_what_a_run_cannot_draw_is_refused_before_it(self):
        for changes in [{"range": "1e20"}, {"range": "1e-20"}, {"range": "1e14", "test_scales": "1,100"}]:
            for flags in [["--dry-run"], ["--out", "run"]]:
                self.run_error(3, "train", *tiny(**changes), *flags, message="value range")
        self.assertFalse((self.folder / "run").exists())

    def test_a_model_file_at_fault(self):
        self.run_ok("compile", "scatter", "--length", 16, "-o", "s.safetensors")
        data = (self.folder / "s.safetensors").read_bytes()
        for changes, part in [({"range": "1e16"}, "value range"), ({"range": "1e-16"}, "value range"),
                              ({"note__routing": "static"}, "--routing static")]:
            (self.folder / "m.safetensors").write_bytes(with_metadata(data, **changes))
            self.run_error(4, "verify", "m.safetensors", message=part)

    def test_an_experiment_whose_files_could_not_be_written(self):
        (self.folder / ("x" * 240 + ".toml")).write_text(EXPERIMENT)
        self.run_error(3, "reproduce", "x" * 240 + ".toml", message="240 bytes")

    def test_a_loss_that_is_no_number(self):
        for clip in ["1e-170", "1e-7"]:
            self.run_error(2, "certify", trained_runs(), "--clip", clip, message="1e-6 to 1e6")
        self.run_error(2, "bound", trained_runs() / "positional-seed0", "--clip", "1e-170",
                       message="--clip 1e-170")


class Escapes(CliCase):
    """No character that a terminal acts upon comes out, whatever file or name holds it."""

    def assert_harmless(self, *texts):
        for text in texts:
            for character in ESCAPE:
                if character not in "[31m":
                    self.assertNotIn(character, text)

    def test_names_of_folders(self):
        runs = self.folder / f"runs{ESCAPE}"
        runs.symlink_to(trained_runs())
        (self.folder / "unfinished").mkdir()
        for command in [["evaluate", runs], ["evaluate", runs, "--json"],
                        ["scale", runs / "positional-seed0"], ["inspect", runs / "positional-seed0"],
                        ["report", runs / "positional-seed0", "-o", self.folder / f"{ESCAPE}.html"],
                        ["compile", "sort", "-o", self.folder / f"{ESCAPE}.safetensors"],
                        ["certify", runs / "positional-seed0", "--steps", 2, "--draws", 2]]:
            with self.subTest(command=command):
                out, errors = self.run_code(0, *command)
                self.assert_harmless(out, errors)

    def test_json_keeps_its_values(self):
        self.run_ok("compile", "sort", "-o", "s.safetensors")
        data = (self.folder / "s.safetensors").read_bytes()
        (self.folder / "s.safetensors").write_bytes(with_metadata(data, note__x=ESCAPE + "\x7f"))
        text = self.run_ok("inspect", "s.safetensors", "--json")
        self.assert_harmless(text)
        self.assertEqual(json.loads(text)["notes"]["x"], ESCAPE + "\x7f")

    def test_a_database_from_elsewhere(self):
        (self.folder / "small.toml").write_text(EXPERIMENT)
        self.run_ok("reproduce", "small.toml", "--results", "parts", "--shard", "0/2")
        with sqlite3.connect(self.folder / "parts/shards/0-of-2/results.db") as connection:
            connection.execute("UPDATE runs SET key = key || ?", [ESCAPE])
        _, errors = self.run_code(4, "merge", "parts")
        self.assertIn("left out: ", errors)
        self.assert_harmless(errors)

    def test_programs_and_their_names(self):
        text = f"# {ESCAPE}\nword x : real = input\n\tx = x + 1  # a tab\noutput x\n"
        (self.folder / f"{ESCAPE}.par").write_text(text)
        shown = self.run_ok("programs", "--show", f"{ESCAPE}.par")
        self.assert_harmless(shown)
        self.assertIn("\tx = x + 1", shown)


if __name__ == "__main__":
    unittest.main()
