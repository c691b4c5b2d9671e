"""Models: answers, attention, weights and gradients as NumPy arrays."""

import collections.abc
import difflib
import json
import numbers
import os

import numpy

from . import _posattn
from .arguments import instance_of, numbers_of, path_of
from .errors import Error, mistaken
from .tasks import name_of


class Parameters(collections.abc.MutableMapping):
    """A model's weights by name, in the authors' names. An array is a view of the model's own
    numbers: what is written to it changes the model.

    >>> import posattn
    >>> model = posattn.new(task="sort", length=4, width=8, mlp_width=8)
    >>> model.parameters["decoding.bias"] += 1
    >>> sorted(model.parameters)[:2]
    ['decoding.bias', 'decoding.weight']
    """

    def __init__(self, compiled):
        self._compiled = compiled

    def __getitem__(self, name):
        return self._compiled.parameter(name)

    def __setitem__(self, name, values):
        self._compiled.set_parameter(name, values)

    def __delitem__(self, name):
        raise TypeError("a model keeps its parameters")

    def __iter__(self):
        return iter(self._compiled.shapes())

    def __len__(self):
        return len(self._compiled.shapes())

    def __contains__(self, name):
        return name in self._compiled.shapes()

    def __repr__(self):
        shapes = ", ".join(f"{name}: {shape}" for name, shape in self._compiled.shapes().items())
        return f"<parameters {shapes}>"


def _given(tokens, pairs, pair_classes):
    """What samples hold besides numbers of nodes."""
    return {"tokens": tokens, "pairs": pairs, "pair_classes": pair_classes}


