"""Everything that may happen to ranks. A sweep: nothing is lost but work in flight, the database is
whole, the message says what happened and what to type, and the same command goes on to the results of
one process. Data-parallel training: it goes on from its checkpoint to the same bits. About two minutes;
./check --full runs it.

    POSATTN=build/release/posattn tests/cli/mpi_faults.py
"""

import contextlib
import os
import shutil
import signal
import subprocess
import unittest

import support
from mpi_support import RanksCase, contents, kill

GOES_ON = "should the job be cut, the same command goes on"
STOPPING = "stopping: checkpoints are being saved, and the same command goes on from them"
TO_GO_ON = "interrupted; the checkpoints are saved. To go on:\n  mpirun -n 2 "


def small_disk(case, size):
    """A folder on a file system of its own, which ends with the test."""
    disk = case.folder / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk],
                      capture_output=True, check=False).returncode != 0:
        case.skipTest("a small file system needs the right to mount one")
    case.addCleanup(subprocess.run, ["umount", disk], check=True)
    return disk


class Faults(RanksCase):
    epochs = 600

    def assert_goes_on(self):
        self.assert_nobody_left()
        contents(self.results)  # which is whole
        self.finish(self.start())
        self.assert_as_alone()

    def test_a_rank_is_killed(self):
        job = self.start()
        self.wait_for_training()
        kill(self.ranks()[1], signal.SIGKILL)
        text = self.finish(job, code=137)
        self.assertIn(GOES_ON, text)
        self.assertIn("rank 1", text)  # mpirun's own words
        self.assert_goes_on()

    def test_rank_0_is_killed(self):
        job = self.start()
        self.wait_for_training()
        kill(self.ranks()[0], signal.SIGKILL)
        text = self.finish(job, code=137)
        self.assertIn(GOES_ON, text)
        self.assertIn("rank 0", text)
        self.assert_goes_on()

    def test_mpirun_is_killed(self):
        job = self.start()
        self.wait_for_training()
        job.kill()
        self.finish(job, code=None)
        self.assert_goes_on()

    def test_a_child_is_killed_again_and_again(self):
        job = self.start("--seeds", "0", "--tasks", "sort", "--lines", "positional",
                         "--epochs", "1000000")
        for _ in range(3):
            self.wait_for_training(children=1)
            child = self.children()[0]
            kill(child, signal.SIGKILL)
            self.wait_for(lambda gone=child: gone not in self.children(), "the child is gone")
        text = self.finish(job, code=1)
        self.assertIn("error: 1 of 1 runs failed", text)
        self.assertRegex(text, r"runs/sort-positional-seed0-\w+: 3 processes died training it; the "
                               r"last was killed by signal 9 \(Killed\)")
        self.assertIn("the same command tries again", text)
        self.assert_nobody_left()
        self.assertEqual([run[2] for run in contents(self.results)[0]], ["failed"])

    def cut(self, number):
        job = self.start()
        self.wait_for_training()
        job.send_signal(number)
        text = self.finish(job, code=None)
        self.assertNotEqual(job.returncode, 0)
        self.assertIn(STOPPING, text)
        if number == signal.SIGUSR1:  # after others mpirun's second may be too short for more
            self.assertIn(TO_GO_ON, text)
            self.assertTrue([run for run in self.results.glob("runs/*/manifest.json")
                             if '"interrupted"' in run.read_text()])
        self.assert_goes_on()

    def test_the_time_is_up(self):
        self.cut(signal.SIGTERM)

    def test_interrupted_by_hand(self):
        self.cut(signal.SIGINT)

    def test_asked_to_stop(self):
        self.cut(signal.SIGUSR1)

    def test_one_rank_is_asked_to_stop(self):
        job = self.start()
        self.wait_for_training()
        kill(self.ranks()[1], signal.SIGTERM)
        self.assertIn(TO_GO_ON, self.finish(job, code=130))
        self.assert_goes_on()

    def test_two_sweeps_on_one_folder(self):
        first = self.start()
        self.wait_for_training()
        text = self.finish(self.start(), code=1)
        self.assertEqual(text.count("error: "), 1, text)
        self.assertIn(f"the folder '{self.results}' is in use by a running process", text)
        self.finish(first)
        self.assert_as_alone()

    def test_the_disk_is_full(self):
        disk = small_disk(self, "900k")
        self.results = disk / "ranks"
        text = self.finish(self.start(), code=1)
        self.assertIn("error: ", text)
        self.assertIn("No space left on device", text)
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        self.assert_goes_on()


class DataParallel(RanksCase):
    """One model by two ranks."""
    command = "train"
    epochs = 3000
    whole = None

    def words(self):
        return [self.command, *support.tiny(threads=1, epochs=self.epochs, batch=64, width=32,
                                            mlp_width=32, validate_every=0, test_every=0,
                                            checkpoint_every=0.1),
                "--data-parallel", "--out", self.results]

    def start(self, *arguments, **settings):
        """Ranks that wait leave their core to others: there may be more of them than cores."""
        return super().start(*arguments, options=("--mca", "mpi_yield_when_idle", "1"), **settings)

    def finish(self, job, code=0, seconds=180):
        return super().finish(job, code, seconds)

    def run_folder(self):
        return self.results / "positional-seed0"

    def wait_for_training(self, children=0):
        self.wait_for(lambda: (self.run_folder() / "checkpoint.safetensors").exists(), "a checkpoint")

    def assert_goes_on(self):
        """To the bits of two ranks that nothing happened to."""
        self.assert_nobody_left()
        self.finish(self.start("--resume"))
        found = self.trained()
        if DataParallel.whole is None:
            self.results = self.folder / "whole"
            self.finish(self.start())
            DataParallel.whole = self.trained()
        self.assertEqual(found, self.whole)
        self.assertEqual(len(found[1]), self.epochs)

    def trained(self):
        return (support.read_tensors(self.run_folder() / "model.safetensors"),
                support.read_metrics(self.run_folder()))

    def assert_killed(self, rank):
        job = self.start()
        self.wait_for_training()
        kill(self.ranks()[rank], signal.SIGKILL)
        self.assertIn(f"rank {rank}", self.finish(job, code=137))  # mpirun's own words
        self.assertFalse((self.run_folder() / "model.safetensors").exists())
        self.assert_goes_on()

    def test_a_rank_is_killed(self):
        self.assert_killed(1)

    def test_rank_0_is_killed(self):
        self.assert_killed(0)

    def test_asked_to_stop(self):
        job = self.start()
        self.wait_for_training()
        job.send_signal(signal.SIGUSR1)
        text = self.finish(job, code=130)
        self.assertIn("interrupted; the checkpoint is saved. To go on:\n  mpirun -n 2 ", text)
        self.assert_goes_on()

    def test_the_disk_is_full(self):
        disk = small_disk(self, "500k")
        self.results = disk / "ranks"
        text = self.finish(self.start(), code=1)
        self.assertIn("error: 1 of 1 runs did not finish", text)
        self.assertIn("No space left on device", text)
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        self.assert_goes_on()


class Network(RanksCase):
    """Two network namespaces with a bridge between them: ranks on machines of their own, as far as
    the network goes."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or shutil.which("ip") is None:
            self.skipTest("network namespaces need root and ip (Debian: iproute2)")
        self.names = [f"posattn-{os.getpid()}-{i}" for i in range(2)]
        self.bridge = f"pos{os.getpid()}"
        self.addCleanup(self.take_down)
        try:
            self.ip("link add", self.bridge, "type bridge")
            self.ip("addr add 10.99.0.1/24 dev", self.bridge)
            self.ip("link set", self.bridge, "up")
            for i, name in enumerate(self.names):
                self.ip("netns add", name)
                self.ip("link add", f"{self.bridge}{i}", "type veth peer name eth0 netns", name)
                self.ip("link set", f"{self.bridge}{i}", "master", self.bridge, "up")
                self.ip("-n", name, f"addr add 10.99.0.{i + 2}/24 dev eth0")
                self.ip("-n", name, "link set eth0 up")
                self.ip("-n", name, "link set lo up")
        except subprocess.CalledProcessError as error:
            self.skipTest(f"no network namespaces here: {error.stderr.decode().strip()}")
        agent = self.folder / "agent"  # in the place of ssh: agent HOST COMMAND...
        agent.write_text(f'#!/bin/sh\nname={self.names[0][:-1]}$((${{1##*.}} - 2))\nshift\n'
                         'exec ip netns exec "$name" unshare --uts sh -c "hostname $name; $*"\n')
        agent.chmod(0o755)
        self.options = ["--mca", "plm_rsh_agent", str(agent), "--mca", "btl", "tcp,self",
                        "--mca", "oob_tcp_if_include", "10.99.0.0/24",
                        "--mca", "btl_tcp_if_include", "10.99.0.0/24",
                        "--host", "10.99.0.2:1,10.99.0.3:1"]

    def ip(self, *words):
        subprocess.run(["ip", *" ".join(words).split()], check=True, capture_output=True)

    def take_down(self):
        for name in self.names:
            with contextlib.suppress(subprocess.CalledProcessError):
                self.ip("netns del", name)
        with contextlib.suppress(subprocess.CalledProcessError):
            self.ip("link del", self.bridge)

    def test_a_sweep_over_tcp(self):
        job = self.start(options=self.options)
        self.wait_for_training()
        kill(self.children()[1], signal.SIGKILL)
        self.assertIn("the training process of rank 1 was killed", self.finish(job))
        self.assert_as_alone()
        self.assert_nobody_left()

    def test_a_machine_goes_away(self):
        job = self.start(options=self.options)
        self.wait_for_training()
        kill(self.ranks()[1], signal.SIGKILL)
        self.assertIn(GOES_ON, self.finish(job, code=137))
        self.assert_nobody_left()
        self.finish(self.start(options=self.options))
        self.assert_as_alone()


if __name__ == "__main__":
    unittest.main()
