"""What the tests of ranks share: sweeps under mpirun, and what they must leave behind."""

import contextlib
import functools
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import time
import unittest

import support

MPIRUN = shutil.which("mpirun")
BUILD = pathlib.Path(support.PROGRAM).resolve().parent
# As root, and more ranks than cores: only tests do that.
AS_TEST = ["--allow-run-as-root", "--oversubscribe"]

EXPERIMENT = """
title = "A small grid"
tasks = ["cumulative-sum", "sort"]
seeds = "0..1"
[axis]
key = "test-scales"
values = [1, 2]
[settings]
samples = 256
validation-samples = 16
test-samples = 16
batch = 32
epochs = {epochs}
length = 3
width = 8
mlp-width = 8
test-every = 0
test-scales = "1,2"
checkpoint-every = 0.1
[[lines]]
name = "positional"
architecture = "positional"
[[lines]]
name = "standard"
architecture = "standard"
"""
RUNS = 8


def missing():
    """Why ranks cannot be tested here, or nothing."""
    if MPIRUN is None:
        return "mpirun is missing: scripts/install_packages mpi"
    if not (BUILD / "posattn_mpi.so").exists():
        return "the program was built without MPI: cmake --preset release -DPOSATTN_MPI=ON"
    return None


def processes(word, argument):
    """Ids of the processes that have both in their command line and are this program."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode().split("\0")
            if pathlib.Path(words[0]).resolve() == pathlib.Path(support.PROGRAM).resolve() and \
                    word in words and argument in words:
                found.append(int(entry.name))
    return found


def contents(results):
    """Everything that a database, which must be whole, has about results but when and how long."""
    with contextlib.closing(sqlite3.connect(results / "results.db")) as database:
        whole = database.execute("PRAGMA integrity_check").fetchall()
        if whole != [("ok",)]:
            raise AssertionError(whole)
        runs = database.execute(
            "SELECT key, configuration, status, epochs, steps FROM runs ORDER BY key").fetchall()
        rows = database.execute("SELECT * FROM measurements ORDER BY 1, 2, 3, 4, 5").fetchall()
    return runs, rows


@functools.cache
def trained_alone(epochs):
    """The results folder of one process, trained once for all tests of a file."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="posattn-cli-"))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    (folder / "grid.toml").write_text(EXPERIMENT.format(epochs=epochs))
    done = support.call("reproduce", "grid.toml", "--results", "alone", "--threads", 1, cwd=folder)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    return folder / "alone"


@unittest.skipIf(missing(), missing())
class RanksCase(support.CliCase):
    epochs = 200
    command = "reproduce"

    def setUp(self):
        super().setUp()
        (self.folder / "grid.toml").write_text(EXPERIMENT.format(epochs=self.epochs))
        self.results = self.folder / "ranks"

    def start(self, *arguments, ranks=2, options=(), env=None):
        command = [MPIRUN, *AS_TEST, "-n", ranks, *options, support.PROGRAM, *self.words(),
                   *arguments]
        job = subprocess.Popen([str(word) for word in command], cwd=self.folder, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=support.environment(env))
        self.addCleanup(job.wait)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.kill)
        return job

    def words(self):
        """What the ranks are to do."""
        return [self.command, "grid.toml", "--results", self.results]

    def finish(self, job, code=0, seconds=60):
        output, errors = job.communicate(timeout=seconds)
        if code is not None:
            self.assertEqual(job.returncode, code, output + errors)
        return output + errors

    def ranks(self):
        """Process ids by rank, as far as they have begun."""
        found = {}
        for process in processes(self.command, str(self.results)):
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
                found.update({int(word.partition(b"=")[2]): process for word in words
                              if word.startswith(b"OMPI_COMM_WORLD_RANK=")})
        return [found[rank] for rank in sorted(found)]

    def children(self):
        """Likewise."""
        return [child for rank in self.ranks() for child in processes("train-for-rank", str(rank))]

    def wait_for(self, condition, what):
        until = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), until, f"never: {what}")
            time.sleep(0.01)

    def wait_for_training(self, children=2):
        """Until so many children are there, and have written as many checkpoints."""
        begun = time.time()
        self.wait_for(lambda: len(self.children()) == children and sum(
            file.stat().st_mtime > begun for file in
            self.results.glob("runs/*/checkpoint.safetensors")) >= children, "checkpoints")

    def assert_as_alone(self):
        alone = trained_alone(self.epochs)
        self.assertEqual(len(contents(alone)[0]), RUNS)
        self.assertEqual(contents(self.results), contents(alone))
        for run in (alone / "runs").iterdir():
            other = self.results / "runs" / run.name
            self.assertEqual(support.read_tensors(run / "model.safetensors"),
                             support.read_tensors(other / "model.safetensors"))
            self.assertEqual(support.read_metrics(run), support.read_metrics(other))
        self.assertEqual((alone / "grid/grid.csv").read_bytes(),
                         (self.results / "grid/grid.csv").read_bytes())

    def assert_nobody_left(self):
        self.wait_for(lambda: not self.ranks() and not self.children(), "all processes end")


def kill(process, signal):
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal)
