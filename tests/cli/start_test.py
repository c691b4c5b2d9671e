"""train --from: what the file decides, what is refused, and that a run goes on after a kill."""

import json
import shutil
import unittest

from support import CliCase, read_metrics, read_tensors

# A training of the compiled cumulative-min of three numbers that takes milliseconds.
SMALL = ["--threads", 1, "--samples", 64, "--validation-samples", 16, "--test-samples", 16, "--batch", 16,
         "--test-scales", "1,2"]
FEW = ["--epochs", 3]


class Start(CliCase):
    def compile(self, *arguments, name="min.safetensors"):
        self.run_ok("compile", "cumulative-min", "--length", 3, "-o", name, *arguments)

    def train(self, *arguments):
        self.run_ok("train", *SMALL, *FEW, *arguments)
        return self.folder / "runs" / "cumulative-min"

    def setUp(self):
        super().setUp()
        self.compile("--dense", "--sharpness", 15)

    def test_the_file_says_what_is_trained(self):
        run = self.train("--from", "min.safetensors", "--seeds", "0,1") / "positional-seed1"
        manifest = json.loads((run / "manifest.json").read_text())["configuration"]
        self.assertEqual({key: manifest[key] for key in ("task", "length", "width", "heads", "depth")},
                         {"task": "cumulative-min", "length": 3, "width": 1, "heads": 1, "depth": 0})
        self.assertRegex(manifest["from-hash"], "^[0-9a-f]{16}$")
        self.assertEqual(read_tensors(run / "start.safetensors"), read_tensors(self.folder / "min.safetensors"))
        self.assertNotEqual(read_tensors(run / "model.safetensors"), read_tensors(run / "start.safetensors"))
        note = self.run_json("inspect", run)["notes"]["from"]
        self.assertEqual(note, manifest["from-hash"])

    def test_a_run_folder_is_a_start_too(self):
        first = self.train("--from", "min.safetensors") / "positional-seed0"
        self.run_ok("train", *SMALL, *FEW, "--from", first, "--out", "more")
        self.assertEqual(read_tensors(self.folder / "more/positional-seed0/start.safetensors"),
                         read_tensors(first / "model.safetensors"))

    def test_noise_comes_from_the_seed(self):
        noisy = ["--from", "min.safetensors", "--from-noise", 0.1]
        runs = self.train(*noisy, "--seeds", "0,1")
        self.run_ok("train", *SMALL, *FEW, *noisy, "--seed", 1, "--out", "again")
        starts = [read_tensors(folder / "start.safetensors") for folder in
                  (runs / "positional-seed0", runs / "positional-seed1",
                   self.folder / "again/positional-seed1")]
        self.assertNotEqual(starts[0], starts[1])
        self.assertEqual(starts[1], starts[2])

    def test_a_configuration_repeats_the_run_and_refuses_another_file(self):
        run = self.train("--from", "min.safetensors", "--from-noise", 0.01) / "positional-seed0"
        repeat = ["train", "--config", run / "config.toml", "--out"]
        self.run_ok(*repeat, "again")
        self.assertEqual(read_metrics(self.folder / "again/positional-seed0"), read_metrics(run))
        self.compile("--dense", "--sharpness", 12)
        self.run_error(3, *repeat, "other", message=["min.safetensors' has the hash", "from-hash ="])
        self.run_ok(*repeat, "other", "--from", "min.safetensors")  # said anew: the new one
        (self.folder / "min.safetensors").unlink()
        self.run_error(4, *repeat, "none", message="min.safetensors")
        self.assertFalse((self.folder / "none/positional-seed0").exists())

    def test_resume_after_kill(self):
        settings = ["--from", "min.safetensors", "--from-noise", 0.1, "--epochs", 200,
                    "--validate-every", 0, "--test-every", 0]
        self.run_ok("train", *SMALL, *settings, "--out", "straight")
        saving = ["--checkpoint-every", 0]
        with self.background("train", *SMALL, *settings, *saving, "--out", "out") as process:
            self.wait_for_epochs(process, self.folder / "out/positional-seed0", 5)
            process.kill()
            process.wait()
        resume = ["train", "--config", "out/positional-seed0/config.toml", "--out", "out", "--resume",
                  "--checkpoint-every", 30]
        self.compile("--dense", "--sharpness", 12, name="other.safetensors")
        self.run_error(3, *resume, "--from", "other.safetensors", message=["holds another run", "from-hash is"])
        shutil.move(self.folder / "min.safetensors", self.folder / "moved.safetensors")
        self.run_ok(*resume)
        for name in ("model.safetensors", "start.safetensors"):
            self.assertEqual((self.folder / "out/positional-seed0" / name).read_bytes(),
                             (self.folder / "straight/positional-seed0" / name).read_bytes())

    def test_refusals(self):
        start = ["train", *SMALL, *FEW, "--from", "min.safetensors"]
        self.run_error(3, *start, "--width", 64, message=["is not that of the settings: width is 1 there, 64 here",
                                                          "leave them out"])
        self.run_error(3, *start, "--architecture", "positional,standard", message="attention is")
        self.run_error(3, "train", "--from-noise", 0.1, message="from-noise = 0.1 without from")
        self.run_error(3, *start, "--from-noise", -1, message="from-noise = -1")
        self.run_error(4, "train", "--from", "none.safetensors", message="none.safetensors")
        self.compile(name="routes.safetensors")
        self.run_error(3, "train", "--from", "routes.safetensors",
                       message=["a table of routes", "compile PROGRAM --dense --sharpness 15"])
        (self.folder / "next.par").write_text("program next\nword x : real = input\nreceive y = x from i - 1\n"
                                              "output y\n")
        self.run_ok("compile", "next.par", "--length", 3, "--dense", "-o", "next.safetensors")
        self.run_error(3, "train", "--from", "next.safetensors", message=["names no task", "--task"])
        self.run_ok("train", *SMALL, *FEW, "--from", "next.safetensors", "--task", "cumulative-min", "--out", "taught")


if __name__ == "__main__":
    unittest.main()
