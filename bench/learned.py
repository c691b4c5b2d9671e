#!/usr/bin/env python3
"""Learned networks compared with compiled ones: CSV, SVG and PNG (needs gnuplot).

  bench/learned.py beside    # error against c: trained (of `posattn reproduce beside-compiled`) and compiled
  bench/learned.py start     # training that starts from compiled weights: kept, repaired or lost?

`beside` reads DIR/beside-compiled/beside-compiled.csv, evaluates the compiled programs at the same
scales and writes DIR/beside-compiled/with-compiled.*. `start` trains small networks (a few minutes on
two cores) and writes DIR/from-compiled/from-compiled.*.
"""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import tempfile

from compiled import call, finished

TASKS = ("cumulative-min", "sort")
SCALES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
NOISES = (0, 0.001, 0.01, 0.1)
SHARPNESS = 15
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#777777")  # as in the reports


def errors_of(options, model):
    """{c: MSE}"""
    found = call(options, "evaluate", model, "--scales", ",".join(map(str, SCALES)))
    return {scale["c"]: scale["mse"] for scale in found["models"][0]["scales"]}


def write_csv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def draw(path, title, panels):
    """panels: {name: [(label, style of gnuplot, [(c, MSE)])]}, side by side; PATH.svg and PATH.png."""
    lines = ["set logscale xy", "set format x '10^{%T}'", "set format y '10^{%T}'", "set grid",
             "set xlabel 'c (values in [-2c, 2c])' offset 0,0.6", "set key below horizontal",
             f"set multiplot layout 1,{len(panels)} title '{title}'", "set ylabel 'MSE'"]
    count = 0
    for name, curves in panels.items():
        shown = []
        for label, style, points in curves:
            lines += [f"$d{count} << EOD", *(f"{c} {error}" for c, error in points), "EOD"]
            shown.append(f"$d{count} {style} " + (f"title '{label}'" if label else "notitle"))
            count += 1
        lines += [f"set title '{name}'", "plot " + ", ".join(shown), "set ylabel ''"]
    def drawing(terminal):
        text = "\n".join([f"set terminal {terminal} size 1000,480 font 'Helvetica,13' background 'white'", *lines])
        return subprocess.run(["gnuplot"], input=text.encode(), check=True, stdout=subprocess.PIPE).stdout
    svg = finished(drawing("svg").decode(), title, "mean squared error against c, both on logarithmic axes")
    path.with_suffix(".svg").write_text(svg)
    path.with_suffix(".png").write_bytes(drawing("pngcairo"))


# Trained on [-2, 2] beside compiled, c = 1..1000


def beside(options, folder):
    results = options.results / options.experiment
    with open(results / f"{options.experiment}.csv") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "test"]
    for task in TASKS:
        model = folder / f"{task}.safetensors"
        call(options, "compile", task, "-o", model)
        for c, error in errors_of(options, model).items():
            spread = dict.fromkeys(("min", "q10", "median", "q90", "max"), error)
            rows.append({"experiment": options.experiment, "task": task, "architecture": "compiled",
                         "split": "test", "x": c, "runs": 1} | spread)
    write_csv(results / "with-compiled.csv", rows)
    lines = list(dict.fromkeys(row["architecture"] for row in rows))
    print("| median MSE | " + " | ".join(f"c = {c}" for c in SCALES) + " |\n" + "|---" * (len(SCALES) + 1) + "|")
    panels = {}
    for task in TASKS:
        curves = []
        for colour, line in zip(COLOURS, lines):
            points = [(float(row["x"]), float(row["median"])) for row in rows
                      if row["task"] == task and row["architecture"] == line]
            curves.append((line, f"with linespoints lw 2 pt 7 ps 0.5 lc rgb '{colour}'", points))
            print(f"| {task}, {line} | " + " | ".join(f"{error:.1e}" for _, error in points) + " |")
        panels[task] = curves
    draw(results / "with-compiled", "Trained on [-2, 2], medians, and compiled, n = 8", panels)


# Training that starts from compiled weights


def attention(options, model):
    """Rows of attention over all layers, heads and nodes."""
    layers = call(options, "inspect", model)["attention"]["layers"]
    return [row for heads in layers for rows in heads for row in rows]


def network_row(options, model, routes):
    rows = attention(options, model)
    largest = [row.index(max(row)) for row in rows]
    agreeing = sum(place == route for place, route in zip(largest, routes))
    weight = sum(row[route] for row, route in zip(rows, routes))
    errors = errors_of(options, model)
    return {"agreement": agreeing / len(rows), "weight_on_route": weight / len(rows)} | {
        f"mse_{c}": errors[c] for c in SCALES}


