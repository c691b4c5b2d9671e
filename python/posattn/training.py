"""Fleets of runs."""

import html
import itertools
import json
import numbers
import os
import pathlib
import re
import secrets
import shutil
import sys
import tempfile
import weakref

import numpy

from . import _posattn
from .arguments import function_of, instance_of, path_of, several, threads_of
from .background import interruptible
from .drawing import plot, plot_on
from .errors import Error, Interrupted, mistaken
from .model import load
from .progress import FleetProgress, counted
from .settings import given


class Run:
    """One run of a fleet: one architecture and seed, in its folder."""

    def __init__(self, folder, keep=None):
        self.folder = _folder_of(folder)
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
        self._check_folder()
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
        instance_of("metric", metric, str, "a name")
        instance_of("axis", axis, str, "a name")
        instance_of("epoch", epoch, (int, numpy.integer, type(None)), "a whole number")
        chosen = numpy.array([kind == (axis, metric)
                              for kind in zip(rows["axis"], rows["metric"])], dtype=bool)
        if not chosen.any():
            known = sorted({f"{metric} along {axis}"
                            for axis, metric in zip(rows["axis"], rows["metric"])})
            raise Error(f"no tests of {metric} along {axis}", ", ".join(known) or "tests")
        epochs = rows["epoch"][chosen]
        at = epochs == (epochs[-1] if epoch is None else epoch)
        if not at.any():
            raise Error(f"no tests after epoch {epoch}",
                        "one of " + ", ".join(map(str, sorted(set(epochs.tolist())))))
        return rows["x"][chosen][at], rows["value"][chosen][at]

    def _read(self):
        if self._history is None:
            self._check_folder()
            self._history = _posattn.history(self.folder / "metrics.jsonl")
        return self._history

    def _check_folder(self):
        if not self.folder.exists():
            raise Error(f"{self!r}: its folder is gone", "a run whose folder is there",
                        "out=FOLDER, or fleet.save(FOLDER), keeps runs")

    def __repr__(self):
        why = f" ({self.message.splitlines()[0]})" if self.message else ""
        return f"<run {self.architecture}, seed {self.seed}: {self.status}, epoch {self.epoch}{why}>"


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
        self.folder = _folder_of(folder)
        if names is None:
            there = {path.parent.name for path in self.folder.glob("*/manifest.json")}
            listed = [name for name in _listed_runs(self.folder) if name in there]
            names = listed + sorted(there.difference(listed), key=_natural)
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
        the smallest to the largest. Matplotlib draws it where it is installed, else gnuplot."""
        return plot(self.tests(metric, axis), **_look(metric, axis))

    def plot(self, metric="mse", axis="c", *, ax=None):
        """The same on Matplotlib axes, which are returned: `ax`, or new ones."""
        return plot_on(ax, self.tests(metric, axis), **_look(metric, axis))

    def save(self, folder):
        """Copies the runs to a folder of your own."""
        target = _folder_of(folder)
        if target.resolve() == self.folder.resolve():
            return self
        listed = {}
        for run in self.runs:
            run._check_folder()
            shutil.copytree(run.folder, target / run.folder.name, dirs_exist_ok=True)
            listed[run.folder.name] = _settings_of(run)
        _list_runs(target, listed)
        return Fleet(target, list(listed))

    def __repr__(self):
        lines = "".join(f"\n  {run!r}" for run in self.runs)
        return f"<fleet of {counted(len(self), 'run')} in {self.folder}{lines}>"

    def _repr_html_(self):
        """A table of the runs, for a notebook."""
        most = 20
        rows = [("architecture", "seed", "status", "epoch", "loss", "validation loss")]
        for run in self.runs[:most]:
            losses = [run.history[name] for name in ("train_loss", "validation_loss")] \
                if run.folder.exists() else []
            rows.append((run.architecture, run.seed, run.status, run.epoch,
                         *(_last_number(values) for values in losses)))
        lines = ["".join(f"<td>{html.escape(str(part))}</td>" for part in row) for row in rows]
        lines[0] = lines[0].replace("td>", "th>")
        if len(self) > most:
            lines.append(f'<td colspan="{len(rows[0])}">and {len(self) - most} more</td>')
        return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _look(metric, axis):
    words, greatest = _posattn.metric_axis(metric)
    return dict(title=f"{metric} against {axis}", x_label=axis, y_label=words, greatest=greatest)


def _last_number(values):
    """The last that was measured."""
    measured = values[numpy.isfinite(values)]
    return f"{measured[-1]:.3g}" if len(measured) else ""


def _natural(name):
    """Seed 2 before seed 10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _settings_of(run):
    return given(**{name.replace("-", "_"): value for name, value in run.config.items()})


# The runs that belong together, in their order, with their settings: those that have not begun when
# a training is stopped have no folder yet.
_LIST = "fleet.json"


def _list_runs(folder, runs):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    listed = _listed_runs(folder)
    for name, settings in runs.items():
        listed[name] = [list(pair) for pair in settings]
    unfinished = folder / f".{_LIST}.{secrets.token_hex(8)}"
    unfinished.write_text(json.dumps({"runs": listed}, indent=1) + "\n")
    unfinished.replace(folder / _LIST)