class Model:
    """A trained or compiled network, from `load`, `new`, `compile` or a run.

    >>> import posattn
    >>> model = posattn.compile("cumulative-sum", length=4).model
    >>> model([1, 2, 3, 4]).tolist()
    [1.0, 3.0, 6.0, 10.0]
    """

    def __init__(self, compiled):
        self._compiled = compiled
        self._facts = compiled.facts()

    def __call__(self, x=None, *, tokens=None, pairs=None, pair_classes=None, threads=1):
        """The answers to samples: [nodes], [samples, nodes] or [samples, nodes, columns] in, the
        same form out. Float32 arrays that lie row by row are read where they are; others are
        converted. `tokens` is for models that have a vocabulary; `pairs` [samples, nodes, nodes], with
        the numbers of a pair as a last axis, and `pair_classes` for those that read pairs of nodes.

        >>> import posattn
        >>> model = posattn.new("neighbour-min", "structural", length=4)
        >>> x, y, pairs = posattn.samples("neighbour-min", length=4, samples=10)
        >>> model(x, **pairs).shape
        (10, 4)
        """
        try:
            return self._compiled.run(x, _given(tokens, pairs, pair_classes), threads)
        except TypeError:
            if isinstance(threads, numbers.Integral):
                raise
        raise mistaken("threads", threads, "a whole number")

    def run(self, x=None, *, keep=None, patch=None, tokens=None, pairs=None, pair_classes=None):
        """(outputs, {name: array}): the answers, and the activations that `keep` names: "all", a name
        or a list of them. Every name has the axis of samples in front where x has one:

        - `embedding`, `layers.L.state`: what layer 0, and the layer after L, reads
        - `layers.L.attention` [heads, nodes, nodes]: row i says how much node i reads from each node
        - `layers.L.values`, `layers.L.heads` [heads, nodes, head_size]: attention times values are heads
        - `layers.L.attention_output`: the heads after the output map
        - `layers.L.hidden.K`: the MLP after its activation function K
        - `layers.L.mlp_output`: where the layer adds or normalises it

        Numbers after a name select a head and a node, as in `layers.1.heads.0.3`, and `*` stands for
        all. `patch` is {name: value}: a number, an array, or a function that gets the
        activation and returns what the model goes on with (or changes it in place). What is kept
        is what a patch left. Scratch nodes are the last ones.

        >>> import posattn
        >>> model = posattn.load("sort-positional")
        >>> x = [3, 1, 4, 1, 5, 9, 2, 6]
        >>> y, kept = model.run(x, keep=["layers.*.attention", "layers.0.heads.1"])
        >>> kept["layers.0.attention"].shape, kept["layers.0.heads.1"].shape
        ((2, 9, 9), (9, 32))
        >>> ablated, _ = model.run(x, patch={"layers.0.heads.1": 0.0})
        >>> bool((ablated == y).any())
        False
        """
        from .activations import run

        return run(self._compiled, x, keep, patch, _given(tokens, pairs, pair_classes))

    def attention(self, x=None, *, tokens=None, pairs=None, pair_classes=None):
        """The attention matrices [depth, heads, nodes, nodes], scratch nodes last; with an axis of
        samples in front where x has one. A positional model needs no x.

        >>> import posattn
        >>> posattn.new(task="sort", length=4).attention().shape
        (3, 2, 5, 5)
        """
        return self._compiled.attention(x, _given(tokens, pairs, pair_classes))

    def gradient(self, x, y, *, tokens=None, pairs=None, pair_classes=None, mask=None, threads=1):
        """(loss, gradients): the model's loss on these samples and its derivative by every
        parameter, as a dict. `mask` [nodes, columns] is 1 where an output counts.

        >>> import numpy, posattn
        >>> model = posattn.new(task="sort", length=4, width=8, mlp_width=8)
        >>> x = numpy.random.default_rng(0).normal(size=(100, 4))
        >>> first, _ = model.gradient(x, numpy.sort(x))
        >>> for _ in range(20):
        ...     loss, gradients = model.gradient(x, numpy.sort(x))
        ...     for name, gradient in gradients.items():
        ...         model.parameters[name] -= 0.1 * gradient
        >>> loss < first
        True
        """
        return self._compiled.gradient(x, y, _given(tokens, pairs, pair_classes), mask, threads)

    def evaluate(self, scales=(1,), *, task="", samples=1000, seed=0, threads=1, axis="c"):
        """Fresh test samples at each scale c: {"x": [...], metric: [...], ...}. `task` is a name or
        a `Task`; without it the model's own.

        >>> import posattn
        >>> errors = posattn.compile("sort", length=4).model.evaluate([1, 1000], samples=100)
        >>> bool((errors["mse"] < 1e-6).all())
        True
        """
        values = numbers_of("scales", scales)
        rows = self._compiled.evaluate(name_of(task) or "", axis, values, samples, seed, threads)
        table = {"x": numpy.array(values)}
        for metric in dict.fromkeys(rows["metric"]):
            chosen = numpy.array([name == metric for name in rows["metric"]])
            by_x = dict(zip(rows["x"][chosen], rows["value"][chosen]))
            table[metric] = numpy.array([by_x.get(x, numpy.nan) for x in values])
        return table

    @property
    def parameters(self):
        """The weights, a mapping from names to arrays that can be read and set."""
        return Parameters(self._compiled)

    @parameters.setter
    def parameters(self, values):
        instance_of("parameters", values, collections.abc.Mapping, "{name: array}")
        for name in values:
            self._compiled.set_parameter(name, values[name])

    @property
    def spec(self):
        """What the model is: sizes, attention, encoding and all else, as a dict."""
        return json.loads(self._facts["spec"])

    @property
    def task(self):
        return self._facts["task"]

    @property
    def task_set(self):
        """The task's parameters, as "q=2"; empty: the standard ones."""
        return self._facts["task_set"]

    @property
    def length(self):
        return self._facts["length"]

    @property
    def architecture(self):
        return self._facts["architecture"]

    @property
    def notes(self):
        """What else the file says: seed, epoch, losses, the text of a compiled program."""
        return dict(self._facts["notes"])

    @property
    def is_compiled(self):
        return self._facts["compiled"]

    @property
    def parameter_count(self):
        return self._facts["parameter_count"]

    @property
    def is_closed(self):
        return self._compiled.is_closed

    def show(self, x=None, *, tokens=None, pairs=None, pair_classes=None):
        """The attention matrices as a picture that a notebook displays."""
        from .drawing import Svg

        weights = self.attention(x, tokens=tokens, pairs=pairs, pair_classes=pair_classes)
        if weights.ndim == 5:
            weights = weights[0]
        title = f"attention, {self.architecture}" + (f", {self.task}" if self.task else "")
        return Svg(_posattn.attention_svg(weights, self.spec["scratch_nodes"], title))

    def steps(self, x=None, *, tokens=None, pairs=None, pair_classes=None):
        """A page that steps through the layers for one sample: what every node holds and which nodes it attends to."""
        from .drawing import Html

        return Html(self._compiled.steps(x, _given(tokens, pairs, pair_classes)))

    def save(self, path):
        """Writes the model file (.safetensors), which the program and `load` read. Weights that they
        would refuse, such as NaN, are an error, and nothing is written."""
        self.to_bytes()
        self._compiled.save(path)

    def to_bytes(self):
        """What `save` writes."""
        data = self._compiled.to_bytes()
        from_bytes(data, name="the model")  # refuses what `load` would
        return data

    def copy(self):
        """Another model with the same weights, whatever they are."""
        return Model(self._compiled.copy())

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return from_bytes, (self.to_bytes(),)

    def close(self):
        """Gives the model's memory back now; arrays over its weights stay valid."""
        self._compiled.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        if self.is_closed:
            return "<posattn.Model, closed>"
        kind = "compiled" if self.is_compiled else self.architecture
        what = f" for {self.task}" if self.task else ""
        return f"<posattn.Model: {kind}{what}, {self.parameter_count} parameters>"


