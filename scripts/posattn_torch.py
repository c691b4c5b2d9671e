"""posattn's models as a PyTorch module:

    import posattn_torch                     # with this folder on Python's path
    model = posattn_torch.load_model("runs/sort/positional-seed0/model.safetensors")
    outputs = model(inputs)                  # [samples, length, data columns] -> [..., output columns]

Every ModelSpec from the formulas of arXiv 2410.01686 and of model/spec.h. It shares no code with the
C++ engine and takes no short cut: what it computes is the definition the engine is measured against
(tests/parity). Parameter names are those of the authors' state dict.
"""

import dataclasses
import json
import math

import torch
from torch import nn

from safetensors_io import SafetensorsError, read_safetensors

ROPE_BASE = 10000.0

# The fields that a preset decides; sizes and the encoding stay as they are.
PRESETS = {
    "positional": dict(attention="positions"),
    "standard": dict(attention="data", positions_in_input=True),
    "m0": dict(attention="data", positions_in_input=True),
    "m1": dict(attention="positions", positions_in_input=True),
    "m2": dict(attention="data"),
    "m3": dict(attention="data_and_positions"),
    "m4": dict(attention="data", rope=True),
    "m5": dict(attention="positions"),
    "positional-direct": dict(attention="positions", direct_attention=True),
    "standard-rope": dict(attention="data", positions_in_input=True, rope=True),
}


@dataclasses.dataclass
class Spec:
    """The fields of posattn::ModelSpec, with encoding_size filled in."""

    real_nodes: int = 8
    scratch_nodes: int = 1
    data_columns: int = 1
    output_columns: int = 1
    attention: str = "positions"
    positions_in_input: bool = False
    encoding: str = "one_hot"
    encoding_size: int = 0
    rope: bool = False
    direct_attention: bool = False
    width: int = 64
    heads: int = 2
    depth: int = 4
    mlp_width: int = 64
    mlp_depth: int = 2

    def __post_init__(self):
        if self.encoding_size == 0:
            default = {"binary": max(1, math.ceil(math.log2(self.nodes))), "sinusoidal": 2}
            self.encoding_size = default.get(self.encoding, self.nodes)

    @property
    def nodes(self):
        return self.real_nodes + self.scratch_nodes

    @property
    def uses_positions(self):
        return self.positions_in_input or (self.attention != "data" and not self.direct_attention)

    @property
    def stores_positions(self):
        return self.uses_positions and self.encoding in ("random", "learned")

    @property
    def key_size(self):
        return {
            "positions": self.encoding_size,
            "data": self.width,
            "data_and_positions": self.width + self.encoding_size,
        }[self.attention]


class ModelError(ValueError):
    """A file that is no model of this module."""


