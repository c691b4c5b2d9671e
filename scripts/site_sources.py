"""Pages of the site that are made of sources (scripts/site_pages.py)."""

import ast
import inspect
import re

MODULES = {"training": "Training", "model": "Models", "programs": "Programs", "words": "Algorithms as Python functions",
           "tasks": "Tasks", "experiments": "Experiments", "bounds": "Bounds", "drawing": "Pictures",
           "settings": "Settings", "errors": "Errors", "torch": "PyTorch", "__init__": "Architectures"}


def contents(names):
    return "\n```{toctree}\n:maxdepth: 1\n\n" + "".join(f"{name}\n" for name in names) + "```\n"


def graph(found):
    """Mermaid's arrows as a directive of Graphviz."""
    arrows = re.findall(r"^ *(\S+) --> (\S+)$", found[1], re.M)
    lines = "".join(f"  {a} -> {b};\n" for a, b in arrows)
    return "```{graphviz}\ndigraph {\n  rankdir=LR; node [shape=box, style=filled, " \
        "fillcolor=white];\n" + lines + "}\n```"


def fenced(text, language):
    return f"```{language}\n{text.rstrip()}\n```\n"


def escaped(text):
    return re.sub(r"([\\*_<>\[\]{}#|$~])", r"\\\1", text)


def prose(text):
    """A docstring or a comment as Markdown: paragraphs, code in `marks`, examples and indented code."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        first = paragraph.lstrip()
        if first.startswith(">>>"):
            parts.append(fenced(inspect.cleandoc(paragraph), "pycon"))
            continue
        lines = paragraph.splitlines()
        while lines:
            is_code = lines[0].startswith("  ")
            taken = 0
            while taken < len(lines) and lines[taken].startswith("  ") == is_code:
                taken += 1
            block, lines = "\n".join(lines[:taken]), lines[taken:]
            parts.append(fenced(inspect.cleandoc(block), "cpp" if "::" in block else "text") if is_code else
                         "".join(piece if piece.startswith("`") else escaped(piece)
                                 for piece in re.split(r"(`[^`\n]+`)", block)))
    return "\n\n".join(parts) + "\n"


# Python: what is called and with what types from the stubs, what it does from the sources.

def members(tree):
    return {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}


def signature(node):
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^self(, )?", "", arguments)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({arguments}){returns}"


def is_property(node):
    return any(ast.unparse(decorator) == "property" for decorator in node.decorator_list)


def documented(kind, name, body, depth, options=""):
    fence = "`" * depth
    return f"{fence}{{py:{kind}}} {name}\n{options}\n{body}\n{fence}\n\n"


def class_page(name, stub, source):
    body = prose(ast.get_docstring(source) or "")
    described = members(source)
    made = next((node for node in stub.body if getattr(node, "name", "") == "__init__"), None)
    seen = set()
    for node in stub.body:
        if isinstance(node, ast.AnnAssign):
            body += documented("attribute", node.target.id, "", 4, f":type: {ast.unparse(node.annotation)}\n")
        elif isinstance(node, ast.FunctionDef) and node.name not in seen and node.name in described:
            text = ast.get_docstring(described[node.name])
            if not text:
                continue
            seen.add(node.name)
            if is_property(node):
                kind, call, options = "property", node.name, f":type: {ast.unparse(node.returns)}\n"
            else:
                kind, call, options = "method", node.name + signature(node), ""
            body += documented(kind, call, prose(text), 4, options)
    return documented("class", name + (signature(made).split(" -> ")[0] if made else ""), body, 5)


def python_pages(root):
    package = root / "python" / "posattn"
    stubs = members(ast.parse((package / "__init__.pyi").read_text()))
    torch_stubs = members(ast.parse((package / "torch.pyi").read_text()))
    for module, title in MODULES.items():
        source = ast.parse((package / f"{module}.py").read_text())
        page, found = f"# {title}\n\n", members(source)
        if module != "__init__":
            page += prose(ast.get_docstring(source) or "") + "\n"
        known, prefix = (torch_stubs, "posattn.torch") if module == "torch" else (stubs, "posattn")
        page += f"```{{py:currentmodule}} {prefix}\n```\n\n"
        for name, stub in known.items():
            # settings.describe is called posattn.settings
            node = found.get("describe" if name == module == "settings" else name)
            if isinstance(node, ast.ClassDef):
                page += class_page(name, stub, node)
            elif node is not None:
                page += documented("function", name + signature(stub), prose(ast.get_docstring(node) or ""), 5)
        yield f"api/{'architectures' if module == '__init__' else module}.md", page
    names = ("architectures" if module == "__init__" else module for module in MODULES)
    yield "api/index.md", "# Python API\n\nThe guide is [Python](../python.md). These pages are made of the sources: " \
        "types from the stubs, text from the docstrings.\n" + contents(names)


# C++: the installed headers, with what they include.

def header(path):
    """(the comment at its top as Markdown, the text below it)."""
    text = path.read_text()
    comment = re.match(r"(?://.*\n)*", text)[0]
    lines = [re.sub(r"^// ?", "", line) for line in comment.splitlines()
             if "One of the installed headers" not in line and not line.endswith("what they name is meant to stay.")]
    return prose("\n".join(lines)), text[len(comment):].replace("#pragma once\n", "").strip()


def cpp_pages(root):
    listed = re.search(r"POSATTN_PUBLIC_HEADERS ([^)]*)\)", (root / "cmake/Install.cmake").read_text())[1].split()
    for name in listed:
        comment, text = header(root / "src/posattn" / name)
        page = f"# posattn/{name}\n\n{comment}\n"
        for inner in re.findall(r'^#include "(posattn/.*)"', text, re.M):
            comment, code = header(root / "src" / inner)
            page += f"## {inner}\n\n{comment}\n{fenced(code, 'cpp')}\n"
        yield f"cpp/{name[:-2]}.md", page
    page = "# Examples in C++\n\nA project that uses the installed library. `./check` builds and runs it.\n\n"
    for file in sorted((root / "examples/cmake_project").iterdir()):
        language = "cmake" if file.suffix == ".txt" else "cpp"
        page += f"## {file.name}\n\n{fenced(file.read_text(), language)}\n"
    yield "cpp/examples.md", page
    yield "cpp/index.md", "# C++ headers\n\nThese headers are installed. How to use them from a project of your own: " \
        "[embed posattn in C++](../embed.md).\n" + contents([*(name[:-2] for name in listed), "examples"])


def language_pages(root):
    text = (root / "docs/site/grammar.ebnf").read_text()
    comment = re.match(r"(?:#.*\n)*", text)[0]
    yield "grammar.md", "# Grammar of the language\n\n" + re.sub("^# ?", "", comment, flags=re.M) + \
        "\n" + fenced(text[len(comment):].strip(), "ebnf")
    page = "# Programs of the library\n\n`posattn programs --show NAME` prints them, `posattn compile NAME` makes weights " \
        "of them. The language: [writing parallel programs](language.md).\n\n"
    for file in sorted((root / "programs").glob("*.par")):
        page += f"## {file.stem}\n\n{fenced(file.read_text(), 'par')}\n"
    yield "library.md", page


def pages(root):
    """(place, text) of every page that is made."""
    yield from python_pages(root)
    yield from cpp_pages(root)
    yield from language_pages(root)
    yield "lab/index.md", "# Lab notebooks\n\nDated measurements, with machines, superseded figures and failed attempts.\n" + \
        contents(file.stem for file in sorted((root / "docs/lab").glob("*.md")))
