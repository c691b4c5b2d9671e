#!/usr/bin/env python3
"""Training that starts from compiled weights: are they kept, repaired or lost? (Needs gnuplot.)

Trains small networks, a few minutes on two cores; prints a table and writes DIR/from-compiled/from-compiled.csv and .svg
(bench/draw.py draws it again).
"""

import argparse
import csv
import json
import pathlib
import tempfile

from compiled import call
from draw import from_compiled, median

TASKS = ("cumulative-min", "sort")
SCALES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
NOISES = (0, 0.001, 0.01, 0.1)
SHARPNESS = 15


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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posattn", default="build/release/posattn")
    parser.add_argument("--results", type=pathlib.Path, default="results", metavar="DIR")
    parser.add_argument("--epochs", type=int, default=50, help="100 steps each")
    parser.add_argument("--runs", type=int, default=3, help="seeds of each start")
    parser.add_argument("--threads", type=int, default=0, help="0: one per core")
    options = parser.parse_args()
    path = options.results / "from-compiled" / "from-compiled"
    with tempfile.TemporaryDirectory() as folder:
        rows = started_runs(options, pathlib.Path(folder))
    write_csv(path.with_suffix(".csv"), rows)
    start_table(rows)
    from_compiled(path, path)


if __name__ == "__main__":
    main()
