#!/usr/bin/env python3
"""Writes the pages that Sphinx makes the site of (scripts/site).

    scripts/site_pages.py FOLDER

They are copies of the Markdown files of the project with links that fit the site, docs/commands.md cut into
a page for each command, and pages made of sources: the Python package, the installed headers, the
examples in C++, the programs of the library and the grammar of their language.
"""

import os
import pathlib
import posixpath
import re
import shutil
import sys

import site_sources

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPOSITORY = os.environ.get("POSATTN_REPOSITORY", "").rstrip("/")
# What the file or folder of the project is on the site.
PAGES = {"README.md": "index.md", "docs/commands.md": "commands/index.md", "docs/lab": "lab/index.md",
         "docs/notebooks": "index.md", "docs/site/grammar.ebnf": "grammar.md",
         "models/README.md": "models.md", "programs": "library.md", "examples/cmake_project": "cpp/examples.md",
         "docs/playground/index.html": "playground/index.html"}  # scripts/site puts it there
CODE = re.compile(r"^(```+).*?^\1 *$|`[^`\n]+`", re.M | re.S)


def masked(text):
    """The text with a placeholder for each piece of code, and the pieces."""
    pieces = []

    def hide(found):
        pieces.append(found[0])
        return f"\0{len(pieces) - 1}\0"
    return CODE.sub(hide, text), pieces


def unmasked(text, pieces):
    return re.sub("\0(\\d+)\0", lambda found: pieces[int(found[1])], text)


def anchors(titles):
    """The names that the forge, and myst, give to headings."""
    names = []
    for title in titles:
        title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        name = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        names.append(next(n for n in [name, *(f"{name}-{k}" for k in range(1, 100))] if n not in names))
    return names


def place_of(path):
    """Where a file of the project is on the site, or None."""
    if path in PAGES:
        return PAGES[path]
    if not path.endswith(".md") or not (ROOT / path).is_file():
        return None
    if "/" not in path:
        return path.lower()
    return re.sub(r"^docs/(site/)?", "", path) if path.startswith("docs/") else None


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.command_anchors = {}

    def write(self, place, text):
        (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / place).write_text(text)

    def link(self, source, place, text, target):
        """A link of the page `source`, on its way to `place`."""
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path and source != "docs/commands.md":
            return f"{text}({target})"
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path)) if path else source
        if not (ROOT / path).exists():
            sys.exit(f"error: {source}: a link to {target}, which is not there")
        there = place_of(path)
        if path == "docs/commands.md":
            there, anchor = self.command_anchors.get(anchor, (there, anchor))
        if there is None and posixpath.splitext(path)[1] in {".svg", ".png", ".csv"}:
            there = f"files/{path}"
            (self.folder / there).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, self.folder / there)
        if there is None:
            return f"{text}({REPOSITORY}/tree/HEAD/{path})" if REPOSITORY else text[1:-1]
        there = posixpath.relpath(there, posixpath.dirname(place) or ".")
        if there.endswith(".html"):  # no page of Sphinx
            return f'<a href="{there}">{text[1:-1]}</a>'
        return f"{text}({there}{anchor and '#' + anchor})"

    def copy(self, source, place, text):
        """The page with links of the site and without what Sphinx does not draw."""
        text = re.sub(r"^```mermaid\n(.*?)^```", site_sources.graph, text, flags=re.M | re.S)
        text, pieces = masked(text)
        text = re.sub(r"(!?\[[^\[\]]*\])\(([^)\s]+)\)",
                      lambda found: self.link(source, place, found[1], found[2]), text)
        self.write(place, unmasked(text, pieces))

    def commands(self):
        """docs/commands.md: sections that are named as a command are pages of their own."""
        text, pieces = masked((ROOT / "docs/commands.md").read_text())
        parts = re.split(r"^(?=## )", text, flags=re.M)
        titles = [[unmasked(title, pieces).replace("`", "") for title in re.findall(r"^#+ (.*)", part, re.M)]
                  for part in parts]
        pages = {"commands/index.md": []}
        names = iter(anchors([title for part in titles for title in part]))
        for part, headings in zip(parts, titles):
            own_page = part.startswith("## ") and re.fullmatch(r"[a-z][a-z-]*", headings[0])
            place = f"commands/{headings[0]}.md" if own_page else "commands/index.md"
            page = pages.setdefault(place, [])
            if own_page:
                part = re.sub(r"^#(#+ )", r"\1", part, flags=re.M)
            before = [title for _, more in page for title in more]
            here = anchors(before + headings)[len(before):]
            page.append((part, headings))
            for name in here:
                self.command_anchors[next(names)] = (place, name)
        self.command_pages = {place: unmasked("".join(part for part, _ in page), pieces)
                              for place, page in pages.items()}

    def make(self):
        self.commands()
        self.command_pages["commands/index.md"] += site_sources.contents(
            posixpath.basename(place)[:-3] for place in self.command_pages if not place.endswith("index.md"))
        for place, text in self.command_pages.items():
            self.copy("docs/commands.md", place, text)
        files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "models/README.md"]
        for path in sorted(str(file.relative_to(ROOT)) for file in files):
            if path not in {"README.md", "docs/commands.md"}:
                self.copy(path, place_of(path), (ROOT / path).read_text())
        for place, text in site_sources.pages(ROOT):
            self.write(place, text)


if __name__ == "__main__":
    Site(pathlib.Path(sys.argv[1])).make()
