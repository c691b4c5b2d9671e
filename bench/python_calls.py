#!/usr/bin/python3
"""Time per call of a model from Python, compared with the same model in PyTorch (Debian's python3-torch):

    PYTHONPATH=build/release/python bench/python_calls.py [--seconds 2]

The paper's models (n = 8, width 64, four layers, two heads), batch 1 and 1000, float32, without
gradients, on one thread: posattn, PyTorch's module as it is, and traced by TorchScript. Medians of the
thread's own time, so that other work on the machine matters little.
"""

import argparse
import statistics
import time
import warnings

import torch

import posattn
import posattn.torch


def microseconds(call, seconds):
    for _ in range(5):
        call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return statistics.median(times) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each number")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)  # of fixed shapes
    print("| model | batch | posattn (us) | PyTorch (us) | TorchScript (us) |\n|---|---|---|---|---|")
    for name, model in (("positional", posattn.new("sort", "positional")),
                        ("standard", posattn.new("sort", "standard")),
                        ("compiled sort", posattn.compile("sort", length=8).model)):
        module = posattn.torch.Module(model).eval()
        for batch in (1, 1000):
            x = torch.randn(batch, 8)
            array = x.numpy()
            with torch.no_grad():
                traced = torch.jit.trace(module, x)
                times = [microseconds(call, options.seconds) for call in
                         (lambda: model(array), lambda: module(x),
                          lambda: traced(x))]
            print(f"| {name} | {batch} | " + " | ".join(f"{value:.0f}" for value in times) + " |")


if __name__ == "__main__":
    main()
