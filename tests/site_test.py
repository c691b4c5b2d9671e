"""The site that scripts/site made: every link and picture leads somewhere, and the search finds what people look for.

    tests/site_test.py FOLDER
"""

import ast
import html.parser
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

SITE = pathlib.Path(sys.argv.pop() if len(sys.argv) > 1 else "build/site").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[1]
SEARCHES = {"threads": "embed.html", "resume": "resume.html", "tf32": "gpu.html", "scratch node": "glossary.html",
            "homogeneous": "why-it-holds.html", "trained models": "models.html", "tensorboard": "logging.html",
            "docker": "questions.html", "wandb": "questions.html", "related work": "cite.html", "preset": "glossary.html"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.names.add(values.get("id"))
        self.links += [values[key] for key in ("href", "src", "data") if values.get(key)]


class Site(unittest.TestCase):
    def test_links(self):
        pages = {path: Page(path.read_text()) for path in SITE.rglob("*.html")}
        self.assertGreater(len(pages), 80)
        for path, page in pages.items():
            for link in page.links:
                target = urllib.parse.urlsplit(link)
                if target.scheme:
                    continue
                there = (path.parent / urllib.parse.unquote(target.path)).resolve() if target.path else path
                with self.subTest(page=path.name, link=link):
                    self.assertTrue(there.is_file())
                    if target.fragment and there in pages:
                        self.assertIn(urllib.parse.unquote(target.fragment), pages[there].names)

    def test_every_name_of_the_python_package(self):
        names = ast.parse((ROOT / "python/posattn/__init__.py").read_text())
        names = next(ast.literal_eval(node.value) for node in names.body
                     if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        described = set().union(*(Page(path.read_text()).names for path in (SITE / "api").glob("*.html")))
        self.assertEqual([name for name in [*names, "torch.Module"] if f"posattn.{name}" not in described], [])

    def opened(self, address):
        """The page after its scripts; none of them may have failed."""
        with tempfile.TemporaryDirectory() as profile:
            done = subprocess.run(
                ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                 "--enable-logging=stderr", f"--user-data-dir={profile}", "--virtual-time-budget=8000", "--dump-dom",
                 f"{SITE.as_uri()}/{address}"], capture_output=True, text=True, timeout=120, check=True)
        self.assertNotRegex(done.stderr, "CONSOLE.*Uncaught")
        return done.stdout

    @unittest.skipUnless(shutil.which("chromium"), "chromium was not found")
    def test_search(self):
        for words, page in SEARCHES.items():
            with self.subTest(words=words):
                found = Page(self.opened(f"search.html?q={urllib.parse.quote_plus(words)}"))
                self.assertIn(page, [urllib.parse.urlsplit(link).path for link in found.links])

    @unittest.skipUnless(shutil.which("chromium"), "chromium was not found")
    def test_formulas(self):
        page = self.opened("why-it-holds.html")
        self.assertGreater(page.count('class="katex"'), 30)
        self.assertNotIn("katex-error", page)


if __name__ == "__main__":
    unittest.main()
