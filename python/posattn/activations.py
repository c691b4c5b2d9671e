"""Activations by name: which ones to keep from a run of a model, and what to put in their place."""

import collections.abc

import numpy

from .arguments import several
from .errors import Error, mistaken


class Place:
    """Where a name leads: an activation, and an index for some of the axes behind the samples'."""

    def __init__(self, name, base, index, before):
        self.name, self.base = name, base
        self._index = (slice(None),) * before + index

    def of(self, array):
        """A copy of what is there."""
        return numpy.array(array[self._index])

    def put(self, array, value):
        there = array[self._index]
        try:
            array[self._index] = value
        except (ValueError, TypeError):
            shape = getattr(value, "shape", None)
            what = f"of shape {shape}" if shape else "that is no array of numbers"
            raise Error(f"a patch of '{self.name}' {what}",
                        f"{numpy.shape(there)}, or what NumPy broadcasts to it", code=2) from None


class Places:
    """Names of activations for the samples at hand. `layers.1.heads.0.3` is an activation's name and
    then numbers: head 0, node 3. * stands for every layer, head or node."""

    def __init__(self, shapes, has_samples):
        self._shapes, self._before = dict(shapes), int(has_samples)

    def named(self, argument, name):
        if not isinstance(name, str):
            raise mistaken(argument, name, "names of activations")
        parts = name.split(".")
        found = []
        for base, shape in self._shapes.items():
            own = base.split(".")
            if len(parts) >= len(own) and all(part in ("*", real) for part, real in zip(parts, own)):
                index = self._index(name, parts[len(own):], shape[self._before:])
                if index is not None:
                    shown = ".".join(own + parts[len(own):])
                    found.append(Place(shown, base, index, self._before))
        if not found:
            ends = list(dict.fromkeys(base.split(".", 2)[2] for base in self._shapes if "." in base))
            raise Error(f"no activation '{name}'",
                        "embedding or layers.L.NAME with NAME one of " + ", ".join(ends),
                        "numbers behind it choose a head and a node, as in layers.0.heads.1.3",
                        code=2)
        return found

    @staticmethod
    def _index(name, parts, shape):
        """Of the axes; None where these parts are not numbers."""
        if any(part != "*" and not part.isdecimal() for part in parts):
            return None
        if len(parts) > len(shape):
            raise Error(f"activation '{name}'", f"at most {len(shape)} numbers behind it, for the "
                        f"axes {tuple(shape)}", code=2)
        for part, size in zip(parts, shape):
            if part != "*" and int(part) >= size:
                raise Error(f"activation '{name}'", f"numbers below those of the axes "
                            f"{tuple(shape)}", code=2)
        return tuple(slice(None) if part == "*" else int(part) for part in parts)


def run(compiled, x, keep, patch, given):
    """(outputs, {name: array}): see Model.run."""
    shapes = compiled.activations(x, given)
    places = Places(shapes, len(shapes[0][1]) > 2)
    if isinstance(keep, str) and keep == "all":
        keep = [base for base, _ in shapes]
    expected = '"all", a name, or a list of names'
    wanted = [place for name in several("keep", [] if keep is None else keep, expected)
              for place in places.named("keep", name)]
    if not isinstance({} if patch is None else patch, collections.abc.Mapping):
        raise mistaken("patch", patch, "{name: number, array or function}")
    patches = [(place, value) for name, value in (patch or {}).items()
               for place in places.named("patch", name)]
    kept = {}

    def hook(base, array):
        for place, value in patches:
            if place.base == base:
                place.put(array, _changed(place.of(array), value) if callable(value) else value)
        for place in wanted:
            if place.base == base:
                kept[place.name] = place.of(array)

    return compiled.run_with_hook(x, given, hook), kept


def _changed(activation, function):
    result = function(activation)
    return activation if result is None else result
