"""What goes wrong, in the parts that the command line shows."""

import re


def _readable(text, longest=500):
    """A part of a message, whatever it quotes of what a user gave: signs that can be printed, and of
    a long word its ends."""
    text = "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1]
                   for sign in text[:10 * longest])
    text = re.sub(r"(\S{40})\S{60,}(\S{60})", r"\1...\2", text)
    return text if len(text) <= longest else text[:longest] + "..."


class Error(ValueError):
    """Something a user can mend: `what` is the thing and its value, `expected` what would have been
    right, `hint` what to do (the last two may be empty), `code` the program's exit code for it.

    >>> import posattn
    >>> try:
    ...     posattn.compile("srot", length=8)
    ... except posattn.Error as error:
    ...     print(error.what, "|", error.hint)
    unknown program 'srot' | did you mean 'sort'?
    """

    def __init__(self, what, expected="", hint="", code=1):
        what, expected = _readable(what), _readable(expected, 2000)
        super().__init__(what, expected, hint, code)
        self.what, self.expected, self.hint, self.code = what, expected, hint, code

    def __str__(self):
        text = self.what
        if self.expected:
            text += f"\n  expected: {self.expected}"
        if self.hint:
            text += f"\n  hint: {self.hint}"
        return text


class ArgumentError(Error, TypeError):
    """An argument of the wrong kind."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while runs trained. Those that had begun saved a checkpoint; `folder` is where, and the
    message says how to go on with all of them."""

    def __init__(self, folder, how=None):
        how = how or f"posattn.resume({str(folder)!r})"
        super().__init__(f"interrupted; the checkpoints are saved. To go on:\n  {how}")
        self.folder, self._how = folder, how

    def __reduce__(self):
        return Interrupted, (self.folder, self._how)


def shown(value, longest=60):
    """A value in a message, with its type: short, whatever it holds."""
    if value is None:
        return "None"
    kind = type(value).__name__
    if not isinstance(value, (bool, int, float, str)):
        return f"an object of type {kind}"
    text = repr(value[:longest]) if isinstance(value, str) else repr(value)
    if max(len(text), len(value) if isinstance(value, str) else 0) > longest:
        text = text[:longest] + "..."
    return f"{text} ({kind})"


def mistaken(name, value, expected):
    """The error of an argument of the wrong kind."""
    return ArgumentError(f"{name}: {shown(value)}", expected, code=2)


_FLAG = re.compile(r"(?<![^\s(])--([a-z][a-z-]*)(?: (-?\d[\d.]*|[A-Z]+|'[^']*'|[a-z](?![\w-])))?")


def _as_arguments(text):
    """The library speaks of the program's flags (--samples 3); here they are arguments (samples=3).
    A whole command stays as it is."""
    if re.search(r"\bposattn [a-z]", text):
        return text

    def argument(flag):
        name = {"from": "from_"}.get(flag[1], flag[1].replace("-", "_"))
        return name if flag[2] is None else f"{name}={flag[2]}"

    return _FLAG.sub(argument, text)


def of_library(what, expected, hint, code):
    """What the compiled half raises."""
    return Error(_as_arguments(what), _as_arguments(expected), _as_arguments(hint), code)
