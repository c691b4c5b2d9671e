#!/usr/bin/env python3
"""Standard Transformers inside positional ones (Remark 5.1): errors, sizes, ranges.

  bench/simulate_standard.py train --runs runs/simulated      # seven originals; ten minutes on a core
  bench/simulate_standard.py tolerance --runs runs/simulated  # copies to 1 %, and the control
  bench/simulate_standard.py copies                           # nodes, layers and error for 1 to N copies of each node
  bench/simulate_standard.py sizes --figure docs/images/simulated-error  # .svg and .csv
  bench/simulate_standard.py ranges                           # outside the training range

Originals: n = 8, width and MLP 16, two heads, 2 and 4 layers; and one of n = 64. All numbers come from
`posattn simulate-standard --json`; errors are root mean squares on 1000 fresh inputs over the
standard deviation of the original's outputs.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import tempfile
import time

from draw import simulated_error

TASKS = ("cumulative-sum", "cumulative-min", "sort")
DEPTHS = (2, 4)
SIZES = (16, 64, 256)
SCALES = "1,2,3,5,10"
LONG = ("cumulative-min", 64)
TRAINING = ["--architecture", "standard", "--width", 16, "--mlp-width", 16, "--heads", 2, "--lr", 0.002,
            "--test-every", 0, "--device", "cpu"]


def folder_of(options, task, depth):
    return options.runs / f"{task}-{depth}"


def originals(options):
    return [(task, depth) for depth in DEPTHS for task in TASKS
            if any(folder_of(options, task, depth).rglob("model.safetensors"))]


def simulate(options, task, depth, *arguments):
    return simulate_folder(options, folder_of(options, task, depth), *arguments)


def simulate_folder(options, original, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [options.posattn, "simulate-standard", original, "-o",
             pathlib.Path(folder) / "copy.safetensors", "--json", *map(str, arguments)],
            capture_output=True, text=True)
    if done.returncode not in (0, 6):  # 6: the tolerance was missed, which the numbers say too
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def train(options):
    for depth in DEPTHS:
        for task in TASKS:
            train_one(options, task, depth, folder_of(options, task, depth), "--length", 8, "--epochs", 60)
    task, length = LONG
    train_one(options, task, 2, options.runs / "long", "--length", length, "--epochs", 6)


def train_one(options, task, depth, folder, *arguments):
    subprocess.run([options.posattn, "train", "--task", task, "--depth", str(depth), "--out", folder,
                    *map(str, [*TRAINING, *arguments])], check=True)


def percent(share):
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def tolerance(options):
    print("\n| original | error | largest | bound | control | layers | products a layer | hidden units | "
          "weights not zero |\n|---|---|---|---|---|---|---|---|---|")
    for task, depth in originals(options):
        found = simulate(options, task, depth)
        check = found["check"]
        products = ", ".join(str(layer["products"]) for layer in found["original_layers"])
        print(f"| {task}, L = {depth} | {percent(check['error'])} | {percent(check['largest_error'])} | "
              f"{percent(found['bound'])} | {percent(check['control'])} | {found['layers']} | {products} | {found['hidden']} | "
              f"{found['nonzero_weights']:,} |", flush=True)


def copies(options):
    """Tables of 64 pieces, of 32 for the long original. Work: weights that are not zero, times nodes."""
    print("\n| original | k | nodes | layers | nodes x layers | hidden units | work | error | largest | bound | seconds |\n"
          + "|---" * 11 + "|")
    task, length = LONG
    rows = [("sort, L = 2, n = 8", folder_of(options, "sort", 2), 64, (1, 2, 3, 5, 9)),
            (f"{task}, L = 2, n = {length}", options.runs / "long", 32, (1, 8, 65))]
    for name, folder, size, counts in rows:
        for count in counts:
            began = time.monotonic()
            found = simulate_folder(options, folder, "--copies", count, "--table-size", size,
                                    "--samples", 1000 if size == 64 else 100)
            seconds = time.monotonic() - began
            check, nodes, layers = found["check"], found["nodes"], found["layers"]
            print(f"| {name} | {count} | {nodes:,} | {layers} | {nodes * layers:,} | {found['hidden']:,} | "
                  f"{nodes * found['nonzero_weights'] / 1e6:.3g} M | {check['error']:.2g} | "
                  f"{check['largest_error']:.2g} | {found['bound']:.2g} | {seconds:.0f} |", flush=True)


def sizes(options):
    """The error, and in brackets the bound of the largest."""
    print(f"\n| K | {' | '.join(map(str, SIZES))} |\n" + "|---" * (len(SIZES) + 1) + "|")
    rows = []
    for task, depth in originals(options):
        cells = []
        for size in SIZES:
            try:
                found = simulate(options, task, depth, "--table-size", size)
            except SystemExit as refused:
                if "hidden units" not in str(refused):
                    raise
                cells.append("too large")
                continue
            error = found["check"]["error"]
            cells.append(f"{error:.1e} ({percent(found['bound'])})")
            rows.append((task, depth, size, error))
        print(f"| {task}, L = {depth} | {' | '.join(cells)} |", flush=True)
    if options.figure:
        write_figure(options.figure, rows)


def write_figure(path, rows):
    with open(path.with_suffix(".csv"), "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "layers", "table_size", "error"])
        writer.writerows((task, depth, size, f"{error:.4g}") for task, depth, size, error in rows)
    simulated_error(path, path)


def ranges(options):
    scales = SCALES.split(",")
    errors, squares = [], []
    for task, depth in originals(options):
        for calibrated in (1, 3):
            checks = simulate(options, task, depth, "--scales", SCALES, "--range", calibrated)["scales"]
            name = f"{task}, L = {depth}"
            errors.append([f"{name}, calibrated at c = {calibrated}",
                           *(f"{percent(check['error'])} ({percent(check['outside'])})"
                             for check in checks)])
            if calibrated == 1:
                squares.append([f"{name}, original", *(f"{check['original_mse']:.2g}" for check in checks)])
            squares.append([f"{name}, copy calibrated at c = {calibrated}",
                            *(f"{check['copy_mse']:.2g}" for check in checks)])
    for title, rows in (("Error of the copy (share of arguments outside their tables)", errors),
                        ("Mean squared error against the task's answer", squares)):
        print(f"\n{title}:\n\n| | {' | '.join(f'c = {c}' for c in scales)} |\n"
              + "|---" * (len(scales) + 1) + "|")
        for row in rows:
            print(f"| {' | '.join(row)} |")


PARTS = {"train": train, "tolerance": tolerance, "copies": copies, "sizes": sizes, "ranges": ranges}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--posattn", default="build/release/posattn")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs/simulated"),
                        help="folder of the originals")
    parser.add_argument("--figure", type=pathlib.Path, help="of sizes: write FIGURE.svg and .csv")
    options = parser.parse_args()
    PARTS[options.part](options)


if __name__ == "__main__":
    main()
