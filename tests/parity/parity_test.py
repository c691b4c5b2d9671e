#!/usr/bin/python3
"""The engine against PyTorch: outputs, loss, every gradient, training steps and model files.

  parity_test.py PARITY_TOOL [unittest arguments]

Reference (double) and PyTorch (double) agree to 1e-9 of the largest element of each tensor, the
fp32 engine and PyTorch (double) to 1e-5; queries, keys and models with norms to 1e-4.
"""

import os
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
    import torch
except ImportError as missing:
    sys.exit(
        f"parity_test.py: {missing.name} is missing for {sys.executable}.\n"
        "HINT: apt install python3-torch python3-numpy, and run with /usr/bin/python3"
    )

from cases import gradient_cases, paper_case, random_case
from gpt2 import Gpt2Case
from tool import ROOT, Request
from training import (
    OPTIMISERS,
    SCHEDULES,
    OptimiserCase,
    expected_rates,
    schedule_losses,
    steps_cases,
)

import convert  # scripts/, which tool puts on the path
import posattn_torch
from safetensors_io import write_safetensors

PROGRAM = None  # parity_tool, from the command line


def spec_of(case):
    return case.spec.fields()


def tolerance(engine, tensor):
    if engine in ("reference", "double"):
        return 1e-9
    parts = ("qk_proj", "relative", "log_scale", "kerple", "fire", "buckets", "attn.pair")
    return 1e-4 if any(part in tensor for part in parts) else 1e-5


def key_bias(case, tensor):
    """Which elements of qk_proj.bias are the keys': softmax ignores them, their gradient is zero.

    So do rows divided by their sum where the scores are factors' exponents. Not so under RoPE, which turns the bias
    by a different angle at every node, nor where scores are no dot products or are mixed before the softmax."""
    spec = case.spec.of_layer(int(tensor.split("transformer_layers.")[1].split(".")[0]))
    of_bias = "bias_qk_proj" in tensor
    size = spec.position_key_size if of_bias or not spec.reads_data else spec.key_size
    mask = numpy.zeros((spec.heads, 2 * size), dtype=bool)
    products = of_bias or not spec.reads_data or not spec.scores
    ignores = spec.weighting in ("softmax", "hard", "low_rank") or (of_bias and spec.weighting in ("relu_rows", "kernel"))
    if products and ignores and spec.score_window == 0 and (of_bias or not spec.rope):
        mask[:, size:] = True
    return mask.reshape(-1)


class ParityTest(unittest.TestCase):
    maxDiff = None

    def ask(self, request):
        with tempfile.TemporaryDirectory() as folder:
            return request.run(PROGRAM, folder)

    def assert_close(self, actual, expected, relative, what):
        self.assertEqual(actual.shape, expected.shape, what)
        difference = float(numpy.abs(actual - expected).max(initial=0.0))
        allowed = max(relative * float(numpy.abs(expected).max(initial=0.0)), 1e-16)  # of zeros but for rounding
        # A NaN is not below anything.
        self.assertTrue(difference <= allowed, f"{what}: {difference:.3e} > {allowed:.3e}")


