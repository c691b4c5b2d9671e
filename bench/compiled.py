#!/usr/bin/env python3
"""Compiled programs: how exact they are, what they cost, how long they take.

  bench/compiled.py --posattn build/release/posattn              # all tables; about ten minutes
  bench/compiled.py cost                                         # rounds, layers, heads, words
  bench/compiled.py accuracy                                     # MSE / c^2, fp32 and double
  bench/compiled.py time --threads 1 --figure time               # time against n (needs gnuplot)

Accuracy: mean squared error of `posattn verify`, fp32 against the task's exact answer, double
against the program's interpreter in double. Time: one library call that evaluates the network, for
a batch of inputs (the best of at least five), as `posattn verify --json` reports it.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import tempfile

from draw import compiled_time

LENGTHS = (8, 32, 128)
SCALES = "1,10,1000"
# The largest MSE / c^2 that fp32 may have: where values only move, and where they are added up.
MOVED, ADDED = 1e-13, 1e-10
ACCURACY = {
    "cumulative-min": MOVED, "cumulative-max": MOVED, "sort": MOVED, "sort-odd-even": MOVED,
    "cumulative-median": MOVED, "min-sum": MOVED, "cumulative-sum": ADDED, "reduce": ADDED,
    "cumulative-max-subarray": ADDED,
}
IN_DOUBLE = 1e-26
SCAN_LENGTHS = [2**k for k in range(10, 20)] + [1_000_000]
TIMES = [  # program, inputs in a batch, lengths
    ("sort", 100, [2**k for k in range(3, 13)]),
    ("sort", 1, [2**k for k in range(10, 17)]),
    ("cumulative-sum", 1, SCAN_LENGTHS),
    ("cumulative-max", 1, SCAN_LENGTHS),
    ("cumulative-max-subarray", 1, SCAN_LENGTHS),
]


def call(options, *arguments):
    done = subprocess.run([options.posattn, *map(str, arguments), "--json"], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


def compile_and_verify(options, folder, program, length, *arguments):
    model = folder / "model.safetensors"
    call(options, "compile", program, "--length", length, "-o", model)
    return call(options, "verify", model, *arguments)["scales"]


def cost(options, _):
    tables = [call(options, "programs", "--length", n) for n in LENGTHS]
    print(f"\nAt n = {', '.join(map(str, LENGTHS))}:\n")
    print("| program | rounds | layers | heads | words | hidden units |")
    print("|---|---|---|---|---|---|")
    for rows in zip(*tables):
        if rows[0]["rounds"] is None:  # a learning algorithm
            continue
        cells = []
        for field in ("rounds", "layers", "heads", "words", "hidden"):
            values = [str(row[field]) for row in rows]
            cells.append(values[0] if len(set(values)) == 1 else ", ".join(values))
        print(f"| `{rows[0]['name']}` | {' | '.join(cells)} |")


def accuracy(options, folder):
    print(f"\nMSE / c^2, the largest of c = {SCALES}; {options.samples} inputs each:\n")
    print(f"| program | {' | '.join(f'fp32, n = {n}' for n in LENGTHS)} | may be | double, all n |")
    print("|---" * (len(LENGTHS) + 3) + "|")
    arguments = ["--samples", options.samples, "--scales", SCALES]
    for program, most in ACCURACY.items():
        in_float, in_double = [], []
        for n in LENGTHS:
            found = compile_and_verify(options, folder, program, n, *arguments)
            in_float.append(max(scale["mse_over_c2"] for scale in found))
            found = call(options, "verify", folder / "model.safetensors", *arguments, "--double")
            in_double += [scale["mse_over_c2"] for scale in found["scales"]]
        cells = " | ".join(f"{value:.1e}" for value in in_float)
        print(f"| `{program}` | {cells} | {most:.0e} | {max(in_double):.2g} |", flush=True)
        if max(in_float) > most or max(in_double) > IN_DOUBLE:
            raise SystemExit(f"{program}: not as exact as it should be")


def time(options, folder):
    print("\n| program | inputs | n | seconds |\n|---|---|---|---|")
    results = {}
    for program, batch, lengths in TIMES:
        for n in lengths:
            if n > options.longest:
                continue
            repeats = 25 if n <= 1024 else 5  # short calls are disturbed more
            measured = compile_and_verify(options, folder, program, n, "--samples", batch,
                                          "--scales", f"1..{repeats}", "--threads",
                                          options.threads)
            seconds = min(scale["network_seconds"] for scale in measured)
            results.setdefault((program, batch), []).append((n, seconds))
            print(f"| `{program}` | {batch} | {n} | {seconds:.2g} |", flush=True)
    if options.figure:
        write_figure(options.figure, results)


def write_figure(path, results):
    with open(path.with_suffix(".csv"), "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["program", "inputs", "n", "seconds"])
        for (program, batch), points in results.items():
            writer.writerows((program, batch, n, f"{seconds:.3g}") for n, seconds in points)
    compiled_time(path, path)


PARTS = {"cost": cost, "accuracy": accuracy, "time": time}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="cost, accuracy, time; default: all")
    parser.add_argument("--posattn", default="build/release/posattn")
    parser.add_argument("--samples", type=int, default=1000, help="inputs per scale for accuracy")
    parser.add_argument("--longest", type=int, default=1_000_000, help="largest n to time")
    parser.add_argument("--threads", type=int, default=0, help="to time with; 0: one per core")
    parser.add_argument("--figure", type=pathlib.Path, help="of time: write FIGURE.svg and .csv")
    options = parser.parse_args()
    for name in options.parts:
        if name not in PARTS:
            parser.error(f"unknown part '{name}'; expected one of: {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.parts or PARTS:
            PARTS[name](options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
