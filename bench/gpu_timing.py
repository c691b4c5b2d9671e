"""How the peers on the GPU are timed and reported (peers_gpu.py, token_peers_gpu.py)."""

import json
import statistics
import time


def report(peer, architecture, precision, seeds, seconds):
    """`seconds` per step of the whole fleet, one number per round."""
    each = sorted(value / seeds * 1e6 for value in seconds)
    quartiles = statistics.quantiles(each, n=4)
    print(
        json.dumps(
            {
                "peer": peer,
                "architecture": architecture,
                "precision": precision,
                "seeds": seeds,
                "microseconds": round(quartiles[1], 2),
                "lower_quartile": round(quartiles[0], 2),
                "upper_quartile": round(quartiles[2], 2),
            }
        ),
        flush=True,
    )


def rounds(step, finish, seconds, steps_per_call=1):
    """Times of one step: warm-up, then rounds of enough calls to last a while."""
    for _ in range(3):
        step()
    finish()
    start = time.perf_counter()
    step()
    finish()
    once = max(time.perf_counter() - start, 1e-6)
    calls = max(1, int(seconds / 7 / once))
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(calls):
            step()
        finish()
        times.append((time.perf_counter() - start) / calls / steps_per_call)
    return times


def graph_of(step):
    """The step as a CUDA graph."""
    import torch

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph
