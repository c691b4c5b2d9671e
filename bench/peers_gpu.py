#!/usr/bin/env python3
"""What PyTorch and JAX need for one training step of the paper's model on this machine's GPU.

The model is the one `posattn bench --device cuda` times: length n (8 unless --length says otherwise;
n + 1 nodes, floor(log2 n) + 1 layers), batch 1000, width 64, 2 heads; forward, backward and Adam, the batch already on the device. Prints one JSON
line per measurement: peer, architecture, precision, seeds, and microseconds per step and seed
(median over rounds, with the quartiles). The peers, each in the way its users would tune it:

  torch-eager   one run, a Python loop that asks for the loss every step, as the paper's code does
  torch-graph   one run, torch.compile, fused Adam, replayed as a CUDA graph
  torch-vmap    seeds vectorised by torch.func.vmap, compiled, replayed as a CUDA graph
  jax           seeds vectorised by jax.vmap, 20 steps in one lax.scan

A peer that cannot run a case is reported with its error instead of a time. With --task k-hop the
same for the token models of token_torch.py, at the depths named (standard:3).
"""

import argparse
import json
import math
import os
import sys

from gpu_timing import graph_of, report, rounds

BATCH, WIDTH, HEADS, MLP_WIDTH = 1000, 64, 2, 64
NODES, DEPTH = 9, 4  # of length 8; set_length changes them
LEARNING_RATE = 5e-4
JAX_STEPS = 20


def set_length(length):
    global NODES, DEPTH
    NODES, DEPTH = length + 1, length.bit_length()


def key_size(architecture):
    return NODES if architecture == "positional" else WIDTH


def input_size(architecture):
    return 1 if architecture == "positional" else 1 + NODES


# ---- PyTorch ------------------------------------------------------------------------------------


def torch_network(architecture):
    import torch
    from torch import nn

    positional = architecture == "positional"
    size = key_size(architecture)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.query_key = nn.Linear(size, 2 * size * HEADS)
            self.value = nn.Linear(WIDTH, WIDTH)
            self.output = nn.Linear(WIDTH, WIDTH)
            self.first = nn.Linear(2 * WIDTH, MLP_WIDTH)
            self.second = nn.Linear(MLP_WIDTH, WIDTH)

        def forward(self, x, positions):
            samples = x.shape[0]
            value = self.value(x).view(samples, NODES, HEADS, WIDTH // HEADS).transpose(1, 2)
            source = positions if positional else x
            shape = (NODES, HEADS, 2 * size) if positional else (samples, NODES, HEADS, 2 * size)
            query, key = self.query_key(source).view(shape).transpose(-3, -2).chunk(2, -1)
            attention = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(size), -1)
            mixed = (attention @ value).transpose(1, 2).reshape(samples, NODES, WIDTH)
            hidden = torch.relu(self.first(torch.cat([x, self.output(mixed)], -1)))
            return self.second(hidden)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoding = nn.Linear(input_size(architecture), WIDTH)
            self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
            self.decoding = nn.Linear(WIDTH, 1)

        def forward(self, x, positions):
            if not positional:
                x = torch.cat([x, positions.unsqueeze(0).expand(x.size(0), -1, -1)], -1)
            x = self.encoding(x)
            for layer in self.layers:
                x = layer(x, positions)
            return self.decoding(x)

    return Network().cuda()


def torch_data(*leading):
    import torch

    x = torch.randn(*leading, BATCH, NODES, 1, device="cuda")
    return x, torch.cumsum(x, -2), torch.eye(NODES, device="cuda")


def squared_error(output, target):
    return ((output[..., :-1, :] - target[..., :-1, :]) ** 2).mean()


def torch_eager(architecture, precision, seeds, seconds):
    import torch

    network = torch_network(architecture)
    x, target, positions = torch_data()
    optimiser = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)

    def step():
        optimiser.zero_grad()
        loss = squared_error(network(x, positions), target)
        loss.backward()
        optimiser.step()
        return loss.item()

    report("torch-eager", architecture, precision, seeds, rounds(step, torch.cuda.synchronize, seconds))


