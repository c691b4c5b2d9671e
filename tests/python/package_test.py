"""The package as people get it: its examples run, its types are those of the module, and pip
installs it, without a network, into an environment with the system's packages."""

import doctest
import importlib
import os
import pathlib
import pkgutil
import subprocess
import sys
import tempfile
import unittest

import posattn

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Examples(unittest.TestCase):
    def test_every_docstring_runs(self):
        examples = 0
        for module in pkgutil.iter_modules(posattn.__path__):
            if module.name in ("_posattn", "torch", "transformer"):
                continue
            found = doctest.testmod(importlib.import_module(f"posattn.{module.name}"))
            self.assertEqual(found.failed, 0, module.name)
            examples += found.attempted
        found = doctest.testmod(posattn)
        self.assertEqual(found.failed, 0)
        self.assertGreater(examples, 25)

    def test_every_public_name_is_documented(self):
        for name in posattn.__all__:
            self.assertTrue(getattr(posattn, name).__doc__, name)


class Installed(unittest.TestCase):
    def test_pip_in_an_environment(self):
        with tempfile.TemporaryDirectory(prefix="posattn-venv-") as folder:
            python = pathlib.Path(folder) / "bin" / "python"
            environment = {name: value for name, value in os.environ.items()
                           if name != "PYTHONPATH"}

            def call(*arguments, cwd):
                done = subprocess.run([str(part) for part in arguments], cwd=cwd, text=True,
                                      env=environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
                self.assertEqual(done.returncode, 0, done.stdout)
                return done.stdout

            call(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", folder,
                 cwd=folder)
            call(python, "-m", "pip", "--quiet", "install", "--no-build-isolation", "--no-index",
                 "--no-deps", "--no-compile", ".", cwd=ROOT)
            code = ("import posattn\n"
                    "print(posattn.__file__)\n"
                    "print(posattn.compile('sort', length=4).model([4, 3, 2, 1]).tolist())\n"
                    "print(posattn.load('sort-positional').spec['depth'])\n")
            place, answer, depth = call(python, "-c", code, cwd="/").splitlines()
            self.assertTrue(place.startswith(folder))
            self.assertEqual(answer, "[1.0, 2.0, 3.0, 4.0]")
            self.assertEqual(depth, "4")


if __name__ == "__main__":
    unittest.main()
