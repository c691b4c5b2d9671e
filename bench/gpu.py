#!/usr/bin/env python3
"""posattn and its peers on this machine's GPU, one after the other, as one table.

  bench/gpu.py --posattn build/cuda/posattn            # about six minutes, most of it compilers
  bench/gpu.py --posattn build/cuda/posattn --peers jax --seeds 50 --json out.json
  bench/gpu.py --posattn build/cuda/posattn --length 8,16,32,64 --peers jax --seeds 10
  bench/gpu.py --posattn build/cuda/posattn --task k-hop    # token models, 1, 10 and 30 seeds

Runs `posattn bench --device cuda` and bench/peers_gpu.py (which says what each peer does) and
prints Markdown: microseconds per training step and seed, and how many times faster posattn is than
the best peer at the same number of seeds, architecture and precision. A peer with one seed only
counts at one seed; seeds one after the other would take it that time each. Of several lengths each
has a table, ours and the peers' right after each other.
"""

import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DEFAULTS = {
    "cumulative-sum": {
        "peers": "torch-eager,torch-graph,torch-vmap,jax",
        "seeds": "1,10,50,200",
        "architectures": "positional,standard",
    },
    "k-hop": {
        "peers": "torch-graph,torch-graph-plain,jax",
        "seeds": "1,10,30",
        "architectures": "standard:3,positional:6,standard:8",
    },
}


def lines_of(command):
    """Standard output of a command, line by line, as it comes; its errors pass through."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield from process.stdout
    if process.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))} ended with {process.returncode}")


def measure_posattn(options, length):
    command = [options.posattn, "bench", "--device", "cuda", "--json", "--seconds", str(options.seconds)]
    command += ["--task", options.task]
    command += ["--runs", options.seeds, "--architecture", options.architectures]
    command += ["--precision", options.precisions, *length]
    return json.loads("".join(lines_of(command)))


def measure_peers(options, length):
    command = [sys.executable, HERE / "peers_gpu.py", "--peers", options.peers, "--seeds", options.seeds]
    command += ["--task", options.task]
    command += ["--architectures", options.architectures, "--precisions", options.precisions]
    command += ["--seconds", str(options.seconds), *length]
    rows = []
    for line in lines_of(command):
        print(line, end="", file=sys.stderr)
        rows.append(json.loads(line))
    return rows[0]["versions"], rows[1:]


def name_of(row, options):
    """The architecture as it was asked for, with its depth or without."""
    with_depth = f"{row['architecture']}:{row['layers']}"
    return with_depth if with_depth in options.architectures.split(",") else row["architecture"]


def table(ours, peers, options):
    columns = [(a, p) for a in options.architectures.split(",") for p in options.precisions.split(",")]
    cells = {}
    for row in ours:
        cells["posattn", row["seeds"], name_of(row, options), row["precision"]] = row["us_per_step_and_seed"]
    for row in peers:
        cells[row["peer"], row["seeds"], row["architecture"], row["precision"]] = row.get("microseconds")
    yield "| seeds | | " + " | ".join(f"{a} {p}" for a, p in columns) + " |"
    yield "|---|---|" + "---|" * len(columns)
    for seeds in map(int, options.seeds.split(",")):
        names = [name for name in [*options.peers.split(","), "posattn"] if any(k[:2] == (name, seeds) for k in cells)]
        for name in names:
            values = [cells.get((name, seeds, *column)) for column in columns]
            texts = ["fails" if value is None else f"{value:.4g}" for value in values]
            yield f"| {seeds} | {name} | " + " | ".join(texts) + " |"
        ratios = []
        for column in columns:
            others = [cells.get((name, seeds, *column)) for name in names if name != "posattn"]
            best = min((value for value in others if value), default=None)
            own = cells.get(("posattn", seeds, *column))
            ratios.append(f"**{best / own:.1f} x**" if best and own else "")
        yield f"| {seeds} | best peer / posattn | " + " | ".join(ratios) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--posattn", default="build/cuda/posattn", help="the program, built with CUDA")
    parser.add_argument("--task", choices=list(DEFAULTS), default="cumulative-sum")
    for name in ("peers", "seeds", "architectures"):
        parser.add_argument("--" + name, help="with commas; default: the task's own")
    parser.add_argument("--length", help="of cumulative-sum, with commas; default 8")
    parser.add_argument("--precisions", default="fp32,tf32")
    parser.add_argument("--seconds", type=float, default=0.7, help="of timing per case")
    parser.add_argument("--json", metavar="FILE", help="also write everything measured")
    options = parser.parse_args()
    for name, value in DEFAULTS[options.task].items():
        if getattr(options, name) is None:
            setattr(options, name, value)

    everything = []
    for length in options.length.split(",") if options.length else [None]:
        asked = ["--length", length] if length else []
        ours = measure_posattn(options, asked)
        versions, peers = measure_peers(options, asked)
        everything.append({"length": length, "posattn": ours, "versions": versions, "peers": peers})
        if options.json:  # after each length: what has been measured stays
            pathlib.Path(options.json).write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
        if length:
            print(f"n = {length}\n")
        print("\n".join(table(ours["device_steps"], peers, options)))
        print(f"\nmicroseconds per step and seed; {versions}; ceilings {ours['ceilings']}\n", flush=True)


if __name__ == "__main__":
    main()
