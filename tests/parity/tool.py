"""Talks to parity_tool: many cases in one safetensors file, one process, one file of answers."""

import json
import os
import subprocess
import sys

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from safetensors_io import read_safetensors, write_safetensors  # noqa: E402


class Request:
    """Cases to send. Tensors of a case are named "CASE/NAME"; numbers travel in double."""

    def __init__(self):
        self.cases = []
        self.tensors = {}

    def add(self, kind, name, tensors, **fields):
        self.cases.append({"kind": kind, "name": name, **fields})
        for tensor, values in tensors.items():
            key = f"{name}/{tensor}"
            if key in self.tensors:
                raise ValueError(f"two cases send {key}")
            self.tensors[key] = numpy.asarray(values, dtype=numpy.float64)

    def run(self, program, folder):
        """The answers by "CASE/..." name."""
        question = os.path.join(folder, "question.safetensors")
        answer = os.path.join(folder, "answer.safetensors")
        write_safetensors(question, self.tensors, {"cases": json.dumps(self.cases)})
        subprocess.run([program, question, answer], check=True)
        return read_safetensors(answer)[0]
