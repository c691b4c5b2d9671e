"""Models of every preset and encoding with random weights, shapes and data, all from fixed seeds.

All numbers are float32 values held in double, so that both sides start from exactly the same.
"""

import dataclasses
import math

import numpy
import torch

import tool  # noqa: F401, puts scripts/ on the path
from posattn_torch import KINDS, PRESETS, Spec, Transformer, cross_entropy_of, kind_of, loss_of, preset

ENCODINGS = ("one_hot", "binary", "sinusoidal", "random", "learned")


@dataclasses.dataclass
class Case:
    name: str
    model: Transformer
    inputs: torch.Tensor  # [samples, length, data_columns], length <= real_nodes
    targets: torch.Tensor
    mask: torch.Tensor = None  # [length, output_columns]
    tokens: torch.Tensor = None  # [samples, length]
    labels: torch.Tensor = None  # [samples, length], in the place of targets
    pairs: torch.Tensor = None  # [samples, length, length, pair_columns]
    pair_classes: torch.Tensor = None  # [samples, length, length]

    @property
    def spec(self):
        return self.model.spec

    @property
    def engines(self):
        """What the case compares: in fp32 rounding turns the sign of a number near 0."""
        signs = any(layer.scores == "signs" for layer in self.spec.layers())
        return ("reference",) if signs else ("reference", "plain", "folded", "automatic")

    def weights(self):
        return {f"weights/{name}": t.numpy() for name, t in self.model.state_dict().items()}

    def tensors(self):
        """What parity_tool needs for this case."""
        result = {"inputs": self.inputs, "targets": self.targets, **self.weights()}
        for name in ("mask", "tokens", "labels", "pairs", "pair_classes"):
            if getattr(self, name) is not None:
                result[name] = getattr(self, name)
        return result

    def expected(self):
        """Outputs, attention, loss and every gradient, in double."""
        sample = (self.inputs, self.tokens, self.pairs, self.pair_classes)
        outputs = self.model(*sample)
        if self.labels is None:
            loss = loss_of(outputs, self.targets, self.mask)
        else:
            loss = cross_entropy_of(outputs, self.labels, self.mask)
        trained = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        gradients = torch.autograd.grad(loss, list(trained.values()))
        result = {"outputs": outputs, "loss": loss, "attention": self.model.attention(*sample)}
        result.update((f"gradient/{name}", g) for name, g in zip(trained, gradients))
        return {name: tensor.detach().numpy() for name, tensor in result.items()}


def as_float(tensor):
    return tensor.float().double()


def initial_model(spec, seed):
    """PyTorch's own initial values (random biases everywhere), rounded to float."""
    torch.manual_seed(seed)
    network = Transformer(spec).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(as_float(parameter))
    return network


def gain(name):
    """By how much lively_model enlarges PyTorch's initial values, of variance 1 / (3 fan_in)."""
    if not name.endswith("weight") or name.startswith(("positions", "tokens")) or "norm" in name or "score_conv" in name:
        return 1.0
    if ".mlp.mlp.0." in name:
        return 2.0
    return math.sqrt(6) if ".mlp.mlp." in name else math.sqrt(3)  # after a ReLU, or not


