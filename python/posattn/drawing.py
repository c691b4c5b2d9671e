"""Pictures that notebooks show."""

import collections.abc
import html
import pathlib

from . import _posattn
from .arguments import instance_of, path_of
from .errors import mistaken


class Svg(str):
    """The text of an SVG picture; a notebook shows the picture, `save` writes the file."""

    def _repr_svg_(self):
        return str(self)

    def save(self, path):
        pathlib.Path(path_of("path", path)).write_text(self, encoding="utf-8")

    def __repr__(self):
        return f"<picture of {len(self)} bytes of SVG>"


class Html(str):
    """A page of HTML; a notebook shows it in a frame, `save` writes the file."""

    def _repr_html_(self):
        return (f'<iframe srcdoc="{html.escape(str(self))}" width="100%" height="640" '
                'frameborder="0"></iframe>')

    def save(self, path):
        pathlib.Path(path_of("path", path)).write_text(self, encoding="utf-8")

    def __repr__(self):
        return f"<page of {len(self)} bytes of HTML>"


def plot(lines, *, title="", x_label="x", y_label="", logarithmic_x=False, greatest=None):
    """Lines as a picture, drawn by gnuplot: {label: (x, values)}, with values [x] or [runs, x] (then
    the median, in a band from the smallest to the largest). The y axis is logarithmic, or goes from
    0 to `greatest`.

    >>> import posattn
    >>> posattn.plot({"squares": ([1, 2, 3], [1, 4, 9])})._repr_svg_()[:4]
    '<svg'
    """
    parts = []
    expected = "{label: (x, values)}"
    for label, line in instance_of("lines", lines, collections.abc.Mapping, expected).items():
        if not isinstance(label, str) or not isinstance(line, (tuple, list)) or len(line) != 2:
            raise mistaken("lines", line, expected)
        parts.append((label, *line))
    return Svg(_posattn.figure(title, x_label, y_label, parts, logarithmic_x, greatest))
