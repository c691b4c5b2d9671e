"""posattn train --data-parallel under mpirun: the losses of one process, by any number of ranks."""

import json
import signal
import subprocess
import time
import unittest

from mpirun import MpirunCase, command
from support import environment, read_metrics, tiny


class DataParallel(MpirunCase):
    def losses(self, out):
        return [line["train_loss"] for line in read_metrics(self.folder / out / "positional-seed0")]

    def train(self, ranks, out, *flags, code=0, **settings):
        return self.mpirun(code, ranks, "train", *tiny(threads=1, **settings), "--data-parallel", "--out",
                           out, *flags)

    def test_the_losses_of_one_process(self):
        self.run_ok("train", *tiny(threads=1), "--data-parallel", "--out", "alone")
        text, errors = self.train(2, "two", seeds="0,1")
        self.assertEqual(text.count("next:"), 1)  # one rank speaks
        self.assertIn(" · 2 ranks", errors)
        for one, two in zip(self.losses("alone"), self.losses("two"), strict=True):
            self.assertAlmostEqual(one, two, delta=1e-5 * one)
        self.assertTrue((self.folder / "two/positional-seed1/model.safetensors").exists())
        # Seven samples left for the last batch; the same bits in two sittings.
        self.train(2, "resumed", batch=19, epochs=1)
        self.train(2, "resumed", "--resume", batch=19)
        self.train(2, "whole", batch=19)
        self.assertEqual(self.losses("resumed"), self.losses("whole"))
        manifest = json.loads((self.folder / "two/positional-seed0/manifest.json").read_text())
        self.assertEqual(manifest["engine"]["ranks"], "2")

    def test_an_interrupt_ends_all_ranks(self):
        with subprocess.Popen(command(2, "train", *tiny(threads=1, epochs=100000), "--data-parallel",
                                      "--out", "out"), cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment()) as process:
            metrics, deadline = self.folder / "out/positional-seed0/metrics.jsonl", time.monotonic() + 30
            while not (metrics.exists() and metrics.read_text().count("\n") > 3):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            process.send_signal(signal.SIGUSR1)
            _, errors = process.communicate(timeout=30)
        text = errors.decode()
        self.assertLess(text.index("--resume goes on from it"),
                        text.index("interrupted; the checkpoint is saved"))
        self.assertTrue((metrics.parent / "checkpoint.safetensors").exists())

    def test_bad_input(self):
        _, errors = self.train(2, "out", code=3, batch=0)
        self.assertEqual(errors.count("error: "), 1, errors)
        _, errors = self.mpirun(2, 2, "train", *tiny())
        self.assertIn("posattn train in 2 ranks", errors)
        self.assertEqual(errors.count("error: "), 1, errors)


if __name__ == "__main__":
    unittest.main()
