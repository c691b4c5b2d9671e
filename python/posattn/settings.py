"""Settings of runs: Python's values as the texts that the library reads."""

import keyword
import os

from . import _posattn
from .errors import mistaken
from .tasks import name_of


def _text(name, value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return _text(name, value.tolist())
    if isinstance(value, (list, tuple, range)):
        return ",".join(_text(name, item) for item in value)
    raise mistaken(name, value, "a number, a text, True or False, or a list of them")


def given(**settings):
    """[(name, text)] of the settings that are not None; `mlp_width` is mlp-width, `from_` is from,
    which Python has as a word of its own."""
    settings["task"] = name_of(settings.get("task"))
    return [(name.removesuffix("_").replace("_", "-"), _text(name, value))
            for name, value in settings.items() if value is not None]


def describe():
    """{name: (type, default, meaning)} of every setting of `train`.

    >>> import posattn
    >>> posattn.settings()["batch"]
    ('integer', '1000', 'samples per step')
    """
    return {name.replace("-", "_") + "_" * keyword.iskeyword(name): (kind, default, meaning)
            for name, kind, default, meaning in _posattn.settings()}
