#!/usr/bin/env python3
"""Draws docs/images/speed.svg: times of posattn and of PyTorch, from the first table of docs/performance.md.

    scripts/speed_chart.py            # after new measurements
    scripts/speed_chart.py --check    # exit 1 if the drawing is another (part of ./check)
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from figure import PALE, PAPER, PLAIN, TEXT, WIDTH, colours, dark_style  # noqa: E402

PAGE = ROOT / "docs" / "performance.md"
CHART = ROOT / "docs" / "images" / "speed.svg"
PEER = "PyTorch 1.13.1"
LEFT, BAR, GAP, FULL = 128, 20, 14, 400  # pixels; FULL: of the longest bar


def measured():
    """[(what, architecture, milliseconds of posattn, of the peer's best setting)]"""
    table = PAGE.read_text().split("## Against PyTorch")[1].split("\n\n")[2]
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in table.splitlines()]
    found = {row[0]: [float(cell.removesuffix(" ms")) for cell in row[1:]] for row in rows if row[-1].endswith("ms")}
    names = [("inference" if "," in cell else "training step", cell.split(", ")[-1]) for cell in rows[0][1:]]
    return [(*name, ours, theirs) for name, ours, theirs in
            zip(names, found["posattn"], found["PyTorch, best setting"])]


def chart():
    rows = measured()
    longest = max(row[-1] for row in rows)
    pairs, body, y = set(), "", 40
    text = '<text x="{}" y="{}" text-anchor="{}" fill="#222222"{}>{}</text>\n'
    title = f"Time for a batch of 1000 samples: posattn and {PEER}"
    body += text.format(WIDTH // 2, 22, "middle", ' font-size="16"', title)
    for what, architecture, *times in rows:
        body += text.format(LEFT - 8, y + BAR - 3, "end", "", what)
        body += text.format(LEFT - 8, y + 2 * BAR - 6, "end", "", architecture)
        for name, time, shade in zip(("posattn", PEER), times, (PLAIN, PALE)):
            light, dark = colours(architecture, shade)
            pairs.add((light, dark))
            width = max(2, FULL * time / longest)
            body += f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 3}" fill="{light}"/>\n'
            body += text.format(f"{LEFT + width + 6:.1f}", y + BAR - 6, "start", "", f"{name}: {time:g} ms")
            y += BAR
        y += GAP
    body = f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>\n' + body
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
            f'font-family="sans-serif" font-size="{TEXT}" role="img">\n<title>{title}</title>\n'
            f"{dark_style(body, sorted([*PAPER.items(), *pairs]))}{body}</svg>\n")


def main():
    drawn = chart()
    if "--check" not in sys.argv[1:]:
        CHART.write_text(drawn)
    elif not CHART.exists() or drawn != CHART.read_text():
        sys.exit("error: docs/images/speed.svg is not that of docs/performance.md; run scripts/speed_chart.py")


if __name__ == "__main__":
    main()
