"""What theory promises of a trained model, beside what happened."""

import json
import os

from . import _posattn
from .background import interruptible
from .errors import Error
from .model import Model, load
from .progress import StepBar
from .training import Run


def _folder(run):
    """The folder of a run, or '' for a model alone."""
    if isinstance(run, Run):
        return run.folder
    if isinstance(run, Model):
        return ""
    return run if os.path.isdir(run) else ""


def bound(run, *, samples=None, range=None, clip=1.0, delta=0.05, fresh_samples=100_000, threads=1):
    """Bounds on |risk - training loss| by norms and by the number of parameters, factor by factor,
    and of a run the measured gap: the dict that `posattn bound --json` prints for a model
    (docs/commands.md). `run` is a run, its folder, or a model with its number of `samples`.

    >>> import posattn
    >>> found = posattn.bound(posattn.new(task="sort", length=4), samples=30000)
    >>> found["by_norms"]["log10"] > found["by_count"]["log10"]
    True
    """
    model = run if isinstance(run, Model) else run.model if isinstance(run, Run) else load(run)
    if model is None:
        raise Error(f"{run!r} has no model", "a run that came to its end")
    return json.loads(_posattn.bound(model._compiled, _folder(run), samples, range, clip, delta,
                                     fresh_samples, threads))


def certify(run, *, clip=1.0, delta=0.05, steps=5000, draws=20_000, threads=0, progress=None):
    """A PAC-Bayes certificate of a run (or its folder): a bound on the risk of a noisy version of
    its network, proved by the training data; the dict of `posattn certify --json`."""
    folder = _folder(run)
    if not folder:
        raise Error(f"{run!r} is no run",
                    "a run or its folder: a certificate needs its training set and first weights")
    stop = _posattn.StopFlag()
    bar = StepBar("certify", progress)

    def work(report):
        return _posattn.certify(folder, clip, delta, steps, draws, threads or os.cpu_count() or 1,
                                stop, report)

    try:
        return json.loads(interruptible(work, stop, lambda _, step: bar.update(step, steps)))
    finally:
        bar.close()
