"""The program of a build without MPI: it says so, refuses ranks, and lacks nothing else."""

import json
import pathlib
import subprocess
import unittest

from support import PROGRAM, CliCase, environment, tiny

WITHOUT = pathlib.Path(PROGRAM).resolve().parent / "posattn_without_mpi"
AS_RANK = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}


@unittest.skipIf(not WITHOUT.exists(), "this build has no posattn_without_mpi")
class WithoutMpi(CliCase):
    def call(self, *arguments, env=None):
        return subprocess.run([WITHOUT, *map(str, arguments)], cwd=self.folder, capture_output=True,
                              text=True, timeout=60, env=environment(env), check=False)

    def test_it_says_so(self):
        found = json.loads(self.call("doctor", "--json").stdout)["mpi"]
        self.assertEqual((found["built"], found["usable"], found["problem"]), (False, False, "not built"))
        self.assertIn("-DPOSATTN_MPI=ON", self.call("doctor").stdout)

    def test_ranks_are_refused(self):
        for command in [["train", *tiny(), "--data-parallel"], ["reproduce", "value-range"],
                        ["run", "sort", "--input", "2,1", "--level", "mpi"], ["bench", "--sums", 1]]:
            done = self.call(*command, env=AS_RANK)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("error: this build has no MPI", done.stderr)
            self.assertIn("-DPOSATTN_MPI=ON", done.stderr)

    def test_one_process_does_all_else(self):
        done = self.call("train", *tiny(epochs=1), "--out", "out")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