def lively_model(spec, seed):
    """Weights that keep the signal's size, so that nodes still differ in the last layer.

    At initial values they hardly do: the exact gradient of queries and keys is then far below the
    rounding of its terms, in PyTorch's fp32 as much as in ours, and there is nothing to compare."""
    network = initial_model(spec, seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(as_float(parameter * gain(name)))
    return network


def make_batch(spec, samples, length, generator):
    inputs = torch.rand(samples, length, spec.data_columns, generator=generator) * 4 - 2
    targets = torch.randn(samples, length, spec.output_columns, generator=generator)
    return inputs.double(), targets.double()


def pair_sizes(seed, reads_pairs):
    """Numbers and classes of pairs, for a model that reads them."""
    rng = numpy.random.default_rng((seed, 2))
    return dict(pair_columns=int(rng.integers(0, 3)), pair_classes=int(rng.integers(2, 5))) if reads_pairs else {}


def make_pairs(spec, samples, length, seed):
    """The tensors of a Case."""
    generator = torch.Generator().manual_seed(seed + 1)
    square, result = (samples, length, length), {}
    if spec.reads_pairs and spec.pair_columns > 0:
        result["pairs"] = torch.randn(*square, spec.pair_columns, generator=generator).double()
    if spec.reads_pairs and spec.pair_classes > 0:
        result["pair_classes"] = torch.randint(0, spec.pair_classes, square, generator=generator)
        # Where a row has one class alone, the gradient of its score is zero, and there is nothing to compare.
        places = torch.arange(length)
        result["pair_classes"][0] = (places[:, None] + places) % spec.pair_classes
    return result


def random_sizes(rng, rope, encoding):
    heads = int(rng.integers(1, 4))
    real_nodes = int(rng.integers(2, 10))
    # Never a width of 1 or 2: where a gradient is a single number that cancels by chance, no other
    # element says how large an error may be.
    least_head_size = math.ceil(3 / heads)
    sizes = dict(
        encoding=encoding,
        real_nodes=real_nodes,
        scratch_nodes=int(rng.choice([0, 1, 1, 2])),
        data_columns=int(rng.integers(1, 4)),
        output_columns=int(rng.integers(1, 4)),
        heads=heads,
        width=heads * max(least_head_size, int(rng.integers(1, 9))) * (2 if rope else 1),
        depth=int(rng.integers(1, 5)),
        mlp_width=int(rng.integers(4, 25)),
        mlp_depth=int(rng.choice([2, 2, 3])),
    )
    if encoding != "one_hot" and rng.random() < 0.3:
        sizes["encoding_size"] = 2 * int(rng.integers(2, 5))
    return sizes


def limit_growth(sizes, *fields):
    """Of weights that grow with the scores of the data L layers have degree 3^L, and rows of relu_rows may be divided
    by little, which amplifies rounding: two layers are enough."""
    for field in fields:
        if field.get("weighting") in ("relu", "relu_rows", "sums") and field.get("attention", "positions") != "positions":
            sizes.update(depth=min(2, sizes["depth"]), loops="1")


def random_case(name, encoding, seed):
    rng = numpy.random.default_rng(seed)
    sizes = random_sizes(rng, PRESETS[name].get("rope", False), encoding)
    sizes["real_nodes"] = max(sizes["real_nodes"], PRESETS[name].get("landmarks", 0))
    limit_growth(sizes, PRESETS[name])
    spec = preset(name, **sizes, **pair_sizes(seed, name == "structural"))
    length = spec.real_nodes if rng.random() < 0.6 else int(rng.integers(1, spec.real_nodes + 1))
    generator = torch.Generator().manual_seed(seed)
    inputs, targets = make_batch(spec, int(rng.integers(1, 41)), length, generator)
    mask = None
    if rng.random() < 0.4:
        mask = (torch.rand(length, spec.output_columns, generator=generator) < 0.7).double()
        mask[0, 0] = 1
    pairs = make_pairs(spec, len(inputs), length, seed)
    return Case(f"{name}-{encoding}-{seed}", lively_model(spec, seed), inputs, targets, mask, **pairs)


def paper_case(name, samples, length=8, seed=0, make_model=lively_model):
    """The sizes of the paper: width 64, two heads, depth floor(log2 n) + 1."""
    sizes = dict(depth=length.bit_length())
    limit_growth(sizes, PRESETS[name])
    spec = preset(name, real_nodes=length, **sizes, **pair_sizes(seed, name == "structural"))
    generator = torch.Generator().manual_seed(seed)
    inputs, _ = make_batch(spec, samples, length, generator)
    pairs = make_pairs(spec, samples, length, seed)
    return Case(f"{name}-paper-{length}", make_model(spec, seed), inputs, inputs.cumsum(1), **pairs)


def random_kinds(rng):
    """Kinds that no preset has, or that differ by layer."""
    composed = ["data scores=unit", "data source-scale=node scores=unit", "data source-scale=node",
                "data score-bias=distance", "data score-bias=direct", "cosine weighting=hard", "data-and-positions score-bias=positions",
                "data scores=direction", "data scores=signs score-bias=gray", "data score-bias=log", "data scores=tropical",
                "data scores=tropical weighting=max_plus", "relative weighting=max_plus", "positions weighting=relu",
                "cosine weighting=relu", "cosine weighting=sums", "direct weighting=sums", "data weighting=relu_rows",
                "data scores=direction weighting=relu_rows score-bias=log",
                "data score-bias=alibi", "rope score-bias=buckets", "data score-bias=fire scores=unit", "data score-bias=kerple score-window=5",
                "data score-bias=alibi score-window=1 weighting=hard", "rope score-window=3", "data score-bias=fire weighting=kernel features=7",
                "data-and-positions weighting=kernel features=9",
                "cosine score-bias=pairs", "data score-bias=pairs pair-mask=edges",
                "relative pair-mask=edges", "pairs weighting=hard", "pairs weighting=sums",
                "linear scores=unit", "low-rank landmarks=3", "low-rank scores=unit landmarks=2", "window reach=2"]
    names = [str(rng.choice([*KINDS, *composed])) for _ in range(2)]
    return ",".join(names if names[0] != names[1] else [names[0], "relative" if names[0] != "relative" else "data"])


def open_case(seed):
    """Any combination of blocks: tokens, masks, residuals, norms, activations, heads, losses."""
    rng = numpy.random.default_rng(seed)
    flip = lambda: bool(rng.integers(2))
    # Equal tokens are equal nodes, of which a hard choice may read either: gradients then differ.
    special = {"scores", "source_scale", "score_window", "landmarks"}
    plain = lambda fields: not special & set(fields) and fields.get("weighting") != "hard"
    name = str(rng.choice([name for name in PRESETS if plain(PRESETS[name])]))
    encoding = "learned" if flip() else "one_hot"
    sizes = random_sizes(rng, PRESETS[name].get("rope", False), encoding)
    sizes.update(
        causal=flip(),
        join="add" if flip() else "concatenate",
        normalisation=str(rng.choice(["none", "before", "after"])),
        activation=str(rng.choice(["relu", "gelu", "gelu_tanh"])),
        loss="cross_entropy" if flip() else "squared_error",
    )
    if sizes["width"] < 4:  # LayerNorm of three columns is nearly a sign: its gradient cancels
        sizes["normalisation"] = "none"
    in_input = PRESETS[name].get("positions_in_input", False)
    if flip():
        sizes.update(vocabulary=int(rng.integers(3, 8)), tied_output=flip())
        if sizes["tied_output"]:
            sizes["output_columns"] = sizes["vocabulary"]
        if not in_input and flip():
            sizes["data_columns"] = 0
    if encoding == "learned" and not in_input and flip():
        sizes.update(positions_added=True, encoding_size=sizes["width"])
    if sizes["loss"] == "cross_entropy":
        sizes["output_columns"] = max(3, sizes["output_columns"])
        if sizes.get("tied_output"):
            sizes["output_columns"] = sizes["vocabulary"]
    if seed % 3 == 1 and sizes["normalisation"] != "none":  # without it the same layers amplify again
        sizes.update(loops=("2", "log2")[seed % 2], depth=min(2, sizes["depth"]))
    if seed % 3 == 0:
        sizes.update(kinds=random_kinds(numpy.random.default_rng((seed, 1))), depth=max(2, sizes["depth"]))
        if "low-rank" in sizes["kinds"]:  # of 4 landmarks at most
            sizes.update(causal=False, real_nodes=max(4, sizes["real_nodes"]))
    limit_growth(sizes, PRESETS[name], *map(kind_of, filter(None, sizes.get("kinds", "").split(","))))
    if preset(name, **sizes).reads_pairs:
        sizes.update(pair_sizes(seed, True))
    spec = preset(name, **sizes)
    if not (spec.kinds or spec.direct_attention or spec.relative_attention) and flip():
        spec.split_heads = spec.source_size % spec.heads == 0 and spec.encoding_size % spec.heads == 0
    samples, length = int(rng.integers(2, 12)), int(rng.integers(1, spec.real_nodes + 1))
    generator = torch.Generator().manual_seed(seed)
    inputs, targets = make_batch(spec, samples, length, generator)
    classes = lambda low, high: torch.randint(low, high, (samples, length), generator=generator)
    tokens = labels = None
    if spec.vocabulary > 0:
        tokens = classes(-1 if spec.data_columns > 0 else 0, spec.vocabulary)
    if spec.loss == "cross_entropy":
        labels = classes(-1, spec.output_columns)
        labels[0, 0] = 0  # at least one counts
    model = lively_model(Spec(**spec.fields()), seed)
    pairs = make_pairs(spec, samples, length, seed)
    return Case(f"open-{name}-{seed}", model, inputs, targets, None, tokens, labels, **pairs)


def wrapped(case):
    """The same model between a division by the size of its input and a multiplication; one sample is zero."""
    spec = dataclasses.replace(case.spec, wrap="scale")
    magnitude = 10 ** torch.linspace(-2, 2, len(case.inputs)).double()[:, None, None]
    inputs = as_float(case.inputs * magnitude)
    inputs[len(inputs) // 2] *= 0
    model = lively_model(spec, 7)
    return dataclasses.replace(case, name=case.name + "-wrapped", model=model, inputs=inputs,
                               targets=as_float(case.targets * magnitude))


def gradient_cases(shapes_each=2):
    """Every preset with every encoding it can use, and the paper's sizes."""
    cases, seed = [], 0
    for name in PRESETS:
        spec = preset(name)
        for encoding in ENCODINGS if spec.uses_positions else ENCODINGS[:1]:
            for _ in range(shapes_each):
                seed += 1
                cases.append(random_case(name, encoding, seed))
    cases += [paper_case(name, samples=24) for name in PRESETS]
    cases += [paper_case(name, samples=12, length=16) for name in ("positional", "standard")]
    cases += [open_case(seed) for seed in range(1000, 1060)]
    cases += [wrapped(random_case(name, "one_hot", seed)) for seed, name in enumerate(("standard", "m4", "positional", "scale-free"), 2000)]
    cases += [wrapped(case) for case in map(open_case, range(1000, 1030)) if case.tokens is None and case.labels is None]
    return cases
