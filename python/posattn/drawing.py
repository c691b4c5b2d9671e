"""Pictures that notebooks show."""

import collections.abc
import html
import io
import pathlib
import shutil

import numpy

from . import _posattn
from .arguments import fitting, instance_of, path_of
from .errors import Error, mistaken


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
    """Lines as a picture, drawn by Matplotlib where it is installed, else by gnuplot:
    {label: (x, values)}, with values [x] or [runs, x] (then the median, in a band from the smallest to
    the largest). The y axis is logarithmic, or goes from 0 to `greatest`.

    >>> import posattn
    >>> posattn.plot({"squares": ([1, 2, 3], [1, 4, 9])})._repr_svg_()[:4]
    '<svg'
    """
    fitting("str", title=title, x_label=x_label, y_label=y_label)
    fitting("bool", logarithmic_x=logarithmic_x)
    if greatest is not None:
        fitting("float", greatest=greatest)
    look = dict(title=title, x_label=x_label, y_label=y_label, logarithmic_x=logarithmic_x,
                greatest=greatest)
    parts = _parts(lines)
    try:
        import matplotlib.figure
    except ImportError:
        return Svg(_drawn_by_gnuplot(parts, **look))
    figure = matplotlib.figure.Figure(figsize=(5.4, 3.8), tight_layout=True)
    draw_lines(figure.add_subplot(), parts, **look)
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "posattn"}):  # the same picture, the same text
        figure.savefig(text, format="svg", metadata={"Date": None})
    return Svg(text.getvalue()[text.getvalue().index("<svg"):])


def plot_on(ax, lines, **look):
    """The same on Matplotlib axes, which are returned; without any on new ones."""
    parts = _parts(lines)
    if ax is None:
        try:
            import matplotlib.pyplot
        except ImportError:
            raise Error("axes without Matplotlib", "Matplotlib", "pip install matplotlib, or let show() "
                        "draw the picture, which also takes gnuplot") from None
        _, ax = matplotlib.pyplot.subplots()
    elif not hasattr(ax, "fill_between"):
        raise mistaken("ax", ax, "axes of Matplotlib")
    draw_lines(ax, parts, **look)
    return ax


def _parts(lines):
    parts = []
    expected = "{label: (x, values)}"
    for label, line in instance_of("lines", lines, collections.abc.Mapping, expected).items():
        if not isinstance(label, str) or not isinstance(line, (tuple, list)) or len(line) != 2:
            raise mistaken("lines", line, expected)
        parts.append((label, *line))
    return parts


def _drawn_by_gnuplot(parts, title, x_label, y_label, logarithmic_x, greatest):
    if shutil.which("gnuplot") is None:
        raise Error("no program to draw with", "Matplotlib or gnuplot",
                    "pip install matplotlib, or Debian's package gnuplot-nox")
    return _posattn.figure(title, x_label, y_label, parts, logarithmic_x, greatest)


def draw_lines(ax, parts, *, title, x_label, y_label, logarithmic_x=False, greatest=None):
    dashes, markers = ["-", "--", "-.", ":"], "osv^Dp"
    drawn = False
    for index, (label, colour, points) in enumerate(_posattn.figure_lines(parts)):
        fits = numpy.isfinite(points) & ((points > 0) if greatest is None else True)
        fits[:, 0] = numpy.isfinite(points[:, 0]) & (points[:, 0] > 0 if logarithmic_x else True)
        there = fits[:, 0] & fits[:, 1]
        x, median, low, high = points.T
        low, high = (numpy.where(fits[:, k], points[:, k], median) for k in (2, 3))
        if not there.any():
            continue
        drawn = True
        ax.plot(numpy.where(there, x, numpy.nan), numpy.where(there, median, numpy.nan), label=label,
                color=colour, linestyle=dashes[index % len(dashes)], marker=markers[index % len(markers)],
                markersize=4)
        if (low < high)[there].any():
            ax.fill_between(x, low, high, where=there, color=colour, alpha=0.18, linewidth=0)
    if not drawn:
        raise Error("a figure without a point that can be drawn",
                    "finite values, above 0 on a logarithmic axis")
    if greatest is None:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, greatest)
    if logarithmic_x:
        ax.set_xscale("log")
    ax.set(title=title, xlabel=x_label, ylabel=y_label)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.legend(frameon=False)
