"""Certificates of trained runs: what is said, that it repeats, what is refused."""

import json
import signal
import time
import unittest

from support import CliCase, tiny, trained_runs

QUICK = ("--steps", 30, "--draws", 200)


class Certify(CliCase):
    def certify(self, *arguments):
        return self.run_json("certify", *arguments, *QUICK)["certificates"]

    def test_says_what_holds_and_what_was_measured(self):
        run = trained_runs() / "positional-seed0"
        found = self.certify(run, "--clip", 2)[0]
        self.assertEqual(found["run"], str(run))
        self.assertEqual(found["architecture"], "positional")
        for key in ("randomised", "drawn", "best_of_ten"):
            self.assertGreater(found[key]["bound"], found[key]["training_loss"])
            self.assertLessEqual(found[key]["bound"], 4)
        self.assertGreater(found["randomised"]["training_loss_bound"],
                           found["randomised"]["training_loss"])
        self.assertGreater(found["plain"]["hold_out_bound"], found["plain"]["fresh_loss"])
        self.assertGreater(found["divergence"], 0)
        self.assertGreater(found["cost"], 0)

    def test_text(self):
        text = self.run_ok("certify", trained_runs() / "standard-seed1", *QUICK)
        for part in ["risk at most", "not the one that was trained", "best of ten drawn",
                     "best linear predictor", "1,000 held-out samples", "confidence 0.95"]:
            self.assertIn(part, text)

    def test_several_runs_as_alone_and_as_rows(self):
        together = self.certify(trained_runs(), "--rows", "rows.jsonl", "--threads", 2)
        self.assertEqual(len(together), 4)
        rows = [json.loads(line) for line in (self.folder / "rows.jsonl").read_text().splitlines()]
        alone = self.certify(trained_runs() / "standard-seed1", "--threads", 3)
        for found in [*together, *rows, *alone]:
            del found["seconds"]
        self.assertCountEqual(rows, together)
        self.assertEqual(alone, together[3:])
        self.certify(trained_runs() / "positional-seed0", "--rows", "rows.jsonl")
        self.assertEqual(len((self.folder / "rows.jsonl").read_text().splitlines()), 5)

    def test_an_interrupt_keeps_what_is_done(self):
        first, second = trained_runs() / "positional-seed0", trained_runs() / "standard-seed0"
        rows = self.folder / "rows.jsonl"
        with self.background("certify", first, second, "--steps", 8000, "--draws", 200, "--threads", 1,
                             "--rows", rows, "--json") as process:
            deadline = time.monotonic() + 60
            while not (rows.exists() and rows.read_text()) and time.monotonic() < deadline:
                self.assertIsNone(process.poll(), "it ended too early")
                time.sleep(0.002)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, errors.decode())
        self.assertIn("interrupted: 1 of 2 runs are certified\n", errors.decode())
        found, = json.loads(output)["certificates"]
        self.assertEqual(found, json.loads(rows.read_text()))
        self.assertEqual(found["run"], str(first))

    def test_an_interrupt_is_heard_while_networks_are_drawn(self):
        with self.background("certify", trained_runs() / "positional-seed0", "--steps", 1,
                             "--draws", 10_000_000, "--threads", 1) as process:
            self.assertIn(b"1 thread", process.stderr.readline())
            time.sleep(1)
            self.assertIsNone(process.poll(), "it ended too early")
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, errors.decode())
        self.assertEqual(output, b"")
        *lines, last = errors.decode().splitlines()
        self.assertEqual(last, "interrupted: 0 of 1 runs are certified")
        self.assertEqual(len(lines), len(set(lines)), errors.decode())

    def test_the_last_state_is_shown_once(self):
        _, errors = self.run_code(0, "certify", trained_runs() / "positional-seed0", *QUICK)
        shown = [line for line in errors.splitlines() if "1/1 runs" in line]
        self.assertEqual(len(shown), 1, errors)
        self.assertIn("30/30 steps", shown[0])

    def test_refusals(self):
        run = trained_runs() / "positional-seed0"
        for flags, expected in [(("--delta", 0), "--delta 0"), (("--delta", 1), "below 1"),
                                (("--clip", -1), "1e-6 to 1e6"), (("--samples", 0), "at least 1"),
                                (("--steps", -1), "--steps -1"), (("--draws", 0), "--draws 0")]:
            self.run_error(2, "certify", run, *flags, message=expected)
        self.run_error(3, "certify", run, "--samples", 30000, message=["not 30000", "own m"])
        self.run_error(4, "certify", "nothing", message="no such file or folder")
        self.run_error(4, "certify", run / "config.toml", message="is not of a run")
        self.run_error(1, "certify", run, *QUICK, "--rows", "missing/rows.jsonl",
                       message="cannot write 'missing/rows.jsonl': No such file or directory")
        self.run_ok("train", *tiny(fresh=True), "--out", "fresh")
        self.run_error(3, "certify", "fresh", message="new samples every epoch")
        self.run_ok("train", *tiny(normalisation="before", join="add"), "--out", "other")
        self.run_error(3, "certify", "other", message="adds residuals")
        self.run_ok("compile", "cumulative-sum", "--length", 4, "-o", "program.safetensors")
        self.run_error(4, "certify", "program.safetensors", message="is not of a run")


if __name__ == "__main__":
    unittest.main()
