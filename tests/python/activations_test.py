"""Activations by name, ablation and patching, against the formulas in NumPy's doubles."""

import unittest

import numpy

import posattn


def softmax(scores):
    powers = numpy.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


class Formulas:
    """The paper's layer and GPT's, as written: {name: array} of samples."""

    def __init__(self, model):
        self.spec = {"join": "concatenate", "normalisation": "none", "activation": "relu",
                     "causal": False, "split_heads": False, **model.spec}
        self.weights = {name: values.astype(float) for name, values in model.parameters.items()}
        nodes = self.spec["real_nodes"] + self.spec["scratch_nodes"]
        self.positions = self.weights.get("positions.weight", numpy.eye(nodes))

    def map(self, name, x):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, name, x):
        y = (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return y * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def heads_of(self, x):  # [samples, nodes, heads * size] -> [samples, heads, nodes, size]
        return x.reshape(*x.shape[:2], self.spec["heads"], -1).swapaxes(1, 2)

    def activate(self, x):
        if self.spec["activation"] == "relu":
            return numpy.maximum(x, 0)
        return x / 2 * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x**3)))

    def embedding(self, x):
        if self.spec.get("vocabulary"):
            added = self.positions[:x.shape[1]] if self.spec.get("positions_added") else 0
            return self.weights["tokens.weight"][x] + added
        scratch = numpy.zeros((len(x), self.spec["scratch_nodes"]))
        values = numpy.concatenate([x, scratch], 1)[..., None]
        if self.spec["positions_in_input"]:
            values = numpy.concatenate([values, numpy.tile(self.positions, (len(x), 1, 1))], -1)
        return self.map("encoding", values)

    def layer(self, index, x, found):
        """What a layer makes of the state x; {name: array} in `found`."""
        here, within = f"transformer_layers.{index}.", f"layers.{index}."
        added = self.spec["join"] == "add"
        read = self.norm(here + "attn_norm", x) if added else x
        values = self.heads_of(self.map(here + "attn.v_proj", read))
        source = self.positions[None, :x.shape[1]] if self.spec["attention"] == "positions" else read
        query, key = numpy.split(self.heads_of(self.map(here + "attn.qk_proj", source)), 2, -1)
        scores = query @ key.swapaxes(-1, -2) / numpy.sqrt(key.shape[-1])
        if self.spec["causal"]:
            scores = numpy.where(numpy.tri(x.shape[1]) > 0, scores, -numpy.inf)
        attention = numpy.broadcast_to(softmax(scores), (len(x), *scores.shape[1:]))
        heads = attention @ values
        output = self.map(here + "attn.o_proj", heads.swapaxes(1, 2).reshape(x.shape))
        between = x + output
        joined = self.norm(here + "mlp_norm", between) if added else numpy.concatenate([x, output], -1)
        hidden = self.activate(self.map(here + "mlp.mlp.0", joined))
        made = self.map(here + "mlp.mlp.2", hidden)
        state = between + made if added else made
        found.update({within + "values": values, within + "attention": attention,
                      within + "heads": heads, within + "attention_output": output,
                      within + "hidden.0": hidden, within + "state": state})
        if added:
            found[within + "mlp_output"] = made
        return state

    def rest(self, first, state):
        """The outputs, from the state that layer `first` reads; and the activations on the way."""
        found = {}
        for index in range(first, self.spec["depth"]):
            state = self.layer(index, state, found)
        if "norm.weight" in self.weights:
            state = self.norm("norm", state)
        outputs = self.map("decoding", state[:, :self.spec["real_nodes"]])
        return outputs[..., 0] if outputs.shape[-1] == 1 else outputs, found


def case(name):
    """A model and samples of it, as arguments of run."""
    random = numpy.random.default_rng(1)
    if name.startswith("compiled"):
        program = posattn.compile("sort", length=6, dense="dense" in name)
        return program.model, dict(x=random.integers(-9, 9, (3, 6)).astype(float))
    model = posattn.load(name)
    if model.spec.get("vocabulary"):
        return model, dict(tokens=random.integers(0, model.spec["vocabulary"], (3, model.length)))
    return model, dict(x=random.normal(size=(3, 8)))


TRAINED = ["sort-positional", "sort-standard", "k-hop-positional", "k-hop-standard"]


