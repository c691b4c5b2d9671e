#!/usr/bin/python3
"""The peer of `posattn bench --peer`: the same training step and the same inference in PyTorch.

Prints one JSON line per measurement. A setting is the environment PyTorch runs in; the script
starts itself again inside it, since OpenMP, OpenBLAS and malloc read theirs only at start-up:

  default  as installed. Debian's PyTorch then runs OpenMP threads in addition to OpenBLAS's own, and they
           compete for the same cores.
  openmp   OpenBLAS built for OpenMP (Debian's libopenblas0-openmp), and malloc keeps large blocks
           instead of returning them to the system every step.
  passive  the installed OpenBLAS with OpenMP threads that sleep while they wait, malloc as above.
  best     all three, one after the other; the fastest of each measurement counts.

gflops is nominal flops over time: the multiply-adds of the architecture as it is written (linear
maps and mixing of every layer), 6 flops each for training and 2 for inference.

Task cumulative-sum is the paper's numeric model, k-hop its token model (token_torch.py). The paper's two
architectures are written out here, every other one is the definition of posattn.transformer.
"""

import argparse
import glob
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

WIDTH, HEADS, MLP_WIDTH = 64, 2, 64
KEEP_BLOCKS = {
    "MALLOC_MMAP_THRESHOLD_": "1000000000",
    "MALLOC_TRIM_THRESHOLD_": "10000000000",
    "MALLOC_TOP_PAD_": "100000000",
}
SETTINGS = {"default": {}, "passive": {"OMP_WAIT_POLICY": "passive", **KEEP_BLOCKS}}
for library in sorted(glob.glob("/usr/lib/*/openblas-openmp/libopenblas.so.0"))[:1]:
    SETTINGS["openmp"] = {"LD_LIBRARY_PATH": os.path.dirname(library), **KEEP_BLOCKS}
INSIDE = "POSATTN_PEER_SETTING"  # marks the process that runs in the environment of its setting


def environment(setting, threads):
    """The variables of a setting; whatever the caller had tuned before does not leak in."""
    tuned = {name for variables in SETTINGS.values() for name in variables}
    variables = {name: value for name, value in os.environ.items() if name not in tuned}
    return {**variables, **SETTINGS[setting], "OMP_NUM_THREADS": str(threads), INSIDE: setting}


def run(setting, threads):
    """This script with the same arguments inside a setting: its measurements."""
    command = [sys.executable, *sys.argv, "--setting", setting]
    done = subprocess.run(
        command, env=environment(setting, threads), stdout=subprocess.PIPE, check=False
    )
    if done.returncode != 0:
        sys.exit(done.returncode)  # it has said why on stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def fastest(runs):
    """Of the same measurements in several settings, the fastest of each."""
    for same in zip(*runs):
        best = min(same, key=lambda result: result["ms_per_step"])
        yield {**best, "setting": "best", "environment": best["setting"]}


PAPER = ("positional", "standard")