def torch_graph(architecture, precision, seeds, seconds):
    import torch

    network = torch_network(architecture)
    x, target, positions = torch_data()
    optimiser = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, capturable=True, fused=True)
    compiled = torch.compile(network)

    def step():
        optimiser.zero_grad(set_to_none=True)
        squared_error(compiled(x, positions), target).backward()
        optimiser.step()

    graph = graph_of(step)
    report(
        "torch-graph", architecture, precision, seeds, rounds(graph.replay, torch.cuda.synchronize, seconds)
    )


def torch_vmap(architecture, precision, seeds, seconds):
    import torch
    from torch.func import functional_call, grad, vmap

    network = torch_network(architecture)
    x, target, positions = torch_data(seeds)
    weights = {
        name: value.detach() + 0.01 * torch.randn(seeds, *value.shape, device="cuda")
        for name, value in network.named_parameters()
    }
    first = {name: torch.zeros_like(value) for name, value in weights.items()}
    second = {name: torch.zeros_like(value) for name, value in weights.items()}

    def loss(own, own_x, own_target):
        return squared_error(functional_call(network, own, (own_x, positions)), own_target)

    gradient_of = torch.compile(vmap(grad(loss)))

    def step():
        gradients = gradient_of(weights, x, target)
        g, m, v, w = ([part[name] for name in weights] for part in (gradients, first, second, weights))
        torch._foreach_lerp_(m, g, 0.1)
        torch._foreach_mul_(v, 0.999)
        torch._foreach_addcmul_(v, g, g, 0.001)
        root = torch._foreach_sqrt(v)
        torch._foreach_add_(root, 1e-8)
        torch._foreach_addcdiv_(w, m, root, -LEARNING_RATE)

    graph = graph_of(step)
    report(
        "torch-vmap", architecture, precision, seeds, rounds(graph.replay, torch.cuda.synchronize, seconds)
    )


# ---- JAX ----------------------------------------------------------------------------------------


