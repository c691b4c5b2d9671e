"""Figures of measurements in the style of posattn's own: lines in panels, by gnuplot, on logarithmic axes.

Hues and shades are those of src/posattn/report/plot/line_styles.inc.
"""

import dataclasses
import math
import pathlib
import re
import subprocess

STYLES = pathlib.Path(__file__).parent.parent / "src/posattn/report/plot/line_styles.inc"
HUES = {name: (light, dark) for name, light, dark in
        re.findall(r'^POSATTN_HUE\("(.*)", "(.*)", "(.*)"\)', STYLES.read_text(), re.M)}
SHADES = [(float(share), dash) for share, dash in
          re.findall(r'^POSATTN_SHADE\((.*), "(.*)"\)', STYLES.read_text(), re.M)]
PALEST, PALE, PLAIN, DARK, DARKEST = range(5)
MARKERS = (7, 5, 9, 11, 13)  # gnuplot's filled symbols; an open one has the number before
PAPER = {"#ffffff": "#15181c", "#000000": "#e6e9ec", "#222222": "#e6e9ec", "#555555": "#9aa5b1", "#dddddd": "#2f363d"}
WIDTH, TEXT, LINE = 720, 14.4, 19  # pixels
PLOT_HEIGHT = 230


@dataclasses.dataclass
class Line:
    label: str
    points: list  # of (x, y)
    architecture: str = "baseline"
    shade: int = PLAIN
    marker: int | None = 0
    is_open: bool = False  # a marker for what is not the result itself


def mixed(colour, other, share):
    parts = [(int(colour[k:k + 2], 16), int(other[k:k + 2], 16)) for k in (1, 3, 5)]
    return "#" + "".join(f"{math.floor(share * a + (1 - share) * b + 0.5):02x}" for a, b in parts)


def colours(architecture, shade=PLAIN):
    """On light and on dark paper."""
    share = SHADES[shade][0]
    return tuple(mixed(hue, paper, share) if share <= 1 else mixed(hue, ink, 2 - share)
                 for hue, paper, ink in zip(HUES[architecture], ("#ffffff", "#15181c"), ("#000000", "#ffffff")))


def dark_style(drawing, pairs):
    rules = "\n".join(f'[{attribute}="{light}"]{{{attribute}:{dark}}}' for light, dark in pairs
                      for attribute in ("fill", "stroke", "color") if f'{attribute}="{light}"' in drawing)
    return f"<style>@media (prefers-color-scheme: dark) {{\n{rules}\n}}</style>\n"


