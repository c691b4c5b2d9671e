#!/usr/bin/env python3
"""Do the GPU and the CPU train the same networks? The same seeds on both, compared.

  bench/devices_agree.py --posattn build/cuda/posattn          # about two minutes on 16 cores

First hundred steps: with one batch an epoch every step's loss is recorded; the largest relative
difference over steps and seeds, and the largest difference of outputs after the last step relative
to the largest output, on inputs of the training range. Then whole (short) training: medians and
spread of the final losses over the seeds. Rounding differs between the engines and training
amplifies it, so long runs agree in distribution, not digit by digit.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import tempfile

DEVICES = {"cpu": ["--device", "cpu"]}
for precision in ("fp32", "tf32"):
    DEVICES[f"cuda {precision}"] = ["--device", "cuda", "--precision", precision]
ARCHITECTURES = ("positional", "standard")


def train(options, folder, device, settings):
    command = [options.posattn, "train", "--architecture", ",".join(ARCHITECTURES), "--out", folder]
    command += ["--seeds", f"0..{options.seeds - 1}", *DEVICES[device], *settings]
    subprocess.run(command, check=True, capture_output=True)


def metrics(folder, architecture, seed):
    path = folder / f"{architecture}-seed{seed}" / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def outputs(options, folder, architecture, seed, rows):
    command = [options.posattn, "predict", folder / f"{architecture}-seed{seed}"]
    text = "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line and line[0] in "-0123456789"]
    return [float(value) for line in lines for value in line.split(",")]


def first_steps(options, root):
    settings = ["--samples", "1000", "--epochs", "100", "--validate-every", "0", "--test-every", "0"]
    settings += ["--test-scales", "1"]
    for device in DEVICES:
        train(options, root / device, device, settings)
    draw = random.Random(1)
    rows = [[round(draw.uniform(-2, 2), 6) for _ in range(8)] for _ in range(200)]
    print("| first 100 steps | architecture | loss, largest relative difference | outputs, largest difference |")
    print("|---|---|---|---|")
    for device in list(DEVICES)[1:]:
        for architecture in ARCHITECTURES:
            loss = output = 0.0
            for seed in range(options.seeds):
                for a, b in zip(metrics(root / "cpu", architecture, seed), metrics(root / device, architecture, seed)):
                    loss = max(loss, abs(a["train_loss"] - b["train_loss"]) / a["train_loss"])
                a, b = (outputs(options, root / d, architecture, seed, rows) for d in ("cpu", device))
                assert len(a) == len(b) == 1600
                largest = max(abs(value) for value in a)
                output = max(output, max(abs(x - y) for x, y in zip(a, b)) / largest)
            print(f"| {device} against cpu | {architecture} | {loss:.1e} | {output:.1e} |")


def whole_runs(options, root):
    settings = ["--samples", "5000", "--epochs", "300", "--validate-every", "0", "--test-every", "0"]
    settings += ["--test-scales", "1,10"]
    for device in DEVICES:
        train(options, root / device, device, settings)
    print(f"\n| {options.seeds} runs of 1500 steps | architecture | training loss | test, c = 1 | test, c = 10 |")
    print("|---|---|---|---|---|")
    for architecture in ARCHITECTURES:
        for device in DEVICES:
            last = [metrics(root / device, architecture, seed)[-1] for seed in range(options.seeds)]
            columns = [[row["train_loss"] for row in last]]
            columns += [[row["tests"][k]["mse"] for row in last] for k in range(2)]
            texts = [f"{statistics.median(c):.3g} ({min(c):.3g} to {max(c):.3g})" for c in columns]
            print(f"| {device} | {architecture} | " + " | ".join(texts) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--posattn", default="build/cuda/posattn", help="the program, built with CUDA")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        first_steps(options, pathlib.Path(folder) / "steps")
        whole_runs(options, pathlib.Path(folder) / "runs")


if __name__ == "__main__":
    main()
