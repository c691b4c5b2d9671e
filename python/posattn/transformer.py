"""posattn's models as a PyTorch module. It needs PyTorch alone; without the package it is
scripts/posattn_torch.py:

    import posattn_torch                     # with scripts/ on Python's path
    model = posattn_torch.load_model("runs/sort/positional-seed0/model.safetensors")
    outputs = model(inputs)                  # [samples, length, data columns] -> [..., output columns]

Every ModelSpec from the formulas of arXiv 2410.01686 and of model/spec/spec.h. It shares no code with the
C++ engine and takes no short cut: what it computes is the definition the engine is measured against
(tests/parity). Parameter names are those of the authors' state dict.
"""

import dataclasses
import json
import math

import torch
from torch import nn

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
    "relative": dict(attention="positions", relative_attention=True),
    "homogeneous": dict(attention="positions", biases="none"),
    "standard-no-bias": dict(attention="data", positions_in_input=True, biases="none"),
    "scale-free": dict(attention="data", scores="unit", score_bias="positions", biases="none"),
    "scale-free-joint": dict(attention="data_and_positions", source_scale="sample", biases="none"),
    "hard": dict(attention="data", weighting="hard", positions_in_input=True),
    "hard-rope": dict(attention="data", rope=True, weighting="hard", biases="none"),
    "hard-cosine": dict(attention="data", scores="unit", score_bias="positions", weighting="hard", biases="none"),
    "relu": dict(attention="data", weighting="relu", positions_in_input=True),
    "relu-rows": dict(attention="data", score_bias="positions", weighting="relu_rows", biases="none"),
    "spiking-scores": dict(attention="data", scores="signs", score_bias="positions", biases="none"),
    "tropical": dict(attention="data", scores="tropical", score_bias="distance", weighting="max_plus", biases="none"),
    "sums": dict(relative_attention=True, weighting="sums", biases="none"),
    "kernel": dict(attention="data", score_bias="distance", weighting="kernel", features=64, biases="none"),
    "dape": dict(attention="data", score_bias="kerple", score_window=3),
    "structural": dict(attention="positions", scores="pairs", biases="none"),
    "low-rank": dict(attention="data", weighting="low_rank", landmarks=4),
    "spiking": dict(attention="data", scores="agreements", weighting="sums", time_steps=4, join="add"),
    "two-streams": dict(attention="data", positions_in_input=True, join="add", normalisation="before",
                        value_width=16, value_mlp_width=16),
    "two-streams-gated": dict(attention="data", positions_in_input=True, join="add", normalisation="before",
                              value_width=16, value_mlp_width=16, value_gates="mix_and_hidden",
                              scores_read_values=True),
    "two-streams-linear": dict(attention="data", positions_in_input=True, join="add", normalisation="before",
                               value_width=16),
}

# Kinds of attention that layers may name, and the fields that a choice sets.
KINDS = {
    "positions": dict(),
    "data": dict(attention="data"),
    "data-and-positions": dict(attention="data_and_positions"),
    "rope": dict(attention="data", rope=True),
    "direct": dict(direct_attention=True),
    "relative": dict(relative_attention=True),
    "cosine": dict(attention="data", scores="unit", score_bias="positions"),
    "hard": dict(attention="data", weighting="hard"),
    "kernel": dict(attention="data", score_bias="distance", weighting="kernel", features=64),
    "dape": dict(attention="data", score_bias="kerple", score_window=3),
    "scaled": dict(attention="data_and_positions", source_scale="sample"),
    "hard-rope": dict(attention="data", rope=True, weighting="hard"),
    "hard-cosine": dict(attention="data", scores="unit", score_bias="positions", weighting="hard"),
    "relu": dict(attention="data", weighting="relu"),
    "relu-rows": dict(attention="data", score_bias="positions", weighting="relu_rows"),
    "spiking-scores": dict(attention="data", scores="signs", score_bias="positions"),
    "spiking": dict(attention="data", scores="agreements", weighting="sums"),
    "tropical": dict(attention="data", scores="tropical", score_bias="distance", weighting="max_plus"),
    "sums": dict(relative_attention=True, weighting="sums"),
    "pairs": dict(scores="pairs"),
    "neighbours": dict(attention="data", pair_mask="edges"),
    "linear": dict(attention="data", weighting="linear"),
    "low-rank": dict(attention="data", weighting="low_rank", landmarks=4),
    "window": dict(attention="data", score_bias="window", reach=5),
}
CHOICES = {
    "source": lambda value: dict(attention=value),
    "source_scale": lambda value: dict(source_scale=value),
    "scores": lambda value: dict(scores="" if value in ("dot", "direct", "distance") else value,
                                 direct_attention=value == "direct", relative_attention=value == "distance"),
    "rotation": lambda value: dict(rope=value == "rope"),
    "score_bias": lambda value: dict(score_bias=value),
    "weighting": lambda value: dict(weighting=value),
    "score_window": lambda value: dict(score_window=int(value)),
    "features": lambda value: dict(features=int(value)),
    "landmarks": lambda value: dict(landmarks=int(value)),
    "pair_mask": lambda value: dict(pair_mask=value),
    "reach": lambda value: dict(reach=int(value)),
}
NO_CHOICE = dict(attention="positions", source_scale="none", scores="", rope=False, score_bias="none",
                 direct_attention=False, relative_attention=False, weighting="softmax", score_window=0, features=0,
                 landmarks=0, pair_mask="none")


def kind_of(text):
    """The fields of a kind: its name, then choices that differ, as "data scores=unit"."""
    name, *changes = text.split()
    fields = {**NO_CHOICE, **KINDS[name]}
    for change in changes:
        choice, value = change.replace("-", "_").split("=")
        fields.update(CHOICES[choice](value))
    return fields


