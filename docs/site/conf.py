"""Sphinx makes the site with this (scripts/site); its pages come from scripts/site_pages.py."""

import pathlib
import re

from docutils import nodes
from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Text

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "posattn"
release = re.search(r"project\(posattn VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
html_title = f"posattn {release}"
extensions = ["myst_parser", "sphinx.ext.graphviz"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_dmath_allow_space = False
graphviz_output_format = "svg"
highlight_language = "none"
smartquotes = False
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
# Debian keeps these outside of its packages of Python.
html_static_path = ["static", "/usr/share/javascript/katex", "/usr/share/javascript/normalize.css/normalize.css"]
exclude_patterns = ["contrib", "katex.js", "katex.mjs", "katex.css", "**.ttf", "**.woff"]
html_css_files = ["site.css"]
html_math_renderer = "katex"
pygments_style = "default"
pygments_dark_style = "monokai"


class ProgramLexer(RegexLexer):
    """Parallel programs (.par)."""

    tokens = {"root": [
        (r"#.*", Comment),
        (r"(program|task|processors|parameter|word|let|table|edges|for|in|if|elif|else|from|receive|send|permute|"
         r"to|sum|of|over|where|output|procedure|and|or|not|xor|input|nothing|assert|below|above|up|down|on|within)\b",
         Keyword),
        (r"(real|int|bit)\b", Keyword.Type),
        (r"\d+(\.\d+)?(e[+-]?\d+)?", Number),
        (r"[A-Za-z_]\w*", Name),
        (r"[-+*/%=<>!]+", Operator),
        (r"\s+|.", Text),
    ]}


def formula(open_with, close_with):
    """KaTeX draws what stands between its marks, in the page (static/formulas.js)."""
    def visit(self, node):
        self.body.append(self.starttag(node, "span", "", CLASS="math"))
        self.body.append(open_with + self.encode(node.astext()) + close_with + "</span>")
        raise nodes.SkipNode
    return visit, None


def with_formulas(app, _page, _template, _context, tree):
    if tree is not None and (tree.next_node(nodes.math) or tree.next_node(nodes.math_block)):
        app.add_css_file("katex.min.css")
        app.add_js_file("katex.min.js")
        app.add_js_file("formulas.js")


def setup(app):
    app.add_lexer("par", ProgramLexer)
    app.add_html_math_renderer("katex", formula(r"\(", r"\)"), formula(r"\[", r"\]"))
    app.connect("html-page-context", with_formulas)