class Activations(unittest.TestCase):
    def close(self, found, expected):
        scale = max(1, abs(expected).max())
        numpy.testing.assert_allclose(found, expected, rtol=0, atol=2e-4 * scale)

    def test_every_one_is_that_of_the_formulas(self):
        for name in TRAINED:
            with self.subTest(name):
                model, samples = case(name)
                formulas = Formulas(model)
                embedding = formulas.embedding(*samples.values())
                expected, found = formulas.rest(0, embedding)
                outputs, kept = model.run(**samples, keep="all")
                self.close(outputs, expected)
                self.assertEqual(outputs.shape, model(**samples).shape)
                self.assertEqual(set(kept), {"embedding", *found})
                for what, values in {"embedding": embedding, **found}.items():
                    with self.subTest(what):
                        self.assertEqual(kept[what].shape, values.shape)
                        self.close(kept[what], values)

    def test_a_compiled_network(self):
        for name in ("compiled", "compiled-dense"):
            with self.subTest(name):
                model, samples = case(name)
                outputs, kept = model.run(**samples, keep="all")
                numpy.testing.assert_array_equal(outputs, model(**samples))
                for layer in range(model.spec["depth"]):
                    attention = kept[f"layers.{layer}.attention"]
                    numpy.testing.assert_allclose(attention.sum(-1), 1, atol=1e-6)
                    numpy.testing.assert_allclose(attention @ kept[f"layers.{layer}.values"],
                                                  kept[f"layers.{layer}.heads"], atol=1e-5)
                # The states of the last layer hold the answers; wiping the first ones out shows.
                changed, _ = model.run(**samples, patch={"layers.0.state": 0.0})
                self.assertTrue((changed != outputs).any())

    def test_a_patch_with_the_activation_itself_changes_nothing(self):
        for name in (*TRAINED, "compiled"):
            with self.subTest(name):
                model, samples = case(name)
                outputs, kept = model.run(**samples, keep="all")
                for what, values in kept.items():
                    for patch in (values, lambda activation: activation, lambda activation: None):
                        again, _ = model.run(**samples, patch={what: patch})
                        numpy.testing.assert_array_equal(again, outputs, what)

    def test_ablating_a_head_is_zeroing_its_columns_of_the_output_map(self):
        for name in (*TRAINED, "compiled-dense"):
            with self.subTest(name):
                model, samples = case(name)
                ablated, _ = model.run(**samples, patch={"layers.1.heads.0": 0.0})
                without = model.copy()
                size = model.spec["width"] // model.spec["heads"]
                without.parameters["transformer_layers.1.attn.o_proj.weight"][:, :size] = 0
                self.close(ablated, without(**samples))
                self.assertGreater(abs(ablated - model(**samples)).max(), 0)

    def test_a_patched_state_is_where_the_formulas_go_on(self):
        for name in TRAINED:
            with self.subTest(name):
                model, samples = case(name)
                state = model.run(**samples, keep="layers.0.state")[1]["layers.0.state"]
                state = state + numpy.linspace(-1, 1, state.shape[-1])
                outputs, kept = model.run(**samples, keep=["layers.1.attention", "layers.0.state"],
                                          patch={"layers.0.state": state})
                expected, found = Formulas(model).rest(1, state.astype(float))
                self.close(outputs, expected)
                self.close(kept["layers.1.attention"], found["layers.1.attention"])
                self.close(kept["layers.0.state"], state)

    def test_a_node_of_a_head(self):
        model, samples = case("sort-standard")
        before = model.run(**samples, keep="layers.0.heads")[1]["layers.0.heads"]
        _, kept = model.run(**samples, keep=["layers.0.heads", "layers.0.heads.1.3"],
                            patch={"layers.0.heads.1.3": lambda values: values + 1})
        before[:, 1, 3] += 1
        numpy.testing.assert_array_equal(kept["layers.0.heads"], before)
        numpy.testing.assert_array_equal(kept["layers.0.heads.1.3"], before[:, 1, 3])

    def test_attention_of_one_sample_can_differ_from_the_others(self):
        model, samples = case("sort-positional")
        attention = model.run(**samples, keep="layers.2.attention")[1]["layers.2.attention"]
        attention[1] = numpy.eye(9)
        outputs, kept = model.run(**samples, keep="layers.2.*", patch={"layers.2.attention": attention})
        plain = model.run(**samples)[0]
        numpy.testing.assert_array_equal(outputs[[0, 2]], plain[[0, 2]])
        self.assertTrue((outputs[1] != plain[1]).any())
        self.close(kept["layers.2.heads"][1], kept["layers.2.values"][1])

    def test_a_causal_model_never_reads_later_nodes(self):
        model, samples = case("k-hop-standard")
        _, kept = model.run(**samples, keep="layers.0.heads", patch={"layers.0.attention": 1.0})
        _, values = model.run(**samples, keep="layers.0.values")
        self.close(kept["layers.0.heads"], values["layers.0.values"].cumsum(2))

    def test_names(self):
        model, samples = case("sort-positional")
        one = {"x": samples["x"][0]}
        outputs, kept = model.run(**one, keep=["layers.*.attention.0", "embedding.*.5"])
        self.assertEqual({name: values.shape for name, values in kept.items()},
                         {"embedding.*.5": (9,),
                          **{f"layers.{layer}.attention.0": (9, 9) for layer in range(4)}})
        numpy.testing.assert_array_equal(outputs, model.run(**samples)[0][0])
        self.assertEqual(model.run(**one)[1], {})
        self.assertEqual(model.run(numpy.zeros((0, 8)), keep="all")[0].shape, (0, 8))

    def test_what_is_wrong_is_said(self):
        model, samples = case("sort-positional")
        for problem, arguments in {
                "no activation 'layers.7.heads'": dict(keep="layers.7.heads"),
                "no activation 'layers.0.heads.x'": dict(patch={"layers.0.heads.x": 0}),
                "'layers.0.heads.2'": dict(patch={"layers.0.heads.2": 0}),
                "'layers.0.state.0.0.0'": dict(keep=["layers.0.state.0.0.0"]),
                r"a patch of 'layers.0.state' of shape \(7,\)": dict(
                    patch={"layers.0.state": numpy.zeros(7)}),
                "a patch of 'embedding'": dict(patch={"embedding": "zero"}),
                "keep": dict(keep=[3]), "patch": dict(patch=["layers.0.state"])}.items():
            with self.subTest(problem), self.assertRaisesRegex(posattn.Error, problem):
                model.run(**samples, **arguments)
        with self.assertRaisesRegex(posattn.Error, "run fewer samples"):
            model.run(numpy.zeros((10**6, 8), numpy.float32))

    def test_what_a_function_raises_comes_out(self):
        model, samples = case("sort-positional")
        with self.assertRaises(ZeroDivisionError):
            model.run(**samples, patch={"embedding": lambda values: 1 / 0})
        self.assertEqual(model.run(**samples)[0].shape, (3, 8))


if __name__ == "__main__":
    unittest.main()