@dataclasses.dataclass
class Spec:
    """The fields of posattn::ModelSpec, with encoding_size and reach filled in."""

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
    routed: bool = False
    route_places: int = 1
    width: int = 64
    heads: int = 2
    depth: int = 4
    mlp_width: int = 64
    mlp_depth: int = 2
    biases: str = "all"
    relative_attention: bool = False
    reach: int = 0
    causal: bool = False
    split_heads: bool = False
    join: str = "concatenate"
    normalisation: str = "none"
    activation: str = "relu"
    vocabulary: int = 0
    positions_added: bool = False
    tied_output: bool = False
    fixed_tokens: bool = False  # how a model is trained: its outputs are the same
    read_nodes: int = 0  # outputs that count in the loss (below 0 the last); all are computed
    loss: str = "squared_error"
    source_scale: str = "none"
    scores: str = ""  # "unit" and later ones; else what the flags above say
    score_bias: str = "none"
    weighting: str = "softmax"
    score_window: int = 0
    features: int = 0
    landmarks: int = 0
    pair_mask: str = "none"  # "edges": a node attends to itself, neighbours and scratch nodes
    pair_columns: int = 0
    pair_classes: int = 0
    tokens_and_values: bool = False  # of a node at once; else a node holds one of the two
    loops: str = "1"  # times that the layers are applied: a number, n or log2
    value_width: int = 0  # of the stream of values; 0: one stream
    value_mlp_width: int = 0  # hidden features of its MLP; 0: none
    value_gates: str = "none"  # of symbols: mix, mix_and_hidden
    scores_read_values: bool = False  # divided by the root mean square of the sample's
    symbols_read_values: bool = False
    wrap: str = "none"  # scale: f(x) = r g(x / r), r the root mean square of the sample's input numbers
    time_steps: int = 0  # of a spiking network; 0: no spikes
    position_range: int = 0  # nodes stand at places below it; 0: node i stands at i
    kinds: str = ""  # by layer, repeated; empty: all are as the fields say

    def __post_init__(self):
        if self.encoding_size == 0:
            default = {"binary": max(1, math.ceil(math.log2(self.nodes))), "sinusoidal": 2}
            self.encoding_size = (
                self.width if self.positions_added else default.get(self.encoding, self.nodes)
            )
        if self.reach == 0 and any(
            layer.position_scores in ("distance", "fire", "window") for layer in self.layers()
        ):
            self.reach = self.real_nodes

    def of_layer(self, layer):
        """The Spec whose every layer is as this one of it."""
        if not self.kinds:
            return self
        kinds = self.kinds.split(",")
        return dataclasses.replace(self, kinds="", **kind_of(kinds[layer % len(kinds)]))

    def places(self, real):
        """Where real nodes stand in tests, then scratch nodes."""
        last, limit = (self.position_range or self.real_nodes), self.position_range + 1
        spread = [(i + 1) * limit // (real + 1) - 1 if self.position_range else i for i in range(real)]
        return torch.tensor(spread + [last + i for i in range(self.scratch_nodes)])

    def layers(self):
        return [self.of_layer(layer) for layer in range(self.depth if self.kinds else 1)]

    def loops_at(self, real_nodes):
        rules = {"n": real_nodes, "log2": max(1, math.ceil(math.log2(real_nodes)))}
        return rules[self.loops] if self.loops in rules else int(self.loops)

    @property
    def reads_data(self):
        return self.attention != "positions"

    @property
    def position_scores(self):
        """The part of the scores that does not read the data."""
        if self.reads_data:
            return self.score_bias
        flags = {"direct": self.direct_attention, "distance": self.relative_attention, "none": self.routed,
                 "pairs": self.scores == "pairs"}
        return next((name for name, holds in flags.items() if holds), "positions")

    def fields(self):
        """As a model file has them: routes are named only where there are some."""
        fields = dataclasses.asdict(self)
        if not self.routed:
            del fields["routed"], fields["route_places"]
        if not self.scores:
            del fields["scores"]
        return fields

    @property
    def reads_pairs(self):
        return any(layer.position_scores == "pairs" or layer.pair_mask != "none" for layer in self.layers())

    @property
    def nodes(self):
        return self.real_nodes + self.scratch_nodes

    @property
    def uses_positions(self):
        return (
            self.positions_in_input
            or self.positions_added
            or any(
                layer.attention == "data_and_positions" or layer.position_scores == "positions"
                for layer in self.layers()
            )
        )

    @property
    def stores_positions(self):
        return self.uses_positions and self.encoding in ("random", "learned")

    @property
    def source_size(self):
        data = self.width + (self.value_width if self.scores_read_values else 0)
        return {
            "positions": self.encoding_size,
            "data": data,
            "data_and_positions": data + self.encoding_size,
        }[self.attention]

    @property
    def key_size(self):
        return self.source_size // self.heads if self.split_heads else self.source_size

    @property
    def position_key_size(self):
        return self.encoding_size // self.heads if self.split_heads else self.encoding_size


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
    """The Transformer of a model file (.safetensors), in float32; in scripts/ only."""
    from safetensors_io import SafetensorsError, read_safetensors

    try:
        return build_model(*read_safetensors(path))
    except (ModelError, SafetensorsError) as error:
        raise ModelError(f"{path}: {error}") from error


def preset(name, **sizes):
    return Spec(**{**PRESETS[name], **sizes})


def formula_positions(spec, places):
    """Rows of P [nodes, encoding_size] of the encodings that are a formula."""
    node = places.double()[:, None]
    column = torch.arange(spec.encoding_size)[None, :]
    if spec.encoding == "one_hot":
        return torch.eye(spec.nodes, spec.encoding_size, dtype=torch.float64)[places]
    if spec.encoding == "binary":
        return ((node.long() >> column) & 1).double() * 2 - 1
    pair = torch.div(column, 2, rounding_mode="floor").double()
    angle = node / ROPE_BASE ** (2 * pair / spec.encoding_size)
    return torch.where(column % 2 == 0, torch.sin(angle), torch.cos(angle))


def rotate(x, index):
    """RoPE: columns (2i, 2i+1) of x [..., nodes, d_k] turned by index * base^(-2i / d_k)."""
    size = x.shape[-1]
    pairs = size // 2
    angle = index.to(x)[:, None] * ROPE_BASE ** (
        -2 * torch.arange(pairs, dtype=x.dtype, device=x.device) / size
    )
    even, odd = x[..., 0 : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]
    turned = torch.stack(
        [even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()], -1
    ).flatten(-2)
    return torch.cat([turned, x[..., 2 * pairs :]], -1)


def inverse_root(square):
    """1 / sqrt(square), and 0 of 0: the zero vector stays."""
    above = square > 0
    return torch.where(above, torch.where(above, square, torch.ones_like(square)).rsqrt(), torch.zeros_like(square))


class Sign(torch.autograd.Function):
    """sign(x), and for its gradient the slope of 2/pi arctan(pi x / r), r the root mean square of each vector."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        inverse = inverse_root((x**2).mean(-1, keepdim=True))
        return gradient * 2 * inverse / (1 + (math.pi * x * inverse) ** 2)


class Step(torch.autograd.Function):
    """1 where u >= 0, else 0, and for its gradient the slope of arctan(pi u) / pi."""

    @staticmethod
    def forward(context, u):
        context.save_for_backward(u)
        return (u >= 0).to(u)

    @staticmethod
    def backward(context, gradient):
        (u,) = context.saved_tensors
        return gradient / (1 + (math.pi * u) ** 2)


def charged(spec, module, columns, gain=3.0):
    """The module with neurons behind it, in a spiking network."""
    if spec.time_steps > 0:
        module.gain = nn.Parameter(torch.full((columns,), gain))
    return module


def fired(spec, module, x, threshold=1):
    """Spikes of leaky neurons that x [samples * time steps, ...] charges; x itself where there are none."""
    if not hasattr(module, "gain"):
        return x
    potential, spikes = 0, []
    for current in (module.gain * x).unflatten(0, (-1, spec.time_steps)).unbind(1):
        potential = potential + (current - potential) / 2
        spikes.append(Step.apply(potential - threshold))
        potential = potential * (1 - spikes[-1].detach())  # what has fired starts at 0 again
    return torch.stack(spikes, 1).flatten(0, 1)


def integer_scores(kind, spec, real):
    """Fixed scores [nodes, nodes] of Gray codes or of logarithms of distances; 0 of scratch nodes."""
    place = range(real)
    if kind == "gray":
        code, bits = [i ^ (i >> 1) for i in place], max(10, (spec.real_nodes - 1).bit_length())
        scores = [[bits - bin(code[i] ^ code[j]).count("1") for j in place] for i in place]
    else:  # ceil(log2((n - 1) / (|i - j| + 1))) of whole numbers
        scores = [[(max(0, -(-(real - 1) // (abs(i - j) + 1)) - 1)).bit_length() for j in place] for i in place]
    return nn.functional.pad(torch.tensor(scores), (0, spec.scratch_nodes) * 2)


class AtLeast(torch.autograd.Function):
    """max(x, least), as if x itself were set to it: below, only a gradient that raises x passes."""

    @staticmethod
    def forward(context, x, least):
        context.save_for_backward(x)
        context.least = least
        return x.clamp(min=least)

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return torch.where((x >= context.least) | (gradient < 0), gradient, torch.zeros_like(gradient)), None


def alibi_slopes(heads):
    """Those of a power of two; else of the next lower one, then every second of the next higher."""
    of_power = lambda count: [2.0 ** (-8 * (head + 1) / count) for head in range(count)]
    power = 2 ** int(math.log2(heads))
    return torch.tensor(of_power(power) + of_power(2 * power)[::2][: heads - power], dtype=torch.float64)


def buckets_of(distance, causal, count=32, farthest=128):
    """T5's bucket of i - j."""
    mine = count if causal else count // 2
    exact, far = mine // 2, distance.abs()
    share = (far.clamp(min=1).double() / exact).log() / math.log(farthest / exact)
    beyond = (exact + (share * (mine - exact) + 1e-9).floor().long()).clamp(max=mine - 1)
    later = torch.where(distance < 0, 0 if causal else mine, 0)
    return later + torch.where(far < exact, far, beyond)


class Fire(nn.Sequential):
    """Scores of all heads from the normalised distance."""

    def __init__(self, heads):
        super().__init__(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, heads))

    def forward(self, distance, causal, rate, length):
        far, last = distance.abs().to(rate), len(distance) - 1
        node = torch.arange(last + 1, device=distance.device)
        most = torch.maximum((node if causal else torch.maximum(node, last - node)).to(rate), length.abs())
        of = lambda x: torch.log(1 + rate.abs() * x)
        return super().forward((of(far) / (of(most) + 1e-6)[:, None])[..., None]).permute(2, 0, 1)


def biased(spec, module):
    """The map or norm; where the model has no biases, its bias is zero and stays."""
    if spec.biases == "none":
        nn.init.zeros_(module.bias)
        module.bias.requires_grad_(False)
    return module


def linear_weights(spec, query, key, _):
    """Products of features elu + 1, divided by their sums."""
    products = (nn.functional.elu(query) + 1) @ (nn.functional.elu(key) + 1).transpose(-1, -2)
    products = products.tril() if spec.causal else products
    return products / products.sum(-1, keepdim=True)


def low_rank_weights(spec, query, key, factor):
    """Nystrom's B Z D, landmarks the means of parts of the nodes, Z an inverse by six iterations."""
    parts = lambda x: torch.stack([part.mean(-2) for part in x.tensor_split(spec.landmarks, -2)], -2)
    kernel = lambda q, k: torch.softmax(factor * q @ k.transpose(-1, -2), -1)
    means, mean_keys = parts(query), parts(key)
    g, one = kernel(means, mean_keys), torch.eye(spec.landmarks, dtype=query.dtype, device=query.device)
    z = g.transpose(-1, -2) / (g.sum(-1).amax(-1) * g.sum(-2).amax(-1))[..., None, None]
    for _ in range(6):
        p = g @ z
        z = z @ (13 * one - p @ (15 * one - p @ (7 * one - p))) / 4
    return kernel(query, mean_keys) @ z @ kernel(means, key)


