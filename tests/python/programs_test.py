"""Programs in Python: compiled, run at every level, traced, verified, drawn, written as functions."""

import html
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

import numpy

import posattn
from posattn import maximum, minimum, where


class Library(unittest.TestCase):
    def test_sort_at_every_level(self):
        program = posattn.compile("sort", length=8)
        x = numpy.random.default_rng(0).normal(size=(20, 8))
        for level in ("mpc", "static", "network"):
            numpy.testing.assert_allclose(program.run(x, level=level), numpy.sort(x), atol=1e-5)
        numpy.testing.assert_allclose(program.model(x), numpy.sort(x), atol=1e-5)
        self.assertEqual(program(x[0]).shape, (8,))
        self.assertEqual((program.rounds, program.task, program.inputs), (6, "sort", ["x"]))
        with self.assertRaisesRegex(posattn.Error, "level"):
            program.run(x, level="gpu")

    def test_text_and_settings(self):
        text = posattn.source("cumulative-sum")
        program = posattn.compile(text, length=5)
        self.assertEqual(program.run(numpy.ones(5)).tolist(), [1, 2, 3, 4, 5])
        with self.assertRaisesRegex(posattn.Error, "text:2"):
            posattn.compile("program x\nnonsense\n", length=3)
        with self.assertRaisesRegex(posattn.Error, "did you mean"):
            posattn.compile("srot", length=3)
        with self.assertRaises(posattn.Error):
            posattn.compile("sort", length=4, settings={"K": 3})
        for length in (0, -1, 10**9):
            with self.assertRaisesRegex(posattn.Error, "length"):
                posattn.compile("sort", length=length)

    def test_a_path(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "my.par"
            path.write_text(posattn.source("cumulative-sum") + "\n")
            self.assertEqual(posattn.compile(path, length=3).run([1, 1, 1]).tolist(), [1, 2, 3])
            with self.assertRaisesRegex(posattn.Error, "nowhere"):
                posattn.compile(path.with_name("nowhere.par"), length=3)

    def test_messages(self):
        program = posattn.compile("k-hop", length=6, settings={"K": 4})
        self.assertTrue(program.verify(samples=50, scales=[1])["holds"])

    def test_trace(self):
        trace = posattn.compile("cumulative-sum", length=4).trace([1, 1, 1, 1])
        self.assertEqual(trace["x"].tolist(), [[1, 1, 1, 1], [1, 2, 2, 2], [1, 2, 3, 4]])
        self.assertIn("x:", repr(trace))

    def test_verification_finds_what_is_wrong(self):
        program = posattn.compile("sort", length=4)
        self.assertTrue(program.verify(samples=200)["holds"])
        broken = program.model.copy()
        broken.parameters["decoding.weight"] *= 1.01
        found = program.verify(broken, samples=200)
        self.assertFalse(found["holds"])
        self.assertEqual(len(found["counter_example"]["input"]), 4)
        with self.assertRaisesRegex(posattn.Error, "no scales"):
            program.verify(scales=[])
        carried = posattn.program_of(program.model)
        self.assertTrue(carried.verify(samples=50)["holds"])
        with self.assertRaisesRegex(posattn.Error, "no program"):
            posattn.program_of(posattn.new(task="sort"))
        with self.assertRaises(posattn.Error):
            posattn.compile("sort", length=5).verify(program.model)

    def test_bad_inputs(self):
        program = posattn.compile("sort", length=4)
        for bad in ([1, 2, 3], [1, 2, numpy.nan, 3], "text", None, numpy.zeros((2, 2, 4)),
                    [1, 2, numpy.inf, 3], numpy.zeros((4, 4, 4, 4))):
            with self.subTest(bad=repr(bad)), self.assertRaises(posattn.Error):
                program.run(bad)
        with self.assertRaisesRegex(posattn.Error, "one sample"):
            program.trace(numpy.zeros((2, 4)))

    def test_numbers_beyond_fp32(self):
        for options in ({}, {"dense": True}):
            program = posattn.compile("sort", length=3, **options)
            self.assertEqual(program.run([3e38, 0, -3e37]).tolist(),
                             numpy.float32([-3e37, 0, 3e38]).tolist())
            with self.assertRaisesRegex(posattn.Error, "1e.39 of 'x' on processor 1"):
                program.run([1, 1e39, 2])
            with self.assertRaisesRegex(posattn.Error, "an overflow in the network") as caught:
                program.run([3e38, -3e38, 1])
            self.assertEqual(caught.exception.code, 4)
            self.assertEqual(program.run([1, 1e39, 2], level="mpc").tolist(), [1, 2, 1e39])
        scatter = posattn.compile("scatter", length=3, routing="benes")
        self.assertEqual(scatter.run([[1, 5.0], [2, 6.0], [0, 7.0]]).tolist(), [7, 5, 6])
        with self.assertRaisesRegex(posattn.Error, "on processor 2"):
            scatter.run([[1, 5.0], [2, 6.0], [0, 7e40]])

    def test_drawing(self):
        picture = posattn.compile("sort", length=4).show()
        self.assertTrue(xml.etree.ElementTree.fromstring(picture).tag.endswith("svg"))
        self.assertEqual(picture._repr_svg_(), str(picture))
        self.assertIsNone(posattn.compile("cumulative-sum", length=200)._repr_svg_())

    def test_a_notebook_shows_a_program(self):
        sort = posattn.compile("sort", length=4)
        page = sort._repr_html_()
        self.assertIn("<b>sort</b>: 4 processors", page)
        self.assertIn(f"{sort.rounds} rounds", page)
        self.assertIn(sort.show(), page)
        self.assertIn(html.escape(sort.text), page)
        xml.etree.ElementTree.fromstring(f"<div>{page}</div>")
        large = posattn.compile("cumulative-sum", length=200)._repr_html_()  # has no picture
        self.assertIn("200 processors", large)
        self.assertNotIn("<svg", large)
        made = posattn.compile(lambda program: program.input("x") + 1, length=4)
        self.assertNotIn("<pre>", made._repr_html_())

    def test_pages_that_step_through(self):
        page = posattn.compile("sort", length=4).steps([4, 3, 2, 1])
        self.assertIn("after round", page)
        self.assertIn("<iframe srcdoc=", page._repr_html_())
        page = posattn.new(task="sort", length=4, width=8).steps([4, 3, 2, 1])
        self.assertIn("<html", page)
        with self.assertRaisesRegex(posattn.Error, "one"):
            posattn.new(task="sort", length=4, width=8).steps([[4, 3, 2, 1]])

    def test_dense_programs_train_on(self):
        dense = posattn.compile("cumulative-sum", length=4, dense=True, sharpness=15).model
        x = numpy.random.default_rng(0).normal(size=(8, 4))
        loss, _ = dense.gradient(x, numpy.cumsum(x, axis=1))
        self.assertLess(loss, 1e-3)


class Functions(unittest.TestCase):
    def test_a_sorting_network(self):
        def odd_even(program):
            x = program.input("x")
            for step in range(program.length):
                def partner(i):
                    j = i + 1 if (i + step) % 2 == 0 else i - 1
                    return j if 0 <= j < program.length else i
                p = x.at(partner)
                x.set(minimum(x, p), where=lambda i: partner(i) >= i, otherwise=maximum(x, p))
            return x

        program = posattn.compile(odd_even, length=6, task="sort")
        self.assertEqual(program.name, "odd-even")
        self.assertTrue(program.verify(samples=200)["holds"])
        self.assertEqual(program.run([6, 5, 4, 3, 2, 1]).tolist(), [1, 2, 3, 4, 5, 6])

    def test_whole_numbers_and_conditions(self):
        def clamp(program):
            x = program.input("x", type=(-9, 9))
            y = program.word("y", type=(-9, 9))
            y.set(where(x > 3, 3, where(x < -3, -3, x)))
            return y

        program = posattn.compile(clamp, length=4)
        self.assertEqual(program.run([-9, -2, 3, 8]).tolist(), [-3, -2, 3, 3])
        with self.assertRaises(posattn.Error):
            program.run([0.5, 0, 0, 0])
        with self.assertRaises(posattn.Error):
            program.run([10, 0, 0, 0])

    def test_several_outputs_and_sends(self):
        def reverse(program):
            x = program.input("x")
            d = program.word("d", [program.length - 1 - i for i in range(program.length)],
                             type=(0, program.length - 1))
            return [x.send(d, permutation=True), x - 1]

        program = posattn.compile(reverse, length=3)
        self.assertEqual(program.run([1, 2, 3]).tolist(), [[3, 0], [2, 1], [1, 2]])

    def test_terms_are_of_one_round(self):
        def kept(program, in_word):
            x = program.input("x")
            t = x + 1
            if in_word:
                word = program.word("t")
                word.set(t)
                t = word
            x.set(x * 2)
            return [t, x.at(lambda i: i)]

        program = posattn.compile(lambda p: kept(p, True), length=3)
        for level in ("mpc", "network"):
            self.assertEqual(program.run([1, 2, 3], level=level).tolist(), [[2, 2], [3, 4], [4, 6]])
        with self.assertRaisesRegex(posattn.Error, "(?s)a term of round 0 in round 1.*into a word first"):
            posattn.compile(lambda p: kept(p, False), length=3)

        def stale(use):
            def program(p):
                x, y = p.input("x"), p.input("y", type=(0, 9))
                t = x + x.at(lambda i: i - 1)
                bit = y > 3
                x.set(x * 2)
                x.at(lambda i: i)
                return use(x, t, bit)
            return program

        uses = [lambda x, t, bit: t + 1, lambda x, t, bit: x - t, lambda x, t, bit: -t,
                lambda x, t, bit: minimum(t, x), lambda x, t, bit: where(bit, x, 1),
                lambda x, t, bit: x.set(x, where=lambda i: i == 0, otherwise=t)]
        for use in uses:
            with self.assertRaisesRegex(posattn.Error, "into a word first"):
                posattn.compile(stale(use), length=3)

        first = posattn.words.Builder("first", 3)
        t = first.input("x") + 1
        with self.assertRaisesRegex(posattn.Error, "another program"):
            posattn.compile(lambda p: p.input("x") + t, length=3)
        with self.assertRaisesRegex(posattn.Error, "another program"):
            posattn.compile(lambda p: p.input("x").set(t), length=3)

    def test_a_name_is_that_of_one_word(self):
        def twice(program):
            x = program.input("x")
            return [x.at(lambda i: i - 1, name="y"), x.at(lambda i: i - 2, name="y")]

        with self.assertRaisesRegex(posattn.Error, "two words 'y'"):
            posattn.compile(twice, length=3)

        def named(program):
            x = program.input("x")
            d = program.word("d", [1, 2, 0], type=(0, 2))
            return [x.at(lambda i: i - 1, name="y"), x.send(d, name="z")]

        trace = posattn.compile(named, length=3).trace([1, 2, 3])
        self.assertEqual(trace["y"].tolist()[-1], [0, 1, 2])
        self.assertEqual(trace["z"].tolist()[-1], [3, 1, 2])

    def test_constants_of_numpy(self):
        def scaled(program):
            x = program.input("x")
            two = numpy.float32(2)
            return x * two + two * x + x / numpy.int64(2) + numpy.array(1.0) - numpy.float64(1)

        self.assertEqual(posattn.compile(scaled, length=2).run([2, 4]).tolist(), [9, 18])

    def test_the_task_is_one(self):
        def same(program):
            return program.input("x")

        with self.assertRaisesRegex(posattn.Error, "did you mean 'sort'"):
            posattn.compile(same, length=3, task="srot")
        task = posattn.Task("python-unchanged", lambda x: x)
        self.assertTrue(posattn.compile(same, length=3, task=task).verify(samples=20)["holds"])

    def test_what_cannot_be_said(self):
        def branches(program):
            x = program.input("x", type=(0, 1))
            return x if x > 0 else x

        def squares(program):
            x = program.input("x")
            return x * x

        def foreign(program):
            other = posattn.Builder("other", 3)
            program.input("x")
            return other.input("x")

        def compares_reals(program):
            x = program.input("x")
            y = program.word("y", type="bit")
            y.set(x > 0)
            return y

        def wrong_type(program):
            return program.input("x", type="whole")

        def between(program):
            return program.input("x").at(lambda i: i / 2)

        def twice(program):
            return program.input("x") + program.input("x")

        for function, part in ((between, "i // 2"), (twice, "two inputs 'x'"), (branches, "where"), (squares, "constant"), (foreign, "this program"),
                               (compares_reals, ""), (wrong_type, "bit"),
                               (lambda program: None, "word")):
            with self.subTest(part), self.assertRaisesRegex(posattn.Error, part):
                posattn.compile(function, length=3)
        with self.assertRaises(posattn.Error):
            posattn.compile(3, length=3)

        def place_fails(program):
            return program.input("x").at(lambda i: i / 0)

        with self.assertRaises(ZeroDivisionError):
            posattn.compile(place_fails, length=3)


if __name__ == "__main__":
    unittest.main()
