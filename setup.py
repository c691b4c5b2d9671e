"""The compiled module and the program, by CMake: library and program in build/release, the module in
build/pip; or all three as they are in $POSATTN_BUILD."""

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


def pybind11_option(build):
    """The headers of pybind11's Python package, where there is one; else CMake finds the system's.
    They are copied, because pip removes an isolated environment and CMake's cache stays."""
    try:
        import pybind11
    except ImportError:
        return []
    source, target = pathlib.Path(pybind11.get_include()), build / "include"
    for header in (source / "pybind11").rglob("*.h"):
        copy = target / header.relative_to(source)
        if not copy.exists() or not filecmp.cmp(header, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(header, copy)
    return [f"-DPOSATTN_PYBIND11={target}"]


def build_library():
    """The folder where library and program are built; a build that was there stays as it was configured."""
    build = ROOT / "build" / "release"
    options = []
    cache = build / "CMakeCache.txt"
    if not cache.exists():
        options += ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DPOSATTN_TESTS=OFF", "-DPOSATTN_PYTHON=OFF"]
    if not cache.exists() or "CMAKE_GENERATOR:INTERNAL=Ninja" in cache.read_text():
        options.append("-DCMAKE_MAKE_PROGRAM=" + ninja())
    run("cmake", "-S", ROOT, "-B", build, *options)
    run("cmake", "--build", build, "--target", "posattn", "posattn_cli")
    return build


def ninja():
    """The one of today: that of an isolated environment is gone tomorrow."""
    return shutil.which("ninja") or "ninja"


def build_module(installed):
    """The folder of the module for this interpreter, against the installed library."""
    build = SCRATCH / sysconfig.get_config_var("SOABI")
    # A virtual environment has the headers of the interpreter that it was made from.
    python = getattr(sys, "_base_executable", sys.executable)
    run("cmake", "-S", ROOT / "python", "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={installed}", f"-DPython_EXECUTABLE={python}",
        f"-DCMAKE_MAKE_PROGRAM={ninja()}", *pybind11_option(build))
    run("cmake", "--build", build, "--target", "posattn_python")
    return build


class CMakeModule(build_ext):
    def build_extension(self, extension):
        given = os.environ.get("POSATTN_BUILD")
        library = pathlib.Path(given) if given else build_library()
        installed = SCRATCH / "installed"
        shutil.rmtree(installed, ignore_errors=True)
        run("cmake", "--install", library, "--strip", "--prefix", installed)
        module = library / "python" if given else build_module(installed)

        name = "_posattn" + sysconfig.get_config_var("EXT_SUFFIX")
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module / "posattn" / name, target)
        shutil.copytree(ROOT / "models", target.parent / "models", dirs_exist_ok=True)
        # The program is a file of the environment: bin/posattn, and in share/ what it looks for.
        self.distribution.data_files = [
            (str(file.parent.relative_to(installed)), [str(file)])
            for folder in ("bin", "share") for file in sorted((installed / folder).rglob("*"))
            if file.is_file()]


SCRATCH.mkdir(parents=True, exist_ok=True)
for old in SCRATCH.glob("lib.*"):  # a wheel takes all that lies there
    shutil.rmtree(old)
version = re.search(r"project\(posattn VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
setup(version=version.group(1), ext_modules=[Extension("posattn._posattn", [])],
      cmdclass={"build_ext": CMakeModule},
      options={"build": {"build_base": str(SCRATCH)}, "egg_info": {"egg_base": str(SCRATCH)}})
