"""A plain GPT-2 in PyTorch with random weights, under the names that Hugging Face gives them."""

import json
import math
import os

import torch

from safetensors_io import write_safetensors

SIZES = {"n_embd": 12, "n_layer": 3, "n_head": 3, "n_positions": 9, "vocab_size": 17}


def random_weights(seed):
    generator = torch.Generator().manual_seed(seed)
    d, sizes = SIZES["n_embd"], {}
    sizes["wte.weight"], sizes["wpe.weight"] = (SIZES["vocab_size"], d), (SIZES["n_positions"], d)
    for layer in range(SIZES["n_layer"]):
        for name, shape in {
            "ln_1.weight": (d,), "ln_1.bias": (d,),
            "attn.c_attn.weight": (d, 3 * d), "attn.c_attn.bias": (3 * d,),
            "attn.c_proj.weight": (d, d), "attn.c_proj.bias": (d,),
            "ln_2.weight": (d,), "ln_2.bias": (d,),
            "mlp.c_fc.weight": (d, 4 * d), "mlp.c_fc.bias": (4 * d,),
            "mlp.c_proj.weight": (4 * d, d), "mlp.c_proj.bias": (d,),
        }.items():
            sizes[f"h.{layer}.{name}"] = shape
    sizes["ln_f.weight"] = sizes["ln_f.bias"] = (d,)
    # Whole floats, so that both sides start from the same numbers.
    return {
        name: (torch.randn(shape, generator=generator) * 0.5).float().double().requires_grad_()
        for name, shape in sizes.items()
    }


def norm(x, weights, name):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-5) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def mapped(x, weights, name):
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def logits(weights, tokens):
    samples, length = tokens.shape
    d, heads = SIZES["n_embd"], SIZES["n_head"]
    x = weights["wte.weight"][tokens] + weights["wpe.weight"][:length]
    heard = torch.tril(torch.ones(length, length, dtype=torch.bool))
    for layer in range(SIZES["n_layer"]):
        name = f"h.{layer}."
        parts = mapped(norm(x, weights, name + "ln_1"), weights, name + "attn.c_attn").split(d, dim=-1)
        query, key, value = (p.view(samples, length, heads, d // heads).transpose(1, 2) for p in parts)
        scores = query @ key.transpose(-1, -2) / math.sqrt(d // heads)
        attention = torch.softmax(scores.masked_fill(~heard, -math.inf), -1)
        mixed = (attention @ value).transpose(1, 2).reshape(samples, length, d)
        x = x + mapped(mixed, weights, name + "attn.c_proj")
        hidden = gelu(mapped(norm(x, weights, name + "ln_2"), weights, name + "mlp.c_fc"))
        x = x + mapped(hidden, weights, name + "mlp.c_proj")
    return norm(x, weights, "ln_f") @ weights["wte.weight"].T


class Gpt2Case:
    def __init__(self, seed, length):
        self.name = f"gpt2-{length}"
        self.weights = random_weights(seed)
        generator = torch.Generator().manual_seed(seed + 100)
        shape = (4, length)
        self.tokens = torch.randint(0, SIZES["vocab_size"], shape, generator=generator)
        self.labels = torch.randint(-1, SIZES["vocab_size"], shape, generator=generator)
        self.labels[0, 0] = 0  # at least one counts

    def write(self, folder):
        """config.json and model.safetensors."""
        os.makedirs(folder)
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump({"model_type": "gpt2", "activation_function": "gelu_new", **SIZES}, file)
        tensors = {f"transformer.{n}": w.detach().float().numpy() for n, w in self.weights.items()}
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"]
        write_safetensors(os.path.join(folder, "model.safetensors"), tensors)

    def expected(self):
        outputs = logits(self.weights, self.tokens)
        counted = self.labels >= 0
        loss = torch.nn.functional.cross_entropy(outputs[counted], self.labels[counted])
        gradients = torch.autograd.grad(loss, list(self.weights.values()))
        result = {"outputs": outputs, "loss": loss}
        result.update((f"gradient/{n}", g) for n, g in zip(self.weights, gradients))
        # A file for texts of this length has that many positions.
        result["gradient/wpe.weight"] = result["gradient/wpe.weight"][: self.tokens.shape[1]]
        return {name: tensor.detach().numpy() for name, tensor in result.items()}
