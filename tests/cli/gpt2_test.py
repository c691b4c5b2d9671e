"""Written prompts and GPT-2: training from a folder of public weights, answers in writing, and one
clear error for each thing that may be wrong with such a folder."""

import json
import os
import random
import shutil
import struct
import unittest

from support import CliCase, read_metadata, read_tensors, write_tensors

# Fine-tuning that takes a second.
SMALL = ["--threads", 1, "--samples", 32, "--validation-samples", 8, "--test-samples", 8, "--batch", 16,
         "--epochs", 1, "--warmup-steps", 1, "--test-scales", "1,2", "--length", 4]
TINY_MODEL = ["--width", 8, "--heads", 2, "--depth", 1, "--mlp-width", 16, "--encoding-size", 8]
PROMPT = ("CatA, 001.20, Cat+D, CatB, 003.41, CatD, 000.77, Cat-A, CatE, 002.00. "
          "Find min of categories CatB, CatA, CatE and CatD.")

SIZES = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 200, "vocab_size": 260}


def byte_characters():
    """GPT-2's character for each byte."""
    printing = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printing else next(others)) for byte in range(256)]


def write_gpt2(folder, tokens=("Ca", "Cat", "00", "<|endoftext|>"), merges="C a\nCa t\n0 0\n", **changes):
    """config.json, vocab.json, merges.txt and model.safetensors of a GPT-2 with random weights."""
    sizes = SIZES | changes
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", **sizes}))
    tokens = [*byte_characters(), *tokens]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + merges)
    d = sizes["n_embd"]
    shapes = {"wte.weight": (sizes["vocab_size"], d), "wpe.weight": (sizes["n_positions"], d)}
    for layer in range(sizes["n_layer"]):
        for name, shape in {"ln_1.weight": (d,), "ln_1.bias": (d,), "attn.c_attn.weight": (d, 3 * d),
                            "attn.c_attn.bias": (3 * d,), "attn.c_proj.weight": (d, d),
                            "attn.c_proj.bias": (d,), "ln_2.weight": (d,), "ln_2.bias": (d,),
                            "mlp.c_fc.weight": (d, 4 * d), "mlp.c_fc.bias": (4 * d,),
                            "mlp.c_proj.weight": (4 * d, d), "mlp.c_proj.bias": (d,)}.items():
            shapes[f"h.{layer}.{name}"] = shape
    shapes["ln_f.weight"] = shapes["ln_f.bias"] = (d,)
    generator = random.Random(1)
    write_tensors(folder / "model.safetensors", {"format": "pt"}, {
        name: (shape, [generator.gauss(0, 0.1) for _ in range(shape[0] * (shape[1:] or (1,))[0])])
        for name, shape in shapes.items()})


class Written(CliCase):
    def test_a_small_model_of_bytes_answers_in_writing(self):
        self.run_ok("train", "--task", "mixed-min-written", *SMALL, *TINY_MODEL)
        run = self.folder / "runs/mixed-min-written/standard-seed0"
        tests = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["rows"]
        metrics = {(row["metric"], row["x"]) for row in tests}
        self.assertEqual(metrics, {(m, x) for m in ("answer_mse", "unparsable") for x in (1, 2)})
        self.assertIn("unparsable", self.run_ok("evaluate", run, "--scales", 1, "--samples", 4))
        (self.folder / "prompts.txt").write_text(PROMPT + "\n" + PROMPT + "\n")
        answers = self.run_ok("predict", run, "--input", "prompts.txt").splitlines()
        found = self.run_json("predict", run, "--input", "prompts.txt")
        self.assertEqual(found["lines"], [PROMPT, PROMPT])
        self.assertEqual(answers, [f"{PROMPT} -> {answer}" for answer in found["answers"]])

    def test_lines_that_cannot_be_read(self):
        self.run_ok("train", "--task", "mixed-min-written", *SMALL, *TINY_MODEL)
        run = self.folder / "runs/mixed-min-written/standard-seed0"
        (self.folder / "long.txt").write_text("a\n" + "b" * 1000 + "\n")
        self.run_error(4, "predict", run, "--input", "long.txt", message=["long.txt:2: 1001 tokens"])
        (self.folder / "other.txt").write_bytes(b"Cat\xff\n")
        self.run_error(4, "predict", run, "--input", "other.txt", message=["other.txt:1", "byte 4", "UTF-8"])
        for flags in [[], ["--json"]]:  # a prompt that a terminal would act upon
            answers = self.run_ok("predict", run, *flags, stdin="\x1b[2J\u009b".encode() + b"\n")
            self.assertNotIn("\x1b", answers)
            self.assertNotIn("\u009b", answers)
        self.run_error(4, "predict", run, "--json", stdin=b"", message=["standard input: no text", "one prompt per line"])
        for flags in [["--format", "csv"], ["--format", "npy"], ["-o", "y.csv"], ["-o", "y.npy"], ["--scores"]]:
            self.run_error(2, "predict", run, *flags, stdin=PROMPT.encode(),
                           message=["a model that answers in writing", "text or --json"])
        self.run_error(2, "evaluate", run, "--scales", 1000, message=["prices up to 5000", "003.41"])


