"""Figures: by Matplotlib where it is installed, else by gnuplot, else a clear error."""

import os
import subprocess
import sys
import unittest
import unittest.mock
import xml.etree.ElementTree

import numpy

import posattn

try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.axes
    import matplotlib.pyplot
except ImportError:
    matplotlib = None

LINES = {"positional": ([1, 2, 4], [[1, 2, 3], [3, 4, 5], [2, 9, 4]]),
         "standard": ([1, 2, 4], [1, numpy.nan, 100]), "nothing": ([1, 2, 4], [0, 0, 0])}
NO_MATPLOTLIB = {name: None for name in ("matplotlib", "matplotlib.figure", "matplotlib.pyplot")}


def fleet():
    return posattn.train("sort", length=3, seeds=range(2), epochs=1, samples=16, batch=16, width=8,
                         mlp_width=8, test_samples=8, test_scales="1,2")


@unittest.skipIf(matplotlib is None, "Matplotlib is not installed")
class Matplotlib(unittest.TestCase):
    def setUp(self):
        self.addCleanup(matplotlib.pyplot.close, "all")

    def test_a_fleet_draws_on_given_axes(self):
        trained = fleet()
        _, (first, second) = matplotlib.pyplot.subplots(1, 2)
        self.assertIs(trained.plot(ax=second), second)
        self.assertEqual(len(first.lines), 0)
        x, errors = trained.tests("mse")["positional"]
        numpy.testing.assert_array_equal(second.lines[0].get_xdata(), x)
        numpy.testing.assert_allclose(second.lines[0].get_ydata(), numpy.median(errors, 0))
        self.assertEqual((second.get_xlabel(), second.get_ylabel(), second.get_yscale()),
                         ("c", "mean squared error", "log"))
        accuracy = trained.plot("accuracy")
        self.assertIsInstance(accuracy, matplotlib.axes.Axes)
        self.assertEqual((accuracy.get_yscale(), accuracy.get_ylim()), ("linear", (0, 1)))
        with self.assertRaisesRegex(posattn.Error, "ax"):
            trained.plot(ax="here")

    def test_median_and_band(self):
        ax = matplotlib.pyplot.subplots()[1]
        posattn.drawing.plot_on(ax, LINES, title="t", x_label="x", y_label="y")
        self.assertEqual([line.get_label() for line in ax.lines], ["positional", "standard"])
        self.assertEqual(ax.lines[0].get_ydata().tolist(), [2, 4, 4])
        numpy.testing.assert_array_equal(ax.lines[1].get_ydata(), [1, numpy.nan, 100])
        (band,) = ax.collections  # of the line that has several runs
        numpy.testing.assert_array_equal(band.get_paths()[0].get_extents().get_points(), [[1, 1], [4, 9]])

    def test_a_picture_needs_no_gnuplot_and_repeats(self):
        with unittest.mock.patch.dict(os.environ, {"PATH": "/nowhere"}):
            picture = posattn.plot(LINES, title="a < b", greatest=100)
            self.assertEqual(posattn.plot(LINES, title="a < b", greatest=100), picture)
        self.assertTrue(xml.etree.ElementTree.fromstring(picture).tag.endswith("svg"))
        with self.assertRaisesRegex(posattn.Error, "without a point"):
            posattn.plot({"a": ([1, 2], [0, 0])})


class WithoutMatplotlib(unittest.TestCase):
    def setUp(self):
        patch = unittest.mock.patch.dict(sys.modules, NO_MATPLOTLIB)
        patch.start()
        self.addCleanup(patch.stop)

    def test_gnuplot_draws(self):
        picture = posattn.plot(LINES)
        self.assertIn("gnuplot", picture)
        self.assertIn("positional", picture)

    def test_axes_are_not_to_be_had(self):
        with self.assertRaises(posattn.Error) as caught:
            fleet().plot()
        self.assertIn("pip install matplotlib", caught.exception.hint)

    def test_without_either_the_error_says_what_to_install(self):
        with unittest.mock.patch.dict(os.environ, {"PATH": "/nowhere"}):
            with self.assertRaises(posattn.Error) as caught:
                posattn.plot(LINES)
        self.assertEqual(caught.exception.expected, "Matplotlib or gnuplot")
        self.assertIn("gnuplot-nox", caught.exception.hint)

    def test_training_and_testing_need_neither(self):
        code = ("import sys\n"
                "sys.modules['matplotlib'] = None\n"
                "import posattn\n"
                "fleet = posattn.train('sort', length=3, epochs=1, samples=16, batch=16, width=8,\n"
                "                      mlp_width=8, test_samples=8)\n"
                "print(fleet[0].model.evaluate(samples=8)['x'], posattn.compile('sort', 4).model.show()[:4])")
        done = subprocess.run([sys.executable, "-B", "-c", code], text=True, capture_output=True,
                              env={**os.environ, "PATH": "/nowhere"})
        self.assertEqual((done.stdout, done.returncode), ("[1.] <svg\n", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