class Attention(nn.Module):
    def __init__(self, spec, mixes=True):
        super().__init__()
        self.spec = spec
        if spec.routed:
            several = (spec.route_places,) if spec.route_places > 1 else ()
            shape = (spec.heads, spec.nodes, *several)
            self.register_buffer("routes", torch.zeros(shape, dtype=torch.int32))
            if several:
                self.register_buffer("route_weights", torch.zeros(shape))
        if spec.reads_data:
            self.qk_proj = nn.Linear(spec.source_size, 2 * spec.key_size * spec.heads)
            if spec.scores in ("unit", "signs"):
                self.log_scale = nn.Parameter(torch.full((spec.heads,), math.log(4)))
            charged(spec, self.qk_proj, self.qk_proj.out_features)
            if spec.source_scale == "none" and (spec.scores or spec.weighting != "softmax"):
                biased(spec, self.qk_proj)
        if spec.position_scores == "positions":
            proj = nn.Linear(spec.encoding_size, 2 * spec.position_key_size * spec.heads)
            setattr(self, "bias_qk_proj" if spec.reads_data else "qk_proj", proj)
        elif spec.position_scores == "direct":
            self.scores = nn.Parameter(torch.randn(spec.heads, spec.nodes, spec.nodes))
        elif spec.position_scores == "distance":
            self.relative = nn.Parameter(torch.randn(spec.heads, 2 * spec.reach - 1))
            if spec.scratch_nodes > 0:
                self.relative_scratch = nn.Parameter(
                    torch.randn(spec.heads, spec.scratch_nodes, spec.scratch_nodes + 2)
                )
        elif spec.position_scores == "kerple":
            self.kerple_p = nn.Parameter(2 * torch.rand(spec.heads))
            self.kerple_a = nn.Parameter(torch.rand(spec.heads))
        elif spec.position_scores == "fire":
            self.fire = Fire(spec.heads)
            self.fire_c = nn.Parameter(torch.full((1,), 0.1))
            self.fire_share = nn.Parameter(torch.ones(1))
        elif spec.position_scores == "buckets":
            self.buckets = nn.Parameter(torch.randn(spec.heads, 32))
        elif spec.position_scores == "pairs":
            if spec.pair_classes > 0:
                self.pair_classes = nn.Parameter(torch.randn(spec.heads, spec.pair_classes))
            if spec.pair_columns > 0:
                self.pair_numbers = nn.Parameter(torch.randn(spec.heads, spec.pair_columns))
            if spec.scratch_nodes > 0:
                self.pair_scratch = nn.Parameter(
                    torch.randn(spec.heads, spec.scratch_nodes, spec.scratch_nodes + 2)
                )
        if spec.score_window > 0:
            size, margin = (1, spec.score_window), (0, spec.score_window // 2)
            channels = spec.heads * (1 if spec.score_bias == "none" else 2)
            self.score_conv = nn.Sequential(
                nn.Conv2d(channels, 32, size, padding=margin),
                nn.LeakyReLU(0.01),
                nn.Conv2d(32, spec.heads, size, padding=margin),
            )
        if spec.weighting == "kernel":
            self.register_buffer("features", torch.randn(spec.heads, spec.features, spec.key_size))
        if mixes:
            self.v_proj = charged(spec, biased(spec, nn.Linear(spec.width, spec.width)), spec.width)
            self.o_proj = charged(spec, biased(spec, nn.Linear(spec.width, spec.width)), spec.width)
        if spec.time_steps > 0:
            self.heads = charged(spec, nn.Module(), spec.width, 4 / (spec.key_size * spec.nodes))

    def relative_scores(self, real):
        """[heads, nodes, nodes]: by distance between real nodes, of its own for scratch nodes."""
        spec = self.spec
        place = torch.arange(real)
        distance = (place[:, None] - place[None, :]).clamp(-(spec.reach - 1), spec.reach - 1)
        scores = self.relative[:, distance + spec.reach - 1][None]
        return scores if spec.scratch_nodes == 0 else self.with_scratch(scores, self.relative_scratch)

    def with_scratch(self, scores, own):
        """scores [samples, heads, real, real] with rows and columns of scratch nodes."""
        real, own = scores.shape[-1], own.expand(scores.shape[0], -1, -1, -1)
        of_scratch = own[..., :1].transpose(2, 3).expand(-1, -1, real, -1)
        reads_real = own[..., 1:2].expand(-1, -1, -1, real)
        above = torch.cat([scores, of_scratch], 3)
        below = torch.cat([reads_real, own[..., 2:]], 3)
        return torch.cat([above, below], 2)

    def scores_of_pairs(self, pairs, pair_classes):
        """[samples, heads, nodes, nodes]: a number of the pair's class, plus a linear map of its numbers."""
        spec, terms = self.spec, []
        if spec.pair_classes > 0:
            terms.append(self.pair_classes[:, pair_classes].transpose(0, 1))
        if spec.pair_columns > 0:
            terms.append(torch.einsum("sijk,hk->shij", pairs, self.pair_numbers))
        scores = sum(terms)
        return scores if spec.scratch_nodes == 0 else self.with_scratch(scores, self.pair_scratch)

    def masked(self, scores, pair_classes):
        """Without pairs of class 0: a node attends to itself, its neighbours and scratch nodes."""
        real = pair_classes.shape[-1]
        itself = torch.eye(real, dtype=torch.bool, device=scores.device)
        left_out = (pair_classes == 0) & ~itself
        scratch = (0, self.spec.scratch_nodes)
        left_out = torch.nn.functional.pad(left_out.int(), scratch + scratch).bool()
        return scores.masked_fill(left_out[:, None], -math.inf)

    def scores_by_distance(self, real):
        """[heads, nodes, nodes] of formulas of i - j; scratch nodes have none."""
        spec, place = self.spec, torch.arange(real, device=self.v_proj.weight.device)
        distance = place[:, None] - place[None, :]
        far, like = distance.abs(), self.v_proj.weight
        if spec.position_scores == "alibi":
            scores = -alibi_slopes(spec.heads).to(like)[:, None, None] * far
        elif spec.position_scores == "kerple":
            p, a = (AtLeast.apply(x, 0.01)[:, None, None] for x in (self.kerple_p, self.kerple_a))
            scores = -p * torch.log(1 + a * far)
        elif spec.position_scores == "fire":
            scores = self.fire(distance, spec.causal, self.fire_c, self.fire_share * spec.reach)
        else:
            scores = self.buckets[:, buckets_of(distance, spec.causal)]
        return torch.nn.functional.pad(scores, (0, spec.scratch_nodes) * 2)

    def query_key(self, proj, source, size, active, rope):
        """Queries and keys, [samples, heads, nodes, size] each."""
        qk = fired(self.spec, proj, proj(source)).unflatten(-1, (self.spec.heads, 2 * size)).transpose(1, 2)
        query, key = qk[..., :size], qk[..., size:]
        places = self.spec.places(len(active) - self.spec.scratch_nodes).to(active)
        return (rotate(query, places), rotate(key, places)) if rope else (query, key)

    def scores_of_positions(self, positions, active):
        spec = self.spec
        if spec.position_scores == "direct":
            return self.scores[:, active][:, :, active][None]
        if spec.position_scores == "distance":
            return self.relative_scores(len(active) - spec.scratch_nodes)
        if spec.position_scores == "window":
            place = torch.arange(len(active), device=self.v_proj.weight.device)
            real = len(active) - spec.scratch_nodes
            far = (place[:, None] - place[None, :]).abs() >= spec.reach
            far[real:], far[:, real:] = False, False  # scratch nodes are in every window
            return self.v_proj.weight.new_zeros(far.shape).masked_fill(far, -math.inf)[None, None]
        if spec.position_scores in ("gray", "log"):
            fixed = integer_scores(spec.position_scores, spec, len(active) - spec.scratch_nodes)
            return fixed.to(self.v_proj.weight)[None]
        if spec.position_scores != "positions":
            return self.scores_by_distance(len(active) - spec.scratch_nodes)[None]
        proj, size = self.bias_qk_proj if spec.reads_data else self.qk_proj, spec.position_key_size
        rope = spec.rope and not spec.reads_data
        query, key = self.query_key(proj, positions[None], size, active, rope)
        return query @ key.transpose(-1, -2) / math.sqrt(size)

    def query_key_of_data(self, x, positions, active):
        """Queries and keys, and the factor of their products."""
        spec, size = self.spec, self.spec.key_size
        if spec.scores_read_values:
            x = torch.cat([x, self.unit_values], -1)
        if spec.source_scale != "none":  # by the root mean square of the sample's or the node's numbers
            numbers = (-1, -2) if spec.source_scale == "sample" else (-1,)
            x = x * inverse_root((x**2).mean(numbers, keepdim=True))
        if spec.attention == "data_and_positions":
            x = torch.cat([x, positions.expand(x.shape[0], -1, -1)], -1)
        query, key = self.query_key(self.qk_proj, x, size, active, spec.rope)
        if spec.scores == "signs":
            return self.log_scale.exp()[:, None, None] * Sign.apply(query), Sign.apply(key), 1 / size
        if spec.scores in ("unit", "direction") or spec.weighting == "kernel":
            query, key = (part * inverse_root((part**2).sum(-1, keepdim=True)) for part in (query, key))
            return (self.log_scale.exp()[:, None, None] * query if spec.scores == "unit" else query), key, 1
        return query, key, 1 / math.sqrt(size)

    def scores_of_data(self, x, positions, active):
        query, key, factor = self.query_key_of_data(x, positions, active)
        if self.spec.scores == "agreements":
            return query @ key.transpose(-1, -2) + (1 - query) @ (1 - key).transpose(-1, -2)
        if self.spec.scores == "tropical":
            difference = query[..., :, None, :] - key[..., None, :, :]
            return difference.min(-1).values - difference.max(-1).values
        if self.spec.weighting == "kernel":  # random features of exp(q . k), as logarithms of products
            query, key = (
                (part @ self.features.transpose(-1, -2) - (part**2).sum(-1, keepdim=True) / 2).exp()
                for part in (query, key)
            )
            return (query @ key.transpose(-1, -2) / self.spec.features).log()
        return query @ key.transpose(-1, -2) * factor

    def scores_of(self, x, positions, active, pairs, pair_classes):
        terms = []
        if self.spec.reads_data:
            terms.append(self.scores_of_data(x, positions, active))
        if self.spec.position_scores == "pairs":
            terms.append(self.scores_of_pairs(pairs, pair_classes))
        elif self.spec.position_scores != "none":
            terms.append(self.scores_of_positions(positions, active))
        if self.spec.score_window > 0:
            terms.append(self.mixed_scores(terms))
        return sum(terms)

    def relu_rows(self, x, positions, active, allowed):
        """relu(scores of the data) exp(scores of positions), divided by its row's sum where that is above 0."""
        weights = self.scores_of_data(x, positions, active).relu() * allowed
        if self.spec.position_scores != "none":
            scores = self.scores_of_positions(positions, active).masked_fill(~allowed, -math.inf)
            weights = weights * (scores - scores.max(-1, keepdim=True).values).exp()
        total = weights.sum(-1, keepdim=True)
        return torch.where(total > 0, weights / torch.where(total > 0, total, torch.ones_like(total)), weights)

    def mixed_scores(self, terms):
        """What neighbouring keys and other heads add, among real nodes."""
        spec, samples, nodes = self.spec, len(terms[0]), terms[0].shape[-1]
        real = nodes - spec.scratch_nodes
        all_heads = torch.cat([term.expand(samples, -1, -1, -1) for term in terms], 1)[..., :real, :real]
        added = self.score_conv(all_heads.tril() if spec.causal else all_heads)
        return torch.nn.functional.pad(added, (0, spec.scratch_nodes) * 2)

    def routed(self, value):
        """What nodes read of value [samples, heads, nodes, d] through routes."""
        head = torch.arange(self.spec.heads)[:, None]
        if self.spec.route_places == 1:
            return value[:, head, self.routes.long()]
        read = value[:, head[..., None], self.routes.long()]
        rest = 1 - self.route_weights.sum(-1)  # of the last node, a scratch node
        return (read * self.route_weights[..., None]).sum(-2) + rest[..., None] * value[:, :, -1:]

    def route_matrices(self):
        """The same as matrices [1, heads, nodes, nodes]."""
        identity = torch.eye(self.spec.nodes, device=self.routes.device)
        return self.routed(identity.expand(1, self.spec.heads, -1, -1))

    def weights(self, x, positions, active, pairs, pair_classes):
        """A [samples or 1, heads, nodes, nodes], for the active rows of the full model."""
        if self.spec.weighting == "linear":
            return linear_weights(self.spec, *self.query_key_of_data(x, positions, active))
        if self.spec.weighting == "low_rank" and self.spec.landmarks < len(active):
            return low_rank_weights(self.spec, *self.query_key_of_data(x, positions, active))
        allowed = torch.ones(len(active), len(active), dtype=torch.bool, device=x.device)
        allowed = allowed.tril() if self.spec.causal else allowed
        if self.spec.weighting == "relu_rows":
            return self.relu_rows(x, positions, active, allowed)
        scores = self.scores_of(x, positions, active, pairs, pair_classes)
        if self.spec.pair_mask == "edges":
            scores = self.masked(scores, pair_classes)
        if self.spec.weighting in ("relu", "sums", "max_plus"):
            scores = scores.masked_fill(~allowed, 0)
            return scores.relu() / allowed.sum(-1, keepdim=True) if self.spec.weighting == "relu" else scores
        weights = torch.softmax(scores.masked_fill(~allowed, -math.inf), -1)
        if self.spec.weighting == "hard":  # as in tests: the largest, and the gradient of the softmax
            place = torch.arange(weights.shape[-1], device=weights.device)
            chosen = (place == weights.argmax(-1, keepdim=True)).to(weights)
            return chosen + weights - weights.detach()
        return weights

    def mixed(self, weights, value):
        if self.spec.weighting != "max_plus":
            return weights @ value
        sums = weights[..., None] + value[..., None, :, :]  # [samples, heads, nodes, nodes, d]
        if self.spec.causal:
            later = torch.ones(sums.shape[2:4], dtype=torch.bool, device=sums.device).triu(1)
            sums = sums.masked_fill(later[..., None], -math.inf)
        return sums.max(-2).values

    def forward(self, x, positions, active, pairs=None, pair_classes=None):
        spec = self.spec
        value = fired(spec, self.v_proj, self.v_proj(x)).unflatten(-1, (self.spec.heads, -1)).transpose(1, 2)
        if self.spec.routed:
            mixed = self.routed(value)
        else:
            self.last_weights = self.weights(x, positions, active, pairs, pair_classes)
            mixed = self.mixed(self.last_weights, value)
        mixed = mixed.transpose(1, 2).flatten(-2)
        if spec.time_steps > 0:
            mixed = fired(spec, self.heads, mixed, 0.5)
        return fired(spec, self.o_proj, self.o_proj(mixed))


class GeluTanh(nn.Module):
    """As in GPT-2; PyTorch has it by name only since 1.12."""

    def forward(self, x):
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + torch.tanh(inner))


