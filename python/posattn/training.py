"""Fleets of runs."""

import json
import os
import pathlib
import shutil
import tempfile
import weakref

import numpy

from . import _posattn
from .background import interruptible
from .drawing import plot
from .errors import Error, Interrupted
from .model import load
from .progress import EpochBar
from .settings import given


class Run:
    """One run of a fleet: one architecture and seed, in its folder."""

    def __init__(self, folder, keep=None):
        self.folder = pathlib.Path(folder)
        self._keep = keep  # what removes a temporary folder when nobody needs it any more
        self._history = None
        facts = _posattn.manifest(self.folder / "manifest.json")
        self.status, self.message, self.epoch = facts["status"], facts["message"], facts["epoch"]
        self.config = json.loads(facts["configuration"])
        self.task, self.architecture = self.config["task"], self.config["architecture"]
        self.seed = self.config["seed"]

    @property
    def model(self):
        """The model as the run left it; None where it did not come to its end."""
        path = self.folder / "model.safetensors"
        return load(path) if path.exists() else None

    @property
    def history(self):
        """Arrays by epoch: epoch, step, train_loss, validation_loss (NaN where it was not measured),
        lr, seconds."""
        return {name: values for name, values in self._read().items() if name != "tests"}

    def tests(self, metric="mse", axis="c", epoch=None):
        """(x, values): what the run gave in tests along an axis, after an epoch (else the last)."""
        rows = self._read()["tests"]
        chosen = numpy.array([kind == (axis, metric)
                              for kind in zip(rows["axis"], rows["metric"])], dtype=bool)
        if not chosen.any():
            known = sorted({f"{metric} along {axis}"
                            for axis, metric in zip(rows["axis"], rows["metric"])})
            raise Error(f"no tests of {metric} along {axis}", ", ".join(known) or "tests")
        epochs = rows["epoch"][chosen]
        at = epochs == (epochs[-1] if epoch is None else epoch)
        return rows["x"][chosen][at], rows["value"][chosen][at]

    def _read(self):
        if self._history is None:
            self._history = _posattn.history(self.folder / "metrics.jsonl")
        return self._history

    def __repr__(self):
        return f"<run {self.architecture}, seed {self.seed}: {self.status}, epoch {self.epoch}>"


class Fleet:
    """The runs of a training, in their order: a sequence of `Run`.

    >>> import posattn
    >>> fleet = posattn.train(task="sort", length=3, seeds=range(2), epochs=2, samples=64, batch=16,
    ...                       width=8, mlp_width=8, test_samples=16)
    >>> [run.seed for run in fleet]
    [0, 1]
    >>> fleet[0].history["train_loss"].shape
    (2,)
    >>> x, errors = fleet.tests("mse")["positional"]
    >>> errors.shape
    (2, 10)
    """

    def __init__(self, folder, names=None, keep=None):
        self.folder = pathlib.Path(folder)
        if names is None:
            names = sorted(path.parent.name for path in self.folder.glob("*/manifest.json"))
        self.runs = [Run(self.folder / name, keep) for name in names
                     if (self.folder / name / "manifest.json").exists()]

    def __len__(self):
        return len(self.runs)

    def __getitem__(self, index):
        return self.runs[index]

    def __iter__(self):
        return iter(self.runs)

    def tests(self, metric="mse", axis="c"):
        """{architecture: (x, values [runs, x])} of the finished runs' last tests."""
        found = {}
        for run in self.runs:
            if run.status != "done":
                continue
            x, values = run.tests(metric, axis)
            found.setdefault(run.architecture, (x, []))[1].append(values)
        return {name: (x, numpy.stack(values)) for name, (x, values) in found.items()}

    def show(self, metric="mse", axis="c"):
        """The last tests of every architecture as a picture: the median of the runs, in a band from
        the smallest to the largest."""
        return plot(self.tests(metric, axis), title=f"{metric} against {axis}", x_label=axis,
                    y_label=metric)

    def save(self, folder):
        """Copies the runs to a folder of your own."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return load_fleet(folder)

    def __repr__(self):
        lines = "".join(f"\n  {run!r}" for run in self.runs)
        return f"<fleet of {len(self)} runs in {self.folder}{lines}>"


def load_fleet(folder):
    """The runs in a folder, those of the program too."""
    fleet = Fleet(folder)
    if not fleet.runs:
        raise Error(f"no runs in '{os.fspath(folder)}'", "a folder with folders of runs")
    return fleet


def train(task="cumulative-sum", architecture="positional", seeds=None, *, device="auto", out=None,
          resume=False, threads=0, callback=None, progress=None, **settings):
    """Trains every architecture with every seed and returns the fleet.

    `task` is a name or a `Task`; settings are those of `posattn train` (`posattn.settings()` lists
    them), with _ for -. Runs go to `out`; without it to a folder that lives as long as the fleet.
    `callback(progress)` gets a dict after every epoch of every run; what it raises stops the fleet,
    as Ctrl-C does, with a checkpoint of every run. `progress` forces or forbids the bar, which
    needs tqdm. A run that diverges or fails has that status; the others go on.
    """
    architectures = [architecture] if isinstance(architecture, str) else list(architecture)
    if seeds is None:
        seeds = [settings.pop("seed", 0)]
    seeds = [seeds] if isinstance(seeds, int) else list(seeds)
    if not architectures or not seeds:
        raise Error("no architecture or no seed", "at least one of each")
    runs = [given(task=task, architecture=name, seed=seed, device=device, **settings)
            for name in architectures for seed in seeds]
    if out is None and resume:
        raise Error("resume without a folder", "out=FOLDER")
    folder = tempfile.mkdtemp(prefix="posattn-") if out is None else out
    keep = _Temporary(folder) if out is None else None
    return _train(runs, folder, resume, threads, callback, progress, keep)


def resume(folder, *, epochs=None, threads=0, callback=None, progress=None):
    """Goes on with the runs of a folder from their checkpoints, also to more epochs. A task of your
    own must be defined again first."""
    runs = []
    for run in load_fleet(folder):
        settings = {name.replace("-", "_"): value for name, value in run.config.items()}
        if epochs is not None:
            settings["epochs"] = epochs
        runs.append(given(**settings))
    return _train(runs, folder, True, threads, callback, progress, None)


class _Temporary:
    """Removes a folder when nobody has this object any more."""

    def __init__(self, folder):
        self.keep = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True).detach


def _train(runs, folder, resume, threads, callback, progress, keep):
    stop = _posattn.StopFlag()
    bar = EpochBar(len(runs), progress)

    def handle(kind, what):
        if kind == "notice":
            print(what)
            return
        bar.update(what)
        if callback is not None:
            callback(what)

    def work(report):
        return _posattn.train(runs, folder, resume, threads or os.cpu_count() or 1, stop, report)

    try:
        outcomes = interruptible(work, stop, handle)
    except KeyboardInterrupt:
        if keep is not None:
            keep.keep()  # the checkpoints are worth keeping
        raise Interrupted(folder) from None
    finally:
        bar.close()
    return Fleet(folder, [pathlib.Path(outcome["folder"]).name for outcome in outcomes], keep)
