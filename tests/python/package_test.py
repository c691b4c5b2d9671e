"""The package as people get it: its examples run, and pip installs it, with the program."""

import doctest
import importlib
import importlib.util
import os
import pathlib
import pkgutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zipfile

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


WHEELS = pathlib.Path("/usr/share/python-wheels")  # Debian's setuptools and wheel
STAND_IN = """Metadata-Version: 2.1
Name: pybind11
Version: 2.10.3
"""


def write_wheel_of_pybind11(folder):
    """One that says where the system's headers are."""
    with zipfile.ZipFile(folder / "pybind11-2.10.3-py3-none-any.whl", "w") as wheel:
        wheel.writestr("pybind11/__init__.py", "def get_include():\n    return '/usr/include'\n")
        wheel.writestr("pybind11-2.10.3.dist-info/METADATA", STAND_IN)
        wheel.writestr("pybind11-2.10.3.dist-info/WHEEL",
                       "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("pybind11-2.10.3.dist-info/RECORD", "")


class Installed(unittest.TestCase):
    """By pip, without a network; $POSATTN_BUILD has the compiled parts."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="posattn-venv-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.python = self.folder / "env" / "bin" / "python"
        self.call(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip",
                  self.folder / "env")

    def call(self, *arguments, cwd="/"):
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run([str(part) for part in arguments], cwd=cwd, text=True, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def install(self, *options):
        self.call(self.python, "-m", "pip", "--quiet", "install", "--no-index", "--no-deps", "--no-compile",
                  *options, ".", cwd=ROOT)

    def check_package_and_program(self):
        code = ("import posattn\n"
                "print(posattn.__file__)\n"
                "print(posattn.compile('sort', length=4).model([4, 3, 2, 1]).tolist())\n"
                "print(posattn.load('sort-positional').spec['depth'])\n"
                "print(posattn.__version__)\n")
        place, answer, depth, version = self.call(self.python, "-c", code).splitlines()
        self.assertTrue(place.startswith(str(self.folder)))
        self.assertEqual(answer, "[1.0, 2.0, 3.0, 4.0]")
        self.assertEqual(depth, "4")
        program = self.folder / "env" / "bin" / "posattn"
        self.assertEqual(self.call(program, "--version"), f"posattn {version}\n")
        self.call(program, "compile", "sort", "--length", 4, "-o", "sort.safetensors", cwd=self.folder)
        self.call(program, "verify", "sort.safetensors", cwd=self.folder)
        # What the program looks for lies where it looks.
        self.assertTrue((program.parent / "../share/posattn/bench/peer_torch.py").exists())
        self.call(program, "playground", "--output", "page.html", cwd=self.folder)

    def test_without_build_isolation(self):
        self.install("--no-build-isolation")
        self.check_package_and_program()
        self.call(self.python, "-m", "pip", "--quiet", "uninstall", "--yes", "posattn")
        self.assertFalse((self.folder / "env" / "bin" / "posattn").exists())

    @unittest.skipUnless(list(WHEELS.glob("wheel-*")), "Debian's python3-wheel-whl is not installed")
    def test_with_build_isolation(self):
        write_wheel_of_pybind11(self.folder)
        self.install("--find-links", WHEELS, "--find-links", self.folder)
        self.check_package_and_program()


class Backend(unittest.TestCase):
    def setUp(self):
        sys.path.insert(0, str(ROOT / "python"))
        self.addCleanup(sys.path.remove, str(ROOT / "python"))
        self.backend = importlib.import_module("build_backend")

    def test_cmake_and_ninja_are_asked_for_where_the_system_has_none(self):
        plain = unittest.mock.patch.object(self.backend.build_meta, "get_requires_for_build_wheel",
                                           lambda settings: ["wheel"])
        plain.start()
        self.addCleanup(plain.stop)
        required = self.backend.get_requires_for_build_wheel()
        self.assertEqual(required, ["wheel"])
        with tempfile.TemporaryDirectory() as folder:
            with unittest.mock.patch.dict(os.environ, {"PATH": folder}):
                required = self.backend.get_requires_for_build_wheel()
                self.assertLessEqual({"cmake>=3.25", "ninja"}, set(required))
            old = pathlib.Path(folder) / "cmake"
            old.write_text("#!/bin/sh\necho cmake version 3.18.4\n")
            old.chmod(0o755)
            path = folder + os.pathsep + os.environ["PATH"]
            with unittest.mock.patch.dict(os.environ, {"PATH": path}):
                required = self.backend.get_requires_for_build_wheel()
        self.assertIn("cmake>=3.25", required)
        self.assertNotIn("ninja", required)

    def test_what_an_environment_lacks_is_said(self):
        with unittest.mock.patch.object(self.backend.setuptools, "__version__", "58.1.0"), \
                unittest.mock.patch.object(importlib.util, "find_spec", lambda name: None):
            with self.assertRaisesRegex(SystemExit, "it lacks wheel, 'setuptools>=61.0'\n  HINT: pip install"):
                self.backend.build_wheel("nowhere")
        with self.assertRaisesRegex(SystemExit, "no editable install"):
            self.backend.build_editable("nowhere")


if __name__ == "__main__":
    unittest.main()
