#!/usr/bin/env python3
"""Matrices of linear models of two streams: in how many samples rounding them gives the exact answer.

  bench/stream_matrices.py train --results results   # the linear lines of the two experiments
  bench/stream_matrices.py table --results results   # of every run that is there, as a markdown table
  bench/stream_matrices.py table runs/recall         # of these models, run folders or folders of runs

A row is a task and a seed: the share of samples whose rounded matrix gives the exact answer, the
share of all samples that is certain with 99 % confidence, the largest distance of an entry to 0 or 1,
and the largest error with numbers of the training range. All come from `posattn matrix --samples`.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tomllib

EXPERIMENTS = ("streams-value-range", "streams-pointer")
SOURCE = pathlib.Path(__file__).resolve().parent.parent
ARCHITECTURE = "two-streams-linear"


def experiment(name):
    return tomllib.loads((SOURCE / "experiments" / f"{name}.toml").read_text())


def linear_lines(name):
    return [line["name"] for line in experiment(name)["lines"] if line["architecture"] == ARCHITECTURE]


def train(options):
    for name in EXPERIMENTS:
        command = [options.posattn, "reproduce", name, "--lines", ",".join(linear_lines(name)), "--results",
                   options.results]
        if options.runs > 0:
            command += ["--runs", str(options.runs)]
        subprocess.run(command, check=True)


def settings_of(run):
    return tomllib.loads((run / "config.toml").read_text())


def belongs(settings, name):
    """Whether a run has the settings of a linear line of the experiment, whatever its seed."""
    known = experiment(name)
    if settings["task"] not in known["tasks"]:
        return False
    wanted = [{**known["settings"], **line} for line in known["lines"] if line["architecture"] == ARCHITECTURE]
    same = lambda line: all(settings.get(key) == value for key, value in line.items() if key != "name")
    return any(map(same, wanted))


def run_folders(options):
    if options.models:
        folders = {model.parent for path in options.models for model in pathlib.Path(path).rglob("model.safetensors")}
    else:
        folders = {model.parent for model in options.results.glob("runs/*/model.safetensors")}
    runs = []
    for folder in folders:
        settings = settings_of(folder)
        if settings["architecture"] != ARCHITECTURE:
            continue
        if options.models or any(belongs(settings, name) for name in EXPERIMENTS):
            runs.append((settings["task"], settings.get("task-set", ""), settings["seed"], folder))
    return sorted(runs)


def share(part, whole):
    """Not rounded up to all of them."""
    return "100 %" if part == whole else f"{min(100 * part / whole, 99.99):.2f} %"


def table(options):
    runs = run_folders(options)
    if not runs:
        sys.exit(f"stream_matrices.py: no runs of {ARCHITECTURE} there; train some first")
    print("| task | seed | rounding is exact | of all samples at least | largest distance to 0 or 1 | "
          "largest error |\n|---|---|---|---|---|---|")
    for task, variant, seed, folder in runs:
        command = [options.posattn, "matrix", folder, "--samples", options.samples, "--json"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        found = json.loads(done.stdout)
        print(f"| {task}{', ' + variant if variant else ''} | {seed} | {share(found['right'], found['samples'])} | "
              f"{100 * found['right_share_at_least']:.2f} % | {found['largest_distance']:.2g} | "
              f"{found['largest_error']:.2g} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("train", "table"))
    parser.add_argument("models", nargs="*", help="of a table: instead of the runs of --results")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--runs", type=int, default=0, help="train: the first so many seeds; 0: all")
    parser.add_argument("--samples", type=int, default=10000, help="of each run")
    parser.add_argument("--posattn", default=SOURCE / "build/release/posattn")
    options = parser.parse_args()
    {"train": train, "table": table}[options.command](options)


if __name__ == "__main__":
    main()
