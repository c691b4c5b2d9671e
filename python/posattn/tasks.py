"""Tasks: the built-in ones, and your own."""

from . import _posattn
from .arguments import function_of, instance_of
from .errors import mistaken

_defined = {}  # what the library has: name -> functions


def name_of(task):
    """The name under which the library finds a task, however it was given; None stays. Of a `Task`,
    with its own functions: another one may have had the name since, and an unpickled one was never
    there."""
    if task is None or isinstance(task, str):
        return task
    if not isinstance(task, Task):
        raise mistaken("task", task, "a task's name, or a posattn.Task")
    functions = (task.description, task.solve, task.draw, task.pair_classes)
    if _defined.get(task.name) != functions:
        _posattn.define_task(task.name, *functions)
        _defined[task.name] = functions
    return task.name


class Task:
    """A task of your own. `solve(x)` gives the exact answers of a batch: x is [samples, length],
    the answers [samples, length] or [samples, length, columns]. Without `draw` the numbers are
    those of the built-in tasks; with it, `draw(random, samples, length, low, high)` makes them with
    NumPy's generator `random`, as [samples, nodes] or [samples, nodes, columns]. Samples are made
    before training, many at a time; training runs at the engine's speed. x is a copy of the batch,
    which solve may change.

    Samples may have pairs of nodes: `draw` then returns (x, {"pairs": array, "pair_classes": array})
    or one of the two, [samples, nodes, nodes], with several numbers of a pair as a last axis.
    `pair_classes` is the number of classes. `solve` gets the arrays by keyword.

    >>> import numpy, posattn
    >>> task = posattn.Task("from-first", lambda x: x - x[:, :1])
    >>> x, y = posattn.samples(task, length=4, samples=100)
    >>> bool(numpy.allclose(y, x - x[:, :1], atol=1e-6))
    True

    >>> def graph(random, samples, length, low, high):
    ...     edges = numpy.triu(random.integers(0, 2, (samples, length, length)), 1)
    ...     return random.uniform(low, high, (samples, length)), {"pair_classes": edges + edges.swapaxes(1, 2)}
    >>> def degree(x, pair_classes):
    ...     return pair_classes.sum(2)
    >>> task = posattn.Task("degree", degree, graph, pair_classes=2)
    >>> x, y, pairs = posattn.samples(task, length=4, samples=100)
    >>> bool((y == pairs["pair_classes"].sum(2)).all())
    True
    """

    def __init__(self, name, solve, draw=None, description="", *, pair_classes=0):
        if solve is None:
            raise mistaken("solve", solve, "a function")
        self.solve, self.draw = function_of("solve", solve), function_of("draw", draw)
        self.name = name
        self.pair_classes = instance_of("pair_classes", pair_classes, int, "a whole number")
        if not 0 <= self.pair_classes <= 65536:
            raise mistaken("pair_classes", pair_classes, "0 to 65536")
        self.description = instance_of("description", description, str, "a text") or \
            "written in Python"
        name_of(self)

    def __repr__(self):
        return f"<posattn.Task {self.name}>"


def tasks():
    """{name: description} of all tasks, those of your own last.

    >>> import posattn
    >>> "sort" in posattn.tasks()
    True
    """
    return dict(_posattn.tasks())


def samples(task, length=8, samples=1000, *, range=2, integers=False, scale=1, seed=0,
            task_set=""):
    """(x, y): fresh samples of a task and their exact answers, with values in [-range c, range c]
    for the scale c. `task_set` chooses the task's parameters, as "d=8". Of a task with pairs of nodes (x, y, {"pairs": array, "pair_classes": array}),
    as far as it has them."""
    return _posattn.samples(name_of(task), length, samples, range, integers, scale, seed,
                            task_set)