@unittest.skipUnless("POSATTN_WITHOUT_PCRE2" in os.environ, "the program has PCRE2")
class WithoutPcre2(CliCase):
    def test_gpt2_is_refused_and_its_package_named(self):
        write_gpt2(self.folder / "gpt2")
        self.run_error(3, "train", "--from", "gpt2", *SMALL,
                       message=["cannot read GPT-2's tokens", "a build with PCRE2", "libpcre2-dev"])
        self.run_ok("train", "--task", "mixed-min-written", *SMALL, *TINY_MODEL)


class Gpt2(CliCase):
    def setUp(self):
        super().setUp()
        write_gpt2(self.folder / "gpt2")

    def test_fine_tuning_from_a_folder(self):
        self.run_ok("train", "--from", "gpt2", *SMALL)
        run = self.folder / "runs/mixed-min-gpt2/standard-seed0"
        settings = json.loads((run / "manifest.json").read_text())["configuration"]
        self.assertEqual((settings["width"], settings["depth"], settings["lr"]), (8, 1, 2e-5))
        # The model holds its vocabulary; another command needs neither flag nor folder.
        (self.folder / "gpt2").rename(self.folder / "elsewhere")
        self.assertIn("MSE of answers", self.run_ok("evaluate", run, "--scales", 1, "--samples", 4))
        (self.folder / "prompt.txt").write_text(PROMPT + "\n")
        self.assertEqual(len(self.run_ok("predict", run, "--input", "prompt.txt").splitlines()), 1)
        self.run_ok("report", run)
        self.run_ok("train", "--from", run / "model.safetensors", "--schedule", "warmup-linear", *SMALL,
                    "--out", "further")
        further = self.folder / "further/standard-seed0/model.safetensors"
        self.assertEqual(self.vocabulary(further), self.vocabulary(run / "model.safetensors"))
        (self.folder / "elsewhere").rename(self.folder / "gpt2")
        again = ["train", "--config", run / "config.toml", "--out", "again"]
        self.run_ok(*again)
        shutil.copy(self.folder / "gpt2/config.json", self.folder / "gpt2/merges.txt")
        self.run_error(4, *again, message=["merges.txt:1"])

    def vocabulary(self, model):
        metadata = read_metadata(model)
        return metadata["vocabulary"], metadata["merges"]

    def test_models_of_two_vocabularies(self):
        """Each answers in its own tokens, in one command."""
        write_gpt2(self.folder / "other", tokens=["Ca", "01", "Cat", "<|endoftext|>"],
                   merges="C a\n0 1\nCa t\n")
        for name in ["gpt2", "other"]:
            self.run_ok("train", "--from", name, *SMALL, "--out", f"of/{name}")
            shutil.rmtree(self.folder / name)
        self.assertNotEqual(*[self.vocabulary(self.folder / f"of/{name}/standard-seed0/model.safetensors")
                              for name in ["gpt2", "other"]])
        alone = [self.run_json("evaluate", f"of/{name}", "--scales", 1, "--samples", 4)["models"][0]
                 for name in ["gpt2", "other"]]
        together = self.run_json("evaluate", "of", "--scales", 1, "--samples", 4)["models"]
        self.assertEqual([model["scales"] for model in together], [model["scales"] for model in alone])

    def test_a_file_of_an_older_version(self):
        """It names the folder of its vocabulary, and is read with the folder that the user names."""
        self.run_ok("train", "--from", "gpt2", *SMALL)
        model = self.folder / "runs/mixed-min-gpt2/standard-seed0/model.safetensors"
        tensors = {name: (shape, struct.unpack(f"<{len(data) // 4}f", data))
                   for name, (_, shape, data) in read_tensors(model).items()}
        metadata = read_metadata(model)
        for key in ["posattn.checksum", "vocabulary", "merges"]:
            del metadata[key]
        write_tensors(self.folder / "old.safetensors",
                      metadata | {"note.tokeniser": str(self.folder / "gpt2")}, tensors)
        for command in [["evaluate"], ["inspect"], ["predict"], ["train", "--from"]]:
            self.run_error(4, *command, "old.safetensors", stdin=PROMPT.encode(),
                           message=["old.safetensors", "does not hold its vocabulary", "--vocabulary FOLDER"])
        test = ["--scales", 1, "--samples", 4]
        found, expected = (self.run_json("evaluate", *which, *test)["models"][0]["scales"] for which in
                           [["old.safetensors", "--vocabulary", "gpt2"], [model]])
        self.assertEqual(found, expected)
        self.run_ok("evaluate", model, "--vocabulary", "gpt2", *test)
        write_gpt2(self.folder / "other", merges="0 0\nC a\nCa t\n")
        self.run_error(2, "evaluate", model, "--vocabulary", "other", message=["the vocabulary that it holds"])
        self.run_error(4, "evaluate", "old.safetensors", "--vocabulary", "nowhere", message=["nowhere/vocab.json"])

    def test_the_experiment_with_weights(self):
        found = self.run_json("reproduce", "mixed-type-gpt2", "--weights", "gpt2", "--quick", "--dry-run")
        self.assertIn("gpt2-1x8", json.dumps(found))
        self.assertIn("mixed-min-gpt2", json.dumps(found))
        self.run_error(4, "reproduce", "mixed-type-gpt2", "--weights", "nowhere", message=["'nowhere'"])
        self.run_error(2, "reproduce", "value-range", "--weights", "gpt2", message=["not written"])

    def change(self, file, old, new):
        path = self.folder / "gpt2" / file
        text = path.read_bytes()
        self.assertIn(old, text)
        path.write_bytes(text.replace(old, new, 1))

    def refused(self, code, *message, flags=()):
        self.run_error(code, "train", "--from", "gpt2", *SMALL, *flags, message=list(message))

    def test_files_that_do_not_belong_together(self):
        self.change("config.json", b'"n_embd": 8', b'"n_embd": 16')
        self.refused(4, "model.safetensors", "wte.weight", "[260, 8]", "[260, 16]")

    def test_a_smaller_vocabulary(self):
        self.change("config.json", b'"vocab_size": 260', b'"vocab_size": 261')
        self.refused(4, "vocab.json has 260 tokens", "261")

    def test_texts_longer_than_the_table(self):
        shutil.rmtree(self.folder / "gpt2")
        write_gpt2(self.folder / "gpt2", n_positions=20)
        self.refused(3, "tokens", "at most 20")

    def test_broken_merges(self):
        self.change("merges.txt", b"Ca t", b"Ct a")
        self.refused(4, "merges.txt:3", "nothing makes 'Ct'")

    def test_a_vocabulary_with_a_number_twice(self):
        self.change("vocab.json", b'"Ca": 256', b'"Ca": 257')
        self.refused(4, "vocab.json", "257")

    def test_a_broken_file_of_weights(self):
        path = self.folder / "gpt2/model.safetensors"
        path.write_bytes(path.read_bytes()[:-4])
        self.refused(4, "model.safetensors")

    def test_a_task_of_numbers(self):
        self.refused(3, "task sort from a GPT-2", flags=["--task", "sort"])


if __name__ == "__main__":
    unittest.main()
