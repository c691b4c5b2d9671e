"""The training side of the comparison in PyTorch: optimisers, clipping, schedules, whole steps."""

import numpy
import torch

from cases import as_float, initial_model, make_batch, paper_case, random_case
from posattn_torch import PRESETS, loss_of, preset

# As the C++ options are called; PyTorch's names are in `optimiser_of`.
OPTIMISERS = {
    "adam": dict(kind="adam"),
    "adam-decay": dict(kind="adam", weight_decay=0.05),
    "adamw": dict(kind="adamw", weight_decay=0.1, beta2=0.95),
    "adam-clip": dict(kind="adam", clip=1.0),
    "adamw-decay-clip": dict(kind="adamw", weight_decay=0.1, clip=0.5, epsilon=1e-6),
}

SCHEDULES = {
    "plateau": dict(kind="plateau", lr=5e-4, patience=50),
    "plateau-floor": dict(kind="plateau", lr=2e-5, patience=2),
    "plateau-epsilon": dict(kind="plateau", lr=1.005e-6, patience=1, floor=0.0),
    "constant": dict(kind="constant", lr=3e-4),
    "warmup-linear": dict(kind="warmup-linear", lr=1e-4, warmup_steps=100, total_steps=900),
    "linear": dict(kind="warmup-linear", lr=1e-3, warmup_steps=0, total_steps=500),
}


def optimiser_of(options, parameters, lr):
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[options["kind"]]
    return kind(
        parameters,
        lr=lr,
        betas=(0.9, options.get("beta2", 0.999)),
        eps=options.get("epsilon", 1e-8),
        weight_decay=options.get("weight_decay", 0.0),
    )


def trained(model):
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def take_step(optimiser, options, parameters, lr):
    if "clip" in options:
        torch.nn.utils.clip_grad_norm_(parameters, options["clip"])
    for group in optimiser.param_groups:
        group["lr"] = lr
    optimiser.step()


class OptimiserCase:
    """A sequence of gradients of very different sizes, some exactly zero, and a changing rate."""

    steps = 40

    def __init__(self, name, seed):
        self.name = f"optimiser-{name}"
        self.options = OPTIMISERS[name]
        sizes = dict(real_nodes=3, width=4, depth=1, mlp_width=3, encoding="random")
        self.model = initial_model(preset("positional", **sizes), seed)
        self.rates = numpy.linspace(1e-2, 1e-4, self.steps)
        generator = torch.Generator().manual_seed(seed)
        self.gradients = {}
        for parameter, tensor in trained(self.model).items():
            shape = (self.steps, *tensor.shape)
            size = 10.0 ** (torch.rand(shape, generator=generator) * 6 - 5)
            values = torch.randn(shape, generator=generator) * size
            values[torch.rand(shape, generator=generator) < 0.05] = 0
            self.gradients[parameter] = as_float(values)

    def tensors(self):
        weights = self.model.state_dict().items()
        return {
            **{f"weights/{name}": tensor for name, tensor in weights},
            **{f"gradients/{name}": tensor for name, tensor in self.gradients.items()},
            "rates": self.rates,
        }

    def expected(self):
        """Every tensor after every step."""
        parameters = trained(self.model)
        optimiser = optimiser_of(self.options, parameters.values(), 0.0)
        trajectory = {name: [] for name, _ in self.model.named_parameters()}
        for step in range(self.steps):
            for name, parameter in parameters.items():
                parameter.grad = self.gradients[name][step].clone()
            take_step(optimiser, self.options, parameters.values(), self.rates[step])
            for name, parameter in self.model.named_parameters():
                trajectory[name].append(parameter.detach().clone())
        return {name: torch.stack(steps).numpy() for name, steps in trajectory.items()}


def schedule_losses(seed):
    """Per epoch: falling, standing still, noisy, falling by less than the threshold counts."""
    rng = numpy.random.default_rng(seed)
    losses, level = [], 10.0
    for _ in range(12):
        fall = rng.choice([0.0, 2e-5, 1e-4, 1e-2])
        for _ in range(int(rng.integers(40, 140))):
            level *= 1 - fall
            losses.append(level * (1 + rng.choice([0.0, 0.01]) * rng.random()))
    return numpy.array(losses)


def expected_rates(options, losses):
    """The rate of every epoch (plateau) or step (the others)."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([parameter], lr=options["lr"])
    if options["kind"] == "plateau":
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimiser,
            factor=0.9,
            patience=options["patience"],
            threshold=1e-4,
            threshold_mode="rel",
            min_lr=options.get("floor", 1e-6),
            eps=1e-8,
        )
    else:

        def warmup_linear(step):
            warmup, total = options["warmup_steps"], options["total_steps"]
            if step < warmup:
                return step / warmup
            return max(0.0, (total - step) / (total - warmup))

        rate = warmup_linear if options["kind"] == "warmup-linear" else (lambda _: 1.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    rates = []
    for loss in losses:
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        if options["kind"] == "plateau":
            schedule.step(loss)
        else:
            schedule.step()
    return numpy.array(rates)


class StepsCase:
    """Ten real training steps on ten batches of running sums."""

    steps, lr = 10, 5e-4

    def __init__(self, case, optimiser, samples, seed):
        self.name = f"steps-{case.name}-{optimiser}"
        self.options, self.model, self.spec = OPTIMISERS[optimiser], case.model, case.spec
        self.engines = case.engines
        generator = torch.Generator().manual_seed(seed)
        length = case.inputs.shape[1]
        batches = [make_batch(self.spec, samples, length, generator) for _ in range(self.steps)]
        self.inputs = torch.stack([inputs for inputs, _ in batches])
        sums = self.inputs.sum(-1, keepdim=True).cumsum(2)
        self.targets = as_float(sums.expand(-1, -1, -1, self.spec.output_columns))
        self.weights = case.weights()

    def tensors(self):
        return {"inputs": self.inputs, "targets": self.targets, **self.weights}

    def expected(self):
        """The loss of every step, and the outputs on the first batch after the last."""
        parameters = list(trained(self.model).values())
        optimiser = optimiser_of(self.options, parameters, self.lr)
        losses = []
        for inputs, targets in zip(self.inputs, self.targets):
            optimiser.zero_grad()
            loss = loss_of(self.model(inputs), targets)
            loss.backward()
            take_step(optimiser, self.options, parameters, self.lr)
            losses.append(loss.item())
        outputs = self.model(self.inputs[0]).detach().numpy()
        return {"losses": numpy.array(losses), "outputs": outputs}


def steps_cases():
    cases = []
    for name, optimiser, samples in (
        ("positional", "adam", 40),
        ("standard", "adam", 40),
        ("standard", "adamw-decay-clip", 20),
    ):
        paper = paper_case(name, samples=1, seed=samples, make_model=initial_model)
        cases.append(StepsCase(paper, optimiser, samples, seed=samples))
    for seed, name in enumerate([name for name in PRESETS if not preset(name).reads_pairs], start=500):
        encoding = ("one_hot", "learned", "random", "binary", "sinusoidal")[seed % 5]
        optimiser = list(OPTIMISERS)[seed % len(OPTIMISERS)]
        case = random_case(name, encoding, seed)
        cases.append(StepsCase(case, optimiser, samples=24, seed=seed))
    return cases
