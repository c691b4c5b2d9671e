#!/usr/bin/env python3
"""Compiled learners against least squares on random regressions: mean squared errors at the query.

  bench/in_context.py --posattn build/release/posattn

y = w.x + sigma z, x ~ N(0, I), w ~ N(0, I / d). Ridges have the best lambda for one of the noises,
d sigma^2 / N; `select` chooses between them on a quarter of the examples, which the ridges then do
not see. Least squares, and each ridge once more in closed form, are computed here.
"""

import argparse
import pathlib
import random
import subprocess
import tempfile

NOISES = (0.1, 0.5)


def solved(gram, cross):
    """w of gram w = cross, by elimination with the largest pivots."""
    rows = [row + [b] for row, b in zip(gram, cross)]
    d = len(rows)
    for p in range(d):
        best = max(range(p, d), key=lambda r: abs(rows[r][p]))
        rows[p], rows[best] = rows[best], rows[p]
        for r in range(d):
            if r != p:
                factor = rows[r][p] / rows[p][p]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[p])]
    return [rows[k][d] / rows[k][k] for k in range(d)]


def dot(a, b):
    return sum(u * v for u, v in zip(a, b))


def closed_form(x, y, ridge):
    n, d = len(x), len(x[0])
    gram = [[sum(v[a] * v[b] for v in x) / n + (ridge if a == b else 0) for b in range(d)] for a in range(d)]
    return solved(gram, [sum(v[a] * t for v, t in zip(x, y)) / n for a in range(d)])


def draw(generator, d, examples, sigma):
    w = [generator.gauss(0, d ** -0.5) for _ in range(d)]
    x = [[generator.gauss(0, 1) for _ in range(d)] for _ in range(examples + 1)]
    return x, [dot(w, v) + sigma * generator.gauss(0, 1) for v in x]


def answers(options, folder, program, settings, samples):
    model = folder / "model.safetensors"
    subprocess.run([options.posattn, "compile", program, "--length", str(options.examples + 1), "--set", settings,
                    "-o", model], check=True, capture_output=True)
    rows = [",".join(f"{number:.9g}" for v, t in zip(x, [0] + y[1:]) for number in [*v, t]) for x, y in samples]
    done = subprocess.run([options.posattn, "predict", model, "--input", "-"], input="\n".join(rows) + "\n",
                          text=True, capture_output=True, check=True)
    return [float(line) for line in done.stdout.split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posattn", default="build/release/posattn")
    parser.add_argument("--samples", type=int, default=400, help="of each noise")
    parser.add_argument("--dimensions", type=int, default=20)
    parser.add_argument("--examples", type=int, default=40)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rate", type=float, default=0.4)
    options = parser.parse_args()
    generator = random.Random(7)
    d, n = options.dimensions, options.examples
    sets = {sigma: [draw(generator, d, n, sigma) for _ in range(options.samples)] for sigma in NOISES}
    ridges = [d * sigma**2 / n for sigma in NOISES]
    steps = f"d={d},steps={options.steps},rate={options.rate}"

    def errors(found):
        cells = []
        for sigma, samples in sets.items():
            squares = [(answer - y[0]) ** 2 for answer, (_, y) in zip(found(samples), samples, strict=True)]
            cells.append(f"{sum(squares) / len(squares):.3g}")
        return " | ".join(cells)

    print(f"| | {' | '.join(f'sigma = {sigma}' for sigma in NOISES)} |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for sigma, ridge in zip(NOISES, ridges):
            print(f"| compiled ridge for {sigma} |",
                  errors(lambda s: answers(options, folder, "in-context-ridge", f"{steps},lambda={ridge}", s)), "|")
            print("| the same in closed form |",
                  errors(lambda s: [dot(closed_form(x[1:], y[1:], ridge), x[0]) for x, y in s]), "|")
        selected = f"{steps},lambda1={ridges[0]},lambda2={ridges[1]},validation={n // 4}"
        print("| compiled select |", errors(lambda s: answers(options, folder, "in-context-select", selected, s)), "|")
    print("| least squares |", errors(lambda s: [dot(closed_form(x[1:], y[1:], 0), x[0]) for x, y in s]), "|")
    print("| zero |", errors(lambda s: [0 for _ in s]), "|")


if __name__ == "__main__":
    main()