def finished(drawing, title, description, lines):
    """gnuplot's drawing with a title that says what it shows, dark where the reader prefers that."""
    drawing = drawing[drawing.index("<svg"):].replace("fill = '", "fill='")
    drawing = re.sub(r"rgb\( *(\d+), *(\d+), *(\d+)\)", lambda found: "#" + "".join(
        f"{int(part):02x}" for part in found.groups()), drawing)
    drawing = re.sub(r"(fill|stroke|color)='(#\w+)'", lambda found: f'{found[1]}="{found[2].lower()}"', drawing)
    drawing = drawing.replace('"#FFFFFF"', '"#ffffff"').replace('"black"', '"#222222"')
    pairs = [*PAPER.items(), *{colours(line.architecture, line.shade) for line in lines}]
    return re.sub(r"<title>.*?</desc>", f"<title>{title}</title>\n<desc>{description}</desc>\n"
                  + dark_style(drawing, sorted(pairs)), drawing.replace("<svg", '<svg role="img"', 1),
                  count=1, flags=re.S)


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def legend(lines, top, height):
    """gnuplot's commands for entries in rows below the panels, and where they end."""
    entry = 47 + max(len(line.label) for line in lines) * 0.53 * TEXT + 18
    rows = math.ceil(len(lines) / max(1, (WIDTH - 20) // entry))
    columns = math.ceil(len(lines) / rows)
    commands = []
    for k, line in enumerate(lines):
        x = (WIDTH - columns * entry + 18) / 2 + k % columns * entry
        y = 1 - (top + (k // columns + 0.5) * LINE) / height
        look, symbol = looks(line)
        at = f"screen {(x + 20) / WIDTH:.5f},{y:.5f}"
        commands += [f"set arrow from screen {x / WIDTH:.5f},{y:.5f} to screen {(x + 40) / WIDTH:.5f},{y:.5f} "
                     f"nohead {look}", f"set label '' at {at} point {symbol}",
                     f"set label {quoted(line.label)} at screen {(x + 47) / WIDTH:.5f},{y:.5f} left noenhanced"]
    return commands


def looks(line):
    """Of the line and of its marker, in gnuplot's terms."""
    colour = colours(line.architecture, line.shade)[0]
    marker = 0 if line.marker is None else MARKERS[line.marker % len(MARKERS)] - line.is_open
    return (f"dt {SHADES[line.shade][1]} lw {0.8 if line.is_open else 1.8} lc rgb '{colour}'",
            f"pt {marker} ps 0.6 lc rgb '{colour}'")


def draw(path, title, panels, x_label, y_label, tics=()):
    """panels: {name: [Line]}, side by side, as PATH.svg. tics: the marks of x; none: powers of ten."""
    entries = list({line.label: line for lines in panels.values() for line in lines}.values())
    heading = 62 if len(panels) > 1 else 36
    per_row = max(1, (WIDTH - 20) // (65 + max(len(line.label) for line in entries) * 0.53 * TEXT))
    height = heading + PLOT_HEIGHT + 50 + math.ceil(len(entries) / per_row) * LINE + 14
    script = ["set encoding utf8", "set multiplot", "set border 3 lc rgb '#555555'", "unset key",
              "set tics nomirror scale 0.6", "set grid ytics lt 1 dt solid lc rgb '#dddddd' lw 0.6",
              "set logscale xy", "set format y '10^{%T}'", "unset mytics",
              f"set xtics ({', '.join(map(str, tics))})" if tics else "set format x '10^{%T}'"]
    ys = [y for lines in panels.values() for line in lines for _, y in line.points if y > 0]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    step = math.ceil((high - low) / 6)
    width = (WIDTH - 24) / len(panels)
    for column, (name, lines) in enumerate(panels.items()):
        left, right = 24 + column * width + 46, 24 + (column + 1) * width - 14
        middle = (left + right) / 2 / WIDTH
        xs = [x for line in lines for x, _ in line.points]
        space = (max(xs) / min(xs)) ** 0.03
        script += [f"set lmargin at screen {left / WIDTH:.5f}", f"set rmargin at screen {right / WIDTH:.5f}",
                   f"set tmargin at screen {1 - heading / height:.5f}",
                   f"set bmargin at screen {1 - (heading + PLOT_HEIGHT) / height:.5f}",
                   f"set xrange [{min(xs) / space}:{max(xs) * space}]", f"set yrange [1e{low}:1e{high}]",
                   f"set ytics 1e{step}",
                   f"set label 2 {quoted(name)} at screen {middle:.5f},{1 - (heading - 13) / height:.5f} center",
                   f"set label 3 {quoted(x_label)} at screen {middle:.5f},"
                   f"{1 - (heading + PLOT_HEIGHT + 39) / height:.5f} center noenhanced",
                   f"set label 4 {quoted(y_label if column == 0 else '')} at screen {10 / WIDTH:.5f},"
                   f"{1 - (heading + PLOT_HEIGHT / 2) / height:.5f} center rotate noenhanced"]
        curves = []
        for k, line in enumerate(lines):
            script += [f"$d{column}_{k} << EOD", *(f"{x} {y}" for x, y in line.points), "EOD"]
            curves.append(f"$d{column}_{k} with linespoints {looks(line)[0]} {looks(line)[1].split(' lc')[0]}")
        script.append("plot " + ", ".join(curves))
    script += ["unset label", "unset border", "unset tics", "unset grid", "unset logscale", "set margins 0,0,0,0",
               f"set label {quoted(title)} at screen 0.5,{1 - 18 / height:.5f} center font ',16' noenhanced",
               *legend(entries, heading + PLOT_HEIGHT + 56, height), "plot [0:1] [0:1] NaN notitle",
               "unset multiplot"]

    terminal = f"set terminal svg size {WIDTH},{height} enhanced font 'sans-serif,{TEXT}' background '#ffffff'"
    svg = subprocess.run(["gnuplot", "-d"], input="\n".join([terminal, *script]), text=True, check=True,
                         stdout=subprocess.PIPE).stdout
    description = f"{y_label} against {x_label}, both on logarithmic axes. Panels: {', '.join(panels)}. " \
                  f"Lines: {'; '.join(line.label for line in entries)}."
    path.with_suffix(".svg").write_text(finished(svg, title, description, entries))
