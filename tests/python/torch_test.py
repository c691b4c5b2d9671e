"""PyTorch modules of posattn's models: the same outputs and gradients, and the way back."""

import doctest
import unittest

import numpy
import torch

import posattn
import posattn.torch


def relative(found, expected):
    """The largest difference, as a part of the largest number."""
    found, expected = numpy.asarray(found), numpy.asarray(expected)
    return abs(found - expected).max() / max(abs(expected).max(), 1e-30)


def task_of(preset):
    """A task for a preset, and the pairs of 64 of its samples, which random weights read too."""
    if preset != "structural":
        return "sort", {}
    return "neighbour-min", {"pair_classes": torch.randint(0, 2, (64, 8, 8))}


class Parity(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(64, 8)

    def test_every_preset(self):
        for name in posattn.presets():
            with self.subTest(name):
                task, pairs = task_of(name)
                model = posattn.new(task=task, architecture=name, length=8, width=16)
                module = posattn.torch.Module(model)
                y = torch.sort(self.x, 1).values
                outputs = module(self.x, **pairs)
                self.assertLess(relative(model(self.x, **pairs), outputs.detach()), 1e-5)
                loss, gradients = model.gradient(self.x, y, **pairs)
                theirs = ((outputs - y) ** 2).mean()
                theirs.backward()
                self.assertLess(abs(loss - float(theirs)) / loss, 1e-6)
                whole = max(float(abs(p.grad).max()) for p in module.parameters()
                            if p.grad is not None)
                for key, parameter in module.named_parameters():
                    expected = 0 * parameter if parameter.grad is None else parameter.grad
                    difference = abs(gradients[key] - expected.detach().numpy()).max()
                    self.assertLess(difference, 1e-6 * max(1, whole), key)

    def test_compiled_networks(self):
        for program, settings in (("sort", {}), ("cumulative-max", {}), ("k-hop", {"K": 2})):
            with self.subTest(program):
                compiled = posattn.compile(program, length=8, settings=settings)
                model = compiled.model
                module = posattn.torch.Module(model)
                columns = model.spec["data_columns"]
                x = torch.randint(0, 2, (20, model.spec["real_nodes"], columns)).float()
                self.assertLess(relative(model(x), module(x).detach()), 1e-6)
                if model.spec["real_nodes"] < 40:
                    numpy.testing.assert_allclose(module.attention(x), model.attention(), atol=1e-6)

    def test_forms_and_bad_input(self):
        module = posattn.torch.Module(posattn.new(task="sort", length=8, width=16))
        batch = module(self.x)
        self.assertEqual(batch.shape, self.x.shape)
        torch.testing.assert_close(module(self.x[3]), batch[3])
        torch.testing.assert_close(module(self.x[..., None])[..., 0], batch)
        for bad in (self.x.reshape(32, 16), self.x[None, None], None, self.x[:, :5], self.x[:, :0]):
            with self.assertRaises(posattn.Error):
                module(bad)
        for settings in ({"variable_length": True}, {"architecture": "relative"}):
            model = posattn.new(task="sort", length=8, width=16, **settings)
            short = self.x[:, :5]
            self.assertLess(relative(posattn.torch.Module(model)(short).detach(), model(short)), 2e-6)

    def test_tokens(self):
        model = posattn.new(task="k-hop", length=6, depth=1)
        tokens = torch.randint(0, 4, (3, model.spec["real_nodes"]))
        self.assertLess(relative(posattn.torch.Module(model)(tokens=tokens).detach(),
                                 model(tokens=tokens)), 1e-5)

    def test_one_device_throughout(self):
        """PyTorch's "meta" device has no numbers, and refuses tensors of another as a GPU does."""
        models = [posattn.new(task=task_of(name)[0], architecture=name, length=8, width=16)
                  for name in posattn.presets()]
        models.append(posattn.new("neighbour-min", "m2", kinds="neighbours", length=8, width=16))
        models += [posattn.compile(program, length=8).model for program in ("sort", "distances")]
        models.append(posattn.compile("program w\nword x : real = input\n"
                                      "receive y = sum of 0.5 * x over j\noutput y\n").model)
        for model in models:
            with self.subTest(model=repr(model)):
                module = posattn.torch.Module(model).to("meta")
                x = torch.empty(2, model.spec["real_nodes"], model.spec["data_columns"],
                                device="meta")
                pairs = {}
                if model.spec.get("pair_classes", 0) > 0:
                    pairs["pair_classes"] = torch.empty(2, 8, 8, dtype=torch.int64, device="meta")
                self.assertEqual(module(x, **pairs).device.type, "meta")
                self.assertEqual(module.attention(x, **pairs).device.type, "meta")


class WaysBack(unittest.TestCase):
    def test_training_in_pytorch_and_back(self):
        module = posattn.torch.Module(posattn.new(task="sort", length=4, width=16))
        before = module.to_model()
        optimiser = torch.optim.Adam(module.parameters(), 1e-2)
        x = torch.randn(100, 4)
        for _ in range(5):
            optimiser.zero_grad()
            ((module(x) - torch.sort(x, 1).values) ** 2).mean().backward()
            optimiser.step()
        after = module.to_model()
        self.assertLess(relative(after(x), module(x).detach()), 1e-5)
        self.assertGreater(relative(after(x), before(x)), 1e-2)
        self.assertEqual(after.task, "sort")

    def test_state_dicts_of_the_authors(self):
        for architecture in ("positional", "standard"):
            model = posattn.new(task="sort", architecture=architecture, length=8)
            state = posattn.torch.Module(model).double().state_dict()
            again = posattn.torch.from_state_dict(state, task="sort")
            self.assertEqual((again.architecture, again.task), (architecture, "sort"))
            x = torch.randn(5, 8)
            numpy.testing.assert_array_equal(again(x), model(x))

    def test_bad_state_dicts(self):
        for bad in ({}, {"x": 3}, {"x": torch.zeros(2, dtype=torch.int32)}, {"x": torch.zeros(2)}):
            with self.assertRaises(posattn.Error):
                posattn.torch.from_state_dict(bad)


    def test_routes_are_no_weights(self):
        state = posattn.torch.Module(posattn.compile("sort", length=4).model).state_dict()
        with self.assertRaisesRegex(posattn.Error, "to_model"):
            posattn.torch.from_state_dict(state)


class Examples(unittest.TestCase):
    def test_docstrings(self):
        self.assertEqual(doctest.testmod(posattn.torch).failed, 0)


if __name__ == "__main__":
    unittest.main()
