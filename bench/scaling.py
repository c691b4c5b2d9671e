#!/usr/bin/env python3
"""The numbers of docs/scaling.md: data-parallel training and sweeps over ranks beside as many threads of
one process, what a sum over the ranks takes, and a model of their cost that predicts 8 to 1,024 ranks.

    bench/scaling.py [--write] [--ranks 1,2,4] [--mpirun mpirun] [build/release/posattn]

Two minutes on idle cores. The fastest of several measurements counts; on a busy machine the numbers mean
little all the same, for ranks wait for each other.
--write puts them into docs/scaling.md.

What is measured: a step of one rank, t(b) = t0 + tc b for b samples; and for K ranks the sum of P numbers
('posattn bench --sums'), by shared memory and by TCP, of which the smallest and the largest give
alpha and beta. What follows, for K ranks and a batch of B:

    step(K) = t0 + tc B / K + 2 (K - 1) alpha + 2 (K - 1) / K * 4 P / beta

Assumptions: each rank has a core of its own; the ranks exchange pairwise, one after the other, as the
sum in rank order does; the network is as fast between any two, and never in anybody else's way.
A sweep has no communication worth the name: it takes the longer of total / K and the longest run."""

import argparse
import datetime
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
OPTIONS = argparse.ArgumentParser(description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
OPTIONS.add_argument("--write", action="store_true", help="into docs/scaling.md")
OPTIONS.add_argument("--ranks", default="1,2,4", help="how many, as 1,2,4,8")
OPTIONS.add_argument("--mpirun", default="mpirun", help="the launcher")
OPTIONS.add_argument("program", nargs="?", default=ROOT / "build/release/posattn", type=pathlib.Path)
OPTIONS = OPTIONS.parse_args()
PROGRAM = OPTIONS.program.resolve()
RANKS = [int(count) for count in OPTIONS.ranks.split(",")]
CORES = len(os.sched_getaffinity(0))
REPEATS = 2  # the best counts
BATCH, LARGE_BATCH = 1024, 65536
MODEL = ["--task", "cumulative-sum", "--architecture", "positional", "--validation-samples", "8",
         "--test-samples", "8", "--validate-every", "0", "--test-every", "0", "--test-scales", "1"]
PREDICTED = [1, 2, 4, 8, 16, 64, 256, 1024]
RUNS, EPOCHS = 32, 4
GRID = f"""
title = "A grid"
tasks = ["cumulative-sum", "sort"]
seeds = "0..{RUNS // 2 - 1}"
[axis]
key = "test-scales"
values = [1]
[settings]
samples = 2048
validation-samples = 64
test-samples = 64
batch = 256
epochs = {EPOCHS}
test-scales = "1"
[[lines]]
name = "positional"
architecture = "positional"
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                          **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def mpirun(ranks, transport="vader"):
    """Nothing for one. Ranks without a core of their own leave it to others while they wait."""
    if ranks == 1:
        return []
    crowded = ["--mca", "mpi_yield_when_idle", "1"] if ranks > CORES else []
    return [OPTIONS.mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--quiet",
            "--mca", "btl", f"self,{transport}", *crowded, "-n", ranks]


def step_seconds(batch, ranks=1, threads=1, steps=4, epochs=8):
    """The time of a step in the fastest epoch but the first."""
    best = math.inf
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            run(*mpirun(ranks), PROGRAM, "train", *MODEL, "--data-parallel", "--batch", batch,
                "--samples", batch * steps, "--epochs", epochs, "--threads", threads, "--device", "cpu",
                "--out", folder + "/out")
            metrics = pathlib.Path(folder, "out/positional-seed0/metrics.jsonl").read_text()
            seconds = [json.loads(line)["seconds"] for line in metrics.splitlines()]
        best = min([best, *((b - a) / steps for a, b in zip(seconds, seconds[1:]))])
    return best


def parameters():
    """Of the model whose steps are timed."""
    with tempfile.TemporaryDirectory() as folder:
        run(PROGRAM, "train", *MODEL, "--samples", 8, "--batch", 8, "--epochs", 1, "--out", folder,
            "--device", "cpu")
        shown = run(PROGRAM, "inspect", folder + "/positional-seed0/model.safetensors", "--json")
    return json.loads(shown)["parameter_count"]


def sweep_seconds(ranks=1, threads=1):
    best = math.inf
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "grid.toml").write_text(GRID)
            begin = time.monotonic()
            run(*mpirun(ranks), PROGRAM, "reproduce", "grid.toml", "--results", "out", "--threads",
                threads, "--device", "cpu", cwd=folder)
            best = min(best, time.monotonic() - begin)
    return best


def sum_seconds(ranks, transport, sizes):
    """The fastest sum of so many numbers."""
    found = json.loads(run(*mpirun(ranks, transport), PROGRAM, "bench", "--json", "--seconds", 0.5,
                           "--sums", ",".join(map(str, sizes))))
    return [row["fastest"] / 1e6 for row in found["sums"]]


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


def shown(seconds):
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} us"


def compare(measure, unit):
    """K threads of one process beside K ranks of one thread; their times by K."""
    rows, times = [], {}
    for count in RANKS:
        threads = measure(threads=count)
        ranks = threads if count == 1 else measure(ranks=count)
        times[count] = ranks
        rows.append([str(count), unit(threads), unit(ranks), f"{threads / ranks:.0%}",
                     f"{times[RANKS[0]] * RANKS[0] / count / ranks:.0%}"])
    table(["K", "K threads", "K ranks", "threads / ranks", "efficiency of the ranks"], rows)
    return times


def main():
    size = parameters()
    crowded = " Ranks without a core of their own share: what stands there is no efficiency." \
        if max(RANKS) > CORES else ""
    say(f"`bench/scaling.py --write --ranks {OPTIONS.ranks}`, {datetime.date.today()}, {machine()}, "
        f"{CORES} cores, load {os.getloadavg()[0]:.1f} before it began.{crowded}")

    say(f"Data-parallel training, a step of {BATCH:,} samples (n = 8, width 64, P = {size:,}):")
    steps = compare(lambda **how: step_seconds(BATCH, **how), shown)
    say(f"A sweep of {RUNS} runs of {EPOCHS} epochs, starting and ending included:")
    sweeps = compare(sweep_seconds, lambda seconds: f"{seconds:.2f} s")

    small = step_seconds(64)
    per_sample = (steps[1] - small) / (BATCH - 64)
    fixed = max(small - 64 * per_sample, 0)
    say(f"A step of b samples by one core takes t0 + tc b = {1e6 * fixed:.0f} us + "
        f"{1e6 * per_sample:.2f} us b.")

    sizes = [1, size, 1_000_000]
    several = [count for count in RANKS if 1 < count <= CORES] or [2]
    model = {}
    rows = []
    for name, transport in [("shared memory", "vader"), ("TCP", "tcp")]:
        for count in several:
            times = sum_seconds(count, transport, sizes)
            if name not in model:  # by two ranks, which are in nobody's way
                alpha = times[0] / 2 / (count - 1)
                beta = 2 * (count - 1) / count * 4 * sizes[-1] / (times[-1] - times[0])
                model[name] = (alpha, beta)
            alpha, beta = model[name]
            row = [name, str(count)]
            for numbers, seconds in zip(sizes, times):
                row += [shown(seconds), shown(2 * (count - 1) * alpha +
                                              2 * (count - 1) / count * 4 * numbers / beta)]
            rows.append(row)
    say("A sum over K ranks of this machine, and what the formula says with the numbers of "
        f"{several[0]} ranks: " + "; ".join(
            f"by {name} alpha = {1e6 * alpha:.1f} us, beta = {beta / 1e9:.2f} GB/s"
            for name, (alpha, beta) in model.items()) + ".")
    table(["by", "K"] + [word for numbers in sizes for word in (f"{numbers:,} numbers", "formula")], rows)

    def added(ranks, name):
        alpha, beta = model[name]
        return 2 * (ranks - 1) * alpha + 2 * (ranks - 1) / ranks * 4 * size / beta

    def step(ranks, samples, name):
        return fixed + per_sample * samples / ranks + added(ranks, name)

    overlap = added(2, "shared memory") / step(2, BATCH, "shared memory")
    say(f"Of a step of {BATCH:,} samples by two ranks the sum is {overlap:.1%} by shared memory and "
        f"{added(2, 'TCP') / step(2, BATCH, 'TCP'):.1%} by TCP: so much could be hidden behind the "
        "backward pass at best.")
    rows = []
    for ranks in PREDICTED:
        row = [f"{ranks:,}"]
        for samples in [BATCH, LARGE_BATCH]:
            seconds = step(ranks, samples, "TCP")
            row += [shown(seconds), f"{step(1, samples, 'TCP') / ranks / seconds:.0%}"]
        # A grid of 1,000 runs as long as these, which begin one after the other.
        begun = max(sweeps[several[-1]] - sweeps[1] / several[-1], 0)
        one = sweeps[1] / RUNS
        whole = begun + math.ceil(1000 / ranks) * one
        row += [f"{whole:.1f} s", f"{1000 * one / ranks / whole:.0%}"]
        rows.append(row)
    say(f"Predicted for ranks with a core each, with this TCP between them; a sweep of 1,000 runs of "
        f"{one:.2g} s, with {begun:.2f} s to begin and end:")
    table(["K", f"step, B = {BATCH:,}", "efficiency", f"step, B = {LARGE_BATCH:,}", "efficiency",
           "sweep", "efficiency"], rows)
    if OPTIONS.write:
        write_page()


main()