class ModelParityTest(ParityTest):
    def test_outputs_attention_loss_and_gradients(self):
        cases = gradient_cases()
        request = Request()
        for case in cases:
            request.add("gradient", case.name, case.tensors(), **case.fields())
        answers = self.ask(request)
        for case in cases:
            expected = case.expected()
            for engine in case.engines:
                with self.subTest(case=case.name, engine=engine):
                    self.check(case, engine, expected, answers)

    def check(self, case, engine, expected, answers):
        prefix = f"{case.name}/{engine}/"
        names = {name[len(prefix) :] for name in answers if name.startswith(prefix)}
        self.assertEqual(names, set(expected))
        whole = max(float(numpy.abs(g).max(initial=0.0)) for n, g in expected.items() if n.startswith("gradient/"))
        for name, values in expected.items():
            actual, what = answers[prefix + name], f"{case.name} {engine} {name}"
            limit = tolerance(engine, name)
            rows = case.spec.weighting == "relu_rows"
            divides = case.spec.normalisation != "none" or case.spec.kinds or rows  # by what may be small
            if (divides or case.spec.loops != "1") and engine != "reference":
                limit = 1e-4  # rounding grows with the layers
            # A softmax ignores what is added to whole rows.
            reads_scratch = case.spec.scratch_nodes > 0 and not case.spec.causal
            whole_rows = name.endswith("score_conv.2.bias") and not reads_scratch
            if name.endswith("qk_proj.bias") or whole_rows:
                zero = numpy.ones(values.shape, dtype=bool) if whole_rows else key_bias(case, name)
                weight = numpy.abs(expected[name.removesuffix("bias") + "weight"]).max()
                weight = weight if weight > 1e-12 * whole else whole
                noise = float(numpy.abs(actual[zero]).max(initial=0.0))
                self.assertLessEqual(noise, limit * weight, what + ", where it is zero")
                actual, values = actual[~zero], values[~zero]
            if name.startswith("gradient/") and numpy.abs(values).max(initial=0.0) < 1e-12 * whole:
                # Zero but for rounding, as that of a factor that rows divide out again.
                self.assertLessEqual(numpy.abs(actual).max(initial=0.0), limit * whole, what)
                continue
            self.assert_close(actual, values, limit, what)


class Gpt2ParityTest(ParityTest):
    def test_public_weights_logits_loss_and_gradients(self):
        cases = [Gpt2Case(seed, length) for seed, length in enumerate((9, 5, 1))]
        with tempfile.TemporaryDirectory() as folder:
            request = Request()
            for case in cases:
                weights = os.path.join(folder, case.name)
                case.write(weights)
                tensors = {"tokens": case.tokens, "labels": case.labels}
                request.add("gpt2", case.name, tensors, path=weights, engines=("reference", "automatic"))
            answers = request.run(PROGRAM, folder)
        for case in cases:
            for name, values in case.expected().items():
                for engine in ("reference", "automatic"):
                    with self.subTest(case=case.name, engine=engine, tensor=name):
                        actual = answers[f"{case.name}/{engine}/{name}"]
                        limit = 1e-9 if engine == "reference" else 1e-4
                        self.assert_close(actual, values, limit, name)


class TrainingParityTest(ParityTest):
    def test_optimisers_fed_the_same_gradients(self):
        cases = [OptimiserCase(name, seed) for seed, name in enumerate(OPTIMISERS)]
        request = Request()
        for case in cases:
            request.add(
                "optimiser",
                case.name,
                case.tensors(),
                spec=case.model.spec.fields(),
                options=case.options,
            )
        answers = self.ask(request)
        for case in cases:
            for name, values in case.expected().items():
                for precision in ("double", "float"):
                    actual = answers[f"{case.name}/{precision}/{name}"]
                    with self.subTest(case=case.name, precision=precision, tensor=name):
                        limit = tolerance(precision, name)
                        self.assert_close(actual, values, limit, f"{case.name} {name}")

    def test_schedules(self):
        losses = schedule_losses(seed=0)
        request = Request()
        for name, options in SCHEDULES.items():
            request.add("schedule", name, {"losses": losses}, options=options)
        answers = self.ask(request)
        for name, options in SCHEDULES.items():
            with self.subTest(schedule=name):
                expected = expected_rates(options, losses)
                actual = answers[f"{name}/rates"]
                numpy.testing.assert_allclose(actual, expected, rtol=1e-13, atol=0)
        for name in ("plateau", "plateau-floor"):
            changes = numpy.count_nonzero(numpy.diff(answers[f"{name}/rates"]))
            self.assertGreater(changes, 3, f"{name}: the losses never made the rate fall")

    def test_ten_training_steps(self):
        cases = steps_cases()
        request = Request()
        for case in cases:
            request.add(
                "steps",
                case.name,
                case.tensors(),
                spec=spec_of(case),
                options=case.options,
                lr=case.lr,
                engines=case.engines,
            )
        answers = self.ask(request)
        for case in cases:
            expected = case.expected()
            for engine in case.engines:
                exact = engine == "reference"
                with self.subTest(case=case.name, engine=engine):
                    losses = answers[f"{case.name}/{engine}/losses"]
                    numpy.testing.assert_allclose(
                        losses, expected["losses"], rtol=1e-9 if exact else 1e-5
                    )
                    self.assert_close(
                        answers[f"{case.name}/{engine}/outputs"],
                        expected["outputs"],
                        1e-9 if exact else 1e-4,
                        case.name,
                    )


