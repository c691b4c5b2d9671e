"""Generalisation bounds of a trained model, and the measured gap."""

import json
import os

from . import _posattn
from .background import interruptible
from .arguments import path_of, threads_of
from .errors import Error, shown
from .model import Model, load
from .progress import Progress
from .training import Run


def _folder(run):
    """The folder of a run, or '' for a model alone."""
    if isinstance(run, Run):
        return run.folder
    if isinstance(run, Model):
        return ""
    path = path_of("run", run)
    return path if os.path.isdir(path) else ""


def bound(run, *, samples=None, range=None, clip=1.0, delta=0.05, fresh_samples=100_000, threads=1):
    """Bounds on |risk - training loss| by norms and by the number of parameters, factor by factor,
    and of a run the measured gap: the dict that `posattn bound --json` prints for a model
    (docs/files.md). `run` is a run, its folder, or a model with its number of `samples`.

    >>> import posattn
    >>> found = posattn.bound(posattn.new(task="sort", length=4), samples=30000)
    >>> found["by_norms"]["log10"] > found["by_count"]["log10"]
    True
    """
    folder = _folder(run)
    model = run if isinstance(run, Model) else run.model if isinstance(run, Run) else load(run)
    if model is None:
        raise Error(f"{run!r} has no model", "a run that came to its end")
    if samples is None and not folder:
        raise Error("a bound of a model without the size of its training set", "samples=m",
                    "a run, or its folder, has its own", code=2)
    return json.loads(_posattn.bound(model._compiled, folder, samples, range, clip, delta,
                                     fresh_samples, threads))


def certify(run, *, clip=1.0, delta=0.05, steps=5000, draws=20_000, threads=0, progress=None):
    """A PAC-Bayes certificate of a run (or its folder): a bound on the risk of a noisy version of
    its network, proved by the training data; the dict of `posattn certify --json`."""
    folder = _folder(run)
    if not folder:
        raise Error(f"{shown(run)} is no run",
                    "a run or its folder: a certificate needs its training set and first weights")
    stop = _posattn.StopFlag()
    bar = Progress("certify", progress)

    def work(report):
        return _posattn.certify(folder, clip, delta, steps, draws, threads_of(threads),
                                stop, report)

    try:
        return json.loads(interruptible(work, stop, lambda _, step: bar.update(step, steps)))
    finally:
        bar.close()
