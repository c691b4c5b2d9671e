"""Any command of the program under mpirun, for tests; they are skipped where there is no MPI."""

import subprocess
import unittest

import mpi_support
from support import PROGRAM, CliCase, environment


def command(ranks, *arguments):
    """Ranks that wait leave their core to others: there may be more of them than cores."""
    return [mpi_support.MPIRUN, *mpi_support.AS_TEST, "--bind-to", "none", "--quiet",
            "--mca", "mpi_yield_when_idle", "1", "-n", str(ranks), PROGRAM, *map(str, arguments)]


@unittest.skipIf(mpi_support.missing(), mpi_support.missing())
class MpirunCase(CliCase):
    def mpirun(self, code, ranks, *arguments):
        """Standard output and errors of the program in this many ranks, which must end with `code`."""
        done = subprocess.run(command(ranks, *arguments), cwd=self.folder, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60, env=environment())
        errors = done.stderr.decode()
        self.assertEqual(done.returncode, code, f"{arguments}\n{errors}")
        return done.stdout.decode(), errors
