#!/usr/bin/env python3
"""Which number orders runs as their generalisation gaps do?

    posattn certify runs --rows rows.jsonl && scripts/gap_ranking.py rows.jsonl

Kendall's tau-b between the measured gap (fresh minus training loss of the networks as they were trained) and each indicator
in the rows, with the middle 95 % over 2,000 resamples of the runs. As m decides most of the gap where it varies, the second
column leaves that out: only pairs of runs with the same m, task and architecture count.
"""
import argparse
import json
import random

INDICATORS = {
    "distance from the initial weights": lambda row: row["indicators"]["distance"],
    "Jacobian norm on data": lambda row: row["indicators"]["jacobian"],
    "path norm": lambda row: row["indicators"]["log10_path_norm"],
    "norm bound": lambda row: row["indicators"]["log10_norm_bound"],
    "count bound": lambda row: row["indicators"]["log10_count_bound"],
    "certificate, randomised network": lambda row: row["randomised"]["bound"],
    "certificate less its training loss": lambda row: row["randomised"]["bound"] - row["randomised"]["training_loss"],
    "KL / m": lambda row: row["divergence"] / row["samples"],
    "1 / m": lambda row: 1 / row["samples"],
    "training loss": lambda row: row["plain"]["training_loss"],
}


def sign(x):
    return (x > 0) - (x < 0)


def tau_b(gaps, values, pairs):
    """None where one of the two never differs."""
    agreement = different_gaps = different_values = 0
    for i, j in pairs:
        a, b = sign(gaps[i] - gaps[j]), sign(values[i] - values[j])
        agreement += a * b
        different_gaps += a * a
        different_values += b * b
    product = different_gaps * different_values
    return agreement / product ** 0.5 if product else None


def interval(gaps, values, kinds, resamples, generator):
    """tau and the middle 95 % of it over resamples; kinds None: all pairs count."""
    def tau(chosen):
        pairs = [(a, b) for k, a in enumerate(chosen) for b in chosen[:k]
                 if kinds is None or kinds[a] == kinds[b]]
        return tau_b(gaps, values, pairs)

    everyone = range(len(gaps))
    found = [tau(generator.choices(everyone, k=len(gaps))) for _ in range(resamples)]
    found = sorted(value for value in found if value is not None)
    middle = tau(list(everyone))
    if middle is None or not found:
        return "-"
    return f"{middle:+.2f} [{found[len(found) * 25 // 1000]:+.2f}, {found[len(found) * 975 // 1000]:+.2f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rows", help="what posattn certify --rows wrote")
    parser.add_argument("--resamples", type=int, default=2000)
    arguments = parser.parse_args()
    with open(arguments.rows) as lines:
        rows = list({row["run"]: row for row in map(json.loads, lines)}.values())
    if len(rows) < 3:
        parser.error(f"{arguments.rows} holds {len(rows)} runs; expected at least 3")
    gaps = [row["plain"]["fresh_loss"] - row["plain"]["training_loss"] for row in rows]
    kinds = [(row["task"], row["architecture"], row["samples"]) for row in rows]
    print(f"{len(rows)} runs, gaps from {min(gaps):.2g} to {max(gaps):.2g}\n")
    print("| indicator | tau, all runs | tau, within equal m, task and architecture |\n|---|---|---|")
    for name, value_of in INDICATORS.items():
        values = [value_of(row) for row in rows]
        columns = [interval(gaps, values, of, arguments.resamples, random.Random(1)) for of in (None, kinds)]
        print(f"| {name} | {columns[0]} | {columns[1]} |")


if __name__ == "__main__":
    main()
