#!/usr/bin/env python3
"""Fills models/ with trained models: of each task of the paper and of k-hop-small, one positional
and one standard model, with a page of what they are.

    posattn reproduce value-range --runs 1 --results build/models
    posattn reproduce k-hop-small --values 3 --runs 1 --results build/models
    scripts/models.py build/models

On a GPU that takes two minutes, on two cores three hours. `--check` reads models/ alone and fails
where a file is not the one that its page describes.
"""

import hashlib
import json
import pathlib
import re
import shutil
import sys
import tomllib

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"
TASKS = ["cumulative-sum", "cumulative-min", "cumulative-median", "sort", "cumulative-max-subarray", "k-hop"]
HEAD = """# Trained models

Each file is a model as `posattn train` writes it, trained with seed 0. Any command and `posattn.load` read it:

    posattn evaluate models/sort-positional.safetensors --scales 1..10

```python
import posattn
model = posattn.load("sort-positional")
```

The numeric models have the paper's size and training: length 8, four layers of width 64, 30,000 samples, 2,001 epochs, values in
[-2, 2]. They are runs of `value-range`. The models of k-hop have three layers and read 30 letters. They are runs of `k-hop-small`.
Errors are those of the run's own tests at its end: the mean squared error at c = 1 and c = 10, for k-hop the cross-entropy over
all letters. All were trained in fp32 on one NVIDIA H200; `scripts/models.py` says how.

| model | trained on | error inside | error outside |
| --- | --- | --- | --- |
"""
SUMS = """
SHA-256 of the files, for `sha256sum --check README.md` in this folder:

```
"""


def errors(final):
    """Inside the training range and outside it, as a run's manifest has them."""
    if "tests" in final:
        by_scale = {test["c"]: test["mse"] for test in final["tests"]}
        return by_scale[1], f"{by_scale[10]:.3g} at c = 10"
    by_letters = {row["x"]: row["value"] for row in final["rows"]
                  if row["split"] == "test" and row["axis"] == "letters" and row["metric"] == "cross_entropy"}
    return by_letters[0], f"{by_letters[1]:.3g} on new letters"


def sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def take(results):
    MODELS.mkdir(exist_ok=True)
    rows, sums = [], []
    for task in TASKS:
        for architecture in ["positional", "standard"]:
            folders = list((results / "runs").glob(f"{task}-{architecture}-seed0-*"))
            if len(folders) != 1:
                sys.exit(f"error: {len(folders)} runs of {task}, {architecture} in {results}\n  expected one")
            manifest = json.loads((folders[0] / "manifest.json").read_text())
            settings = tomllib.loads((folders[0] / "config.toml").read_text())
            if manifest["status"] != "done":
                sys.exit(f"error: {folders[0]} has not ended")
            file = MODELS / f"{task}-{architecture}.safetensors"
            shutil.copyfile(folders[0] / "model.safetensors", file)
            inside, outside = errors(manifest["final"])
            samples = f"{settings['samples']:,} {'new ' if settings.get('fresh') else ''}samples"
            samples += " an epoch" if settings.get("fresh") else ""
            rows.append(f"| `{file.stem}` | {samples}, {manifest['final']['step']:,} steps of "
                        f"{settings['batch']} | {inside:.3g} | {outside} |")
            sums.append(f"{sha256(file)}  {file.name}")
    (MODELS / "README.md").write_text(HEAD + "\n".join(rows) + "\n" + SUMS + "\n".join(sums) + "\n```\n")


def check():
    page = (MODELS / "README.md").read_text()
    described = {name: sum for sum, name in re.findall(r"^([0-9a-f]{64})  (\S+)\.safetensors$", page, re.M)}
    found = {file.stem: sha256(file) for file in MODELS.glob("*.safetensors")}
    if described != found or set(re.findall(r"^\| `(\S+)` \|", page, re.M)) != set(found) or not found:
        sys.exit("error: models/README.md does not describe the files next to it\n"
                 f"  {sorted(set(described.items()) ^ set(found.items()))}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        check()
    elif len(sys.argv) == 2 and not sys.argv[1].startswith("-"):
        take(pathlib.Path(sys.argv[1]))
    else:
        sys.exit(__doc__)
