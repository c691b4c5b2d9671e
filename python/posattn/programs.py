"""Parallel programs: from the library, from text, or written as Python functions over words."""

import collections.abc
import html
import inspect
import os

import numpy

from . import _posattn
from .arguments import instance_of, numbers_of, several
from .drawing import Html, Svg
from .errors import Error, mistaken
from .model import Model
from .progress import counted
from .tasks import name_of
from .words import Builder


class Trace(dict):
    """The words of every processor after each round (row 0: at the start), by the words' names:
    arrays [rounds + 1, processors]."""

    def __repr__(self):
        return "\n".join(f"{name}:\n{values}" for name, values in self.items())


class Program:
    """A parallel program at one length, from `compile`."""

    def __init__(self, compiled, **options):
        self._compiled = compiled
        self._options = options
        self._model = None
        facts = compiled.facts()
        self.name, self.task, self.length = facts["name"], facts["task"], facts["length"]
        self.processors, self.rounds = facts["processors"], facts["rounds"]
        self.inputs, self.outputs = facts["inputs"], facts["outputs"]

    @property
    def model(self):
        """The positional Transformer that computes the program exactly."""
        if self._model is None:
            self._model = Model(self._compiled.compiled(**self._options))
        return self._model

    @property
    def text(self):
        """The program's text; empty where it was written in Python."""
        return self._compiled.text

    def run(self, x, level="network"):
        """Its outputs for x, [processors] or [samples, processors] (and a last axis for several
        inputs): in its interpreter ("mpc"), with messages routed ("static"), or by the network,
        in fp32, which refuses numbers that are too large for it.

        >>> import posattn
        >>> posattn.compile("sort", length=4).run([3, 1, 2, 0], level="mpc").tolist()
        [0.0, 1.0, 2.0, 3.0]
        """
        instance_of("level", level, str, "mpc, static or network")
        model = self.model._compiled if level == "network" else None
        return self._compiled.run(x, level, self._options["routing"], model)

    def __call__(self, x):
        return self.run(x)

    def trace(self, x):
        """Every word of every processor after every round.

        >>> import posattn
        >>> posattn.compile("cumulative-sum", length=4).trace([1, 1, 1, 1])["x"].tolist()[-1]
        [1.0, 2.0, 3.0, 4.0]
        """
        names, _, values = self._compiled.trace(x)
        return Trace({name: numpy.ascontiguousarray(values[:, :, index])
                      for index, name in enumerate(names) if " " not in name})

    def verify(self, model=None, *, scales=(1, 10, 1000), samples=10000, seed=0, threads=1,
               in_double=False, any_weights=False):
        """Checks a model (else the compiled one) against the program and its task's exact answer,
        within what rounding can explain, on random inputs and on hard ones: a dict with `holds`, the
        scales and, where something is wrong, the simplest `counter_example` that was found.

        Inputs cannot show that other weights than the compiler's are right: such a model `holds`
        only with `any_weights=True`. `other_weights` says how they differ.

        >>> import posattn
        >>> posattn.compile("sort", length=4).verify(samples=100)["holds"]
        True
        """
        model = self.model if model is None else _model_of(model)
        scales = numbers_of("scales", scales)
        if not scales:
            raise Error("no scales", "at least one")
        return self._compiled.verify(model._compiled, scales, samples, seed,
                                     self._options["routing"], in_double, any_weights, threads)

    def show(self):
        """Which processors each processor reads from, by round: a picture for a notebook."""
        return Svg(self._compiled.svg())

    def steps(self, x):
        """A page that steps through the rounds for one input: every word, what each processor reads,
        and how close the network is."""
        return Html(self._compiled.steps(x, self._options["routing"]))

    def _repr_svg_(self):
        try:
            return self.show()
        except Error:  # too large to be drawn
            return None

    def _repr_html_(self):
        """What it is, its picture and its text, for a notebook."""
        facts = (f"{self.processors} processors, {counted(self.rounds, 'round')}, "
                 f"from {', '.join(self.inputs)} to {', '.join(self.outputs)}")
        text = f"<details><summary>text</summary><pre>{html.escape(self.text)}</pre></details>"
        return (f"<p><b>{html.escape(self.name)}</b>: {html.escape(facts)}</p>"
                f"{self._repr_svg_() or ''}{text if self.text else ''}")

    def __repr__(self):
        return (f"<posattn.Program {self.name}: {self.processors} processors, "
                f"{self.rounds} rounds>")


def compile(program, length=8, *, settings=None, dense=False, sharpness=1024.0, routing="auto",
            pad_to=(), task=None):
    """A program at a length, and the network that computes it (`.model`).

    `program` is a name (`programs()` lists them), the path of a .par file, the text of one, or a
    Python function of a `Builder` that returns the word to output (or several), whose exact answers
    are those of `task`, if it has one. `settings` are the parameters of a text; `dense` writes queries and keys instead of routes, as training and
    PyTorch's modules of trained models have them, with the given `sharpness`. `routing` says how
    messages travel whose destination is data; "attention" looks for the sender in the data.

    >>> import posattn
    >>> def scan(program):
    ...     x = program.input("x")
    ...     distance = 1
    ...     while distance < program.length:
    ...         x.set(x + x.at(lambda i: i - distance))
    ...         distance *= 2
    ...     return x
    >>> posattn.compile(scan, length=5).run([1, 2, 3, 4, 5]).tolist()
    [1.0, 3.0, 6.0, 10.0, 15.0]
    """
    settings = dict(instance_of("settings", {} if settings is None else settings,
                                collections.abc.Mapping, "{name: number}"))
    pad_to = several("pad_to", pad_to, "width, heads, hidden and layers")
    options = dict(dense=dense, sharpness=sharpness, routing=routing, pad_to=pad_to)
    task = name_of(task)
    if isinstance(program, os.PathLike):
        return Program(_posattn.program(os.fspath(program), length, settings), **options)
    if isinstance(program, str):
        read = _posattn.program_from_text if "\n" in program else _posattn.program
        return Program(read(program, length, settings), **options)
    if not callable(program):
        raise mistaken("program", program, "a name, a path, a text or a function")
    if settings:
        raise Error("settings of a Python function", "none: give them to the function itself")
    name = getattr(program, "__name__", "program").strip("<>").replace("_", "-")
    builder = Builder(name, length)
    outputs = program(builder)
    return Program(builder._finish(outputs, task or ""), **options)


def _model_of(model):
    return instance_of("model", model, Model, "a posattn.Model")


def program_of(model):
    """The program that a compiled model carries."""
    notes = _model_of(model).notes
    if "program" not in notes:
        raise Error("a model that carries no program", "one that was compiled from a text")
    settings = dict(part.split("=") for part in notes.get("set", "").split(",") if part)
    program = compile(notes["program"] + "\n", int(notes.get("length", model.length)),
                      settings={name: float(value) for name, value in settings.items()},
                      routing=notes.get("routing", "auto"))
    program._model = model
    return program


def programs():
    """{name: description} of the programs that come with posattn.

    >>> import posattn
    >>> "sort" in posattn.programs()
    True
    """
    return dict(_posattn.programs())


def source(name):
    """The text of a program of the library."""
    return inspect.cleandoc(_posattn.program(name, 8, {}).text)
