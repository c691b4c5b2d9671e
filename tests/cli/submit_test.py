"""posattn submit against stand-ins for Slurm's own programs: they start the script as Slurm would,
and a requeue starts it again. scripts/slurm_test.sh does the same with a real Slurm."""

import os
import pathlib
import re
import stat
import subprocess
import unittest

from shards_test import EXPERIMENT
from support import CliCase

# A job's sittings follow each other until one does not ask for another. With HALF the first has time
# for half of the grid only; with BROKEN none gets anywhere.
STANDINS = {
    "sbatch": """
[ "$1" = --parsable ] && shift
export SLURM_CPUS_PER_TASK=1 SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=7
for task in ${TASKS:-0}; do  # of the array
  SLURM_ARRAY_TASK_ID=$task
  export SLURM_ARRAY_TASK_ID
  touch again
  while [ -e again ]; do
    rm again
    sh "$1" >>log 2>&1
    echo "$?" >>codes
  done
done
echo "7;cluster"
""",
    "srun": """
while [ "${1#--}" != "$1" ]; do shift; done
if [ -n "$BROKEN" ]; then exit 3; fi
if [ -n "$HALF" ] && [ ! -e calls ]; then
  echo "$@" >>calls
  "$@" --tasks sort
  exit 137
fi
echo "$@" >>calls
exec "$@"
""",
    "scontrol": 'echo "$@" >>requeues && touch again\n',
}


class Submit(CliCase):
    def setUp(self):
        super().setUp()
        (self.folder / "small.toml").write_text(EXPERIMENT)
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        for name, text in STANDINS.items():
            tool = self.tools / name
            tool.write_text("#!/bin/sh\n" + text)
            tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        self.path = {"PATH": f"{self.tools}:{os.environ['PATH']}"}

    def lines(self, name):
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def missing(self):
        return self.run_json("reproduce", "small.toml", "--results", "out",
                             "--dry-run")["all"]["missing"]

    def test_until_the_grid_is_done(self):
        answer = self.run_json("submit", "small.toml", "--results", "out",
                               env={**self.path, "HALF": "1"})
        self.assertEqual((answer["job"], answer["missing"]), ("7", 8))
        self.assertTrue(pathlib.Path(answer["script"]).exists())
        self.assertEqual(self.missing(), 0)
        self.assertEqual(self.lines("codes"), ["0", "0"])
        self.assertEqual(self.lines("requeues"), ["requeue 7_0"])
        self.assertTrue((self.folder / "out/small/small.csv").exists())

    def test_an_array_merges_its_shards(self):
        text = self.run_ok("submit", "small.toml", "--array", 2, "--tasks", "sort", "--results", "out",
                           env={**self.path, "TASKS": "0 1"})
        self.assertIn("job 7: ", text)
        self.assertEqual(self.lines("codes"), ["0", "0"])
        self.assertRegex(self.lines("calls")[1], r"reproduce small.toml --tasks sort .*--shard 1/2")
        self.assertTrue((self.folder / "out/small/small.csv").exists())
        self.run_error(2, "submit", "small.toml", "--tasks", "sort", "--results", "out",
                       message=["nothing is missing of small", "HINT"])

    def test_it_stops_when_nothing_moves_on(self):
        self.run_ok("submit", "small.toml", "--results", "out", env={**self.path, "BROKEN": "1"})
        self.assertEqual((self.lines("codes"), self.lines("requeues")), (["3"], []))
        self.assertIn("stopped: runs are missing", (self.folder / "log").read_text())

    def test_without_slurm(self):
        script = self.run_ok("submit", "small.toml", "--array", 4, "--nodes", 2, "--gpus", 1, "--dry-run")
        self.assertIn("#SBATCH --array=0-3%2\n", script)
        self.assertIn("#SBATCH --gpus-per-node=1\n", script)
        self.assertIn(" --device cuda ", script)
        self.assertIn(" --precision tf32 ", script)
        self.assertFalse((self.folder / "results").exists())
        for shell in ["sh", "bash"]:
            subprocess.run([shell, "-n"], input=script.encode(), check=True)
        nowhere = self.folder / "empty"
        nowhere.mkdir()
        errors = self.run_error(1, "submit", "small.toml", env={"PATH": str(nowhere)},
                                message=["no sbatch on this machine", "on the cluster: sbatch /"])
        written = re.search(r"sbatch (/\S+)", " ".join(errors.split()))[1]
        self.assertTrue(pathlib.Path(written).read_text().startswith("#!/bin/sh\n#SBATCH "))

    def test_bad_input(self):
        for flags, message in [
                (["--time", "soon"], "--time 'soon'"), (["--time", "3"], "at least five minutes"),
                (["--nodes", 0], "--nodes 0"), (["--array", 0], "--array 0"),
                (["--array", 2, "--gpus", 2], ["--gpus 2", "HINT: for as many GPUs: --gpus 1 --array 2"]),
                (["--nodes", 4], ["--nodes 4 with --array 1", "HINT: --array 4"]),
                (["--partition", "a b"], "--partition 'a b'"),
                (["--device", "cuda"], "--device cuda without --gpus"),
                (["--gpus", 1, "--device", "cpu"], "--gpus 1 with --device cpu"),
                (["--tasks", "max"], "--tasks max is not part")]:
            self.run_error(2, "submit", "small.toml", *flags, message=message)
        self.run_error(2, "submit", "value-rage", message="value-range")
        self.assertFalse((self.folder / "results").exists())


if __name__ == "__main__":
    unittest.main()
