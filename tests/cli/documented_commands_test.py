"""Every command and every C++ example of README and docs/ works as it stands there."""

import os
import re
import shutil
import subprocess
import unittest

from support import PROGRAM, ROOT, CliCase

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/site").glob("*.md"))]

# A command of ours in a line, behind settings of the environment or another command.
COMMAND = re.compile(r"^([A-Z_]+=\S+ )*(echo .* \| |mkdir .*|ncu .* )?(build/release/)?posattn [a-z]")
# Words that stand for something else.
PLACEHOLDER = re.compile(r"(^| )(COMMAND|FILE|MODEL|NAME|RUN|WAY|A|K|N|P|S|t|\.\.\.)($| )")
# What cannot run here: the options alone are looked up.
LOOKED_UP = {
    r"cumulative-spread": "is the task that the page writes",
    r"compare (value-range --quick|mixed-type$)": "needs results that results/ does not have",
    r"\bbench\b": "measures for minutes",
    r"gpt2": "needs weights of others",
    r"bound --experiment": "needs the trained models of an experiment; results/ has their losses",
    r"--shard|\bmerge\b": "needs parts that were trained (shards_test.py has some)",
}

MINE = "program mine\nword x : real = input\nreceive y = x from i - 1\nx = x + y\noutput x\n"
EXP = "program exp\nword x : real = input\nx = exp(x) on [-12, 0] within 0.01\noutput x\n"


def commands_of(text):
    """(command, stands in a sentence) of a page: lines of its code blocks, and what stands in `these`."""
    text = re.sub(r"\\\n\s*", "", text)
    fenced, sentences = False, []
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            if COMMAND.match(line.strip()):
                yield line.strip(), False
        else:
            sentences.append(line)
    for code in re.findall(r"`([^`]+)`", "\n".join(sentences)):
        code = " ".join(code.split())
        if COMMAND.match(code):
            yield code, True


def is_looked_up(command, in_sentence):
    if PLACEHOLDER.search(command) or any(re.search(what, command) for what in LOOKED_UP):
        return True
    words = command.split("posattn ", 1)[1].split()
    return in_sentence and all(word.startswith("-") for word in words[1:])  # it is only named


