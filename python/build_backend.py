"""What pip builds the package with: setuptools, CMake and Ninja where the system has none, and one
clear error where --no-build-isolation finds too little."""

import importlib.util
import re
import shutil
import subprocess

import setuptools
from setuptools import build_meta
from setuptools.build_meta import build_sdist, get_requires_for_build_sdist  # noqa: F401  hooks of pip

OLDEST_CMAKE = (3, 25)
OLDEST_SETUPTOOLS = (61, 0)


def _numbers(version):
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _missing_tools():
    cmake = shutil.which("cmake")
    said = subprocess.run([cmake, "--version"], capture_output=True, text=True).stdout if cmake else ""
    return ((["cmake>=" + ".".join(map(str, OLDEST_CMAKE))] if _numbers(said) < OLDEST_CMAKE else [])
            + ([] if shutil.which("ninja") else ["ninja"]))


def _check_environment():
    own_wheels = _numbers(setuptools.__version__) >= (70, 1)
    missing = [] if own_wheels or importlib.util.find_spec("wheel") else ["wheel"]
    if _numbers(setuptools.__version__) < OLDEST_SETUPTOOLS:
        missing.append("'setuptools>=" + ".".join(map(str, OLDEST_SETUPTOOLS)) + "'")
    missing += _missing_tools()
    if missing:
        raise SystemExit(f"error: this environment cannot build posattn: it lacks {', '.join(missing)}\n"
                         f"  HINT: pip install {' '.join(missing)}, or leave out --no-build-isolation")


def get_requires_for_build_wheel(config_settings=None):
    return build_meta.get_requires_for_build_wheel(config_settings) + _missing_tools()


def prepare_metadata_for_build_wheel(*arguments, **named):
    _check_environment()
    return build_meta.prepare_metadata_for_build_wheel(*arguments, **named)


def build_wheel(*arguments, **named):
    _check_environment()
    return build_meta.build_wheel(*arguments, **named)


def build_editable(*_, **__):
    raise SystemExit("error: posattn has no editable install\n"
                     "  HINT: PYTHONPATH=build/release/python imports the sources as they are")
