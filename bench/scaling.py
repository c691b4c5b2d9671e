#!/usr/bin/env python3
"""The numbers of docs/scaling.md: what shards cost compared with one process, merging, and disk.

    bench/scaling.py [--write] [--runs 2000] [build/release/posattn]

Two minutes on idle cores. --write puts the numbers into docs/scaling.md."""

import argparse
import datetime
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
OPTIONS.add_argument("--runs", default=2000, type=int, help="of the grid that is merged")
OPTIONS.add_argument("program", nargs="?", default=ROOT / "build/release/posattn", type=pathlib.Path)
OPTIONS = OPTIONS.parse_args()
PROGRAM = OPTIONS.program.resolve()
CORES = len(os.sched_getaffinity(0))
GRID = """
title = "A grid"
tasks = ["cumulative-sum"]
seeds = "0..{last}"
[axis]
key = "test-scales"
values = [1]
[settings]
samples = {samples}
validation-samples = 8
test-samples = 8
batch = 8
epochs = {epochs}
validate-every = 0
test-every = 0
{sizes}
[[lines]]
name = "positional"
architecture = "positional"
"""


def reproduce(folder, *flags):
    return [PROGRAM, "reproduce", folder / "grid.toml", "--device", "cpu", "--threads", "1",
            "--results", folder / "out", *flags]


def seconds_of(*commands):
    """All of them at a time, until the last has ended."""
    begin = time.monotonic()
    processes = [subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE) for command in commands]
    for process in processes:
        errors = process.communicate()[1].decode()
        if process.returncode != 0:
            raise SystemExit(f"{process.args}\n{errors}")
    return time.monotonic() - begin


def make_grid(folder, **numbers):
    (folder / "grid.toml").write_text(GRID.format(**numbers))


def bytes_below(folder):
    """On disk; a file with two names counts once."""
    files = {info.st_ino: info.st_blocks * 512
             for info in (path.stat() for path in folder.rglob("*") if path.is_file())}
    return sum(files.values())


def shards_beside_one_process():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_grid(folder, last=8 * CORES - 1, samples=256, epochs=8, sizes="")
        one = seconds_of(reproduce(folder))
        size = bytes_below(folder / "out" / "runs") / (8 * CORES)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_grid(folder, last=8 * CORES - 1, samples=256, epochs=8, sizes="")
        several = seconds_of(*[reproduce(folder, "--shard", f"{k}/{CORES}") for k in range(CORES)])
    return one, several, size


def merging(shards=20):
    """The first merge of so many small runs, one that finds nothing new, and the table after it."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_grid(folder, last=OPTIONS.runs - 1, samples=8, epochs=1,
                  sizes="length = 2\nwidth = 4\nmlp-width = 4\ndepth = 1")
        for shard in range(shards):
            seconds_of(reproduce(folder, "--shard", f"{shard}/{shards}"))
        merge = [PROGRAM, "merge", folder / "out"]
        return [seconds_of(merge), seconds_of(merge), seconds_of(reproduce(folder, "--dry-run")),
                seconds_of(reproduce(folder))]


def machine():
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return found[1] if found else "an unknown processor"


def write_page(text):
    path = ROOT / "docs" / "scaling.md"
    begin, end = "<!-- bench/scaling.py --write -->\n", "<!-- end of bench/scaling.py -->\n"
    before, _, rest = path.read_text().partition(begin)
    path.write_text(before + begin + text + end + rest.partition(end)[2])


def main():
    load = os.getloadavg()[0]
    one, several, size = shards_beside_one_process()
    first, again, survey, table = merging()
    text = f"""`bench/scaling.py --write`, {datetime.date.today()}, {machine()}, {CORES} cores, load {load:.1f} before it began:

| what | measured |
|---|---|
| {8 * CORES} runs by one process of one thread | {one:.2f} s |
| the same as {CORES} shards at a time, one thread each | {several:.2f} s, efficiency {one / CORES / several:.0%} |
| disk of a finished run of the paper's size, eight epochs | {size / 1e6:.2f} MB |
| first `posattn merge` of {OPTIONS.runs:,} runs from 20 shards | {first:.2f} s, {1e3 * first / OPTIONS.runs:.2f} ms a run |
| `posattn merge` that finds nothing new | {again:.2f} s |
| `posattn reproduce --dry-run` of them | {survey:.2f} s |
| `posattn reproduce`: table and figure of them | {table:.2f} s |
"""
    print(text)
    if OPTIONS.write:
        write_page(text)


main()