class Commands(CliCase):
    def setUp(self):
        super().setUp()
        programs = self.folder / "bin"
        programs.mkdir()
        script = ROOT / "tests" / "cli" / "posattn_for_docs.sh"
        for name in ["posattn", "ncu"]:
            (programs / name).symlink_to(script)
        (self.folder / "build").mkdir()
        (self.folder / "build" / "release").symlink_to(programs)
        for folder in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"]:
            (self.folder / folder).mkdir(parents=True)
        self.env = {**os.environ, "POSATTN": PROGRAM, "HOME": str(self.folder), "NO_COLOR": "1", "m": "100",  # of a loop
                    "PATH": f"{programs}:{os.environ['PATH']}"}

    def make_models(self):
        """The runs that pages speak of, trained for an instant."""
        few = ["--epochs", 1, "--samples", 64, "--validation-samples", 16, "--test-samples", 16, "--batch", 16,
               "--depth", 2, "--threads", 1]
        narrow = ["--width", 8, "--mlp-width", 8]
        for task, flags in {
                "sort": [*narrow, "--architecture", "positional,standard,homogeneous"],
                "cumulative-sum": [*narrow, "--architecture", "positional,standard"],
                "cumulative-min": [*narrow, "--architecture", "positional,homogeneous"],
                "recall": [*narrow, "--architecture", "two-streams,two-streams-linear"],
                "pointer": [*narrow, "--architecture", "two-streams-linear", "--length", 3],
                "neighbour-min": [*narrow, "--architecture", "two-streams-gated", "--kinds", "data score-bias=pairs"],
                "in-context-conjunction": [*narrow, "--architecture", "positional", "--task-set", "d=3", "--length", 3],
                "k-hop": ["--architecture", "standard", "--length", 12],
                "mixed-min": ["--architecture", "standard", "--seeds", "0..1"]}.items():
            self.run_ok("train", "--task", task, *few, *flags, "--out", f"runs/{task}")
        runs = self.folder / "runs"
        for name in ["a", "b", "few", "many", "min16", "needed-1", "needed-2", "needed-4", "../min16", "../rank", "../DIR/runs"]:
            (runs / name).parent.mkdir(exist_ok=True)
            shutil.copytree(runs / "cumulative-min", runs / name)
        shutil.copytree(runs / "in-context-conjunction", runs / "../and")
        for name, run in {"model": "cumulative-sum/positional", "a": "sort/positional",
                          "b": "sort/standard", "standard": "sort/standard",
                          "positional": "sort/positional", "theirs": "sort/standard"}.items():
            shutil.copy(runs / f"{run}-seed0" / "model.safetensors", self.folder / f"{name}.safetensors")

    def make_files(self):
        for name in ["results", "here", "there"]:  # the runs that commands read, without the largest tables
            shutil.copytree(ROOT / "results", self.folder / name,
                            ignore=shutil.ignore_patterns("*.svg", "*.png", "*.csv", "*.db*", "k-hop*", "sample*"))
        (self.folder / "examples").symlink_to(ROOT / "examples")
        (self.folder / "rows.csv").write_text("1,2,-1,0,1,2,-2,1\n")
        (self.folder / "sample.csv").write_text("0,0,0,0.5,1,1,2,2,3,0,4,1,5,-1,6,-2,7,1.5\n")
        self.run_ok("predict", "model.safetensors", "--input", "rows.csv", "-o", "x.npy")
        (self.folder / "words.txt").write_text("2 abcabcabcab\n")
        (self.folder / "mine.par").write_text(MINE)
        shutil.copy(ROOT / "experiments" / "small-standard.toml", self.folder / "mine.toml")
        (self.folder / "exp.par").write_text(EXP)
        (self.folder / "sweep.toml").write_text('task = "sort"\n')

    def test_every_command_of_every_page(self):
        self.make_models()
        self.make_files()
        looked_up, seen = 0, set()
        for page in PAGES:
            for command, in_sentence in commands_of(page.read_text()):
                only_looked_up = is_looked_up(command, in_sentence)
                words = " ".join(command.split("  #")[0].split())
                if words in seen and not re.search(r"compile|train", words):  # those make what others read
                    continue
                seen.add(words)
                looked_up += only_looked_up
                with self.subTest(page=page.name, command=command):
                    done = subprocess.run(
                        ["bash", "-o", "pipefail", "-c", command], cwd=self.folder, stdin=subprocess.DEVNULL,
                        env={**self.env, "LOOK_UP": str(int(only_looked_up))}, capture_output=True, text=True,
                        timeout=60, check=False)
                    # Published points are compared: that not all of them agree is no fault of the page.
                    expected = [0, 6] if "compare" in command else [0]
                    self.assertIn(done.returncode, expected, done.stderr)
        self.assertGreater(looked_up, 10)

    def test_examples_are_found(self):
        page = "Say `posattn tasks` or\n\n    posattn run sort \\\n       --input 1\n\n```\nposattn version\n```\n"
        self.assertEqual(list(commands_of(page)), [
            ("posattn run sort --input 1", False), ("posattn version", False), ("posattn tasks", True)])

    def test_what_is_looked_up_must_exist(self):
        for command, code in [("posattn bench --peer", 0), ("posattn bench --pear", 2), ("posattn banch", 2),
                              ("ncu posattn run sort --level mpc", 0), ("ncu posattn run --levels", 2)]:
            done = subprocess.run(["bash", "-c", command], env={**self.env, "LOOK_UP": "1"}, check=False,
                                  capture_output=True)
            self.assertEqual(done.returncode, code, command)


class Examples(CliCase):
    def test_every_cpp_example_compiles(self):
        installed = re.search(r"POSATTN_PUBLIC_HEADERS ([^)]*)\)",
                              (ROOT / "cmake" / "Install.cmake").read_text())[1].split()
        for page in PAGES:
            for example in re.findall(r"```cpp\n(.*?)```", page.read_text(), re.S):
                with self.subTest(page=page.name, example=example.splitlines()[0]):
                    if page.name == "README.md":  # for those who use the library
                        self.assertLessEqual(set(re.findall(r"posattn/(.*)[\">]", example)), set(installed))
                    if example.startswith("POSATTN_TASK"):
                        continue  # a line of task_list.inc: documentation_test.py pastes it
                    (self.folder / "example.cc").write_text(example)
                    done = subprocess.run(
                        ["c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wno-unused", "-Werror", "-I",
                         ROOT / "src", "example.cc"], cwd=self.folder, capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
