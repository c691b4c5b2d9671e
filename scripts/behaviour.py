#!/usr/bin/env python3
"""What the program does, as one JSON document: the hashes of the weights that tiny trainings end
with, the answers of compiled programs, and the keys of every command's JSON.

    scripts/behaviour.py build/release/posattn > before.json
    ... change the code, build ...
    scripts/behaviour.py build/release/posattn --compare before.json

A redesign must change nothing here. Hashes are of the portable kernels, so that any x86-64 machine
makes the same ones; it takes about half a minute.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

RESULTS = str(pathlib.Path(__file__).resolve().parents[1] / "results")
PORTABLE = {"POSATTN_ISA": "x86-64-v2", "POSATTN_PRODUCTS": "portable", "OMP_WAIT_POLICY": "passive",
            "NO_COLOR": "1"}
SMALL = ["--samples", "64", "--batch", "16", "--validation-samples", "16", "--test-samples", "16",
         "--epochs", "3", "--test-scales", "1,2", "--seeds", "3"]


class Program:
    def __init__(self, path, folder):
        self.path, self.folder = pathlib.Path(path).resolve(), pathlib.Path(folder)

    def call(self, *arguments, stdin=""):
        return subprocess.run([self.path, *map(str, arguments)], cwd=self.folder, input=stdin,
                              capture_output=True, text=True, env={**os.environ, **PORTABLE})

    def json(self, *arguments, stdin=""):
        result = self.call(*arguments, "--json", stdin=stdin)
        try:
            return json.loads(result.stdout)
        except json.JSONDecodeError:
            return f"exit code {result.returncode}"


def tensors_hash(path):
    """Of the tensors' names, shapes and bytes; the metadata may name versions and times."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    digest.update(data[8 + size:])
    return digest.hexdigest()


def keys_of(value):
    """The shape of a JSON document: its keys, of a list those of its first element."""
    if isinstance(value, dict):
        return {key: keys_of(child) for key, child in value.items()}
    if isinstance(value, list):
        return [keys_of(value[0])] if value else []
    return "text" if isinstance(value, str) else "value"


def trained(program, name, flags):
    result = program.call("train", *flags, *SMALL, "--threads", 1, "--device", "cpu", "--out", name)
    models = sorted((program.folder / name).rglob("model.safetensors"))
    if result.returncode != 0 or not models:
        return f"exit code {result.returncode}"
    return {str(model.parent.name): tensors_hash(model) for model in models}


def trainings(program):
    """name -> flags: every preset short and long, every task, and what single settings reach."""
    cases = {}
    for preset in program.json("presets"):
        for length in (8, 128):
            cases[f"{preset['name']}-{length}"] = ["--architecture", preset["name"], "--length", length,
                                                   "--task", "cumulative-sum"]
    for task in (entry["name"] for entry in program.json("tasks")):
        # Their own settings warm up for more steps than these trainings have.
        warmup = ["--warmup-steps", 2] if task.endswith(("-sanford", "-written")) else []
        for architecture in ("positional", "standard"):
            cases[f"{task}-{architecture}"] = ["--architecture", architecture, "--task", task, *warmup]
    for setting in ("--causal", "--split-heads --heads 3 --width 24", "--join add", "--normalisation before",
                    "--activation gelu-tanh", "--encoding sinusoidal", "--encoding learned",
                    "--width 24 --heads 3", "--mlp-width 16", "--mlp-depth 3", "--scratch-nodes 2",
                    "--variable-length", "--clip 1", "--optimiser adamw --weight-decay 0.1", "--fresh"):
        name = setting.replace("--", "").replace(" ", "-")
        cases[name] = ["--architecture", "positional,standard", "--task", "sort", *setting.split()]
    return cases


def compiled(program, name, flags):
    path = program.folder / f"{name}.safetensors"
    result = program.call("compile", *flags, "-o", path.name)
    return tensors_hash(path) if result.returncode == 0 else f"exit code {result.returncode}"


def compilations(program):
    cases = {}
    for entry in program.json("programs"):
        for how in ("", "--dense", "--routing sort", "--routing benes"):
            flags = [entry["name"], "--length", 6, *how.split()]
            cases[f"{entry['name']}{how.replace(' ', '-')}"] = flags
    return cases


def command_keys(program):
    program.call("train", "--architecture", "positional,standard", *SMALL, "--width", 16, "--mlp-width", 16,
                 "--out", "runs")
    program.call("compile", "sort", "-o", "sort.safetensors")
    model = "runs/positional-seed3"
    row = "1,2,-1,0.5,0,2,1,1\n"
    commands = [["tasks"], ["presets"], ["experiments"], ["programs"], ["doctor"], ["version"],
                ["evaluate", "runs"], ["evaluate", "sort.safetensors"], ["inspect", model],
                ["inspect", "sort.safetensors"], ["inspect", "runs/standard-seed3", "--input", "1,2,3,4,5,6,7,8"],
                ["scale", model], ["bound", model], ["predict", model], ["predict", "sort.safetensors"],
                ["verify", "sort.safetensors", "--samples", "10"], ["compile", "sort", "-o", "other.safetensors"],
                ["compile", "scatter", "--length", "6", "-o", "scatter.safetensors"],
                ["run", "sort", "--input", "3,1,2"], ["compare", "value-range", "--results", RESULTS],
                ["reproduce", "value-range", "--dry-run"],
                ["train", "--dry-run"], ["certify", model, "--steps", "20", "--draws", "2"]]
    return {" ".join(command).replace(RESULTS, "results"): keys_of(program.json(*command, stdin=row if command[0] == "predict" else ""))
            for command in commands}


def behaviour(path):
    with tempfile.TemporaryDirectory(prefix="posattn-behaviour-") as folder:
        program = Program(path, folder)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            def each(function, cases):
                futures = {name: pool.submit(function, program, name, flags) for name, flags in cases.items()}
                return {name: future.result() for name, future in futures.items()}

            return {"trained": each(trained, trainings(program)),
                    "compiled": each(compiled, compilations(program)),
                    "keys": command_keys(program)}


def differences(before, after, path=""):
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from differences(before.get(key), after.get(key), f"{path}/{key}")
    elif before != after:
        yield f"{path}: {json.dumps(before)} -> {json.dumps(after)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--compare", metavar="FILE", help="an earlier output; exit code 1 where this one differs")
    options = parser.parse_args()
    found = behaviour(options.program)
    if not options.compare:
        print(json.dumps(found, indent=1))
        return 0
    changed = list(differences(json.loads(pathlib.Path(options.compare).read_text()), found))
    print("\n".join(changed) or "no difference")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