def definitions():
    """The module that defines every architecture, from the source tree or the installed package."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
    try:
        import posattn_torch
    except ImportError:
        from posattn import transformer as posattn_torch
    return posattn_torch


def spec_of(architecture, depth, length):
    """Values of two streams are as wide as symbols, as in `posattn bench`."""
    module = definitions()
    streams = {"value_width": WIDTH, "value_mlp_width": MLP_WIDTH}
    widths = {name: width for name, width in streams.items() if name in module.PRESETS[architecture]}
    return module.preset(architecture, depth=depth, real_nodes=length, **widths)


def depth_for(length):
    return length.bit_length()  # floor(log2 n) + 1


def token_multiply_adds(architecture, depth, batch):
    """Of one forward pass of a token model, counted like those of the others."""
    import token_torch as token

    linear = 2 * token.WIDTH**2 + 2 * token.WIDTH * token.MLP_WIDTH
    mixing = token.TOKENS * token.WIDTH
    attention = 2 * token.WIDTH**2 + token.TOKENS * token.WIDTH
    attention_batch = 1 if architecture == "positional" else batch
    return depth * token.TOKENS * (batch * (linear + mixing) + attention_batch * attention)


def multiply_adds(architecture, depth, length, batch):
    """Of one forward pass; attention from positions is counted once a step, not per sample."""
    nodes = length + 1
    if architecture not in PAPER:
        return multiply_adds_of(spec_of(architecture, depth, length), batch)
    linear = 2 * WIDTH * WIDTH + 2 * WIDTH * MLP_WIDTH + MLP_WIDTH * WIDTH  # V and O, MLP
    mixing = nodes * WIDTH
    key_size = nodes if architecture == "positional" else WIDTH
    attention = key_size * 2 * key_size * HEADS + HEADS * nodes * key_size  # QK map, scores
    attention_batch = 1 if architecture == "positional" else batch
    per_layer = nodes * (batch * (linear + mixing) + attention_batch * attention)
    return depth * per_layer


def multiply_adds_of(spec, batch):
    if spec.value_width > 0:
        return batch * sum(stream_multiply_adds(spec, layer == spec.depth - 1) for layer in range(spec.depth))
    nodes, width = spec.nodes, spec.width
    per_sample = 2 * width**2 + 3 * width * spec.mlp_width + nodes * width  # V and O, MLP, mixing
    once = 0
    if spec.reads_data:
        per_sample += HEADS * spec.key_size * 2 * spec.source_size
        if spec.weighting == "kernel":
            per_sample += HEADS * spec.features * (2 * spec.key_size + nodes)
        else:
            per_sample += HEADS * spec.key_size * nodes
        channels = HEADS * (2 if spec.score_bias == "none" else 3)  # in and out of 32 hidden ones
        per_sample += nodes * spec.score_window * 32 * channels
    if spec.position_scores == "positions":
        once = HEADS * spec.position_key_size * (2 * spec.encoding_size + nodes)
    return spec.depth * nodes * (batch * per_sample + once)


def stream_multiply_adds(spec, last):
    """Of a layer of two streams that answers with numbers; symbols have nothing to answer in the last one."""
    nodes, width, values, hidden = spec.nodes, spec.width, spec.value_width, spec.value_mlp_width
    gated = spec.value_gates != "none"
    row = HEADS * spec.key_size * (2 * spec.source_size + nodes)
    row += 2 * values**2 + nodes * values + 2 * values * hidden
    if gated:
        row += width * (2 * values + hidden)
    if gated or not last:
        row += 2 * width**2 + nodes * width
    if not last:
        row += 2 * width * spec.mlp_width
    return nodes * row


def build_defined(architecture, depth, length):
    from torch import nn

    class WithoutScratch(nn.Module):
        """As the others: of values with the scratch node's zero appended."""

        def __init__(self):
            super().__init__()
            self.model = definitions().Transformer(spec_of(architecture, depth, length))

        def forward(self, x):
            return self.model(x[:, :length])

    return WithoutScratch()


def build(architecture, depth, length):
    import torch
    from torch import nn

    if architecture not in PAPER:
        return build_defined(architecture, depth, length)

    nodes, positional = length + 1, architecture == "positional"
    key_size = nodes if positional else WIDTH

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qk_proj = nn.Linear(key_size, 2 * key_size * HEADS)
            self.v_proj = nn.Linear(WIDTH, WIDTH)
            self.o_proj = nn.Linear(WIDTH, WIDTH)

        def forward(self, x, positions):
            samples = x.shape[0]
            qk = self.qk_proj(positions if positional else x)
            qk = qk.view(-1, nodes, HEADS, 2 * key_size).transpose(1, 2)
            query, key = qk.chunk(2, -1)
            weights = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(key_size), -1)
            value = self.v_proj(x).view(samples, nodes, HEADS, WIDTH // HEADS).transpose(1, 2)
            return self.o_proj((weights @ value).transpose(1, 2).reshape(samples, nodes, WIDTH))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = Attention()
            self.mlp = nn.Sequential(
                nn.Linear(2 * WIDTH, MLP_WIDTH), nn.ReLU(), nn.Linear(MLP_WIDTH, WIDTH)
            )

        def forward(self, x, positions):
            return self.mlp(torch.cat([x, self.attn(x, positions)], -1))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("positions", torch.eye(nodes))
            self.encoding = nn.Linear(1 if positional else 1 + nodes, WIDTH)
            self.layers = nn.ModuleList(Layer() for _ in range(depth))
            self.decoding = nn.Linear(WIDTH, 1)

        def forward(self, x):
            if not positional:
                x = torch.cat([x, self.positions.expand(x.shape[0], nodes, nodes)], -1)
            x = self.encoding(x)
            for layer in self.layers:
                x = layer(x, self.positions)
            return self.decoding(x)

    return Transformer()


def samples(length, batch):
    """Values with the scratch node's zero appended, and their cumulative sums."""
    import torch

    values = torch.rand(batch, length, 1) * 4 - 2
    return torch.cat([values, torch.zeros(batch, 1, 1)], 1), values.cumsum(1)


def training_step(architecture, depth, length, batch):
    import torch

    network = build(architecture, depth, length)
    optimiser = torch.optim.Adam(network.parameters(), lr=5e-4)
    inputs, targets = samples(length, batch)

    def step():
        optimiser.zero_grad()
        loss = torch.nn.functional.mse_loss(network(inputs)[:, :length], targets)
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def token_training_step(architecture, depth, length, batch):
    import token_torch as token
    import torch

    network = token.TokenModel(architecture, depth)
    optimiser = token.adamw(network)
    tokens, labels = token.token_batch(batch)

    def step():
        optimiser.zero_grad()
        loss = network(tokens, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), token.MOST_NORM)
        optimiser.step()
        return loss.item()

    return step


