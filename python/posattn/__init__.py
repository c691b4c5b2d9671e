"""Positional Transformers (arXiv 2410.01686) on NumPy arrays: train fleets, compile algorithms into
exact networks, look inside.

>>> import posattn
>>> sort = posattn.compile("sort", length=8)
>>> sort.model([3, 1, 4, 1, 5, 9, 2, 6]).astype(int).tolist()
[1, 1, 2, 3, 4, 5, 6, 9]
"""

from . import _posattn
from .arguments import explain
from .bounds import bound, certify
from .drawing import Html, Svg, plot
from .errors import Error, Interrupted
from .experiments import Comparison, compare, experiments, reproduce, results
from .model import Model, Parameters, from_arrays, from_bytes, load, new, trained_models
from .programs import Program, Trace, compile, program_of, programs, source
from .settings import describe as settings
from .tasks import Task, samples, tasks
from .training import Fleet, Run, load_fleet, resume, train
from .words import Builder, Term, Word, maximum, minimum, relu, where

explain(_posattn)
__version__ = _posattn.__version__

__all__ = [
    "Builder", "Comparison", "Error", "Fleet", "Html", "Interrupted", "Model", "Parameters",
    "Program", "Run", "Svg", "Task", "Term", "Trace", "Word", "bound", "certify", "compare",
    "compile", "experiments", "from_arrays", "from_bytes", "load", "load_fleet", "maximum",
    "minimum", "new", "plot", "presets", "program_of", "programs", "relu", "reproduce",
    "results", "resume", "samples", "settings", "source", "tasks", "train", "trained_models", "where",
]


def presets():
    """{name: description} of the architectures.

    >>> import posattn
    >>> "positional" in posattn.presets()
    True
    """
    return dict(_posattn.presets())
