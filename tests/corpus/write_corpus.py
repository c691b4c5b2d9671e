"""Writes a corpus: small files of every kind by one version of the program, and what that version
answered about them. tests/cli/corpus_test.py holds later versions to it.

    tests/corpus/write_corpus.py PROGRAM FOLDER

A corpus is never written again by a later version; a new version gets a folder of its own."""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time

# Which kernels compute. With these the bits are the same on every processor that has them.
INSTRUCTION_SETS = {
    "x86-64-v2": {"POSATTN_ISA": "x86-64-v2", "OPENBLAS_CORETYPE": "Nehalem"},
    "x86-64-v3": {"POSATTN_ISA": "x86-64-v3", "OPENBLAS_CORETYPE": "Haswell"},
}
WRITTEN_WITH = "x86-64-v2"

TINY = ("--length 3 --width 4 --mlp-width 4 --samples 32 --validation-samples 8 --test-samples 8 "
        "--batch 16 --epochs 3 --lr 0.003 --validate-every 1 --test-every 2 --test-scales 1,2 "
        "--device cpu")
PRESETS = "positional standard positional-direct standard-rope m0 m1 m2 m3 m4 m5".split()

# Name of the model file, settings of its training.
VARIANTS = {
    "binary": "--encoding binary",
    "sinusoidal": "--encoding sinusoidal --encoding-size 4",
    "random": "--encoding random",
    "learned": "--encoding learned --architecture m1",
    "variable-length": "--variable-length --architecture standard",
    "integers": "--integers --range 5 --mlp-depth 3 --scratch-nodes 0 --depth 1 --heads 1",
    "min-sum": "--task min-sum --schedule warmup-linear --warmup-steps 3 --clip 0.5",
    "path": "--task path --architecture standard --optimiser adamw --weight-decay 0.1",
}
# Trained for their bits only: sizes of the paper, which take other paths through the engine.
PAPER = ("--samples 300 --validation-samples 50 --test-samples 50 --batch 100 --epochs 3 "
         "--test-scales 1,3 --device cpu --architecture positional,standard,m3")

COMPILATIONS = {
    "sort-routed": "sort --length 3",
    "sum-several-places": "matrix-vector --length 3",  # a row of routes reads several nodes
    "distances": "distances --length 3",               # with positions in the input
    "sort-dense": "sort --length 3 --dense",
    "sum-padded": "cumulative-sum --length 3 --dense --pad-to 6,2,4,3",
}

LONG = ("--length 3 --width 4 --mlp-width 4 --samples 40000 --batch 20000 --validation-samples 8 "
        "--test-samples 8 --epochs 12 --lr 0.003 --validate-every 1 --test-every 5 "
        "--test-scales 1,2 --checkpoint-every 0 --device cpu")


class Writer:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.record = {"trainings": [], "compilations": [], "outputs": []}

    def call(self, *arguments, code=0, instruction_set=WRITTEN_WITH, cwd=None):
        """The name stands in manifests instead of the program's path."""
        result = subprocess.run(["posattn", *arguments], executable=self.program,
                                cwd=cwd or self.folder, capture_output=True, text=True,
                                env=self.environment(instruction_set))
        if result.returncode != code:
            sys.exit(f"{arguments}: {result.returncode}\n{result.stderr}")
        return result.stdout

    @staticmethod
    def environment(instruction_set):
        return os.environ | INSTRUCTION_SETS[instruction_set] | {"NO_COLOR": "1"}

    def train(self, settings, files):
        """`files`: which run's model goes into which file of the corpus, or None."""
        command = ["train", *settings.split(), "--out", "trained"]
        bits = {}
        for name in INSTRUCTION_SETS:
            self.call(*command, instruction_set=name)
            bits[name] = {run: tensor_bits(self.folder / "trained" / run / "model.safetensors")
                          for run in files}
            for run, file in files.items():
                if name == WRITTEN_WITH and file:
                    shutil.copy(self.folder / "trained" / run / "model.safetensors",
                                self.folder / file)
            shutil.rmtree(self.folder / "trained")
        self.record["trainings"].append({"command": command, "files": files, "bits": bits})

    def compile(self, name, settings):
        command = ["compile", *settings.split(), "--output", f"models/{name}.safetensors"]
        self.call(*command)
        self.record["compilations"].append({"command": command})

    def cut(self, *command, runs):
        """Interrupted after some epochs of its run, with a checkpoint to go on from."""
        def epochs():
            return sum(file.read_text().count("\n") for file in runs.glob("*/metrics.jsonl"))
        with subprocess.Popen(["posattn", *command], executable=self.program, cwd=self.folder,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=self.environment(WRITTEN_WITH)) as process:
            while epochs() < 4:
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            if process.wait() != 130:
                sys.exit("the run to be cut was over")

    def output(self, *command):
        """What the program answers now."""
        self.record["outputs"].append({"command": command, "code": 0, "text": self.call(*command)})

    def json_output(self, *command, code=0):
        output = json.loads(self.call(*command, "--json", code=code))
        self.record["outputs"].append(
            {"command": [*command, "--json"], "code": code, "json": output})


