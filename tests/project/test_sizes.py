"""No module is longer than can be surveyed, no function longer than a screen, and none takes a row of arguments."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "rbal"
MODULE_LINES = 400
FUNCTION_LINES = 60  # without the docstring
POSITIONAL = 7  # arguments, self not counted

modules = pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)


def functions(source):
    """Yield each function of a source, with whether it is a method."""
    for node in ast.walk(ast.parse(source)):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield child, isinstance(node, ast.ClassDef)


def lines_of(function):
    docstring = function.body[0] if ast.get_docstring(function) is not None else None
    hidden = 0 if docstring is None else docstring.end_lineno - docstring.lineno + 1
    return function.end_lineno - function.lineno + 1 - hidden


def positional(function, is_method):
    arguments = [*function.args.posonlyargs, *function.args.args]
    bound = is_method and not any(getattr(d, "id", "") == "staticmethod" for d in function.decorator_list)
    return len(arguments) - bound


@modules
def test_modules_can_be_surveyed(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES


@modules
def test_functions_fit_a_screen(path):
    source = path.read_text(encoding="utf-8")
    assert not {f.name: n for f, _ in functions(source) if (n := lines_of(f)) > FUNCTION_LINES}


@modules
def test_functions_take_few_positional_arguments(path):
    source = path.read_text(encoding="utf-8")
    found = {f.name for f, is_method in functions(source) if positional(f, is_method) > POSITIONAL}
    assert not found


def test_what_is_counted():
    source = '''
class A:
    def method(self, a, b, /, c, *, d):
        """Two lines
        of docstring."""
        return a

    @staticmethod
    def of(a, b):
        return a

def function(a, *rest, b=1): pass
'''
    found = {f.name: (lines_of(f), positional(f, is_method)) for f, is_method in functions(source)}
    assert found == {"method": (2, 3), "of": (2, 2), "function": (1, 1)}
