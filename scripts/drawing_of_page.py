#!/usr/bin/env python3
"""Cuts a drawing out of a page of `posattn report`, as an SVG file of its own.

    ./quickstart
    scripts/drawing_of_page.py quickstart-report/index.html scalesc >docs/images/quickstart-error.svg

Without a name it lists the drawings that the page has: scalesc_narrow is docs/images/quickstart-error-narrow.svg.
"""
import re
import sys


def drawings_of(page):
    """The <svg> elements that have a name, by it."""
    drawing = re.compile(r'<svg role="img" aria-labelledby="(\w+)_title .*?</svg>', re.S)
    return {match[1]: match[0] for match in drawing.finditer(page)}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as page:
        drawings = drawings_of(page.read())
    if len(sys.argv) == 2:
        print("\n".join(drawings))
    elif sys.argv[2] in drawings:
        print(drawings[sys.argv[2]])
    else:
        sys.exit(f"no drawing {sys.argv[2]} in {sys.argv[1]}; there are {', '.join(drawings)}")


if __name__ == "__main__":
    main()