def inference_step(architecture, depth, length, batch):
    import torch

    network = build(architecture, depth, length)
    inputs, _ = samples(length, batch)

    def step():
        with torch.no_grad():
            return network(inputs)

    return step


def token_inference_step(architecture, depth, length, batch):
    import token_torch as token
    import torch

    network = token.TokenModel(architecture, depth)
    tokens, _ = token.token_batch(batch)

    def step():
        with torch.no_grad():
            return network.logits(tokens)

    return step


def milliseconds(step, repetitions):
    for _ in range(3):
        step()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return times


STEPS = {
    ("cumulative-sum", "train"): (training_step, 6),
    ("cumulative-sum", "inference"): (inference_step, 2),
    ("k-hop", "train"): (token_training_step, 6),
    ("k-hop", "inference"): (token_inference_step, 2),
}


def measure(arguments, architecture, depth, mode, batch):
    import torch

    length = arguments.length
    make, flops_each = STEPS[arguments.task, mode]
    times = milliseconds(make(architecture, depth, length, batch), arguments.repetitions)
    middle = statistics.median(times)
    low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    if arguments.task == "k-hop":
        flops = flops_each * token_multiply_adds(architecture, depth, batch)
    else:
        flops = flops_each * multiply_adds(architecture, depth, length, batch)
    return {
        "name": "pytorch",
        "version": torch.__version__,
        "setting": arguments.setting,
        "task": arguments.task,
        "architecture": architecture,
        "mode": mode,
        "length": length,
        "layers": depth,
        "batch": batch,
        "threads": arguments.threads,
        "ms_per_step": round(middle, 4),
        "spread": [round(low, 4), round(high, 4)],
        "gflops": round(flops / middle / 1e6, 2),
    }


def words(text):
    return text.split(",")


def numbers(text):
    return [int(word) for word in words(text)]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setting", choices=(*SETTINGS, "best"), default="best")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--task", choices=("cumulative-sum", "k-hop"), default="cumulative-sum")
    parser.add_argument(
        "--architecture", type=words, default=["positional", "standard"], help="NAME or NAME:LAYERS"
    )
    parser.add_argument("--mode", type=words, default=["train", "inference"])
    parser.add_argument("--length", type=int, default=8, help="of cumulative-sum; k-hop has 99 tokens")
    parser.add_argument("--batch", type=int, default=1000, help="samples of a training step")
    parser.add_argument("--inference-batch", type=numbers, default=[1000, 250])
    parser.add_argument("--repetitions", type=int, default=15)
    arguments = parser.parse_args()
    if arguments.task == "k-hop" and arguments.length != 99:
        parser.error("k-hop is measured at length 99")
    pairs = [name.partition(":") for name in arguments.architecture]
    arguments.architecture = [name for name, _, _ in pairs]
    arguments.layers = [int(depth or depth_for(arguments.length)) for _, _, depth in pairs]
    for name, known in (
        ("architecture", set(PAPER if arguments.task == "k-hop" else definitions().PRESETS)),
        ("mode", {"train", "inference"}),
    ):
        unknown = set(getattr(arguments, name)) - known
        if unknown:
            parser.error(f"unknown {name} {sorted(unknown)}; expected {sorted(known)}")
    counts = [arguments.threads, arguments.length, arguments.batch, *arguments.inference_batch]
    if min(counts) < 1 or arguments.repetitions < 2:
        parser.error("sizes must be at least 1 and repetitions at least 2")
    return arguments


def measure_all(arguments):
    try:
        import torch
    except ImportError:
        sys.exit("peer_torch.py: PyTorch is missing (Debian: python3-torch, for /usr/bin/python3)")
    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    for architecture, depth in zip(arguments.architecture, arguments.layers):
        for mode in arguments.mode:
            batches = [arguments.batch] if mode == "train" else arguments.inference_batch
            for batch in batches:
                yield measure(arguments, architecture, depth, mode, batch)


def main():
    arguments = parse()
    if os.environ.get(INSIDE) == arguments.setting:
        results = measure_all(arguments)
    elif arguments.setting == "best":
        results = fastest([run(setting, arguments.threads) for setting in SETTINGS])
    else:
        results = run(arguments.setting, arguments.threads)
    for result in results:
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
