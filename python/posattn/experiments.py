"""The paper's experiments, and your own: reproduce, read, compare."""

import os

from . import _posattn
from .arguments import function_of, path_of, several, threads_of
from .background import interruptible
from .drawing import Svg
from .errors import Error, Interrupted
from .progress import Progress
from .tasks import name_of


def frame(columns):
    """The columns as a pandas frame where pandas is installed, else as they are."""
    try:
        import pandas
    except ImportError:
        return columns
    return pandas.DataFrame(columns)


def experiments():
    """{name: title} of the paper's experiments.

    >>> import posattn
    >>> posattn.experiments()["value-range"]
    'Loss inside and outside the training range'
    """
    return dict(_posattn.experiments())


def _question(experiment, quick, epochs, precision):
    return _posattn.Question(path_of("experiment", experiment), quick, epochs, precision)


def reproduce(experiment, *, results="results", quick=False, epochs=None, tasks=(), lines=(),
              seeds=(), values=(), device="", precision="", threads=0, callback=None, progress=None):
    """Trains the runs of an experiment (a name, or a TOML file) that the folder `results` does not
    have yet, and draws its figure, which is returned as a picture. Ctrl-C saves checkpoints; the
    same call goes on. `results` and `compare` read what is there."""
    question = _question(experiment, quick, epochs, precision)
    function_of("callback", callback)
    tasks = [name_of(task) for task in several("tasks", tasks, "a list of tasks")]
    lines = several("lines", lines, "a list of names")
    seeds = several("seeds", seeds, "a list of whole numbers")
    values = several("values", values, "a list of numbers")
    stop = _posattn.StopFlag()
    bar = Progress(str(experiment), progress)

    def handle(kind, what):
        if kind == "notice":
            print(what)
            return
        bar.update(what["step"], what["steps"])
        if callback is not None:
            callback(what)

    def work(report):
        return _posattn.reproduce(question, tasks, lines, seeds, values, device, results,
                                  threads_of(threads), stop, report)

    try:
        summary = interruptible(work, stop, handle)
    except KeyboardInterrupt:
        raise Interrupted(results, "the same posattn.reproduce(...)") from None
    finally:
        bar.close()
    if summary["failures"]:
        folder, message = summary["failures"][0]
        raise Error(f"{len(summary['failures'])} of {summary['runs']} runs failed", "",
                    f"{folder}: {message}")
    path = os.fspath(summary["svg"])
    if path in ("", "."):
        return None
    with open(path, encoding="utf-8") as file:
        return Svg(file.read())


def results(experiment, *, results="results", quick=False, epochs=None, precision=""):
    """What the runs of an experiment gave, one row for each run and x: task, line, split, x, seed,
    value. A pandas frame where pandas is installed, else a dict of columns."""
    return frame(_posattn.results(_question(experiment, quick, epochs, precision), results))


class Comparison:
    """Test points compared with the published ones: `points` of them, `agreeing`, whether that is 90 %
    (`agrees`), and a row for each in `table`."""

    def __init__(self, facts):
        self.with_what = facts["with"]
        self.points, self.agreeing, self.agrees = facts["points"], facts["agreeing"], facts["agrees"]
        self.table = frame(facts["columns"])

    def __repr__(self):
        return f"<{self.agreeing} of {self.points} points agree with {self.with_what}>"


def compare(experiment, *, results="results", other=None, quick=False, epochs=None, precision=""):
    """The results of an experiment compared with the published ones, or with those of `other`, another
    results folder."""
    return Comparison(_posattn.compare(_question(experiment, quick, epochs, precision), results,
                                       other))
