#!/usr/bin/env python3
"""The modules under src/posattn/ and which includes which.

    scripts/rooms.py --check   fails when an include goes against the order of modules, or when the
                               graph in docs/architecture.md is not the one of the sources
    scripts/rooms.py --write   draws the graph into docs/architecture.md

The order is that of the table "Modules" in docs/architecture.md: a module may include itself and
the modules above it. Tests are in the same folders and keep the same order.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- include graph: scripts/rooms.py --write -->", "<!-- end of include graph -->"
INCLUDE = re.compile(r'^\s*#\s*include\s+"posattn/(\w+)/', re.MULTILINE)


def documented_order():
    table = DOCUMENT.read_text().split("## Modules", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)/`", table, re.MULTILINE)


def edges():
    """{(module, included module): [files]} of all sources."""
    found = {}
    for path in sorted((ROOT / "src" / "posattn").rglob("*")):
        if path.suffix not in {".h", ".cc", ".cu", ".cuh"}:
            continue
        module = path.relative_to(ROOT / "src" / "posattn").parts[0]
        if path.parent.name == "posattn":
            continue  # the interface: it stands outside the modules
        for other in INCLUDE.findall(path.read_text()):
            if other != module:
                found.setdefault((module, other), []).append(str(path.relative_to(ROOT)))
    return found


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

    order, graph = documented_order(), edges()
    place = {module: i for i, module in enumerate(order)}
    wrong = []
    for (module, other), files in sorted(graph.items()):
        if module not in place or other not in place:
            missing = module if module not in place else other
            wrong.append(f"{files[0]}: module '{missing}' is not in the table of {DOCUMENT.name}")
        elif place[other] > place[module]:
            wrong += [f"{file}: includes {other}/, which comes after {module}/" for file in files]
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
              "  HINT: scripts/rooms.py --write", file=sys.stderr)
        return 1
    if options.check:
        print(f"{len(graph)} edges between {len(order)} modules, all in order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
