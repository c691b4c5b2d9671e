"""Tasks that people write as text: words in, answers out, attention with its letters, and every kind
of text that is not right."""

import functools
import json
import pathlib
import re
import shutil
import tempfile
import unittest

from support import CliCase, call

WORDS = b"2 abcabcabcab\n0 jihgfedcbaj\n"

# A k-hop model that trains in a second.
SMALL = ["--task", "k-hop", "--length", 12, "--width", 12, "--encoding-size", 12, "--mlp-width", 24,
         "--depth", 2, "--samples", 256, "--validation-samples", 32, "--test-samples", 32,
         "--epochs", 1]


@functools.cache
def word_runs():
    """A folder with a positional and a standard model of words, trained once; tests only read it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="posattn-cli-"))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    result = call("train", *SMALL, "--architecture", "positional,standard", "--out", "runs",
                  cwd=folder)
    if result.returncode != 0:
        raise AssertionError(result.stderr.decode())
    return folder / "runs", result.stderr.decode()


class TextCase(CliCase):
    def setUp(self):
        super().setUp()
        self.runs, self.training = word_runs()
        self.model = self.runs / "standard-seed0"
        (self.folder / "words.txt").write_bytes(WORDS)


class Train(TextCase):
    def test_says_what_samples_are(self):
        self.assertIn("k-hop, length 12, tokens of 16: 2 runs in runs", self.training)
        self.assertNotIn("values in", self.training)

    def test_takes_the_settings_of_the_task(self):
        settings = self.run_json("train", "--task", "k-hop", "--dry-run", "--width", 30)
        self.assertEqual((settings["length"], settings["width"], settings["causal"]), (99, 30, True))

    def test_tasks_say_what_goes_in_and_out(self):
        text = self.run_ok("tasks")
        for part in ["8 tokens of 16", "8 classes of 16", "8 x 8 numbers", "16 numbers",
                     "as text: the number of hops and a word, as 2 abcab", "--axis k-unseen: "]:
            self.assertIn(part, text)
        tasks = {task["name"]: task for task in self.run_json("tasks")}
        self.assertEqual([axis["name"] for axis in tasks["k-hop"]["test_axes"]],
                         ["k", "k-unseen", "letters"])
        self.assertEqual(tasks["k-hop"]["settings"]["length"], "99")
        self.assertEqual((tasks["k-hop"]["vocabulary"], tasks["k-hop"]["answers"]), (16, "classes"))
        self.assertIsNone(tasks["sort"]["text"])


class Predict(TextCase):
    def test_words_in_and_out(self):
        text = self.run_ok("predict", self.model, "--input", "words.txt")
        first, second = text.splitlines()
        self.assertRegex(first, r"^2 abcabcabcab -> [a-j?-]{11}$")
        self.assertRegex(second, r"^0 jihgfedcbaj -> [a-j?-]{11}$")
        self.assertEqual(self.run_ok("predict", self.model, stdin=WORDS), text)
        self.assertEqual(
            self.run_ok("predict", self.model, stdin=WORDS.replace(b"\n", b"\r\n")), text)
        self.run_ok("predict", self.model, "--input", "words.txt", "-o", "answers.txt")
        self.assertEqual((self.folder / "answers.txt").read_text(), text)

    def test_other_forms(self):
        classes = self.run_ok("predict", self.model, "--input", "words.txt", "--format", "csv")
        self.assertEqual(len(classes.splitlines()[0].split(",")), 12)
        self.run_ok("predict", self.model, "--input", "words.txt", "-o", "classes.csv")
        self.assertEqual((self.folder / "classes.csv").read_text(), classes)
        found = self.run_json("predict", self.model, "--input", "words.txt")
        self.assertEqual(found["lines"], WORDS.decode().split("\n")[:2])
        self.assertEqual(",".join(map(str, found["outputs"][0])), classes.splitlines()[0])
        self.assertEqual(len(found["answers"][0]), 11)
        scores = self.run_ok("predict", self.model, "--input", "words.txt", "--scores")
        self.assertEqual(len(scores.splitlines()[0].split(",")), 12 * 16)

    def test_tables_still_work(self):
        row = "2" + ",4,5,6" * 3 + ",4,5\n"
        text = self.run_ok("predict", self.model, stdin=row.encode())
        self.assertEqual(
            text.strip(),
            self.run_ok("predict", self.model, "--input", "words.txt", "--format",
                        "csv").splitlines()[0])

    def test_bad_text(self):
        for text, parts in [
                (b"", ["x.txt: no text", "one sample per line"]),
                (b"2 abcabcabcab\n\n", ["x.txt:2: a blank line", "as 2 abcab"]),
                (b"2 abcabcabca\xff\n", ["x.txt:1: byte 13 (0xff) is not UTF-8"]),
                (b"4 abcabcabcab\n", ["x.txt:1: 4 hops", "0 to 3"]),
                (b"2 abcabcabcak\n", ["x.txt:1: 'k' in a word", "from a to j"]),
                ("2 abcabcabca\u00e9\n".encode(), ["x.txt:1: '\u00e9' in a word"]),
                (b"2 abcabcabcabc\n", ["x.txt:1: a word of 12 letters", "11, as in training"]),
                (b"2 abc\n", ["x.txt:1: a word of 3 letters", "11, as in training"]),
                (b"abcabcabcabc\n", ["x.txt:1: 'abcabcabcabc'", "the number of hops and a word"]),
                (b"2,4,5\n", ["x.txt:1: '2,4,5'"])]:
            with self.subTest(text=text):
                (self.folder / "x.txt").write_bytes(text)
                self.run_error(4, "predict", self.model, "--input", "x.txt", message=parts)
                self.run_error(4, "inspect", self.model, "--input", "x.txt", message=parts)
        self.run_error(4, "predict", self.model, stdin=b"2,16" + b",4" * 10,
                       message=["token 16 in row 1, column 2", "0 to 15"])
        self.run_error(4, "predict", self.model, "--input", "missing.txt", message="missing.txt")
        self.run_error(4, "predict", self.model, stdin=b"", message="standard input: no text")


class Inspect(TextCase):
    def test_show_takes_the_same_text(self):
        line = "2 abcabcabcab"
        self.run_ok("inspect", self.model, "--input", line)
        self.run_ok("show", self.model, "--input", line, "-o", "a.html")
        (self.folder / "line.txt").write_text(line + "\n")
        self.run_ok("show", self.model, "--input", "line.txt", "-o", "b.html")
        self.assertEqual((self.folder / "a.html").read_text(), (self.folder / "b.html").read_text())
        self.run_error(4, "show", self.model, "--input", "words.txt", message="one row")
        self.run_error(2, "show", self.model, message=["a model without --input", "hops and a word, as 2 abcab"])
        self.run_error(4, "show", self.model, "--input", "2 abc", message="--input:1")

    def test_letters_beside_the_maps(self):
        text = self.run_ok("inspect", self.model, "--input", "words.txt")
        self.assertNotIn("values in", text)
        self.assertIn("a b c a b c a b c a b", text)
        self.assertRegex(text, r"\n +11 b +[█▓▒░·]")
        self.assertEqual(self.run_ok("inspect", self.model, "--input", "2 abcabcabcab"), text)
        names = self.run_json("inspect", self.model, "--input", "words.txt")["attention"]["names"]
        self.assertEqual(names, ["2", *"abcabcabcab"])

    def test_letters_in_the_drawing(self):
        self.run_ok("inspect", self.model, "--input", "words.txt", "--attention", "a.svg")
        picture = (self.folder / "a.svg").read_text()
        # Each of six maps has the four letters a of the word twice, above and to the left.
        self.assertEqual(len(re.findall(">a</text>", picture)), 6 * 2 * 4)
        self.assertIn("<title>1 a → 1 a: ", picture)

    def test_a_part(self):
        whole = self.run_json("inspect", self.model, "--input", "words.txt")["attention"]
        part = self.run_json("inspect", self.model, "--input", "words.txt", "--part",
                             "3..5")["attention"]
        self.assertEqual((part["first_node"], part["names"]), (3, ["c", "a", "b"]))
        self.assertEqual(part["layers"][1][2],
                         [row[3:6] for row in whole["layers"][1][2][3:6]])
        for bad in ["3", "5..3", "0..12", "x..y", "-1..3"]:
            self.run_error(2, "inspect", self.model, f"--part={bad}", message="--part")

    def test_where_a_node_looks(self):
        text = self.run_ok("inspect", self.model, "--input", "words.txt", "--node", 7)
        self.assertIn("attention of node 7 a (for the line of --input)", text)
        row = self.run_json("inspect", self.model, "--input",
                            "words.txt")["attention"]["layers"][0][0][7]
        place = max(range(12), key=row.__getitem__)
        letter = "2abcabcabcab"[place]
        self.assertRegex(text, rf"\n0 +0 +{place} {letter} \({row[place]:.3f}\), ")
        self.run_error(2, "inspect", self.model, "--node", 12, message=["--node 12", "0 to 11"])
        self.run_error(2, "inspect", self.model, "--node", 1, "--json", message="--json")
        self.run_error(2, "inspect", self.model, "--node", 1, "--part", "0..3", message="--part")
        self.run_error(2, "inspect", self.model, "--node", 1, "--attention", "-", message="--node")

    def test_attention_from_positions_has_the_letters_of_an_input(self):
        model = self.runs / "positional-seed0"
        self.assertNotIn("names", self.run_json("inspect", model)["attention"])
        found = self.run_json("inspect", model, "--input", "words.txt")["attention"]
        self.assertEqual((found["names"][1], found["caption"]), ("a", "the same for every input"))


class Evaluate(TextCase):
    def test_along_the_axes_of_the_task(self):
        text = self.run_ok("evaluate", self.runs, "--samples", 50)
        self.assertRegex(text, r"(?m)^k +cross-entropy +error +accuracy$")
        self.assertRegex(text, r"(?m)^letters +cross-entropy +error +accuracy$")
        found = self.run_json("evaluate", self.model, "--samples", 50, "--axis", "k=0..2",
                              "--axis", "k-unseen=1")
        tests = found["models"][0]["tests"]
        self.assertEqual([(test.get("k"), test.get("k-unseen")) for test in tests],
                         [(0, None), (1, None), (2, None), (None, 1)])
        self.assertNotIn("1.0", json.dumps([test.get("k") for test in tests]))
        self.assertEqual(len(found["summary"][0]["tests"]), 4)
        together = self.run_json("evaluate", self.model, "--samples", 50, "--axis",
                                 "k=0..2;k-unseen=1")
        self.assertEqual(together, found)
        self.run_error(2, "evaluate", self.model, "--axis", "k=4", message=["k = 4", "0 to 3"])
        self.run_error(2, "evaluate", self.model, "--axis", "k=1", "--axis", "k=2",
                       message="axis 'k' is given twice")
        self.run_error(4, "evaluate", self.model, "--scales", 1,
                       message="one of its own: k, k-unseen, letters")

    def test_page(self):
        self.run_ok("report", self.runs, "-o", "page.html")
        page = (self.folder / "page.html").read_text()
        for part in ["on samples of length 12.", "share of wrong classes against number of hops k",
                     "cross-entropy on a logarithmic axis against epoch", ">Test error</h2>"]:
            self.assertIn(part, page)
        for part in ["values in", "squared error", "larger numbers"]:
            self.assertNotIn(part, page)
        ids = re.findall(r'\bid="([^"]+)"', page)
        self.assertEqual(len(ids), len(set(ids)))


class Points(CliCase):
    """Functions in context: points of ones and zeros, each with its label."""

    def test_points_in_and_labels_out(self):
        self.run_ok("train", "--task", "in-context-conjunction", "--task-set", "d=3", "--length", 4,
                    "--width", 8, "--mlp-width", 8, "--depth", 1, "--samples", 64, "--batch", 32,
                    "--validation-samples", 32, "--test-samples", 32, "--epochs", 1, "--out", "runs")
        model = "runs/positional-seed0"
        line = "101 1, 011 0, 001 0, 110 ?"
        self.assertRegex(self.run_ok("predict", model, stdin=line.encode()),
                         r"^101 1, 011 0, 001 0, 110 \? -> [01]{4}\n$")
        row = "1,-1,1,1,0,0,-1,1,1,-1,0,0,-1,-1,1,-1,0,0,1,1,-1,0,0,0"
        self.assertEqual(self.run_ok("predict", model, "--format", "csv", stdin=line.encode()),
                         self.run_ok("predict", model, stdin=row.encode()))
        names = self.run_json("inspect", model, "--input", line)["attention"]["names"]
        self.assertEqual(names, ["101", "1", "011", "0", "001", "0", "110", "?"])
        for wrong, parts in [
                ("101 1, 011 0, 110 ?", ["3 points", "4, as in training"]),
                ("101 1, 011 0, 001 0, 11 ?", ["the point ' 11 ?'", "points of 3 digits"]),
                ("101 1, 011 ?, 001 0, 110 ?", ["the point ' 011 ?'", "? for the last"])]:
            self.run_error(4, "predict", model, stdin=wrong.encode(), message=parts)


if __name__ == "__main__":
    unittest.main()
