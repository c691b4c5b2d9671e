#!/usr/bin/env python3
"""The modules under src/posattn/ and which includes which.

    scripts/modules.py --check   fails when an include goes against the order of modules, or when the
                               graph in docs/architecture.md is not the one of the sources
    scripts/modules.py --write   draws the graph into docs/architecture.md

The order is that of the table "Modules" in docs/architecture.md: a module may include itself and
the modules above it. Where a row names sub-folders, their order is checked in the same way. The files
at the top of a module are its interface: they and its sub-folders may include each other. Folders no_*
hold stand-ins and are left out. Tests lie in the same folders. They keep the order of modules, and may
use every sub-folder of their own.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- include graph: scripts/modules.py --write -->", "<!-- end of include graph -->"
INCLUDE = re.compile(r'^\s*#\s*include\s+"posattn/(\w+)/(?:(\w+)/)?', re.MULTILINE)


def documented_order():
    """The modules in their order, and {module: its sub-folders in their order}."""
    table = DOCUMENT.read_text().split("## Modules", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `(\w+)/` \|(.*)", table, re.MULTILINE)
    return [module for module, _ in rows], {module: re.findall(r"`(\w+)/`", text) for module, text in rows}


def edges():
    """{(module, included module): [files]} of all sources, and {(module, folder, included folder): [files]}
    of their sub-folders."""
    found, inside = {}, {}
    for path in sorted((ROOT / "src" / "posattn").rglob("*")):
        if path.suffix not in {".h", ".cc", ".cu", ".cuh"}:
            continue
        module = path.relative_to(ROOT / "src" / "posattn").parts[0]
        if path.parent.name == "posattn":
            continue  # the interface: it stands outside the modules
        folder = path.parent.name if path.parent.parent.name == module else ""
        for other, other_folder in INCLUDE.findall(path.read_text()):
            name = str(path.relative_to(ROOT))
            if other != module:
                found.setdefault((module, other), []).append(name)
            elif folder and other_folder not in ("", folder) and not folder.startswith("no_") and "_test" not in name:
                inside.setdefault((module, folder, other_folder), []).append(name)
    return found, inside


def drawn(graph, order):
    """Mermaid text of the edges that no longer path implies: the whole order is still in it."""
    uses = {module: {b for a, b in graph if a == module} for module in order}

    def reaches(start, goal):
        return any(step == goal or reaches(step, goal) for step in uses[start])

    lines = ["```mermaid", "flowchart LR"]
    for module in order:
        for other in order:
            if other in uses[module] and not any(
                reaches(step, other) for step in uses[module] if step != other
            ):
                lines.append(f"  {other} --> {module}")
    return "\n".join(lines + ["```"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()

    (order, folders), (graph, inside) = documented_order(), edges()
    place = {module: i for i, module in enumerate(order)}
    wrong = []
    for (module, other), files in sorted(graph.items()):
        if module not in place or other not in place:
            missing = module if module not in place else other
            wrong.append(f"{files[0]}: module '{missing}' is not in the table of {DOCUMENT.name}")
        elif place[other] > place[module]:
            wrong += [f"{file}: includes {other}/, which comes after {module}/" for file in files]
    for (module, folder, other), files in sorted(inside.items()):
        known = folders.get(module, [])
        for missing in {folder, other} - set(known):
            wrong.append(f"{files[0]}: folder '{missing}' is not in the row of {module}/ in {DOCUMENT.name}")
        if {folder, other} <= set(known) and known.index(other) > known.index(folder):
            wrong += [f"{file}: includes {module}/{other}/, which comes after {module}/{folder}/" for file in files]
    if wrong:
        print("error: includes against the order of modules\n  " + "\n  ".join(wrong), file=sys.stderr)
        return 1

    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    current = f"{before}{BEGIN}\n{drawn(graph, order)}\n{END}{after}"
    if options.write:
        DOCUMENT.write_text(current)
    elif current != text:
        print(f"error: the graph in {DOCUMENT.name} is not the one of the sources\n"
              "  HINT: scripts/modules.py --write", file=sys.stderr)
        return 1
    if options.check:
        print(f"{len(graph)} edges between {len(order)} modules, all in order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