def tensor_bits(path):
    """A hash of what follows the header."""
    data = path.read_bytes()
    return hashlib.sha256(data[8 + struct.unpack("<Q", data[:8])[0]:]).hexdigest()


def without_metadata(source, target):
    """As the authors' files are: tensors alone."""
    data = source.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    del header["__metadata__"]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    target.write_bytes(struct.pack("<Q", len(text)) + text + data[end:])


def write_models(writer):
    (writer.folder / "models").mkdir()
    writer.train(f"{TINY} --architecture {','.join(PRESETS)}",
                 {f"{name}-seed0": f"models/{name}.safetensors" for name in PRESETS})
    for name, settings in VARIANTS.items():
        chosen = settings.partition("--architecture ")[2].split()
        architecture = chosen[0] if chosen else "positional"
        writer.train(f"{TINY} {settings}", {f"{architecture}-seed0": f"models/{name}.safetensors"})
    writer.train(PAPER, {f"{name}-seed0": None for name in ["positional", "standard", "m3"]})
    for name, settings in COMPILATIONS.items():
        writer.compile(name, settings)
    without_metadata(writer.folder / "models/standard.safetensors",
                     writer.folder / "models/authors.safetensors")


def write_runs(writer):
    writer.call("train", *LONG.split(), "--out", "runs/whole")
    writer.cut("train", *LONG.split(), "--out", "runs/cut", runs=writer.folder / "runs/cut")
    writer.call("train", *TINY.split(), "--architecture", "standard", "--seed", "3",
                "--out", "runs/finished")
    writer.call("train", *TINY.split(), "--set", "lr=1e20", "--out", "runs/diverged", code=1)


def write_results(writer):
    for name in ["scales", "sizes", "long"]:
        shutil.copy(pathlib.Path(__file__).parent / f"{name}.toml", writer.folder)
    for name in ["scales", "sizes"]:
        writer.call("reproduce", f"{name}.toml", "--device", "cpu")
    shutil.rmtree(writer.folder / "results/runs")
    writer.cut("reproduce", "long.toml", "--device", "cpu", "--results", "begun",
               runs=writer.folder / "begun/runs")
    for drawing in [*writer.folder.rglob("*.svg"), *writer.folder.rglob("*.png")]:
        drawing.unlink()


def write_outputs(writer):
    trained = [f"models/{name}.safetensors" for name in [*PRESETS, *VARIANTS]]
    few = ["--scales", "1,3", "--samples", "20"]
    writer.json_output("evaluate", *trained, *few)
    writer.json_output(
        "evaluate", "models/sort-routed.safetensors", "models/sort-dense.safetensors",
        "models/sum-padded.safetensors", *few, "--per-node")
    writer.json_output("evaluate", "models/authors.safetensors", *few, "--task", "cumulative-sum",
                       "--architecture", "standard")
    writer.json_output("evaluate", "runs/whole", "runs/finished", *few)
    for name in COMPILATIONS:
        writer.json_output("verify", f"models/{name}.safetensors", "--samples", "20",
                           "--scales", "1,10")
    for name in ["positional", "learned", "sort-routed", "sum-several-places"]:
        writer.json_output("inspect", f"models/{name}.safetensors")
    writer.json_output("inspect", "models/standard.safetensors", "--input", "1,-2,0.5")
    (writer.folder / "rows.csv").write_text("1,2,3\n-1,0.5,0\n30,-20,10\n")
    for name in ["positional", "standard", "variable-length", "sort-routed", "sort-dense",
                 "distances"]:
        writer.json_output("predict", f"models/{name}.safetensors", "--input", "rows.csv")
    for run in sorted((writer.folder / "runs").glob("*/*")):
        config = run.relative_to(writer.folder) / "config.toml"
        writer.output("train", "--config", str(config), "--dry-run", "--json")
    writer.output("train", "--dry-run", "--json")
    for name, code in [("scales", 6), ("sizes", 0)]:  # runs that diverged agree with nothing
        writer.json_output("compare", f"{name}.toml", "--with", "results", "--split", "all",
                           code=code)
        writer.json_output("reproduce", f"{name}.toml", "--dry-run")


def main():
    program, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True)
    writer = Writer(program, folder)
    for write in [write_models, write_runs, write_results, write_outputs]:
        write(writer)
    for lock in folder.rglob("lock"):
        lock.unlink()
    for name, entries in writer.record.items():
        lines = [json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries]
        (folder / f"{name}.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    main()