class ModelFileParityTest(ParityTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def cases(self):
        cases = [paper_case(name, samples=10, seed=3) for name in ("positional", "standard")]
        encodings = ("random", "learned", "sinusoidal", "binary")
        for seed, name in enumerate(("m1", "m3", "positional-direct", "standard-rope"), start=900):
            cases.append(random_case(name, encodings[seed % 4], seed))
        return cases

    def test_our_file_in_pytorch_and_back(self):
        cases = self.cases()
        request = Request()
        for case in cases:
            ours = self.path(f"{case.name}.safetensors")
            tensors = {"inputs": case.inputs, **case.weights()}
            request.add("save", case.name, tensors, spec=spec_of(case), path=ours)
        saved = request.run(PROGRAM, self.folder)

        again = Request()
        for case in cases:
            with self.subTest(case=case.name):
                ours, state = self.path(f"{case.name}.safetensors"), self.path(f"{case.name}.pt")
                convert.to_torch(ours, state)
                # Weights of another seed, so that only the file can make them right.
                fresh = type(case.model)(case.spec)
                fresh.load_state_dict(torch.load(state), strict=True)
                read = posattn_torch.load_model(ours)
                self.assertEqual(read.spec, case.spec)
                for name, tensor in case.model.state_dict().items():
                    self.assertTrue(torch.equal(fresh.state_dict()[name].double(), tensor), name)
                    self.assertTrue(torch.equal(read.state_dict()[name].double(), tensor), name)
                outputs = fresh.double()(case.inputs).detach().numpy()
                actual = saved[f"{case.name}/outputs"]
                self.assert_close(actual, outputs, 1e-5, case.name)
                back = self.path(f"{case.name}.back.safetensors")
                convert.from_torch(state, back, state + ".json")
                again.add("load", case.name, {"inputs": case.inputs}, path=back)
        loaded = again.run(PROGRAM, self.folder)
        for case in cases:
            name = f"{case.name}/outputs"
            numpy.testing.assert_array_equal(loaded[name], saved[name], case.name)

    def test_routes_have_no_pytorch_form(self):
        path, state = self.path("routed.safetensors"), self.path("routed.pt")
        routes = numpy.zeros((1, 3), numpy.int32)
        write_safetensors(path, {"transformer_layers.0.attn.routes": routes})
        with self.assertRaisesRegex(convert.ConversionError, "--dense"):
            convert.to_torch(path, state)
        self.assertFalse(os.path.exists(state))

    def test_files_that_the_module_refuses(self):
        for metadata, part in [({}, "no metadata"), ({"spec": "{"}, "not valid JSON"),
                               ({"spec": "[]"}, "not an object"),
                               ({"spec": '{"colour": "red"}'}, "'colour'"),
                               ({"spec": '{"depth": 1}'}, "not those of its spec")]:
            path = self.path("m.safetensors")
            write_safetensors(path, {"x": numpy.zeros(1, numpy.float32)}, metadata)
            with self.assertRaisesRegex(posattn_torch.ModelError, part):
                posattn_torch.load_model(path)

    def test_pytorch_state_dict_without_metadata(self):
        cases = [paper_case(name, samples=10, seed=4) for name in ("positional", "standard")]
        request = Request()
        for case in cases:
            state, ours = self.path(f"{case.name}.pt"), self.path(f"{case.name}.safetensors")
            torch.save(case.model.float().state_dict(), state)
            script = os.path.join(ROOT, "scripts", "convert.py")
            subprocess.run([sys.executable, script, "from-torch", state, ours], check=True)
            request.add("load", case.name, {"inputs": case.inputs}, path=ours)
        answers = request.run(PROGRAM, self.folder)
        for case in cases:
            outputs = case.model.double()(case.inputs).detach().numpy()
            self.assert_close(answers[f"{case.name}/outputs"], outputs, 1e-5, case.name)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: parity_test.py PARITY_TOOL [unittest arguments]")
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    torch.set_num_threads(1)
    unittest.main()
