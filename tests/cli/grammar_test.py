"""docs/site/grammar.ebnf takes every program of the library and of docs/, and refuses what is none."""

import re
import unittest

from support import ROOT

KEYWORDS = set("program task processors word let table edges for in if elif else from receive sum of over where output "
               "procedure and or not xor input nothing real int bit".split())
PART = re.compile(r'"([^"]+)"|([A-Z]+)|([a-z]+)|([][{}()|])')
TOKEN = re.compile(r"[A-Za-z_]\w*|\d+\.(?!\.)\d*(?:e[+-]?\d+)?|\.?\d+(?:e[+-]?\d+)?|\.\.\.|\.\.|[=!<>+-]=|[-=<>+*/%(),:[\]]")


def read_grammar(text):
    """{name: alternatives}; alternatives are lists of (kind, what)."""
    def alternatives(parts):
        found = [[]]
        while parts and parts[0][3] not in ("]", "}", ")"):
            literal, token, rule, sign = parts.pop(0)
            if sign == "|":
                found.append([])
            elif sign:
                found[-1].append((sign, alternatives(parts)))
                parts.pop(0)
            else:
                found[-1].append(("literal", literal) if literal else ("token", token) if token else ("rule", rule))
        return found
    text = re.sub(r"^#.*", "", text, flags=re.M)
    return {name: alternatives(PART.findall(body)) for name, body in re.findall(r"(\w+)\s+= (.*?) ;$", text, re.M | re.S)}


def tokens(text):
    """(kind, text, touches the one before) with lines and blocks."""
    found, blocks, depth = [], [0], 0
    for line in text.splitlines():
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        if depth == 0:
            indent = len(line) - len(line.lstrip())
            if indent > blocks[-1]:
                blocks.append(indent)
                found.append(("INDENT", "", False))
            while indent < blocks[-1]:
                blocks.pop()
                found.append(("DEDENT", "", False))
        end = None
        for token in TOKEN.finditer(line):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token[0], 0)
            kind = "NAME" if re.match(r"[A-Za-z_]", token[0]) else "NUMBER" if re.match(r"\.?\d", token[0]) else ""
            found.append((kind, token[0], token.start() == end))
            end = token.end()
        if depth == 0:
            found.append(("NEWLINE", "", False))
    return found + [("DEDENT", "", False)] * (len(blocks) - 1)


class Recogniser:
    def __init__(self, grammar, text):
        self.grammar, self.tokens = grammar, tokens(text)

    def takes_all(self):
        return self.first(self.grammar["file"], 0) == len(self.tokens)

    def first(self, alternatives, at):
        """Where the first alternative that fits ends, or None."""
        for parts in alternatives:
            end = at
            for part in parts:
                end = self.part(*part, end)
                if end is None:
                    break
            else:
                return end
        return None

    def part(self, kind, what, at):
        if kind == "rule":
            return self.first(self.grammar[what], at)
        if kind in "[(":
            end = self.first(what, at)
            return at if end is None and kind == "[" else end
        if kind == "{":
            while (end := self.first(what, at)) is not None:
                at = end
            return at
        if at == len(self.tokens):
            return None
        if what == "HYPHENATED":
            return self.hyphenated(at)
        token, text, _ = self.tokens[at]
        fits = text == what if kind == "literal" else token == what and not (token == "NAME" and text in KEYWORDS)
        return at + 1 if fits else None

    def hyphenated(self, at):
        if self.tokens[at][0] != "NAME":
            return None
        at += 1
        while self.tokens[at][1:] == ("-", True) and self.tokens[at + 1][0] and self.tokens[at + 1][2]:
            at += 2
        return at


class Grammar(unittest.TestCase):
    def setUp(self):
        self.grammar = read_grammar((ROOT / "docs/site/grammar.ebnf").read_text())

    def takes(self, text):
        return Recogniser(self.grammar, text).takes_all()

    def test_every_rule_is_used(self):
        used = set(re.findall(r"\('rule', '(\w+)'\)", str(self.grammar)))
        self.assertEqual(used | {"file"}, set(self.grammar))

    def test_programs(self):
        for file in sorted((ROOT / "programs").glob("*.par")):
            self.assertTrue(self.takes(file.read_text()), file.name)
        for page in sorted((ROOT / "docs").glob("*.md")):
            for text in re.findall(r"^```par\n(.*?)^```", page.read_text(), re.M | re.S):
                self.assertTrue(self.takes(text), text)

    def test_what_is_no_program(self):
        for text in ["word x\n", "word x : real = \n", "receive y = x\n", "x = (1\n", "for k in 1, ... below n:\n  x = 1\n",
                     "if n > 1:\nx = 1\n", "x = 1 < 2 < 3\n", "word sum : real\n", "output x\nprogram late\n",
                     "send y = x from i\n", "x + 1\n"]:
            self.assertFalse(self.takes(text), text)


if __name__ == "__main__":
    unittest.main()
