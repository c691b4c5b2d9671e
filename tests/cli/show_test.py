"""`posattn show --input`: what the page shows in a real browser."""

import json
import re
import unittest

from browser import browser
from support import CliCase, tiny

LARGER = """# </script><script>document.title = "broken"</script> <b>&amp;
program larger
word x : int[0..9] = input
receive y = x from i - 1
word b : bit = x > y
output b
"""

# What the table shows: {name of a column: [a text for each row]}, the nodes as "".
READ_TABLE = """(() => {
  const names = [...document.querySelectorAll("#head th")].map((cell) => cell.firstChild?.data);
  const table = {};
  for (const row of document.querySelectorAll("#rows tr[data-node]")) {
    [...row.children].forEach((cell, c) => {
      if (c === 0 || cell.dataset.column) (table[c === 0 ? "" : names[c]] ??= []).push(cell.textContent);
    });
  }
  return table;
})()"""
TITLE = "document.querySelector('#status strong').textContent"
STATUS = "document.getElementById('status').textContent"
DETAIL = "document.getElementById('detail').textContent"
CURRENT_LINES = "[...document.querySelectorAll('#source .current')].map((line) => line.textContent)"


def parse_trace(text):
    """[(title, {word: [values]})] of `posattn run --trace`."""
    steps = []
    for line in text.split("\n\n")[0].splitlines():
        if line.startswith("  "):
            name, *values = line.split()
            steps[-1][1][name] = values
        else:
            steps.append((line, {}))
    return steps