def _listed_runs(folder):
    """{folder's name: settings}; nothing where the list is missing or not one of ours."""
    try:
        runs = json.loads((pathlib.Path(folder) / _LIST).read_text())["runs"]
        return {str(name): [(str(key), str(value)) for key, value in settings]
                for name, settings in runs.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


_MOST_SEEDS = 10_000  # as in a list of the program


def _seeds_of(seeds):
    if isinstance(seeds, numbers.Integral):
        return [seeds]
    expected = "a whole number, or a list of them"
    if isinstance(seeds, str):
        raise mistaken("seeds", seeds, expected)
    try:
        found = list(itertools.islice(seeds, _MOST_SEEDS + 1))
    except TypeError:
        raise mistaken("seeds", seeds, expected) from None
    if len(found) > _MOST_SEEDS:
        raise Error("too many seeds", f"at most {_MOST_SEEDS}", code=2)
    return found


def _folder_of(folder):
    return pathlib.Path(os.fsdecode(path_of("folder", folder)))


def load_fleet(folder):
    """The runs in a folder, those of the program too."""
    fleet = Fleet(folder)
    if not fleet.runs:
        raise Error(f"no runs in '{fleet.folder}'", "a folder with folders of runs")
    return fleet


def train(task="cumulative-sum", architecture="positional", seeds=None, *, device="auto", out=None,
          resume=False, threads=0, callback=None, progress=None, **settings):
    """Trains every architecture with every seed and returns the fleet.

    `task` is a name or a `Task`; settings are those of `posattn train` (`posattn.settings()` lists
    them), with _ for -. Runs go to `out`; without it to a folder that lives as long as the fleet.
    `callback(progress)` gets a dict after every epoch of every run; what it raises stops the fleet,
    as Ctrl-C does, with a checkpoint of every run that has begun; `resume` goes on with all. Steps and
    losses are shown on standard error: as a bar in a terminal and in a notebook, elsewhere as a line every
    five seconds. `progress=False` shows nothing, and True also the end of short work. A run that diverges or fails has that status, the others go on; an
    error is raised where all fail. `from_=FILE` starts with the weights of a model.
    """
    architectures = several("architecture", architecture, "a name, or a list of them")
    if seeds is None:
        seeds = settings.pop("seed", 0)
    elif "seed" in settings:
        raise Error("seed and seeds", "one of them")
    seeds = _seeds_of(seeds)
    if not architectures or not seeds:
        raise Error("no architecture or no seed", "at least one of each")
    runs = [given(task=task, architecture=name, seed=seed, device=device, **settings)
            for name in architectures for seed in seeds]
    function_of("callback", callback)
    instance_of("resume", resume, int, "True or False")
    if out is None and resume:
        raise Error("resume without a folder", "out=FOLDER")
    folder = tempfile.mkdtemp(prefix="posattn-") if out is None else path_of("out", out)
    keep = _Temporary(folder) if out is None else None
    return _train(runs, folder, resume, threads, callback, progress, keep)


def resume(folder, *, epochs=None, threads=0, callback=None, progress=None):
    """Goes on with the runs of a folder from their checkpoints, also to more epochs. A task of your
    own must be defined again first."""
    function_of("callback", callback)
    instance_of("epochs", epochs, (int, numpy.integer, type(None)), "a whole number")
    listed = _listed_runs(_folder_of(folder))
    begun = {run.folder.name: _settings_of(run) for run in Fleet(folder)}
    if not listed and not begun:
        load_fleet(folder)  # says that there are none
    runs = []
    for settings in {**listed, **begun}.values():
        chosen = dict(settings)
        if epochs is not None:
            chosen["epochs"] = str(epochs)
        runs.append(list(chosen.items()))
    return _train(runs, folder, True, threads, callback, progress, None)


class _Temporary:
    """Removes a folder when nobody in this process has this object any more."""

    def __init__(self, folder):
        self.keep = weakref.finalize(self, _remove, folder, os.getpid()).detach

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise Error("a fleet in a temporary folder cannot go to another process",
                    "a folder that stays", "train with out=FOLDER")


def _remove(folder, process):
    if os.getpid() == process:  # and not in one that was forked from it
        shutil.rmtree(folder, ignore_errors=True)


def _train(runs, folder, resume, threads, callback, progress, keep):
    stop = _posattn.StopFlag()
    bar = FleetProgress(len(runs), progress)
    epochs = {}  # of each run, as last reported
    raised = []  # by the callback

    def list_runs():
        named = [(dict(settings), settings) for settings in runs]
        _list_runs(folder, {f"{one['architecture']}-seed{one['seed']}": settings
                            for one, settings in named})

    def handle(kind, what):
        if kind == "notice":
            print(what)
            return
        if not epochs:  # the settings are in order: training has begun
            list_runs()
        bar.report(what)
        before = epochs.setdefault(what["run"], what["epoch"])
        if callback is None or what["epoch"] == before:
            return
        epochs[what["run"]] = what["epoch"]
        try:
            callback(what)
        except BaseException as error:
            raised.append(error)
            raise

    def work(report):
        return _posattn.train(runs, folder, resume, threads_of(threads), stop, report)

    try:
        outcomes = interruptible(work, stop, handle)
    except BaseException as error:
        stopped = isinstance(error, KeyboardInterrupt)
        if keep is not None and (stopped or raised):
            keep.keep()  # the checkpoints are worth keeping
        if stopped:
            list_runs()
            raise Interrupted(folder) from None
        if raised:
            note = f"the checkpoints are saved: posattn.resume({str(folder)!r}) goes on"
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(note)
            else:
                print(note, file=sys.stderr)
        raise
    finally:
        bar.close()
    fleet = Fleet(folder, [pathlib.Path(outcome["folder"]).name for outcome in outcomes], keep)
    if all(outcome["status"] == "failed" for outcome in outcomes):
        raise Error(outcomes[0]["message"], hint="every run failed")
    return fleet
