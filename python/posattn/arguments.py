"""Arguments of the wrong kind: one message that names them, wherever they are noticed."""

import collections.abc
import functools
import numbers
import operator
import os
import re

import numpy

from .errors import ArgumentError, mistaken, shown


def path_of(name, value):
    """A path as text (or bytes, where it was)."""
    if not isinstance(value, (str, bytes, os.PathLike)) or "\0" in os.fsdecode(value):
        raise mistaken(name, value, "a path")
    return os.fspath(value)


def several(name, value, expected):
    """A list of what was given in whatever form; a text alone is one of it."""
    if isinstance(value, str):
        return [value]
    try:
        return list(value)
    except TypeError:
        raise mistaken(name, value, expected) from None


def numbers_of(name, values):
    """A list of floats."""
    found = several(name, values, "a list of numbers")
    for value in found:
        if not _is_number(value):
            raise mistaken(name, value, "numbers")
    return [float(value) for value in found]


def function_of(name, value):
    """A function, or None."""
    if value is not None and not callable(value):
        raise mistaken(name, value, "a function")
    return value


def instance_of(name, value, kind, expected):
    if not isinstance(value, kind):
        raise mistaken(name, value, expected)
    return value


def fitting(kind, **values):
    """Raises for the first that is not of this kind, one of `_KINDS`."""
    for name, value in values.items():
        fits, expected, _ = _KINDS[kind]
        if not fits(value):
            raise mistaken(name, value, expected)


def threads_of(threads):
    """So many, or as many as there are processors."""
    return os.cpu_count() or 1 if isinstance(threads, int) and threads == 0 else threads


def _is_whole(value):
    try:
        return operator.index(value) is not None
    except TypeError:
        return False


def _is_number(value):
    return isinstance(value, numbers.Real) or (
        hasattr(type(value), "__float__") and not getattr(value, "ndim", 0))


def _is_text(value):
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


# The compiled half's types: what fits, and how people call one and several of it.
_KINDS = {
    "int": (_is_whole, "a whole number", "whole numbers"),
    "float": (_is_number, "a number", "numbers"),
    "bool": (lambda value: isinstance(value, (bool, numpy.bool_)), "True or False", "True or False"),
    "str": (_is_text, "a text", "texts"),
    "bytes": (lambda value: isinstance(value, bytes), "bytes", "bytes"),
    "os.PathLike": (lambda value: isinstance(value, (str, bytes, os.PathLike)), "a path", "paths"),
    "function": (callable, "a function", "functions"),
}


def _misfit(kind, value):
    """(the value that does not fit, what would) or None."""
    outer, _, part = kind.rstrip("]").partition("[")
    if outer == "Optional":
        return None if value is None else _misfit(part, value)
    if outer == "List":
        if isinstance(value, str) or not isinstance(value, collections.abc.Sequence):
            return value, "a list of " + _KINDS[part][2] if part in _KINDS else "a list"
        return next(filter(None, (_misfit(part, item) for item in value)), None)
    if outer == "Dict":
        items = [_misfit("str", name) or _misfit("float", item) for name, item in value.items()]
        return next(filter(None, items), None)
    fits, expected, _ = _KINDS.get(kind, (lambda value: True, "", ""))
    return None if fits(value) else (value, expected)


def _beyond(kind, value):
    return kind in ("int", "Optional[int]") and value is not None and not 0 <= value < 2**31


def _explanation(function, given, named):
    """The error that says which argument it was."""
    signature = re.match(r"\w+\((.*)\) ->", function.__doc__ or "")
    parameters = [part.partition(": ")[::2]
                  for part in re.split(r", (?![^\[]*\])", signature[1])] if signature else []
    arguments = {**dict(zip((name for name, _ in parameters), given)), **named}
    for name, kind in parameters:
        found = _misfit(kind, arguments[name])
        if found:
            return mistaken(name, *found)
    for name, kind in parameters:
        if _beyond(kind, arguments[name]):
            return mistaken(name, arguments[name], "a number in its range")
    return ArgumentError(f"arguments of {function.__name__}: " +
                         ", ".join(f"{name}: {shown(value)}" for name, value in arguments.items()),
                         ", ".join(f"{name}: {kind}" for name, kind in parameters), code=2)


def explained(function):
    """The compiled function; where its arguments do not fit, the error says which."""
    @functools.wraps(function)
    def call(*given, **named):
        try:
            return function(*given, **named)
        except TypeError as error:
            if not re.match(r"\w+\(\): incompatible (function|constructor) arguments", str(error)):
                raise
        raise _explanation(function, given, named)

    return call


def explain(module):
    """Has all functions and methods of the compiled half explain themselves, but for `Model.run`,
    whose calls are too short for that."""
    for name, part in list(vars(module).items()):
        if isinstance(part, type):
            for method, function in list(vars(part).items()):
                if type(function).__name__ == "instancemethod" and (name, method) != ("Model", "run"):
                    setattr(part, method, explained(function))
        elif callable(part):
            setattr(module, name, explained(part))