def jax_scan(architecture, precision, seeds, seconds):
    import jax
    import jax.numpy as jnp

    positional = architecture == "positional"
    size = key_size(architecture)
    products = "highest" if precision == "fp32" else "tensorfloat32"
    positions = jnp.eye(NODES)

    def initial(key):
        keys = iter(jax.random.split(key, 5 * DEPTH + 2))

        def linear(inputs, outputs):
            bound = 1 / math.sqrt(inputs)
            weight = jax.random.uniform(next(keys), (inputs, outputs), minval=-bound, maxval=bound)
            return weight, jnp.zeros(outputs)

        return {
            "encoding": linear(input_size(architecture), WIDTH),
            "decoding": linear(WIDTH, 1),
            "layers": [
                {
                    "query_key": linear(size, 2 * size * HEADS),
                    "value": linear(WIDTH, WIDTH),
                    "output": linear(WIDTH, WIDTH),
                    "first": linear(2 * WIDTH, MLP_WIDTH),
                    "second": linear(MLP_WIDTH, WIDTH),
                }
                for _ in range(DEPTH)
            ],
        }

    def apply(linear, x):
        return x @ linear[0] + linear[1]

    def forward(weights, x):
        if not positional:
            x = jnp.concatenate([x, jnp.broadcast_to(positions, (BATCH, NODES, NODES))], -1)
        x = apply(weights["encoding"], x)
        for layer in weights["layers"]:
            value = apply(layer["value"], x).reshape(BATCH, NODES, HEADS, WIDTH // HEADS)
            source = positions if positional else x
            both = apply(layer["query_key"], source).reshape(*source.shape[:-1], HEADS, 2 * size)
            query, key = jnp.split(both, 2, -1)
            scores = jnp.einsum("...nhd,...mhd->...hnm", query, key) / math.sqrt(size)
            attention = jax.nn.softmax(scores, -1)
            mixing = "hnm,bmhd->bnhd" if positional else "bhnm,bmhd->bnhd"
            mixed = jnp.einsum(mixing, attention, value).reshape(BATCH, NODES, WIDTH)
            joined = jnp.concatenate([x, apply(layer["output"], mixed)], -1)
            x = apply(layer["second"], jax.nn.relu(apply(layer["first"], joined)))
        return apply(weights["decoding"], x)

    def loss(weights, x, target):
        return squared_error(forward(weights, x), target)

    def train(weights, m, v, x, target):
        def step(carry, _):
            weights, m, v = carry
            value, g = jax.value_and_grad(loss)(weights, x, target)
            m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
            v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
            weights = jax.tree.map(
                lambda w, a, b: w - LEARNING_RATE * a / (jnp.sqrt(b) + 1e-8), weights, m, v
            )
            return (weights, m, v), value

        return jax.lax.scan(step, (weights, m, v), None, length=JAX_STEPS)

    with jax.default_matmul_precision(products):
        fleet = jax.jit(jax.vmap(train))
        key = jax.random.PRNGKey(0)
        weights = jax.vmap(initial)(jax.random.split(key, seeds))
        zeros = jax.tree.map(jnp.zeros_like, weights)
        x = jax.random.normal(key, (seeds, BATCH, NODES, 1))
        target = jnp.cumsum(x, -2)
        last = [None]

        def step():
            last[0] = fleet(weights, zeros, zeros, x, target)

        times = rounds(step, lambda: jax.block_until_ready(last[0]), seconds, JAX_STEPS)
    report("jax", architecture, precision, seeds, times)


PEERS = {"torch-eager": torch_eager, "torch-graph": torch_graph, "torch-vmap": torch_vmap, "jax": jax_scan}


def cases(peers, architectures, precisions, seed_counts):
    for peer in peers:
        for architecture in architectures:
            for precision in precisions:
                if peer in ("torch-eager", "torch-graph", "torch-graph-plain"):
                    yield peer, architecture, precision, 1
                else:
                    for seeds in seed_counts:
                        if peer == "jax" or 1 < seeds <= 50:  # vmap pays with seeds; 200 need too much memory
                            yield peer, architecture, precision, seeds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--task", choices=("cumulative-sum", "k-hop"), default="cumulative-sum")
    parser.add_argument("--peers", help="some of them, with commas; default: all")
    parser.add_argument("--architectures", help="default positional,standard; standard:3,positional:6,standard:8")
    parser.add_argument("--precisions", default="fp32,tf32")
    parser.add_argument("--seeds", default="1,10,50,200", help="seed counts, default 1,10,50,200")
    parser.add_argument("--length", type=int, default=8, help="of cumulative-sum, default 8")
    parser.add_argument("--seconds", type=float, default=0.7, help="of timing per case, default 0.7")
    options = parser.parse_args()
    set_length(options.length)

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    known, architectures = PEERS, "positional,standard"
    if options.task == "k-hop":
        import token_peers_gpu

        known, architectures = token_peers_gpu.PEERS, "standard:3,positional:6,standard:8"
    wanted = options.peers.split(",") if options.peers else list(known)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"error: unknown peer '{unknown[0]}'\n  expected one of: {', '.join(known)}")
    versions = {}
    if any(name.startswith("torch") for name in wanted):
        import torch

        versions.update(torch=torch.__version__, device=torch.cuda.get_device_name())
    if "jax" in wanted:
        import jax

        versions.update(jax=jax.__version__)
    print(json.dumps({"versions": versions}), flush=True)
    seed_counts = [int(count) for count in options.seeds.split(",")]
    for peer, architecture, precision, seeds in cases(
        wanted, (options.architectures or architectures).split(","), options.precisions.split(","), seed_counts
    ):
        if peer.startswith("torch"):
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        try:
            known[peer](architecture, precision, seeds, options.seconds)
        except Exception as error:  # one case that fails must not hide the others
            text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            case = {"peer": peer, "architecture": architecture, "precision": precision, "seeds": seeds}
            print(json.dumps({**case, "error": text}), flush=True)
        if peer.startswith("torch"):
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