def spec_of(metadata):
    """The Spec in the metadata of a model file. What this module does not know is refused."""
    if "spec" not in metadata:
        raise ModelError("the file does not say what model it is: no metadata of posattn")
    try:
        fields = json.loads(metadata["spec"])
    except ValueError as error:
        raise ModelError(f"its spec is not valid JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ModelError("its spec is not an object")
    if fields.get("routed"):
        raise ModelError("its attention is a table of routes, which this module does not have; "
                         "compile the program with --dense")
    unknown = sorted(set(fields) - {field.name for field in dataclasses.fields(Spec)})
    if unknown:
        raise ModelError(f"its spec has '{unknown[0]}', which this module does not know")
    return Spec(**fields)


def build_model(tensors, metadata):
    """The Transformer of a file's tensors (name -> numpy array) and metadata."""
    model = Transformer(spec_of(metadata))
    state = {name: torch.from_numpy(values) for name, values in tensors.items()}
    try:
        model.load_state_dict(state, strict=True)
    except RuntimeError as error:
        raise ModelError(f"its tensors are not those of its spec: {error}") from error
    return model


def load_model(path):
    """The Transformer of a model file (.safetensors), in float32."""
    try:
        return build_model(*read_safetensors(path))
    except (ModelError, SafetensorsError) as error:
        raise ModelError(f"{path}: {error}") from error


def preset(name, **sizes):
    return Spec(**{**PRESETS[name], **sizes})


def formula_positions(spec):
    """P [nodes, encoding_size] of the encodings that are a formula."""
    node = torch.arange(spec.nodes, dtype=torch.float64)[:, None]
    column = torch.arange(spec.encoding_size)[None, :]
    if spec.encoding == "one_hot":
        return torch.eye(spec.nodes, spec.encoding_size, dtype=torch.float64)
    if spec.encoding == "binary":
        return ((node.long() >> column) & 1).double() * 2 - 1
    pair = torch.div(column, 2, rounding_mode="floor").double()
    angle = node / ROPE_BASE ** (2 * pair / spec.encoding_size)
    return torch.where(column % 2 == 0, torch.sin(angle), torch.cos(angle))


def rotate(x, index):
    """RoPE: columns (2i, 2i+1) of x [..., nodes, d_k] turned by index * base^(-2i / d_k)."""
    size = x.shape[-1]
    pairs = size // 2
    angle = index.to(x.dtype)[:, None] * ROPE_BASE ** (
        -2 * torch.arange(pairs, dtype=x.dtype) / size
    )
    even, odd = x[..., 0 : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]
    turned = torch.stack(
        [even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()], -1
    ).flatten(-2)
    return torch.cat([turned, x[..., 2 * pairs :]], -1)


class Attention(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.spec = spec
        if spec.direct_attention:
            self.scores = nn.Parameter(torch.randn(spec.heads, spec.nodes, spec.nodes))
        else:
            self.qk_proj = nn.Linear(spec.key_size, 2 * spec.key_size * spec.heads)
        self.v_proj = nn.Linear(spec.width, spec.width)
        self.o_proj = nn.Linear(spec.width, spec.width)

    def weights(self, x, positions, active):
        """A [samples or 1, heads, nodes, nodes], for the active rows of the full model."""
        spec = self.spec
        if spec.direct_attention:
            return torch.softmax(self.scores[:, active][:, :, active], -1)[None]
        source = {
            "positions": lambda: positions[None],
            "data": lambda: x,
            "data_and_positions": lambda: torch.cat(
                [x, positions.expand(x.shape[0], -1, -1)], -1
            ),
        }[spec.attention]()
        size = spec.key_size
        qk = self.qk_proj(source).unflatten(-1, (spec.heads, 2 * size)).transpose(1, 2)
        query, key = qk[..., :size], qk[..., size:]
        if spec.rope:
            query, key = rotate(query, active), rotate(key, active)
        return torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(size), -1)

    def forward(self, x, positions, active):
        self.last_weights = self.weights(x, positions, active)
        value = self.v_proj(x).unflatten(-1, (self.spec.heads, -1)).transpose(1, 2)
        mixed = self.last_weights @ value
        return self.o_proj(mixed.transpose(1, 2).flatten(-2))


class Mlp(nn.Module):
    def __init__(self, spec):
        super().__init__()
        sizes = [2 * spec.width] + [spec.mlp_width] * (spec.mlp_depth - 1) + [spec.width]
        maps = []
        for inputs, outputs in zip(sizes, sizes[1:]):
            maps += [nn.Linear(inputs, outputs), nn.ReLU()]
        self.mlp = nn.Sequential(*maps[:-1])

    def forward(self, x):
        return self.mlp(x)


class Layer(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.attn = Attention(spec)
        self.mlp = Mlp(spec)

    def forward(self, x, positions, active):
        return self.mlp(torch.cat([x, self.attn(x, positions, active)], -1))


class Transformer(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.spec = spec
        inputs = spec.data_columns + (spec.encoding_size if spec.positions_in_input else 0)
        self.encoding = nn.Linear(inputs, spec.width)
        self.transformer_layers = nn.ModuleList(Layer(spec) for _ in range(spec.depth))
        self.decoding = nn.Linear(spec.width, spec.output_columns)
        if spec.stores_positions:
            self.positions = nn.Embedding(spec.nodes, spec.encoding_size)
            self.positions.weight.requires_grad_(spec.encoding == "learned")

    def forward(self, inputs):
        """inputs [samples, length, data_columns] -> [samples, length, output_columns]."""
        spec, (samples, length, _) = self.spec, inputs.shape
        active = torch.cat([torch.arange(length), torch.arange(spec.real_nodes, spec.nodes)])
        scratch = inputs.new_zeros(samples, spec.scratch_nodes, spec.data_columns)
        x = torch.cat([inputs, scratch], 1)
        positions = None
        if spec.stores_positions:
            positions = self.positions.weight[active]
        elif spec.uses_positions:
            positions = formula_positions(spec).to(inputs.dtype)[active]
        if spec.positions_in_input:
            x = torch.cat([x, positions.expand(samples, -1, -1)], -1)
        x = self.encoding(x)
        for layer in self.transformer_layers:
            x = layer(x, positions, active)
        return self.decoding(x)[:, :length]

    def attention(self, inputs):
        """A of every layer for the first sample, [depth, heads, nodes, nodes]."""
        self(inputs[:1])
        return torch.stack([layer.attn.last_weights[0] for layer in self.transformer_layers])


def loss_of(outputs, targets, mask=None):
    """Mean squared error; masked outputs leave the sum but not the count."""
    error = (outputs - targets) ** 2
    return (error if mask is None else error * mask).sum() / error.numel()
