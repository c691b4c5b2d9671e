"""Files written by earlier versions (tests/corpus): every one is read and means what it meant, and
what was trained then has the same bits when it is trained now."""

import functools
import json
import math
import pathlib
import shutil
import sys
import unittest

import support
from support import CliCase, read_metrics, without_checksum

sys.path.append(str(support.ROOT / "tests/corpus"))
from write_corpus import INSTRUCTION_SETS, LONG, TINY, WRITTEN_WITH, tensor_bits

CORPUS = support.ROOT / "tests/corpus/0.1.0"
TIMES = {"seconds", "network_seconds", "commit", "ended", "version"}


@functools.cache
def can_compute(instruction_set):
    return support.call("doctor", cwd=CORPUS, env=INSTRUCTION_SETS[instruction_set]).returncode == 0


class Corpus(CliCase):
    """Each test has a copy to work in."""

    def setUp(self):
        super().setUp()
        shutil.copytree(CORPUS, self.folder, dirs_exist_ok=True)

    def run_code(self, code, *arguments, env=None, **options):
        # Many small commands: threads that spin while they wait would take most of the time.
        return super().run_code(code, *arguments, env={"OMP_WAIT_POLICY": "passive", **(env or {})},
                                **options)

    def recorded(self, name):
        lines = (CORPUS / f"{name}.jsonl").read_text().splitlines()
        self.assertTrue(lines)
        return [json.loads(line) for line in lines]

    def assert_holds(self, found, recorded, tolerance, where="output"):
        """Everything recorded is in what was found; new names may stand beside it."""
        if isinstance(recorded, dict):
            self.assertIsInstance(found, dict, where)
            for name, value in recorded.items():
                if name not in TIMES:
                    self.assertIn(name, found, where)
                    self.assert_holds(found[name], value, tolerance, f"{where}.{name}")
        elif isinstance(recorded, list):
            self.assertEqual(len(found), len(recorded), where)
            for index, value in enumerate(recorded):
                self.assert_holds(found[index], value, tolerance, f"{where}[{index}]")
        elif where.endswith(".rounding_bound"):  # sharper, or larger on inputs tried since then
            self.assertLessEqual(found, 2 * recorded, where)
            self.assertGreater(found, 0, where)
        elif isinstance(recorded, float) and found is not None:
            close = math.isclose(found, recorded, rel_tol=tolerance, abs_tol=tolerance)
            self.assertTrue(close, f"{where}: {found} was {recorded}")
        else:
            self.assertEqual(found, recorded, where)

    def test_commands_answer_as_recorded(self):
        """On whichever instruction set: rounding may differ."""
        for record in self.recorded("outputs"):
            with self.subTest(command=" ".join(record["command"])):
                output, _ = self.run_code(record["code"], *record["command"])
                if "text" in record:  # settings as JSON: run keys are made of these bytes
                    self.assertEqual(output, record["text"])
                else:
                    self.assert_holds(json.loads(output), record["json"], 1e-5)

    def test_training_gives_the_same_bits(self):
        for instruction_set, env in INSTRUCTION_SETS.items():
            if not can_compute(instruction_set):
                continue
            for record in self.recorded("trainings"):
                with self.subTest(instruction_set, command=" ".join(record["command"])):
                    shutil.rmtree(self.folder / "trained", ignore_errors=True)
                    self.run_ok(*record["command"], env=env)
                    for run, bits in record["bits"][instruction_set].items():
                        model = self.folder / "trained" / run / "model.safetensors"
                        self.assertEqual(tensor_bits(model), bits, run)
                        file = record["files"][run]
                        if file:
                            self.assert_same_header(model, CORPUS / file)

    def assert_same_header(self, model, recorded):
        self.assertEqual(without_checksum(model)[0], without_checksum(recorded)[0])

    def test_compiling_gives_the_same_bytes(self):
        for record in self.recorded("compilations"):
            with self.subTest(command=" ".join(record["command"])):
                model = record["command"][-1]
                (self.folder / model).unlink()
                self.run_ok(*record["command"])
                self.assertEqual(without_checksum(self.folder / model), without_checksum(CORPUS / model))

    def test_a_cut_run_goes_on(self):
        """To the bits of the run that was not cut."""
        self.run_ok("train", *LONG.split(), "--out", "runs/cut", "--resume",
                    env=INSTRUCTION_SETS[WRITTEN_WITH])
        cut, whole = (pathlib.Path(f"runs/{name}/positional-seed0") for name in ["cut", "whole"])
        self.assertEqual(without_checksum(self.folder / cut / "model.safetensors"),
                         without_checksum(CORPUS / whole / "model.safetensors"))
        self.assertEqual(tensor_bits(self.folder / cut / "checkpoint.safetensors"),
                         tensor_bits(CORPUS / whole / "checkpoint.safetensors"))
        self.assertEqual(read_metrics(self.folder / cut), read_metrics(CORPUS / whole))
        # The epochs from before are still those that the earlier version wrote.
        self.assertTrue((self.folder / cut / "metrics.jsonl").read_text().startswith(
            (CORPUS / cut / "metrics.jsonl").read_text()))
        found, recorded = (json.loads((folder / "manifest.json").read_text())
                           for folder in [self.folder / cut, CORPUS / whole])
        self.assertEqual(found["status"], "done")
        self.assertEqual(found["configuration"], recorded["configuration"])
        self.assert_holds(found["final"], recorded["final"], 0)

    def test_runs_that_have_ended_stay_as_they_are(self):
        for code, run, settings in [
                (0, "finished/standard-seed3", ["--architecture", "standard", "--seed", 3]),
                (1, "diverged/positional-seed0", ["--set", "lr=1e20"])]:
            before = self.run_files(CORPUS / "runs" / run)
            self.run_code(code, "train", *TINY.split(), *settings, "--out",
                          f"runs/{pathlib.Path(run).parent}", "--resume")
            self.assertEqual(self.run_files(self.folder / "runs" / run), before)

    def run_files(self, run):
        """All but the lock and the manifest, and of the manifest how the run ended."""
        status = json.loads((run / "manifest.json").read_text())["status"]
        return status, {file.name: file.read_bytes() for file in run.iterdir()
                        if file.name not in ["lock", "manifest.json"]}

    def test_reports_are_drawn(self):
        for folder in ["runs/whole", "runs/finished"]:
            self.run_ok("report", folder, "--output", "page.html")
            self.assertIn("</html>", (self.folder / "page.html").read_text())
        self.run_ok("report", "--results", "results", "scales.toml", "sizes.toml",
                    "--output", "page.html")

    def recorded_runs(self, results, name):
        lines = (results / name / "runs.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def assert_complete(self, name, runs):
        """Nothing of the experiment is trained again, and its table is the same."""
        result = self.run_json("reproduce", f"{name}.toml")
        self.assertEqual(result["runs"], {"all": runs, "there": runs, "done": 0, "diverged": 0,
                                          "failed": 0, "missing": 0})
        self.assertFalse(list(self.folder.glob("results/runs/*")))
        self.assert_same_results(name)

    def assert_same_results(self, name):
        table = f"results/{name}/{name}.csv"
        self.assertEqual((self.folder / table).read_text(), (CORPUS / table).read_text())
        self.assert_holds(self.recorded_runs(self.folder / "results", name),
                          self.recorded_runs(CORPUS / "results", name), 0)

    def test_results_are_complete(self):
        for name, runs in [("scales", 12), ("sizes", 2)]:
            self.assert_complete(name, runs)

    def test_results_are_complete_without_the_database(self):
        """From runs.jsonl alone, whose keys are checked against their settings."""
        (self.folder / "results/results.db").unlink()
        for name, runs in [("scales", 12), ("sizes", 2)]:
            self.assert_complete(name, runs)

    def test_experiments_give_the_same_results_again(self):
        """Keys, settings and every number, trained anew."""
        shutil.rmtree(self.folder / "results")
        for name in ["scales", "sizes"]:
            self.run_ok("reproduce", f"{name}.toml", "--device", "cpu",
                        env=INSTRUCTION_SETS[WRITTEN_WITH])
            self.assert_same_results(name)

    def test_a_begun_experiment_goes_on(self):
        """With the run that was begun, to the bits of the run that was not cut."""
        (run,) = (CORPUS / "begun/runs").iterdir()
        result = self.run_json("reproduce", "long.toml", "--results", "begun", "--device", "cpu",
                               env=INSTRUCTION_SETS[WRITTEN_WITH])
        self.assertEqual(result["runs"]["done"], 1)
        self.assertEqual([path.name for path in (self.folder / "begun/runs").iterdir()], [run.name])
        model = self.folder / "begun/runs" / run.name / "model.safetensors"
        whole = CORPUS / "runs/whole/positional-seed0"
        self.assertEqual(without_checksum(model), without_checksum(whole / "model.safetensors"))
        self.assertEqual(read_metrics(model.parent), read_metrics(whole))
        # The epochs from before are still those that the earlier version wrote.
        self.assertTrue((model.parent / "metrics.jsonl").read_text().startswith(
            (run / "metrics.jsonl").read_text()))

    def test_committed_results_are_found(self):
        """The results of the repository, under the keys that today's experiments ask for."""
        results = support.ROOT / "results"
        for file in sorted(results.glob("*/runs.jsonl")):
            name, tf32 = file.parent.name, file.parent.name.endswith("-tf32")
            name, _, epochs = name.removesuffix("-tf32").partition("-epochs")
            keys = {run["key"] for run in self.recorded_runs(results, file.parent.name)}
            found = self.run_json("reproduce", name, "--dry-run", "--results", results,
                                  *(["--epochs", epochs] if epochs else []),
                                  *(["--precision", "tf32"] if tf32 else []))["all"]
            self.assertEqual(found["done"] + found["diverged"], len(keys), name)


if __name__ == "__main__":
    unittest.main()
