"""`posattn playground`, and the playground that `posattn report` links: what is put into the page, what is
refused, and that the page of the tree shows what it was given."""

import base64
import json
import os
import re
import shutil
import subprocess
import unittest

from browser import browser
from support import PROGRAM, ROOT, CliCase, tiny, trained_runs

PLACE = '<script type="application/json" id="given">null</script>'
PAGE = f"<title>page</title>{PLACE}<p>end</p>"
REAL_PAGE = ROOT / "docs" / "playground" / "index.html"
HOSTILE = """# </script><script>document.title = "broken"</script> <!-- é
program mine
word x : real = input
receive y = x from i - 1
x = x + y
output x
"""


def given(page):
    return json.loads(re.search(r'id="given">(.*?)</script>', page, re.S)[1])


class Playground(CliCase):
    def setUp(self):
        super().setUp()
        (self.folder / "base.html").write_text(PAGE)
        self.runs = trained_runs()

    def fill(self, *arguments):
        self.run_ok("playground", "--page", "base.html", *arguments, "-o", "page.html")
        page = (self.folder / "page.html").read_text()
        self.assertTrue(page.startswith("<title>page</title>") and page.endswith("<p>end</p>"))
        return given(page)

    def test_models_and_program(self):
        (self.folder / "mine.par").write_text(HOSTILE)
        first = self.runs / "positional-seed0"
        content = self.fill("--model", first, "--model", self.runs / "standard-seed0" / "model.safetensors",
                            "--program", "mine.par", "--length", 5)
        self.assertEqual([model["name"] for model in content["models"]],
                         ["positional-seed0", "standard-seed0"])
        self.assertEqual(base64.b64decode(content["models"][0]["bytes"]),
                         (first / "model.safetensors").read_bytes())
        self.assertEqual(content["program"],
                         {"name": "mine", "text": HOSTILE, "n": 5, "parameters": ""})
        # Nothing of the text is markup.
        self.assertEqual((self.folder / "page.html").read_text().count("<"), PAGE.count("<"))

    def test_program_of_the_library(self):
        content = self.fill("--program", "k-hop", "--set", "K=3,q=2")
        self.assertEqual(content["models"], [])
        self.assertEqual(content["program"]["parameters"], "K=3,q=2")
        self.assertEqual(self.fill(), {"models": []})

    def test_json_and_standard_output(self):
        result = self.run_json("playground", "--page", "base.html", "--model",
                               self.runs / "positional-seed0", "-o", "page.html")
        page = (self.folder / "page.html").read_bytes()
        self.assertEqual(result["bytes"], len(page))
        self.assertEqual(result["program"], None)
        self.assertEqual(len(result["models"]), 1)
        out = self.run_ok("playground", "--page", "base.html", "--model",
                          self.runs / "positional-seed0", "-o", "-")
        self.assertEqual(out.encode(), page)
        self.run_error(2, "playground", "--page", "base.html", "--json", "-o", "-", message="--json")

    def test_refused(self):
        def refused(code, *arguments, message):
            self.run_error(code, "playground", "--page", "base.html", *arguments, message=message)

        model = self.runs / "positional-seed0"
        self.run_ok("train", *tiny(architecture="positional", task="sort"), "--out", "sort")
        self.run_ok("train", "--task", "k-hop", "--length", 6, "--samples", 20, "--batch", 10,
                    "--epochs", 1, "--depth", 1, "--out", "letters", "--architecture", "positional")
        (self.folder / "broken.par").write_text("program p\nword x : real = input\nx = y\noutput x\n")
        (self.folder / "no.safetensors").write_text("no model at all")
        refused(2, "--model", model, "--model", model, "--model", model, message="3 models")
        refused(4, "--model", self.runs, message=["holds 4 models", "one model"])
        refused(4, "--model", "none", message="no such file or folder")
        refused(4, "--model", "no.safetensors", message="no.safetensors")
        refused(4, "--model", model, "--model", "sort", message=["cumulative-sum", "sort", "one task"])
        refused(4, "--model", "letters", message=["tokens", "a model of numbers"])
        refused(3, "--program", "broken.par", message="broken.par:3")
        refused(2, "--program", "sort", "--length", 65, message="at most 64")
        refused(2, "--length", 5, message="--program")
        refused(2, "--set", "K=3", message="--program")
        self.assertFalse((self.folder / "playground.html").exists())

    def test_pages_that_are_none(self):
        for text in ["", "<html></html>", PAGE + PAGE]:
            (self.folder / "other.html").write_text(text)
            self.run_error(4, "playground", "--page", "other.html",
                           message=["other.html", "scripts/playground_page"])
        self.run_error(4, "playground", "--page", "none.html", message="none.html")
        self.run_error(1, "playground", "--page", "base.html", "-o", "none/page.html", message="none/page")

    def test_the_page_of_the_tree_and_of_an_installation(self):
        self.run_ok("playground", "--program", "sort", "-o", "tree.html")
        self.assertEqual(given((self.folder / "tree.html").read_text())["program"]["name"], "sort")
        self.run_ok("playground", "--page", REAL_PAGE, "--program", "sort", "-o", "named.html")
        self.assertEqual((self.folder / "tree.html").read_bytes(), (self.folder / "named.html").read_bytes())
        for folder in ["bin", "share/posattn"]:
            (self.folder / folder).mkdir(parents=True)
        installed = shutil.copy(PROGRAM, self.folder / "bin" / "posattn")
        (self.folder / "share/posattn/playground.html").write_text(PAGE)
        subprocess.run([installed, "playground", "-o", "page.html"], cwd=self.folder, capture_output=True, check=True)
        self.assertEqual(given((self.folder / "page.html").read_text()), {"models": []})

    def test_without_the_page(self):
        alone = self.folder / "posattn"
        shutil.copy(PROGRAM, alone)
        for arguments in [["playground"], ["report", self.runs, "-o", "page.html", "--playground"]]:
            result = subprocess.run([alone, *arguments], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(result.returncode, 4, result.stderr)
            for part in ["no playground page", "docs/playground/index.html", "share/posattn", "--page"]:
                self.assertIn(part, " ".join(result.stderr.split()))
        self.assertEqual(sorted(os.listdir(self.folder)), ["base.html", "posattn"])
        # Where nobody asked for it there is no link, and no error.
        shutil.copytree(self.runs, self.folder / "runs")
        subprocess.run([alone, "report", "runs"], cwd=self.folder, capture_output=True, check=True)
        self.assertNotIn("playground", (self.folder / "runs" / "report.html").read_text())


class ReportLink(CliCase):
    def test_one_file_unless_asked(self):
        self.run_ok("report", trained_runs(), "-o", "page.html")
        self.assertEqual(os.listdir(self.folder), ["page.html"])
        self.assertNotIn("playground", (self.folder / "page.html").read_text())
        self.run_error(2, "report", trained_runs(), "--playground", "-o", "-", message="--playground")
        self.run_error(2, "report", "--results", ".", "--playground", message="--results")

    def test_link(self):
        result = self.run_json("report", trained_runs(), "-o", "a b%.html", "--playground")
        self.assertEqual(result["playground"], "a b%-playground.html")
        self.assertIn('href="./a%20b%25-playground.html"', (self.folder / "a b%.html").read_text())
        content = given((self.folder / "a b%-playground.html").read_text())
        self.assertEqual([model["name"] for model in content["models"]],
                         ["positional-seed0", "standard-seed0"])
        # Models that the page cannot play: refused where it was asked for.
        self.run_ok("train", "--task", "k-hop", "--length", 6, "--samples", 20, "--batch", 10,
                    "--epochs", 1, "--depth", 1, "--out", "letters", "--architecture", "positional")
        self.run_error(4, "report", "letters", "-o", "page.html", "--playground", message="tokens")
        self.run_ok("report", "letters")
        self.assertNotIn("playground", (self.folder / "letters" / "report.html").read_text())


class InABrowser(CliCase):
    def wait(self, page, expression):
        for _ in range(300):
            if page.evaluate(expression):
                return
            page.evaluate("new Promise((done) => setTimeout(done, 100))")
        self.fail(f"{expression}: {page.evaluate('document.body.innerText')}")

    def test_the_page_shows_what_it_was_given(self):
        (self.folder / "mine.par").write_text(HOSTILE, encoding="utf-8")
        self.run_ok("train", *tiny(architecture="positional,standard", width=24, depth=2), "--out", "runs")
        self.run_ok("playground", "--model", "runs/positional-seed0", "--model", "runs/standard-seed0",
                    "--program", "mine.par", "-o", "page.html")
        with browser() as page:
            page.open(self.folder / "page.html")
            for place, name in [("first", "positional"), ("second", "standard")]:
                self.wait(page, f"document.querySelector('#model-{place} h2')?.textContent === "
                                f"'Attention of {name} ({name}-seed0)'")
            self.wait(page, "document.querySelector('#summary').textContent.startsWith('At c = 1 positional')")
            for field, value in [("task", "cumulative-sum"), ("width", "24"), ("depth", "2"), ("lr", "")]:
                self.assertEqual(page.evaluate(f"document.getElementById('{field}').value"), value)
            self.assertIn("width 24, 2 layers", page.evaluate("document.querySelector('#model-first .hint').textContent"))
            page.evaluate("document.getElementById('tab-algorithms').click()")
            self.wait(page, "document.getElementById('failure').textContent.startsWith('✓')")
            self.assertEqual(page.evaluate("document.getElementById('source').value"), HOSTILE)
            self.assertNotEqual(page.evaluate("document.title"), "broken")
            self.assertEqual(page.problems, [])
            # The page, and what it made itself; nothing of the network.
            self.assertTrue(all(url.startswith(("file:", "blob:", "data:")) for url in page.requests))


if __name__ == "__main__":
    unittest.main()