def train(options, out, *arguments):
    call(options, "train", *arguments, "--seeds", f"0..{options.runs - 1}", "--epochs", options.epochs,
         "--samples", 10_000, "--batch", 100, "--validate-every", 0, "--test-every", 0, "--test-scales", 1,
         "--threads", options.threads, "--device", "cpu", "--out", out)
    return sorted(out.iterdir())


def started_runs(options, folder):
    """One row for each network: before and after training from compiled weights, and after training
    the same shape from random ones."""
    rows = []
    for task in TASKS:
        model = folder / f"{task}.safetensors"
        call(options, "compile", task, "--dense", "--sharpness", SHARPNESS, "-o", model)
        routes = [row.index(max(row)) for row in attention(options, model)]
        spec = call(options, "inspect", model)["spec"]
        starts = {str(noise): ["--from", model, "--from-noise", noise] for noise in NOISES}
        shape = [f"--{key.replace('_', '-')}={spec[key]}" for key in ("width", "heads", "depth", "mlp_width")]
        starts["random"] = ["--task", task, *shape]
        for start, arguments in starts.items():
            for run in train(options, folder / f"{task}-{start}", *arguments):
                for when, name in (("before", "start"), ("after", "model")):
                    file = run / f"{name}.safetensors"
                    if file.exists():
                        seed = json.loads((run / "manifest.json").read_text())["configuration"]["seed"]
                        rows.append({"program": task, "noise": start, "seed": seed, "when": when}
                                    | network_row(options, file, routes))
            print(f"{task}, {start}: trained", flush=True)
    return rows


def median(rows, column, **where):
    found = [row[column] for row in rows if all(row[key] == value for key, value in where.items())]
    return statistics.median(found) if found else None


def start_table(rows):
    columns = [("MSE, c = 1", "mse_1", "{:.1e}"), ("MSE, c = 1000", "mse_1000", "{:.1e}"),
               ("attention maxima on the route", "agreement", "{:.0%}"),
               ("weight there", "weight_on_route", "{:.2f}")]
    print(f"\nMedians; before -> after\n\n| program | noise | {' | '.join(name for name, _, _ in columns)} |")
    print("|---" * (len(columns) + 2) + "|")
    for task, start in dict.fromkeys((row["program"], row["noise"]) for row in rows):
        cells = []
        for _, column, form in columns:
            values = [median(rows, column, program=task, noise=start, when=when) for when in ("before", "after")]
            cells.append(" -> ".join("" if value is None else form.format(value) for value in values).strip())
        noise = start if start == "random" else f"{float(start):.1%}"
        print(f"| `{task}` | {noise} | {' | '.join(cells)} |")


def draw_start(path, rows):
    panels = {}
    for task in TASKS:
        curves = []
        for colour, noise in zip(COLOURS, dict.fromkeys(row["noise"] for row in rows)):
            for when, dash in (("before", 2), ("after", 1)):
                if median(rows, "mse_1", program=task, noise=noise, when=when) is None:
                    continue
                label = noise if noise == "random" else f"noise {float(noise):.1%}".replace("%", " %")
                points = [(c, median(rows, f"mse_{c}", program=task, noise=noise, when=when)) for c in SCALES]
                style = f"with linespoints lw 2 dt {dash} pt {7 if when == 'after' else 6} ps 0.5 lc rgb '{colour}'"
                curves.append((label if when == "after" else "", style, points))
        panels[task] = curves
    draw(path, "From compiled weights: before (dashed) and after training on [-2, 2]", panels)


def start(options, folder):
    rows = started_runs(options, folder)
    path = options.results / "from-compiled" / "from-compiled"
    write_csv(path.with_suffix(".csv"), rows)
    start_table(rows)
    draw_start(path, rows)


PARTS = {"beside": beside, "start": start}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--posattn", default="build/release/posattn")
    parser.add_argument("--results", type=pathlib.Path, default="results", metavar="DIR")
    parser.add_argument("--experiment", default="beside-compiled",
                        help="of `beside`: the name of its results, as beside-compiled-quick")
    parser.add_argument("--epochs", type=int, default=50, help="of `start`: 100 steps each")
    parser.add_argument("--runs", type=int, default=3, help="of `start`: seeds each")
    parser.add_argument("--threads", type=int, default=0, help="of `start`; 0: one per core")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        PARTS[options.part](options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
