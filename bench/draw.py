#!/usr/bin/env python3
"""Draws the figures of what the scripts of this folder measured, from the CSV files next to them (needs gnuplot).

  bench/draw.py               # results/from-compiled, docs/images/simulated-error, docs/images/compiled-time
  bench/draw.py --output DIR  # elsewhere
"""

import argparse
import csv
import pathlib
import statistics

from figure import DARK, DARKEST, PALE, PALEST, PLAIN, Line, draw

ROOT = pathlib.Path(__file__).parent.parent
SCALES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def rows_of(path):
    with open(path.with_suffix(".csv")) as file:
        return list(csv.DictReader(file))


def median(rows, column, **where):
    found = [float(row[column]) for row in rows if all(row[key] == value for key, value in where.items())]
    return statistics.median(found) if found else None


def from_compiled(source, target):
    """A shade for each noise; open markers before training."""
    rows, panels = rows_of(source), {}
    for task in dict.fromkeys(row["program"] for row in rows):
        panels[task] = []
        for k, noise in enumerate(dict.fromkeys(row["noise"] for row in rows)):
            name = "random start" if noise == "random" else f"noise {100 * float(noise):g} %"
            look = ("positional", PLAIN) if noise == "random" else ("compiled", (PALEST, PALE, PLAIN, DARKEST)[k])
            for when in ("before", "after"):
                points = [(c, median(rows, f"mse_{c}", program=task, noise=noise, when=when)) for c in SCALES]
                if None not in dict(points).values():
                    panels[task].append(Line(f"{name}, {when}", points, *look, k, when == "before"))
    draw(target, "From compiled weights, before and after training on [-2, 2]", panels,
         "c (values in [-2c, 2c])", "mean squared error", [1, 10, 100, 1000])


def simulated_error(source, target):
    rows, panels = rows_of(source), {}
    sizes = sorted({int(row["table_size"]) for row in rows})
    for task in dict.fromkeys(row["task"] for row in rows):
        panels[task] = []
        for k, depth in enumerate(("2", "4")):
            points = [(int(row["table_size"]), float(row["error"])) for row in rows
                      if (row["task"], row["layers"]) == (task, depth)]
            panels[task].append(Line(f"copy of {depth} layers", points, "standard", (PALE, PLAIN)[k], k))
        panels[task].append(Line("slope -2", [(size, 4 / size**2) for size in sizes], "baseline", PALE, None))
    draw(target, "A standard Transformer inside a positional one", panels, "pieces of each table, K",
         "rms error / standard deviation", sizes)


def compiled_time(source, target):
    lines = {}
    for row in rows_of(source):
        label = f"{row['program']}, {row['inputs']} input{'s' * (row['inputs'] != '1')}"
        lines.setdefault(label, []).append((int(row["n"]), float(row["seconds"])))
    shades = (PLAIN, PALE, DARKEST, PALEST, DARK)
    draw(target, "Evaluating compiled programs in fp32",
         {"": [Line(label, points, "compiled", shade, k)
               for k, ((label, points), shade) in enumerate(zip(lines.items(), shades))]}, "length n", "seconds")


FIGURES = {"results/from-compiled/from-compiled": from_compiled, "docs/images/simulated-error": simulated_error,
           "docs/images/compiled-time": compiled_time}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, metavar="DIR", help="in place of the folders of the tree")
    options = parser.parse_args()
    for path, figure in FIGURES.items():
        figure(ROOT / path, options.output / pathlib.Path(path).name if options.output else ROOT / path)


if __name__ == "__main__":
    main()
