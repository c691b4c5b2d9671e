#!/usr/bin/python3
"""Converts model files between posattn (safetensors) and PyTorch state dicts.

The parameter names are the same on both sides, so a converted file loads with
module.load_state_dict(torch.load(FILE), strict=True); posattn_torch.py has the module, and reads
posattn's files without a conversion. The metadata (what the model is and what it
was trained on), which a state dict has no place for, is kept next to it as FILE.json.
"""

import argparse
import io
import json
import os
import sys

import numpy
import torch

from posattn_torch import ModelError, build_model
from safetensors_io import (
    SafetensorsError,
    read_safetensors,
    write_atomically,
    write_safetensors,
)

EXAMPLES = """examples:
  convert.py to-torch model.safetensors model.pt         writes model.pt and model.pt.json
  convert.py from-torch model.pt model.safetensors --metadata model.pt.json
  convert.py from-torch theirs.pt theirs.safetensors     a model trained elsewhere: no metadata;
                                                         posattn infers the spec from the shapes
"""


class ConversionError(Exception):
    pass


def to_torch(source, target):
    if os.path.isdir(source):  # a run
        source = os.path.join(source, "model.safetensors")
    tensors, metadata = read_safetensors(source)
    if any(name.endswith(".attn.routes") for name in tensors):
        raise ConversionError(
            "its attention is a table of routes, which the authors' modules do not have; "
            "compile the program with --dense"
        )
    if "spec" in metadata:
        build_model(tensors, metadata)  # what it writes loads into the module of posattn_torch.py
    state = io.BytesIO()
    torch.save({name: torch.from_numpy(values) for name, values in tensors.items()}, state)
    write_atomically(target, [state.getbuffer()])
    write_atomically(f"{target}.json", [json.dumps(metadata, indent=2).encode("utf-8"), b"\n"])


def load_state_dict(path):
    # weights_only: a pickle from outside may otherwise run any code.
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # torch.load has no common base for what a bad file raises
        raise ConversionError(f"not a PyTorch state dict of plain tensors: {error}") from error
    if not isinstance(state, dict) or not state:
        raise ConversionError("expected a state dict: a mapping from names to tensors")
    for name, tensor in state.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise ConversionError(f"'{name}' is not a named tensor; save module.state_dict()")
        if not tensor.is_floating_point():
            raise ConversionError(f"tensor '{name}' is {tensor.dtype}, expected floating point")
    return state


def load_metadata(path):
    with open(path, encoding="utf-8") as file:
        try:
            metadata = json.load(file)
        except ValueError as error:
            raise ConversionError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ConversionError(f"{path}: expected one object that maps strings to strings")
    return metadata


def from_torch(source, target, metadata_path):
    metadata = load_metadata(metadata_path) if metadata_path else {}
    tensors = {}
    for name, tensor in load_state_dict(source).items():
        tensors[name] = tensor.detach().to(torch.float32).contiguous().numpy()
        if not numpy.isfinite(tensors[name]).all():
            raise ConversionError(f"tensor '{name}' holds values that are not finite in float32")
    write_safetensors(target, tensors, metadata)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    forward = commands.add_parser("to-torch", help="safetensors to a PyTorch state dict")
    forward.add_argument("source", metavar="MODEL", help="a model file or the folder of a run")
    forward.add_argument("target", metavar="OUT.pt")
    backward = commands.add_parser("from-torch", help="a PyTorch state dict to safetensors")
    backward.add_argument("source", metavar="STATE.pt")
    backward.add_argument("target", metavar="OUT.safetensors")
    backward.add_argument("--metadata", metavar="FILE.json", help="as written by to-torch")
    return parser.parse_args(arguments)


def main():
    options = parse_arguments(sys.argv[1:])
    try:
        if options.command == "to-torch":
            to_torch(options.source, options.target)
        else:
            from_torch(options.source, options.target, options.metadata)
    except OSError as error:
        sys.exit(f"convert.py: {error.filename}: {error.strerror}")
    except (ConversionError, ModelError, SafetensorsError) as error:
        sys.exit(f"convert.py: {options.source}: {error}")


if __name__ == "__main__":
    main()
