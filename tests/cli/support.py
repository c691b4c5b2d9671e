"""What the command-line tests share: running the program (path in $POSATTN), tiny trainings, and
reading the files it writes."""

import contextlib
import functools
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["POSATTN"]
ROOT = pathlib.Path(__file__).resolve().parents[2]

# Settings of a run that takes milliseconds.
TINY = {
    "task": "cumulative-sum", "length": 3, "samples": 64, "validation-samples": 16,
    "test-samples": 16, "batch": 16, "epochs": 3, "width": 8, "mlp-width": 8, "test-scales": "1,2",
}


def tiny(**changes):
    """The flags of a tiny training; `changes` as keywords, with _ for -."""
    settings = TINY | {key.replace("_", "-"): value for key, value in changes.items()}
    flags = []
    for key, value in settings.items():
        flags += [f"--{key}"] if value is True else [f"--{key}", str(value)]
    return flags


def prepare_child(file_limit):
    """Default signals whatever the test runner inherited, and a limit on file sizes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if file_limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))


def environment(changes=None):
    return {**os.environ, "NO_COLOR": "1", **(changes or {})}


def call(*arguments, cwd, stdin=b"", stdout=subprocess.PIPE, file_limit=None, env=None):
    if file_limit is not None and "POSATTN_SANITIZED" in os.environ:
        raise unittest.SkipTest("the OpenMP runtime of clang writes a larger file itself")
    return subprocess.run(
        [PROGRAM, *map(str, arguments)], cwd=cwd, input=stdin, stdout=stdout,
        stderr=subprocess.PIPE, timeout=60, env=environment(env),
        preexec_fn=functools.partial(prepare_child, file_limit))


def command_names(overview):
    """Every command that `posattn --help` names."""
    return re.findall(r"^  ([a-z][\w-]*)  ", overview, re.M)


def read_tensors(path):
    """{name: (dtype, shape, bytes)} of a safetensors file."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    body = data[8 + size:]
    return {name: (entry["dtype"], tuple(entry["shape"]),
                   body[entry["data_offsets"][0]:entry["data_offsets"][1]])
            for name, entry in header.items() if name != "__metadata__"}


def read_metadata(path):
    """The metadata of a safetensors file."""
    data = pathlib.Path(path).read_bytes()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])["__metadata__"]


def write_tensors(path, metadata, tensors):
    """A safetensors file of {name: (shape, numbers)}."""
    header, body = {"__metadata__": metadata}, b""
    for name, (shape, numbers) in tensors.items():
        data = struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": list(shape),
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def unchecked(data):
    """A file of ours that a test has changed: its checksum is no longer looked for."""
    return data.replace(b"posattn.checksum", b"another.checksum")


def without_checksum(path):
    """What a file would be without its checksum, as versions before it wrote it: (header, data)."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = re.sub(rb'"posattn.checksum":"[0-9a-f]{16}",?', b"", data[8:8 + size])
    return header.rstrip(b" "), data[8 + size:]


def read_metrics(run):
    """The lines of metrics.jsonl without the time, which differs between runs."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        del line["seconds"]
    return lines


@functools.cache
def trained_runs():
    """A folder with positional and standard, seeds 0 and 1, trained once for all tests of a file.
    Tests only read it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="posattn-cli-"))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    result = call("train", *tiny(architecture="positional,standard", seeds="0,1"), "--out", "runs",
                  cwd=folder)
    if result.returncode != 0:
        raise AssertionError(result.stderr.decode())
    return folder / "runs"


class CliCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="posattn-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_ok(self, *arguments, **options):
        """Runs the program, which must succeed; its standard output as text."""
        return self.run_code(0, *arguments, **options)[0]

    def run_json(self, *arguments, **options):
        return json.loads(self.run_ok(*arguments, "--json", **options))

    def run_code(self, code, *arguments, **options):
        result = call(*arguments, cwd=self.folder, **options)
        errors = result.stderr.decode()
        self.assertEqual(result.returncode, code, f"{arguments}\n{errors}")
        return (result.stdout or b"").decode(), errors

    def run_error(self, code, *arguments, message, **options):
        """Runs the program, which must fail with this code and one message that has these parts."""
        _, errors = self.run_code(code, *arguments, **options)
        self.assertEqual(errors.count("error: "), 1, errors)
        self.assertNotIn("\x1b", errors)
        self.assertNotIn("expected expected", " ".join(errors.split()))  # the word is added once
        for part in [message] if isinstance(message, str) else message:
            self.assertIn(part, " ".join(errors.split()))
        self.assert_nothing_partial()
        return errors

    def assert_nothing_partial(self):
        left = [path for path in self.folder.rglob("*") if "partial" in path.name]
        self.assertEqual(left, [])

    @contextlib.contextmanager
    def background(self, *arguments):
        """The program as a running process; killed at the end if need be."""
        with subprocess.Popen(
                [PROGRAM, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=environment(),
                preexec_fn=functools.partial(prepare_child, None)) as process:
            try:
                yield process
            finally:
                process.kill()

    def wait_for_epochs(self, process, run, epochs):
        """Until the run has written this many metrics lines and a checkpoint."""
        metrics, deadline = run / "metrics.jsonl", time.monotonic() + 30
        while time.monotonic() < deadline:
            if metrics.exists() and (run / "checkpoint.safetensors").exists():
                if metrics.read_text().count("\n") >= epochs:
                    break
            self.assertIsNone(process.poll(), "the run ended too early")
            time.sleep(0.002)
        self.assertIsNone(process.poll(), "the run ended too early")