class ShowSteps(CliCase):
    @classmethod
    def setUpClass(cls):
        context = browser()
        cls.page = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)

    def open(self, *arguments, width=1000):
        self.run_ok("show", *arguments, "-o", "run.html")
        self.page.problems.clear()
        self.page.requests.clear()
        self.page.open(self.folder / "run.html", width=width)
        self.addCleanup(self.assertEqual, self.page.problems, [])
        self.addCleanup(self.assertEqual, len(self.page.requests), 1)  # the page alone

    def test_words_are_those_of_the_trace(self):
        for name, numbers in [("sort", "3,-1.25,2000000,0.000012345,7"),
                              ("cumulative-max-subarray", "1,-2.5,3,-4,5.125"),
                              ("distances", "0,3,1,4"), ("list-ranking", "2,-1,3,1")]:
            steps = parse_trace(self.run_ok("run", name, "--input", numbers, "--trace"))
            self.open(name, "--input", numbers, "--level", "mpc")
            for k, (title, words) in enumerate(steps):
                self.assertEqual(self.page.evaluate(TITLE), f"{title} (step {k} of {len(steps) - 1})")
                table = self.page.evaluate(READ_TABLE)
                for word, values in words.items():
                    self.assertEqual(table[word], values, (name, title, word))
                self.page.press("ArrowRight")

    def test_the_way_of_one_output(self):
        """From whom the output of processor 0 comes, with letters for numbers."""
        self.open("scatter", "--input", "2,0,1", "--input", "5,6,7", "--level", "mpc", "--follow", "0")
        followed = 'document.querySelector("td.followed").closest("tr").dataset.node'
        self.assertEqual(self.page.evaluate(followed), "1")
        self.page.press("End")
        self.assertEqual(self.page.evaluate(followed), "0")
        self.open("k-hop", "--input", "1,2,1,3,1,2", "--input", "2", "--letters", "_abcd", "--follow", "5")
        self.assertEqual(self.page.evaluate('document.querySelector("td.followed").textContent'), "b")
        facts = self.page.evaluate("document.querySelector('.facts').textContent")
        self.assertIn("input letter: a, b, a, c, a, b ", facts)
        self.assertIn("output value: _, _, _, _, _, b ", facts)
        self.run_error(2, "show", "sort", "--input", "3,1,2", "--follow", "3", message="0 to 2")
        self.run_error(2, "show", "sort", "--follow", "1", message="--follow without --input")

    def test_keys(self):
        self.open("sort", "--input", "3,1,2,5")
        ways = [("End", "after round 2 (step 3 of 3)"), ("ArrowRight", "after round 2 (step 3 of 3)"),
                ("ArrowLeft", "after round 1 (step 2 of 3)"), ("Home", "start (step 0 of 3)"),
                ("ArrowLeft", "start (step 0 of 3)"), ("ArrowRight", "after round 0 (step 1 of 3)")]
        for key, title in ways:
            self.page.press(key)
            self.assertEqual(self.page.evaluate(TITLE), title)
        self.assertEqual(self.page.evaluate("document.getElementById('status').getAttribute('aria-live')"),
                         "polite")
        self.page.press(" ")
        self.assertEqual(self.page.evaluate("document.getElementById('play').textContent"), "Pause")
        self.page.evaluate("new Promise((done) => setTimeout(done, 1300))")
        self.assertEqual(self.page.evaluate(TITLE), "after round 1 (step 2 of 3)")
        self.page.press(" ")
        self.assertEqual(self.page.evaluate("document.getElementById('play').textContent"), "Play")

    def test_lines_arrows_and_what_a_processor_hears(self):
        self.open("cumulative-sum", "--input", "1,2,3,4")
        self.assertEqual(self.page.evaluate(CURRENT_LINES), [])
        self.page.press("ArrowRight")
        lines = [line.strip() for line in self.page.evaluate(CURRENT_LINES)]
        self.assertTrue(any(line.startswith("receive y = x from i - d") for line in lines), lines)
        self.assertIn("the network holds the same numbers", self.page.evaluate(STATUS))
        # Three read from a neighbour, the first reads nothing: curves and a ring.
        drawn = self.page.evaluate("document.querySelector('#arrows path').getAttribute('d')")
        self.assertEqual((drawn.count("C"), drawn.count("a3,3")), (3, 2))
        self.page.evaluate("document.querySelectorAll('#rows button')[2].click()")
        self.assertIn("y: reads 2 (x of 1)", self.page.evaluate(DETAIL))

    def test_messages_are_drawn_where_data_sends_them(self):
        self.open("scatter", "--input", "2,0,1", "--input", "5,6,7", "--level", "mpc")
        self.page.press("ArrowRight")
        self.assertEqual(self.page.evaluate(READ_TABLE)["y"], ["6", "7", "5"])
        self.page.evaluate("document.querySelectorAll('#rows button')[0].click()")
        self.assertIn("y: reads 6 (x of 1)", self.page.evaluate(DETAIL))
        # The network's own rounds: what routes the messages is compared too.
        self.open("scatter", "--input", "2,0,1", "--input", "5,6,7")
        self.page.press("End")
        self.assertIn("the network holds the same numbers", self.page.evaluate(STATUS))

    def test_a_phone(self):
        self.page.call("Emulation.setTouchEmulationEnabled", enabled=True)
        self.addCleanup(self.page.call, "Emulation.setTouchEmulationEnabled", enabled=False)
        self.open("sort", "--input", "3,1,2,5,9,8,7,6", width=360)
        self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 360)
        self.page.swipe((250, 150), (100, 155))
        self.assertEqual(self.page.evaluate(TITLE), "after round 0 (step 1 of 6)")
        self.page.swipe((100, 150), (250, 155))
        self.assertEqual(self.page.evaluate(TITLE), "start (step 0 of 6)")
        smallest = self.page.evaluate("Math.min(...[...document.querySelectorAll('.controls button')]"
                                      ".map((button) => button.getBoundingClientRect().height))")
        self.assertGreaterEqual(smallest, 44)

    def test_a_trained_model(self):
        self.run_ok("train", *tiny(), "--out", "runs")
        model = next((self.folder / "runs").rglob("model.safetensors"))
        self.open(model, "--input", "1,2,3")
        start = self.page.evaluate(READ_TABLE)
        self.assertEqual(start["input"], ["1", "2", "3", "0"])
        self.assertEqual(start["output"], ["", "", "", ""])
        self.assertEqual(start[""][-1], "scratch")
        self.page.press("End")
        end = self.page.evaluate(READ_TABLE)
        self.assertEqual(end["answer"], ["1", "3", "6", ""])
        outputs = self.run_ok("predict", model, stdin=b"1,2,3\n").strip().split(",")
        for found, expected in zip(end["output"], outputs):
            self.assertAlmostEqual(float(found), float(expected), delta=2e-3 * (1 + abs(float(expected))))
        self.page.evaluate("document.querySelectorAll('#rows button')[1].click()")
        detail = self.page.evaluate(DETAIL)
        shares = [int(share) for share in re.findall(r"\((\d+) %\)", detail.split("head 1")[0])]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertAlmostEqual(sum(shares), 100, delta=3)

    def test_a_model_that_is_not_exact_says_so(self):
        self.run_ok("compile", "cumulative-sum", "--length", 4, "--dense", "--sharpness", 3, "-o",
                    "soft.safetensors")
        self.open("soft.safetensors", "--input", "1,2,3,4")
        self.page.press("End")
        self.assertIn("the network differs by at most", self.page.evaluate(STATUS))

    def test_hostile_text_stays_text(self):
        name = "<img src=x onerror=alert(1)>"
        (self.folder / "larger.par").write_text(LARGER)
        self.run_ok("compile", "larger.par", "--length", 3, "-o", f"{name}.safetensors")
        self.open(f"{name}.safetensors", "--input", "1,2,0")
        self.assertEqual(self.page.evaluate("document.title"), "larger, round by round")
        self.assertEqual(self.page.evaluate("document.querySelector('#source li').textContent"),
                         LARGER.splitlines()[0])
        self.assertEqual(self.page.evaluate("document.images.length"), 0)
        self.assertIn(name, self.page.evaluate("document.querySelector('.facts').textContent"))

    def test_letters(self):
        """A column may say which letters its numbers stand for."""
        (self.folder / "larger.par").write_text(LARGER)
        self.open("larger.par", "--input", "1,2,0")
        path = self.folder / "run.html"
        text = path.read_text().replace('"type":"int[0..9]"', '"type":"int[0..9]","letters":["a","b","c"]', 1)
        path.write_text(text)
        self.page.requests.clear()
        self.page.open(path)
        self.assertEqual(self.page.evaluate(READ_TABLE)["x"], ["b", "c", "a"])

    def test_a_large_network_stays_quick(self):
        numbers = ",".join(str(i * 37 % 512) for i in range(512))
        self.open("sort", "--input", numbers)
        rows, room = self.page.evaluate("[document.querySelectorAll('#rows tr').length,"
                                        "document.getElementById('stage').clientHeight]")
        self.assertTrue(room / 32 < rows < 80, (rows, room))
        self.page.press("End")
        self.assertEqual(self.page.evaluate(READ_TABLE)["x"][:3], ["0", "1", "2"])
        self.page.evaluate("document.getElementById('stage').scrollTop = 1e9")
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.assertEqual(self.page.evaluate(READ_TABLE)["x"][-1], "511")
        seconds = self.page.evaluate("(() => { const start = performance.now();"
                                     "for (let k = 0; k < 10; ++k) document.getElementById('back').click();"
                                     "return (performance.now() - start) / 1e4; })()")
        self.assertLess(seconds, 0.25)  # of one step, on a busy machine


