"""Settings of runs: Python's values as the texts that the library reads."""

import os

from . import _posattn
from .errors import Error
from .tasks import Task


def _text(name, value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float, os.PathLike)):
        return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return _text(name, value.item())
    if isinstance(value, (list, tuple, range)):
        return ",".join(_text(name, item) for item in value)
    raise Error(f"{name} = {value!r}", "a number, a text, True or False, or a list of them")


def given(**settings):
    """[(name, text)] of the settings that are not None; `mlp_width` is mlp-width."""
    if isinstance(settings.get("task"), Task):
        settings["task"] = settings["task"].name
    return [(name.replace("_", "-"), _text(name, value))
            for name, value in settings.items() if value is not None]


def describe():
    """{name: (type, default, meaning)} of every setting of `train`.

    >>> import posattn
    >>> posattn.settings()["batch"]
    ('integer', '1000', 'samples per step')
    """
    return {name.replace("-", "_"): (kind, default, meaning)
            for name, kind, default, meaning in _posattn.settings()}