class Mlp(nn.Module):
    def __init__(self, spec):
        super().__init__()
        joined = 2 * spec.width if spec.join == "concatenate" else spec.width
        joined += spec.value_width if spec.symbols_read_values else 0
        sizes = [joined] + [spec.mlp_width] * (spec.mlp_depth - 1) + [spec.width]
        activation = {"relu": nn.ReLU(), "gelu": nn.GELU(), "gelu_tanh": GeluTanh()}
        maps = []
        for inputs, outputs in zip(sizes, sizes[1:]):
            maps += [charged(spec, biased(spec, nn.Linear(inputs, outputs)), outputs), activation[spec.activation]]
        self.spec = spec
        self.mlp = nn.Sequential(*maps[:-1])

    def forward(self, x):
        if self.spec.time_steps == 0:
            return self.mlp(x)
        for linear in self.mlp[::2]:
            x = fired(self.spec, linear, linear(x))
        return x


class Layer(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.spec = spec
        if spec.normalisation != "none":
            self.attn_norm = biased(spec, nn.LayerNorm(spec.width))
        self.attn = Attention(spec)
        if spec.normalisation != "none" and spec.join == "add":
            self.mlp_norm = biased(spec, nn.LayerNorm(spec.width))
        self.mlp = Mlp(spec)

    def forward(self, x, positions, active, pairs=None, pair_classes=None):
        before = self.spec.normalisation == "before"
        after = self.spec.normalisation == "after"
        source = self.attn_norm(x) if before else x
        o = self.attn(source, positions, active, pairs, pair_classes)
        if self.spec.join == "concatenate":
            x = self.mlp(torch.cat([source, o], -1))
            return self.attn_norm(x) if after else x
        x = x + o
        x = self.attn_norm(x) if after else x
        x = x + self.mlp(self.mlp_norm(x) if before else x)
        return self.mlp_norm(x) if after else x


class Values(nn.Module):
    """The values v of a layer of two streams: maps without biases, but for gates of the symbols z."""

    def __init__(self, spec):
        super().__init__()
        self.spec = spec
        linear = lambda size, inputs: nn.Linear(inputs, size, bias=False)
        self.v_proj = linear(spec.value_width, spec.value_width)
        self.o_proj = linear(spec.value_width, spec.value_width)
        if spec.value_gates != "none":
            self.gate_mix = biased(spec, nn.Linear(spec.width, 2 * spec.value_width))
        if spec.value_gates == "mix_and_hidden":
            self.gate_hidden = biased(spec, nn.Linear(spec.width, spec.value_mlp_width))
        if spec.value_mlp_width > 0:
            self.mlp = nn.Sequential(linear(spec.value_mlp_width, spec.value_width), nn.ReLU(),
                                     linear(spec.value_width, spec.value_mlp_width))

    def forward(self, v, weights, z):
        value = self.v_proj(v).unflatten(-1, (self.spec.heads, -1)).transpose(1, 2)
        o = self.o_proj((weights @ value).transpose(1, 2).flatten(-2))
        if self.spec.value_gates == "none":
            u = v + o
        else:
            keep, add = (2 * torch.sigmoid(self.gate_mix(z))).chunk(2, -1)
            u = keep * v + add * o
        if self.spec.value_mlp_width == 0:
            return u
        hidden = self.mlp[1](self.mlp[0](u))
        if self.spec.value_gates == "mix_and_hidden":
            hidden = hidden * (2 * torch.sigmoid(self.gate_hidden(z)))
        return u + self.mlp[2](hidden)


def unit_of_sample(v):
    return v * inverse_root((v**2).mean((1, 2), keepdim=True))


class TwoStreamLayer(nn.Module):
    """Symbols x, which do not scale, and values v, which do; one attention mixes both."""

    def __init__(self, spec, last):
        super().__init__()
        self.spec = spec
        last = last and spec.loops == "1"  # what nobody reads after it is absent
        classes = spec.loss == "cross_entropy"
        self.makes_symbols = not last or classes
        self.makes_values = not (last and classes and not spec.symbols_read_values)
        self.mixes = self.makes_symbols or (self.makes_values and spec.value_gates != "none")
        norm = lambda: nn.Identity() if spec.normalisation == "none" else biased(spec, nn.LayerNorm(spec.width))
        self.attn_norm = norm()
        self.attn = Attention(spec, self.mixes)
        if self.mixes:
            self.mlp_norm = norm()
        if self.makes_symbols:
            self.mlp = Mlp(spec)
        if self.makes_values:
            self.values = Values(spec)

    def forward(self, x, v, positions, active, pairs=None, pair_classes=None):
        spec, attn, z = self.spec, self.attn, self.attn_norm(x)
        if spec.scores_read_values:
            attn.unit_values = unit_of_sample(v)
        if self.mixes:
            x = x + attn(z, positions, active, pairs, pair_classes)
            z = self.mlp_norm(x)
        else:
            attn.last_weights = attn.weights(z, positions, active, pairs, pair_classes)
        if self.makes_values:
            v = self.values(v, attn.last_weights, z)
        if self.makes_symbols:
            x = x + self.mlp(torch.cat([z, unit_of_sample(v)], -1) if spec.symbols_read_values else z)
        return x, v


class Transformer(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.spec = spec
        self.streams = spec.value_width > 0
        inputs = 0 if self.streams else spec.data_columns
        inputs += spec.encoding_size if spec.positions_in_input else 0
        if inputs > 0:
            self.encoding = biased(spec, nn.Linear(inputs, spec.width))
        if spec.time_steps > 0:
            self.encoding = charged(spec, getattr(self, "encoding", nn.Module()), spec.width)
        if spec.vocabulary > 0:
            self.tokens = nn.Embedding(spec.vocabulary, spec.width)
        if self.streams:
            self.values = nn.ModuleDict({"encoder": nn.Linear(spec.data_columns, spec.value_width, bias=False)})
        make = lambda layer, of: TwoStreamLayer(of, layer == spec.depth - 1) if self.streams else Layer(of)
        self.transformer_layers = nn.ModuleList(make(layer, spec.of_layer(layer)) for layer in range(spec.depth))
        self.values_answer = self.streams and spec.loss == "squared_error"
        if self.values_answer:
            self.values["head"] = nn.Linear(spec.value_width, spec.output_columns, bias=False)
        if spec.normalisation == "before" and not self.values_answer:
            self.norm = biased(spec, nn.LayerNorm(spec.width))
        if not spec.tied_output and not self.values_answer:
            self.decoding = biased(spec, nn.Linear(spec.width, spec.output_columns))
        if spec.stores_positions:
            self.positions = nn.Embedding(spec.nodes, spec.encoding_size)
            self.positions.weight.requires_grad_(spec.encoding == "learned")

    def encoded(self, x, tokens, positions):
        """x [samples, nodes, width]: a map of the numbers, or the row of a token, by node, or their sum."""
        spec = self.spec
        if spec.routed and spec.positions_in_input:  # P is the identity, and may be large
            weight = self.encoding.weight
            x = x @ weight[:, : spec.data_columns].T + weight[:, spec.data_columns :].T
            return x + self.encoding.bias
        if spec.positions_in_input:
            x = torch.cat([x, positions.expand(x.shape[0], -1, -1)], -1)
        if x.shape[-1] > 0:
            x = self.encoding(x)
        else:
            x = x.new_zeros(*x.shape[:2], spec.width)
        if spec.vocabulary > 0:
            held = torch.nn.functional.pad(tokens, (0, spec.scratch_nodes), value=-1)
            rows = self.tokens(held.clamp(min=0))
            added = spec.tokens_and_values or self.streams
            x = torch.where((held >= 0)[..., None], rows + x if added else rows, x)
        return x + positions if spec.positions_added else x

    def forward(self, inputs, tokens=None, pairs=None, pair_classes=None):
        """inputs [samples, length, data_columns], and tokens [samples, length] where the model has
        a vocabulary (negative: the node holds none) -> [samples, length, output_columns]. A model
        that reads pairs gets pairs [samples, length, length, pair_columns] and pair_classes
        [samples, length, length]."""
        spec, (samples, length, _) = self.spec, inputs.shape
        if spec.wrap == "scale":
            square = (inputs**2).mean((1, 2), keepdim=True)
            inputs = inputs * inverse_root(square)
        active = torch.cat([torch.arange(length), torch.arange(spec.real_nodes, spec.nodes)])
        scratch = inputs.new_zeros(samples, spec.scratch_nodes, spec.data_columns)
        x = torch.cat([inputs, scratch], 1)
        positions = None
        if spec.stores_positions:
            positions = self.positions.weight[active]
        elif spec.uses_positions and not spec.routed:
            positions = formula_positions(spec, spec.places(length)).to(inputs)
        if self.streams:
            if spec.vocabulary > 0 and not spec.tokens_and_values:  # a node of a token has no number
                held = torch.nn.functional.pad(tokens, (0, spec.scratch_nodes), value=-1)
                x = torch.where((held >= 0)[..., None], torch.zeros_like(x), x)
            x, v = x[..., :0], self.values["encoder"](x)
        x = self.encoded(x, tokens, positions)
        if spec.time_steps > 0:
            x = fired(spec, self.encoding, x[:, None].expand(-1, spec.time_steps, -1, -1).flatten(0, 1))
        self.applied = []  # weights of attention
        for _ in range(spec.loops_at(length)):
            for layer in self.transformer_layers:
                if self.streams:
                    x, v = layer(x, v, positions, active, pairs, pair_classes)
                else:
                    x = layer(x, positions, active, pairs, pair_classes)
                self.applied.append(getattr(layer.attn, "last_weights", None))
        if self.values_answer:
            outputs = self.values["head"](v)
        else:
            x = self.norm(x) if spec.normalisation == "before" else x
            if spec.time_steps > 0:
                x = x.unflatten(0, (-1, spec.time_steps)).mean(1)
            outputs = x @ self.tokens.weight.T if spec.tied_output else self.decoding(x)
        outputs = outputs[:, :length]
        return outputs * (square * inverse_root(square)) if spec.wrap == "scale" else outputs

    def attention(self, inputs, tokens=None, pairs=None, pair_classes=None):
        """A of every layer for the first sample, [depth, heads, nodes, nodes]."""
        if self.spec.routed:
            return torch.cat([layer.attn.route_matrices() for layer in self.transformer_layers])
        self(inputs[:1], *(None if part is None else part[:1] for part in (tokens, pairs, pair_classes)))
        return torch.stack([weights[: max(1, self.spec.time_steps)].mean(0) for weights in self.applied])


def loss_of(outputs, targets, mask=None):
    """Mean squared error; masked outputs leave the sum but not the count."""
    error = (outputs - targets) ** 2
    return (error if mask is None else error * mask).sum() / error.numel()


def cross_entropy_of(outputs, labels, mask=None):
    """Mean cross-entropy over nodes with label >= 0 and, in their first column, mask != 0."""
    if mask is not None:
        labels = torch.where(mask[:, 0].bool(), labels, torch.full_like(labels, -1))
    return torch.nn.functional.cross_entropy(
        outputs.flatten(0, 1), labels.flatten(), ignore_index=-1
    )
