"""The program under mpirun, for tests; they are skipped where there is no MPI."""

import pathlib
import shutil
import subprocess
import unittest

from support import PROGRAM, CliCase, environment


def skip_reason():
    if shutil.which("mpirun") is None:
        return "no mpirun on this machine"
    if not (pathlib.Path(PROGRAM).parent / "posattn_mpi.so").exists():
        return "posattn was built without MPI"
    return None


def command(ranks, *arguments):
    """More ranks than cores are welcome, and so is root, as in a container."""
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--quiet",
            "-n", str(ranks), PROGRAM, *map(str, arguments)]


class RanksCase(CliCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if skip_reason():
            raise unittest.SkipTest(skip_reason())

    def mpirun(self, code, ranks, *arguments):
        """Standard output and errors of the program in this many ranks, which must end with `code`."""
        done = subprocess.run(command(ranks, *arguments), cwd=self.folder, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60, env=environment())
        errors = done.stderr.decode()
        self.assertEqual(done.returncode, code, f"{arguments}\n{errors}")
        return done.stdout.decode(), errors
