"""posattn's models as PyTorch modules, and PyTorch's weights as models of posattn.

>>> import posattn, posattn.torch, torch
>>> sort = posattn.torch.Module(posattn.compile("sort", length=4).model)
>>> sort(torch.tensor([[3.0, 1.0, 4.0, 1.0]])).tolist()
[[1.0, 1.0, 3.0, 4.0]]
"""

import collections.abc

import numpy
import torch

from .arguments import instance_of
from .errors import Error
from .model import Model, from_arrays
from .transformer import Spec, Transformer


class Module(Transformer):
    """A model of posattn, trained or compiled, as a `torch.nn.Module` with the same outputs and
    gradients, whose parameters have the authors' names. It owns its weights: `to_model` gives a
    model of posattn with what they have become."""

    def __init__(self, model):
        instance_of("model", model, Model, "a posattn.Model")
        super().__init__(Spec(**model.spec))
        self._model = model.copy()
        state = {name: torch.from_numpy(values.copy()) for name, values in model.parameters.items()}
        self.load_state_dict(state, strict=True)

    def forward(self, x=None, tokens=None, pairs=None, pair_classes=None):
        """As `posattn.Model` takes samples: [nodes], [samples, nodes], and with the columns of a
        node as a last axis; pairs of nodes with one more axis of nodes."""
        columns, outputs = self.spec.data_columns, self.spec.output_columns
        for name, part in (("x", x), ("tokens", tokens), ("pairs", pairs), ("pair_classes", pair_classes)):
            if part is not None:
                instance_of(name, part, torch.Tensor, "a tensor")
        what, given = ("tokens", tokens) if x is None else ("x", x)
        if given is None:
            raise Error("no input", "x, or tokens for a model that has them")
        by_column = x is not None and (columns != 1 or x.ndim == 3)
        single = given.ndim - (1 if by_column else 0) == 1
        if single:
            x, tokens, pairs, pair_classes = (
                None if part is None else part[None] for part in (x, tokens, pairs, pair_classes))
        if x is None:
            x = torch.zeros(*tokens.shape, columns, dtype=next(self.parameters()).dtype,
                            device=tokens.device)
        elif not by_column:
            x = x[..., None]
        if x.ndim != 3 or x.shape[-1] != columns or x.shape[1] > self.spec.real_nodes:
            raise Error(f"{what} of shape {tuple(given.shape)}",
                        f"[samples, {self.spec.real_nodes}, {columns}]", code=4)
        if x.shape[1] != self.spec.real_nodes:
            self._check_length(x.shape[1])
        y = super().forward(x, tokens, *self._checked_pairs(x, pairs, pair_classes))
        if outputs == 1 and not (by_column and columns == 1):
            y = y[..., 0]
        return y[0] if single else y

    def _checked_pairs(self, x, pairs, pair_classes):
        """Those that the model reads, of the shapes that x asks for."""
        (samples, nodes, _), spec, checked = x.shape, self.spec, []
        for name, part, columns, axes in (("pairs", pairs, spec.pair_columns, (spec.pair_columns,)),
                                          ("pair_classes", pair_classes, spec.pair_classes, ())):
            if columns > 0 and part is not None and part.ndim == 3 and axes == (1,):
                part = part[..., None]
            wanted = (samples, nodes, nodes, *axes)
            if columns > 0 and (part is None or tuple(part.shape) != wanted):
                shape = None if part is None else tuple(part.shape)
                raise Error(f"{name} of shape {shape}", f"{wanted}", code=4)
            checked.append(part if columns > 0 else None)
        return checked

    def _check_length(self, nodes):
        """The engine says, with no samples, whether the model takes this length."""
        spec = self.spec
        none = lambda wanted, *axes: numpy.zeros((0, nodes, *axes), int) if wanted else None
        self._model(none(spec.data_columns, spec.data_columns), tokens=none(spec.vocabulary),
                    pairs=none(spec.pair_columns, nodes, spec.pair_columns),
                    pair_classes=none(spec.pair_classes, nodes))

    def attention(self, x, tokens=None, pairs=None, pair_classes=None):
        """The attention matrices [depth, heads, nodes, nodes] of the first sample of x [samples,
        nodes, columns]."""
        return super().attention(x, tokens, *self._checked_pairs(x, pairs, pair_classes))

    def to_model(self):
        """The `posattn.Model` with the module's weights."""
        model = self._model.copy()
        for name, values in self.state_dict().items():
            if not name.endswith(".attn.routes"):
                model.parameters[name] = values.detach().cpu().numpy()
        return model


def from_state_dict(state, *, architecture=None, task=None, length=None, heads=None):
    """The `posattn.Model` of a state dict with the authors' names: `torch.load(FILE)`, or a
    module's `state_dict()`. What the shapes leave open (the task, how many heads, RoPE), the
    keywords say."""
    arrays = {}
    instance_of("state", state, collections.abc.Mapping, "a state dict: {name: tensor}")
    for name, values in state.items():
        if name.endswith(".attn.routes"):
            raise Error("the state dict of a compiled network", "one of a model that was trained",
                        "module.to_model() gives the model of its module")
        if not isinstance(values, torch.Tensor) or not values.is_floating_point():
            raise Error(f"'{name}' in the state dict", "tensors of floating point numbers",
                        "module.state_dict() is one")
        arrays[name] = values.detach().cpu().to(torch.float32).numpy()
    return from_arrays(arrays, architecture=architecture, task=task, length=length, heads=heads)
