"""Pictures that notebooks show."""

import pathlib


class Svg(str):
    """The text of an SVG picture; a notebook shows the picture, `save` writes the file."""

    def _repr_svg_(self):
        return str(self)

    def save(self, path):
        pathlib.Path(path).write_text(self, encoding="utf-8")

    def __repr__(self):
        return f"<picture of {len(self)} bytes of SVG>"
