#!/usr/bin/env python3
"""Runs notebooks without a browser, and makes pages of them.

    scripts/notebooks.py examples/notebooks/*.ipynb              run each; fail where a cell fails
    scripts/notebooks.py --pages docs/notebooks FILES...         also write NAME.md and its pictures

A cell is run as Jupyter does: in one namespace, with the value of its last expression shown. Times
differ between runs, so a line of output that has one is better left out of a notebook.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile


class CellError(Exception):
    pass


def run_cell(source, namespace, where):
    """(text that was printed, value of the last expression)."""
    tree = ast.parse(source, where)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)
    printed, value = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, where, "exec"), namespace)
            if last is not None:
                value = eval(compile(last, where, "eval"), namespace)
    except Exception as error:
        raise CellError(f"{where}: {type(error).__name__}: {error}") from error
    return printed.getvalue(), value


def picture_of(value):
    draw = getattr(value, "_repr_svg_", None)
    return draw() if draw is not None else None


def page_of(path, pictures):
    """The notebook as Markdown; pictures go to the folder `pictures`, or nowhere."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    namespace, parts, drawn = {"__name__": "__main__"}, [], 0
    for number, cell in enumerate(notebook["cells"], 1):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        printed, value = run_cell(source, namespace, f"{path.name}, cell {number}")
        picture = picture_of(value)
        if value is not None and picture is None:
            printed += repr(value) + "\n"
        if printed:
            parts.append(f"```\n{printed.rstrip()}\n```")
        if picture is not None:
            drawn += 1
            name = f"{path.stem}-{drawn}.svg"
            parts.append(f"![what the cell shows]({name})")
            if pictures is not None:
                (pictures / name).write_text(picture, encoding="utf-8")
    place = f"examples/notebooks/{path.name}"
    parts.append(f"*Made from [{place}](../../{place}) by `scripts/notebooks.py`.*")
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="+", type=pathlib.Path, metavar="FILE.ipynb")
    parser.add_argument("--pages", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    pages = options.pages.resolve() if options.pages else None
    if pages:
        pages.mkdir(parents=True, exist_ok=True)
    for path in [path.resolve() for path in options.notebooks]:
        with tempfile.TemporaryDirectory(prefix="posattn-notebook-") as folder:
            os.chdir(folder)  # what a notebook writes is not kept
            try:
                page = page_of(path, pages)
            except CellError as error:
                sys.exit(f"notebooks.py: {error}")
            finally:
                os.chdir("/")
        if pages is not None:
            (pages / f"{path.stem}.md").write_text(page, encoding="utf-8")
        print(f"{path.name}: every cell ran")


if __name__ == "__main__":
    main()
