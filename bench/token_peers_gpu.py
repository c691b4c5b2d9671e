"""What PyTorch and JAX need for one training step of the token models (token_torch.py) on a GPU.

Run by peers_gpu.py --task k-hop, which says what is printed. An architecture has its depth behind a
colon. The peers:

  torch-graph        one run, torch.compile, PyTorch's own attention function, fused AdamW, replayed
                     as a CUDA graph
  torch-graph-plain  the same with attention written out; a positional model then has one attention
                     matrix for all samples
  jax                seeds vectorised by jax.vmap, 20 steps in one lax.scan
"""

import math

import token_torch as token
from gpu_timing import graph_of, report, rounds

JAX_STEPS = 20


def split_name(architecture):
    name, _, depth = architecture.partition(":")
    return name, int(depth or 3)


def torch_graph(architecture, precision, seeds, seconds, peer="torch-graph"):
    import torch

    network = token.TokenModel(*split_name(architecture), fused_attention=peer == "torch-graph").cuda()
    tokens, labels = token.token_batch(device="cuda")
    optimiser = token.adamw(network, capturable=True, fused=True)
    compiled = torch.compile(network)

    def step():
        optimiser.zero_grad(set_to_none=True)
        compiled(tokens, labels).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), token.MOST_NORM, foreach=True)
        optimiser.step()

    graph = graph_of(step)
    report(peer, architecture, precision, seeds, rounds(graph.replay, torch.cuda.synchronize, seconds))


def torch_graph_plain(architecture, precision, seeds, seconds):
    torch_graph(architecture, precision, seeds, seconds, "torch-graph-plain")


def jax_scan(architecture, precision, seeds, seconds):
    import jax
    import jax.numpy as jnp

    name, depth = split_name(architecture)
    positional = name == "positional"
    visible = jnp.tril(jnp.ones((token.TOKENS, token.TOKENS), bool))
    shape = (-1, token.TOKENS, token.HEADS, token.HEAD_SIZE)

    def initial(key):
        keys = iter(jax.random.split(key, 5 * depth + 3))

        def table(*sizes):
            return 0.02 * jax.random.normal(next(keys), sizes)

        def linear(inputs, outputs):
            return table(inputs, outputs), jnp.zeros(outputs)

        return {
            "tokens": table(token.VOCABULARY, token.WIDTH),
            "positions": table(token.TOKENS, token.WIDTH),
            "head": linear(token.WIDTH, token.VOCABULARY),
            "layers": [
                {
                    "query_key": linear(token.WIDTH, 2 * token.WIDTH),
                    "value": linear(token.WIDTH, token.WIDTH),
                    "output": linear(token.WIDTH, token.WIDTH),
                    "first": linear(token.WIDTH, token.MLP_WIDTH),
                    "second": linear(token.MLP_WIDTH, token.WIDTH),
                }
                for _ in range(depth)
            ],
        }

    def apply(linear, x):
        return x @ linear[0] + linear[1]

    def loss(weights, tokens, labels):
        x = weights["tokens"][tokens]
        if not positional:
            x = x + weights["positions"]
        for layer in weights["layers"]:
            source = weights["positions"][None] if positional else x
            query, key = jnp.split(apply(layer["query_key"], source), 2, -1)
            scores = jnp.einsum("bnhd,bmhd->bhnm", query.reshape(shape), key.reshape(shape))
            scores = jnp.where(visible, scores / math.sqrt(token.HEAD_SIZE), -1e30)
            attention = jax.nn.softmax(scores, -1)
            value = apply(layer["value"], x).reshape(shape)
            if positional:
                mixed = jnp.einsum("hnm,bmhd->bnhd", attention[0], value)
            else:
                mixed = jnp.einsum("bhnm,bmhd->bnhd", attention, value)
            x = x + apply(layer["output"], mixed.reshape(x.shape))
            x = x + apply(layer["second"], jax.nn.gelu(apply(layer["first"], x)))  # by tanh
        logarithms = jax.nn.log_softmax(apply(weights["head"], x))
        return -jnp.mean(jnp.take_along_axis(logarithms, labels[..., None], -1))

    def train(weights, m, v, tokens, labels):
        def step(carry, _):
            weights, m, v = carry
            value, g = jax.value_and_grad(loss)(weights, tokens, labels)
            norm = jnp.sqrt(sum(jnp.sum(part * part) for part in jax.tree.leaves(g)))
            clip = jnp.minimum(1.0, token.MOST_NORM / (norm + 1e-6))
            first, second = token.BETAS
            m = jax.tree.map(lambda a, b: first * a + (1 - first) * clip * b, m, g)
            v = jax.tree.map(lambda a, b: second * a + (1 - second) * (clip * b) ** 2, v, g)
            keep = 1 - token.LEARNING_RATE * token.WEIGHT_DECAY
            weights = jax.tree.map(
                lambda w, a, b: keep * w - token.LEARNING_RATE * a / (jnp.sqrt(b) + 1e-8), weights, m, v
            )
            return (weights, m, v), value

        return jax.lax.scan(step, (weights, m, v), None, length=JAX_STEPS)

    with jax.default_matmul_precision("highest" if precision == "fp32" else "tensorfloat32"):
        fleet = jax.jit(jax.vmap(train))
        key = jax.random.PRNGKey(0)
        weights = jax.vmap(initial)(jax.random.split(key, seeds))
        zeros = jax.tree.map(jnp.zeros_like, weights)
        tokens, labels = jax.random.randint(
            key, (2, seeds, token.BATCH, token.TOKENS), 0, token.VOCABULARY
        )
        last = [None]

        def step():
            last[0] = fleet(weights, zeros, zeros, tokens, labels)

        times = rounds(step, lambda: jax.block_until_ready(last[0]), seconds, JAX_STEPS)
    report("jax", architecture, precision, seeds, times)


PEERS = {"torch-graph": torch_graph, "torch-graph-plain": torch_graph_plain, "jax": jax_scan}
