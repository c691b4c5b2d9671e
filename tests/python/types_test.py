"""The .pyi files say what the package has: every public name, method, parameter and default."""

import ast
import inspect
import pathlib
import unittest

import posattn
import posattn.torch


def parameters_of(function):
    """[(name, kind, default or None)] of a function in a .pyi file."""
    given = function.args
    positional = given.posonlyargs + given.args
    defaults = [None] * (len(positional) - len(given.defaults)) + given.defaults
    found = [(argument.arg, "plain", default) for argument, default in zip(positional, defaults)]
    if given.vararg:
        found.append((given.vararg.arg, "rest", None))
    found += [(argument.arg, "named", default)
              for argument, default in zip(given.kwonlyargs, given.kw_defaults)]
    if given.kwarg:
        found.append((given.kwarg.arg, "settings", None))
    return [(name, kind, None if default is None else repr(ast.literal_eval(default)))
            for name, kind, default in found]


def parameters_in(function):
    """The same of a function that exists."""
    kinds = {"POSITIONAL_OR_KEYWORD": "plain", "VAR_POSITIONAL": "rest", "KEYWORD_ONLY": "named",
             "VAR_KEYWORD": "settings", "POSITIONAL_ONLY": "plain"}
    return [(name, kinds[parameter.kind.name],
             None if parameter.default is inspect.Parameter.empty else repr(parameter.default))
            for name, parameter in inspect.signature(function).parameters.items()]


class Types(unittest.TestCase):
    def check(self, file, module, names):
        path = pathlib.Path(posattn.__file__).parent / file
        tree = ast.parse(path.read_text(encoding="utf-8"))
        defined = {node.name: node for node in tree.body
                   if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.assertEqual(set(defined), set(names))
        for name, node in defined.items():
            real = getattr(module, name)
            if isinstance(node, ast.FunctionDef):
                with self.subTest(name):
                    self.assertEqual(parameters_of(node), parameters_in(real))
            else:
                self.check_class(node, real)

    def check_class(self, node, real):
        methods = {}
        for part in node.body:
            if isinstance(part, ast.FunctionDef):
                methods.setdefault(part.name, part)
        for name, part in methods.items():
            with self.subTest(f"{node.name}.{name}"):
                there = inspect.getattr_static(real, name)
                is_property = any(isinstance(decorator, ast.Name) and decorator.id == "property"
                                  for decorator in part.decorator_list)
                self.assertEqual(isinstance(there, property), is_property)
                if not is_property:
                    self.assertEqual(parameters_of(part), parameters_in(getattr(real, name)))
        own = {name for name, value in vars(real).items()
               if not name.startswith("_") and (callable(value) or isinstance(value, property))}
        self.assertLessEqual(own, set(methods), node.name)

    def test_package(self):
        self.check("__init__.pyi", posattn, posattn.__all__)

    def test_torch(self):
        self.check("torch.pyi", posattn.torch, ["Module", "from_state_dict"])


if __name__ == "__main__":
    unittest.main()
