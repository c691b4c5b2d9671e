"""The compiled module by CMake, in build/release; or what is built in $POSATTN_BUILD."""

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


class CMakeModule(build_ext):
    def build_extension(self, extension):
        build = pathlib.Path(os.environ.get("POSATTN_BUILD", ROOT / "build" / "release"))
        if "POSATTN_BUILD" not in os.environ:
            # A virtual environment has the headers of the interpreter that it was made from.
            python = getattr(sys, "_base_executable", sys.executable)
            options = ["-DPOSATTN_PYTHON=ON", f"-DPython_EXECUTABLE={python}"]
            if not (build / "CMakeCache.txt").exists():
                options += ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DPOSATTN_TESTS=OFF"]
            subprocess.run(["cmake", "-S", ROOT, "-B", build, *options], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "posattn_python"], check=True)
        name = "_posattn" + sysconfig.get_config_var("EXT_SUFFIX")
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(build / "python" / "posattn" / name, target)
        shutil.copytree(ROOT / "models", target.parent / "models", dirs_exist_ok=True)


scratch = ROOT / "build" / "pip"  # not beside the sources
scratch.mkdir(parents=True, exist_ok=True)
version = re.search(r"project\(posattn VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
setup(version=version.group(1), ext_modules=[Extension("posattn._posattn", [])],
      cmdclass={"build_ext": CMakeModule},
      options={"build": {"build_base": str(scratch)}, "egg_info": {"egg_base": str(scratch)}})
