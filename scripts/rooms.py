#!/usr/bin/env python3
"""The rooms under src/posattn/ and who includes whom.

    scripts/rooms.py --check   fails when an include goes against the order of rooms, or when the
                               graph in docs/architecture.md is not the one of the sources
    scripts/rooms.py --write   draws the graph into docs/architecture.md

The order is that of the table "Rooms" in docs/architecture.md: a room may include itself and the
rooms above it. Tests lie beside the code and keep the same order.
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
    table = DOCUMENT.read_text().split("## Rooms", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)/`", table, re.MULTILINE)


def edges():
    """{(room, included room): [files]} of all sources."""
    found = {}
    for path in sorted((ROOT / "src" / "posattn").rglob("*")):
        if path.suffix not in {".h", ".cc", ".cu", ".cuh"}:
            continue
        room = path.relative_to(ROOT / "src" / "posattn").parts[0]
        if path.parent.name == "posattn":
            continue  # the interface: it stands outside the rooms
        for other in INCLUDE.findall(path.read_text()):
            if other != room:
                found.setdefault((room, other), []).append(str(path.relative_to(ROOT)))
    return found


def drawn(graph, order):
    """Mermaid text of the edges that no longer path implies: the whole order is still in it."""
    uses = {room: {b for a, b in graph if a == room} for room in order}

    def reaches(start, goal):
        return any(step == goal or reaches(step, goal) for step in uses[start])

    lines = ["```mermaid", "flowchart LR"]
    for room in order:
        for other in order:
            if other in uses[room] and not any(
                reaches(step, other) for step in uses[room] if step != other
            ):
                lines.append(f"  {other} --> {room}")
    return "\n".join(lines + ["```"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()

    order, graph = documented_order(), edges()
    place = {room: i for i, room in enumerate(order)}
    wrong = []
    for (room, other), files in sorted(graph.items()):
        if room not in place or other not in place:
            missing = room if room not in place else other
            wrong.append(f"{files[0]}: room '{missing}' is not in the table of {DOCUMENT.name}")
        elif place[other] > place[room]:
            wrong += [f"{file}: includes {other}/, which comes after {room}/" for file in files]
    if wrong:
        print("error: includes against the order of rooms\n  " + "\n  ".join(wrong), file=sys.stderr)
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
        print(f"{len(graph)} edges between {len(order)} rooms, all in order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