class ShowErrors(CliCase):
    def test_pages(self):
        text = self.run_ok("show", "sort", "--input", "3,1,2")
        self.assertEqual(text, "3 steps of 3 processors in sort.html\n")
        self.assertEqual(self.run_ok("show", "cumulative-sum", "--input", "3,1"),
                         "1 step of 2 processors in cumulative-sum.html\n")
        page = self.run_ok("show", "sort", "--input", "3,1,2", "-o", "-")
        self.assertEqual(page, (self.folder / "sort.html").read_text())
        data = json.loads(re.search(r'id="walk">(.*?)</script>', page)[1])
        self.assertEqual([column["name"] for column in data["columns"]][0], "x")
        self.assertNotRegex(page, r"https?://(?!www\.w3\.org/2000/svg)")

    def test_errors(self):
        self.run_ok("compile", "sort", "--length", 4, "-o", "sort.safetensors")
        self.run_error(2, "show", "sort.safetensors",
                       message=["a model without --input", "show sort.safetensors --input 1,2,3,4 -o"])
        self.run_ok("compile", "k-hop", "--length", 3, "-o", "hop.safetensors")
        self.run_error(2, "show", "hop.safetensors", message="--input 1,2,3 --input ")
        self.run_ok("train", *tiny(epochs=1), "--out", "runs")
        self.run_error(2, "show", "runs/positional-seed0",
                       message="show runs/positional-seed0 --input 1,2,3 -o")
        self.run_error(4, "show", "sort.safetensors", "--input", "1,2,3", message="3 numbers in --input")
        self.run_error(2, "show", "sort.safetensors", "--input", "1,2,3,4", "--length", 4,
                       message="--length for a model")
        self.run_error(4, "show", "sort", "--input", "1,a", message="--input")
        self.run_error(2, "show", "sort", "--input", "1,2", "--level", "static", message="unknown level 'static'")
        self.run_error(2, "show", "sort", "--input", ",".join(["1"] * 1025),
                       message="at most 1024 nodes and 1000000 numbers")
        self.run_error(4, "show", "none.safetensors", "--input", "1,2", message="no such file")
        self.run_error(1, "show", "sort", "--input", "1,2", "-o", "none/p.html", message="cannot write")


if __name__ == "__main__":
    unittest.main()
