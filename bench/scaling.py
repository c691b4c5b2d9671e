#!/usr/bin/env python3
"""The numbers of docs/scaling.md: data-parallel training and sweeps over 1, 2 and 4 ranks beside as
many threads of one process, and a model of their cost that predicts 8 to 1,024 ranks.

    bench/scaling.py [build/release/posattn]          about five minutes on two idle cores

What is measured: a step of one rank, t(b) = t0 + tc b for b samples; what adding up P gradients over two
ranks takes, 2 alpha + 4 P / beta, by shared memory and by TCP. What follows, for K ranks and a batch of B:

    step(K) = t0 + tc B / K + 2 (K - 1) alpha + 2 (K - 1) / K * 4 P / beta

Assumptions: each rank has a core of its own; the ranks exchange pairwise, one after the other, as the
sum in rank order does; the network is as fast between any two, and never in anybody else's way.
A sweep has no communication worth the name: it takes the longer of total / K and the longest run."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/posattn").resolve()
SETTINGS = ["--task", "cumulative-sum", "--architecture", "positional", "--validation-samples", "8",
            "--test-samples", "8", "--validate-every", "0", "--test-every", "0", "--test-scales", "1"]
REPEATS = 3
RANKS = [1, 2, 4]
GRID = """
title = "A grid"
tasks = ["cumulative-sum", "sort"]
seeds = "0..7"
[axis]
key = "test-scales"
values = [1]
[settings]
samples = 4096
validation-samples = 64
test-samples = 64
batch = 256
epochs = 8
test-scales = "1"
[[lines]]
name = "positional"
architecture = "positional"
"""


def mpirun(ranks, transport):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--quiet", "--mca",
            "btl", f"self,{transport}", "-n", str(ranks)] if ranks > 1 else []


def step_seconds(batch, ranks=1, threads=1, width=64, transport="vader", steps=8, epochs=5):
    """The median time of a step over the epochs after the first, of the best of several runs."""
    best = float("inf")
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            command = [*mpirun(ranks, transport), str(PROGRAM), "train", *SETTINGS, "--data-parallel",
                       "--batch", str(batch), "--samples", str(batch * steps), "--epochs", str(epochs),
                       "--width", str(width), "--mlp-width", str(width), "--threads", str(threads),
                       "--device", "cpu", "--out", folder + "/out"]
            subprocess.run(command, check=True, capture_output=True)
            metrics = pathlib.Path(folder, "out/positional-seed0/metrics.jsonl").read_text()
            seconds = [json.loads(line)["seconds"] for line in metrics.splitlines()]
        best = min(best, statistics.median(b - a for a, b in zip(seconds, seconds[1:])) / steps)
    return best


def parameters(width):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(PROGRAM), "train", *SETTINGS, "--samples", "8", "--batch", "8", "--epochs", "1",
                        "--width", str(width), "--mlp-width", str(width), "--out", folder], check=True,
                       capture_output=True)
        shown = subprocess.run([str(PROGRAM), "inspect", folder + "/positional-seed0/model.safetensors",
                                "--json"], check=True, capture_output=True, text=True)
    return json.loads(shown.stdout)["parameters"]


def sweep_seconds(ranks=1, threads=1):
    best = float("inf")
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "grid.toml").write_text(GRID)
            begin = time.monotonic()
            subprocess.run([*mpirun(ranks, "vader"), str(PROGRAM), "reproduce", "grid.toml", "--results",
                            "out", "--threads", str(threads), "--device", "cpu"], check=True,
                           capture_output=True, cwd=folder)
            best = min(best, time.monotonic() - begin)
    return best


def table(header, rows):
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g} ms"


def main():
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, load {os.getloadavg()[0]:.1f} before the measurement\n")
    batch = 1024

    rows = []
    for count in RANKS:
        threads, ranks = step_seconds(batch, threads=count), step_seconds(batch, ranks=count)
        rows.append([str(count), milliseconds(threads), milliseconds(ranks), f"{threads / ranks:.0%}"])
    print(f"Data-parallel training, a step of {batch} samples (n = 8, width 64):\n")
    table(["K", "K threads", "K ranks", "efficiency"], rows)

    rows = []
    for count in RANKS:
        threads, ranks = sweep_seconds(threads=count), sweep_seconds(ranks=count)
        rows.append([str(count), f"{threads:.2f} s", f"{ranks:.2f} s", f"{threads / ranks:.0%}"])
    print("A sweep of 16 runs, with starting and ending:\n")
    table(["K", "K threads", "K ranks", "efficiency"], rows)

    small, large = step_seconds(64), step_seconds(batch)
    per_sample = (large - small) / (batch - 64)
    fixed = small - 64 * per_sample
    widths = [64, 256]
    sizes = [parameters(width) for width in widths]
    print(f"A step of b samples by one core: t0 + tc b = {1e6 * fixed:.0f} us + {1e6 * per_sample:.2f} us b; "
          f"P = {sizes[0]} parameters\n")
    predictions = []
    for name, transport in [("shared memory", "vader"), ("TCP", "tcp")]:
        # Two samples for two ranks beside one for one: the same work for each.
        added = [step_seconds(2, ranks=2, width=width, transport=transport, steps=64) -
                 step_seconds(1, width=width, steps=64) for width in widths]
        per_number = max((added[1] - added[0]) / (sizes[1] - sizes[0]), 1e-12)
        alpha = max((added[0] - per_number * sizes[0]) / 2, 1e-7)
        beta = 4 / per_number
        print(f"{name}: alpha = {1e6 * alpha:.1f} us, beta = {beta / 1e9:.2f} GB/s\n")
        predictions.append((name, alpha, beta))

    def step(ranks, samples, alpha, beta):
        return fixed + per_sample * samples / ranks + 2 * (ranks - 1) * alpha + \
            2 * (ranks - 1) / ranks * 4 * sizes[0] / beta

    name, alpha, beta = predictions[1]
    rows = []
    for ranks in [1, 2, 4, 8, 16, 64, 256, 1024]:
        row = [str(ranks)]
        for samples in [batch, 65536]:
            time_of_step = step(ranks, samples, alpha, beta)
            efficiency = step(1, samples, alpha, beta) / ranks / time_of_step
            row += [milliseconds(time_of_step), f"{efficiency:.0%}"]
        rows.append(row)
    print("Predicted with TCP's alpha and beta:\n")
    table(["K", "step, B = 1,024", "efficiency", "step, B = 65,536", "efficiency"], rows)


main()
