"""What goes wrong, in the parts that the command line shows."""


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
        super().__init__(what, expected, hint, code)
        self.what, self.expected, self.hint, self.code = what, expected, hint, code

    def __str__(self):
        text = self.what
        if self.expected:
            text += f"\n  expected: {self.expected}"
        if self.hint:
            text += f"\n  hint: {self.hint}"
        return text


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while runs trained. Those that had begun saved a checkpoint; `folder` is where, and the
    message says how to go on with all of them."""

    def __init__(self, folder, how=None):
        how = how or f"posattn.resume({str(folder)!r})"
        super().__init__(f"interrupted; the checkpoints are saved. To go on:\n  {how}")
        self.folder, self._how = folder, how

    def __reduce__(self):
        return Interrupted, (self.folder, self._how)
