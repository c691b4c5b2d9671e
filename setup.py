"""The compiled module and the program, by CMake in build/release; or as they are in $POSATTN_BUILD."""

import filecmp
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
SCRATCH = ROOT / "build" / "pip"  # not beside the sources


def run(*command):
    if subprocess.run(list(map(str, command))).returncode != 0:
        raise SystemExit("error: posattn could not be built; the reason stands above\n"
                         "  HINT: scripts/install_packages build installs what its C++ needs on Debian")


def pybind11_option():
    """The headers of pybind11's Python package, where there is one; else CMake finds the system's.
    They are copied, because pip removes an isolated environment and CMake's cache stays."""
    try:
        import pybind11
    except ImportError:
        return []
    source, target = pathlib.Path(pybind11.get_include()), SCRATCH / "include"
    for header in (source / "pybind11").rglob("*.h"):
        copy = target / header.relative_to(source)
        if not copy.exists() or not filecmp.cmp(header, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(header, copy)
    return [f"-DPOSATTN_PYBIND11={target}"]


def configure(build):
    # A virtual environment has the headers of the interpreter that it was made from.
    python = getattr(sys, "_base_executable", sys.executable)
    options = ["-DPOSATTN_PYTHON=ON", f"-DPython_EXECUTABLE={python}", *pybind11_option()]
    cache = build / "CMakeCache.txt"
    if not cache.exists():
        options += ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DPOSATTN_TESTS=OFF"]
    if shutil.which("ninja") and (not cache.exists() or "CMAKE_GENERATOR:INTERNAL=Ninja" in cache.read_text()):
        options.append("-DCMAKE_MAKE_PROGRAM=" + shutil.which("ninja"))  # an older one may be gone
    run("cmake", "-S", ROOT, "-B", build, *options)


class CMakeModule(build_ext):
    def build_extension(self, extension):
        build = pathlib.Path(os.environ.get("POSATTN_BUILD", ROOT / "build" / "release"))
        if "POSATTN_BUILD" not in os.environ:
            configure(build)
        run("cmake", "--build", build, "--target", "posattn_python", "posattn_cli")
        name = "_posattn" + sysconfig.get_config_var("EXT_SUFFIX")
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(build / "python" / "posattn" / name, target)
        shutil.copytree(ROOT / "models", target.parent / "models", dirs_exist_ok=True)

        # The program is a file of the environment: bin/posattn, and in share/ what it looks for.
        program = SCRATCH / "program"
        shutil.rmtree(program, ignore_errors=True)
        run("cmake", "--install", build, "--component", "program", "--strip", "--prefix", program)
        self.distribution.data_files = [
            (str(file.parent.relative_to(program)), [str(file)])
            for file in sorted(program.rglob("*")) if file.is_file()]


SCRATCH.mkdir(parents=True, exist_ok=True)
version = re.search(r"project\(posattn VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
setup(version=version.group(1), ext_modules=[Extension("posattn._posattn", [])],
      cmdclass={"build_ext": CMakeModule},
      options={"build": {"build_base": str(SCRATCH)}, "egg_info": {"egg_base": str(SCRATCH)}})
