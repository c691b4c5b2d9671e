"""Every relative link of a Markdown file leads to a file, and to a heading where it names one."""

import re
import unittest

from support import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"""\]\(([^)\s]+)\)|\b(?:src|srcset)="([^"]+)\"""")


def prose(text):
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S)


def anchors(text):
    """The names that GitHub gives to a page's headings."""
    names = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        names.add(next(n for n in [name, *(f"{name}-{k}" for k in range(1, 100))] if n not in names))
    return names


def broken(page):
    for link in ("".join(found) for found in LINK.findall(prose(page.read_text()))):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        there = page.parent / file if file else page
        if not there.exists():
            yield f"{link}: no such file"
        elif anchor and anchor not in anchors(there.read_text()):
            yield f"{link}: no such heading"


class Links(unittest.TestCase):
    def test_every_link(self):
        for page in PAGES:
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(list(broken(page)), [])

    def test_headings_have_names(self):
        page = "# One `two`\n## In tf32: [why](x.md)?\n## One two\n```\n# none\n```\n"
        self.assertEqual(anchors(page), {"one-two", "in-tf32-why", "one-two-1"})


if __name__ == "__main__":
    unittest.main()
