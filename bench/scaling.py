#!/usr/bin/env python3
"""The numbers of docs/scaling.md: data-parallel training and sweeps over 1, 2 and 4 ranks beside as
many threads of one process, and a model of their cost that predicts 8 to 1,024 ranks.

    bench/scaling.py [--write] [--quick] [build/release/posattn]

It takes some minutes on two idle cores; on a busy machine the numbers mean nothing, for ranks wait for
each other at full speed. --write puts them into docs/scaling.md, --quick only tries the script.

What is measured: a step of one rank, t(b) = t0 + tc b for b samples; what adding up P gradients over two
ranks takes, 2 alpha + 4 P / beta, by shared memory and by TCP. What follows, for K ranks and a batch of B:

    step(K) = t0 + tc B / K + 2 (K - 1) alpha + 2 (K - 1) / K * 4 P / beta

Assumptions: each rank has a core of its own; the ranks exchange pairwise, one after the other, as the
sum in rank order does; the network is as fast between any two, and never in anybody else's way.
A sweep has no communication worth the name: it takes the longer of total / K and the longest run."""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
OPTIONS = argparse.ArgumentParser(description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
OPTIONS.add_argument("--write", action="store_true", help="into docs/scaling.md")
OPTIONS.add_argument("--quick", action="store_true", help="less of everything")
OPTIONS.add_argument("program", nargs="?", default=ROOT / "build/release/posattn", type=pathlib.Path)
OPTIONS = OPTIONS.parse_args()
PROGRAM = OPTIONS.program.resolve()
SETTINGS = ["--task", "cumulative-sum", "--architecture", "positional", "--validation-samples", "8",
            "--test-samples", "8", "--validate-every", "0", "--test-every", "0", "--test-scales", "1"]
REPEATS = 1 if OPTIONS.quick else 3
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


def step_seconds(batch, ranks=1, threads=1, width=64, transport="vader", steps=8):
    """The median time of a step over the epochs after the first, of the best of several runs."""
    best, epochs = float("inf"), 3 if OPTIONS.quick else 6
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
    return json.loads(shown.stdout)["parameter_count"]


def sweep_seconds(ranks=1, threads=1):
    best = float("inf")
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "grid.toml").write_text(
                GRID.replace("epochs = 8", "epochs = 1") if OPTIONS.quick else GRID)
            begin = time.monotonic()
            subprocess.run([*mpirun(ranks, "vader"), str(PROGRAM), "reproduce", "grid.toml", "--results",
                            "out", "--threads", str(threads), "--device", "cpu"], check=True,
                           capture_output=True, cwd=folder)
            best = min(best, time.monotonic() - begin)
    return best


PAGE = []


def say(text):
    print(text + "\n", flush=True)
    PAGE.append(text + "\n")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    say("\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]))


def machine():
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return found[1] if found else "an unknown processor"


def write_page():
    path = ROOT / "docs" / "scaling.md"
    begin, end = "<!-- bench/scaling.py --write -->\n", "<!-- end of bench/scaling.py -->\n"
    before, _, rest = path.read_text().partition(begin)
    path.write_text(before + begin + "\n".join(PAGE) + end + rest.partition(end)[2])


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g} ms"


def main():
    cores = len(os.sched_getaffinity(0))
    say(f"`bench/scaling.py --write`, {datetime.date.today()}, {machine()}, {cores} cores, load "
        f"{os.getloadavg()[0]:.1f} before it began. More ranks than cores share these.")
    batch = 1024

    rows = []
    for count in RANKS:
        threads, ranks = step_seconds(batch, threads=count), step_seconds(batch, ranks=count)
        rows.append([str(count), milliseconds(threads), milliseconds(ranks), f"{threads / ranks:.0%}"])
    say(f"Data-parallel training, a step of {batch} samples (n = 8, width 64):")
    table(["K", "K threads", "K ranks", "efficiency"], rows)

    rows = []
    for count in RANKS:
        threads, ranks = sweep_seconds(threads=count), sweep_seconds(ranks=count)
        rows.append([str(count), f"{threads:.2f} s", f"{ranks:.2f} s", f"{threads / ranks:.0%}"])
    say("A sweep of 16 runs of 8 epochs, starting and ending included:")
    table(["K", "K threads", "K ranks", "efficiency"], rows)

    small, large = step_seconds(64), step_seconds(batch)
    per_sample = (large - small) / (batch - 64)
    fixed = small - 64 * per_sample
    widths = [64, 256]
    sizes = [parameters(width) for width in widths]
    say(f"A step of b samples by one core takes t0 + tc b = {1e6 * fixed:.0f} us + {1e6 * per_sample:.2f} us b, "
        f"with P = {sizes[0]} parameters.")
    predictions = []
    for name, transport in [("shared memory", "vader"), ("TCP", "tcp")]:
        # Two samples for two ranks beside one for one: the same work for each.
        added = [step_seconds(2, ranks=2, width=width, transport=transport, steps=64) -
                 step_seconds(1, width=width, steps=64) for width in widths]
        per_number = max((added[1] - added[0]) / (sizes[1] - sizes[0]), 1e-12)
        alpha = max((added[0] - per_number * sizes[0]) / 2, 1e-7)
        beta = 4 / per_number
        say(f"Between two ranks by {name}: alpha = {1e6 * alpha:.1f} us, beta = {beta / 1e9:.2f} GB/s.")
        predictions.append((name, alpha, beta))

    def step(ranks, samples, alpha, beta):
        return fixed + per_sample * samples / ranks + 2 * (ranks - 1) * alpha + \
            2 * (ranks - 1) / ranks * 4 * sizes[0] / beta

    _, alpha, beta = predictions[1]
    rows = []
    for ranks in [1, 2, 4, 8, 16, 64, 256, 1024]:
        row = [str(ranks)]
        for samples in [batch, 65536]:
            time_of_step = step(ranks, samples, alpha, beta)
            efficiency = step(1, samples, alpha, beta) / ranks / time_of_step
            row += [milliseconds(time_of_step), f"{efficiency:.0%}"]
        rows.append(row)
    say("Predicted for ranks with a core each and this TCP between them:")
    table(["K", "step, B = 1,024", "efficiency", "step, B = 65,536", "efficiency"], rows)
    if OPTIONS.write:
        write_page()


main()