_TRAINED = os.path.join(os.path.dirname(__file__), "models")


def trained_models():
    """The names of the trained models that come with the package.

    >>> import posattn
    >>> "sort-positional" in posattn.trained_models()
    True
    """
    suffix = ".safetensors"
    return sorted(name.removesuffix(suffix) for name in os.listdir(_TRAINED) if name.endswith(suffix))


def _model_file(path):
    """The file that `path` means: itself, that of a run's folder, or a trained model's."""
    name = os.fsdecode(path)
    if os.path.isdir(path):
        file = os.path.join(name, "model.safetensors")
        if not os.path.exists(file):
            begun = os.path.exists(os.path.join(name, "checkpoint.safetensors"))
            raise Error(f"no model.safetensors in '{name}'", "the folder of a run that is done",
                        "its run has not finished; posattn.resume goes on" if begun else "", code=4)
        return file
    if os.path.exists(path):
        return path
    if name in trained_models():
        return os.path.join(_TRAINED, name + ".safetensors")
    return path


def _no_such_file(path):
    name = os.fsdecode(path)
    near = difflib.get_close_matches(name, trained_models(), 1)
    shown = name.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return Error(f"no such file: '{shown}'",
                 f"a model file, the folder of a run, or one of: {', '.join(trained_models())}",
                 f"did you mean '{near[0]}'?" if near else "", code=4)


def load(path, *, architecture=None, task=None, length=None, heads=None, vocabulary=None):
    """The model of a file, of the folder of a run, or a trained model of the package by its name,
    such as "sort-positional" (docs: models/README.md). The keywords say what a file from elsewhere
    may leave open. `vocabulary` is the folder of vocab.json and merges.txt, for a model of GPT-2's
    tokens from posattn 0.2.0, whose files do not hold them."""
    path = _model_file(path_of("path", path))
    vocabulary = None if vocabulary is None else path_of("vocabulary", vocabulary)
    try:
        return Model(_posattn.load(path, architecture, name_of(task), length, heads, vocabulary))
    except Error as error:
        if os.path.exists(path) or isinstance(error, TypeError):
            raise
        raise _no_such_file(path) from None


def from_bytes(data, *, name="bytes", architecture=None, task=None, length=None, heads=None):
    """The model of a file's bytes."""
    return Model(_posattn.from_bytes(data, name, architecture, name_of(task), length, heads, None))


def from_arrays(arrays, *, architecture=None, task=None, length=None, heads=None):
    """The model of weights by the authors' names, as their state dicts have them. What the shapes
    leave open, the keywords say."""
    header, body, place = {}, [], 0
    for name, values in instance_of("arrays", arrays, collections.abc.Mapping,
                                    "{name: array}").items():
        values = _posattn.floats(values, f"array '{name}'").astype("<f4", copy=False)
        header[name] = {"dtype": "F32", "shape": list(values.shape),
                        "data_offsets": [place, place + values.nbytes]}
        body.append(values.tobytes())
        place += values.nbytes
    text = json.dumps(header).encode()
    data = b"".join([len(text).to_bytes(8, "little"), text, *body])
    return from_bytes(data, name="the arrays", architecture=architecture, task=task, length=length,
                      heads=heads)


def new(task="cumulative-sum", architecture="positional", **settings):
    """A model with the first weights of a run of these settings (those of `train`)."""
    from .settings import given

    return Model(_posattn.untrained(given(task=task, architecture=architecture, **settings)))
