"""Ranks: what they say to each other; a sweep in two of them, one of whose children is killed, has
the results of one process. mpi_faults.py has what takes longer."""

import fcntl
import pathlib
import signal
import subprocess
import unittest

import mpi_support
from mpi_support import RanksCase, kill


class Ranks(RanksCase):
    epochs = 400

    def test_messages_and_sums(self):
        done = subprocess.run(
            [mpi_support.MPIRUN, *mpi_support.AS_TEST, "-n", "3", mpi_support.BUILD / "ranks_tool"],
            capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)

    def test_a_sweep_survives_its_children(self):
        job = self.start("--json", env={"CUDA_VISIBLE_DEVICES": "3,5"})
        self.wait_for_training()
        for child, gpu in zip(self.children(), [b"3", b"5"]):
            words = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
            self.assertIn(b"CUDA_VISIBLE_DEVICES=" + gpu, words)
            self.assertFalse([word for word in words if word.startswith((b"OMPI_", b"PMIX_"))])
        kill(self.children()[1], signal.SIGKILL)
        text = self.finish(job)
        self.assertIn("2 ranks, 1 thread each", text)
        self.assertIn("the training process of rank 1 was killed by signal 9 (Killed); "
                      "runs that are handed out again: 1", text)
        self.assertIn(f"{mpi_support.RUNS}/{mpi_support.RUNS} runs", text)
        self.assert_as_alone()
        self.assert_nobody_left()

    def test_one_message(self):
        self.results.mkdir()
        with open(self.results / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            text = self.finish(self.start(), code=1)
        self.assertEqual(text.count("error: "), 1, text)
        self.assertIn(f"the folder '{self.results}' is in use by a running process", text)
        self.assertIn("HINT: wait until it has ended, or choose another folder", text)
        text = self.finish(self.start("--wrong"), code=2)
        self.assertEqual(text.count("error: "), 1, text)

    def test_one_rank_is_none(self):
        text = self.finish(self.start("--seeds", "0", "--tasks", "sort", ranks=1))
        self.assertNotIn("ranks,", text)


if __name__ == "__main__":
    unittest.main()
