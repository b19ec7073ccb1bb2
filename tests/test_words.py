"""The words of the source: plain English, and public functions that say what they raise.

`python -m tests.test_words [FOLDER]` lists what is left.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.parsed import parsed

ROOT = Path(__file__).resolve().parents[1]

AVOID = re.compile(
    r"\b(said|told|tells|whoever|nobody|of whom|of which|comes? to|came to|stands|stood"
    r"|goe?s? on with|has to do with|at once|beside|therein)\b",
    re.IGNORECASE,
)
"""Words of a private idiom, in docstrings and comments."""


def modules(folder: str = "asl") -> Iterator[tuple[str, str, ast.Module]]:
    """Yield path, text and tree of each module."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield str(path.relative_to(ROOT)), *parsed(path)


def prose(text: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring and comment."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else ():
            match each:
                case ast.Expr(value=ast.Constant(value=str(words))):
                    yield each.lineno, words
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def words_to_avoid(folder: str = "asl") -> Iterator[str]:
    """Yield the place of each word that is to be avoided."""
    for path, text, tree in modules(folder):
        for line, part in prose(text, tree) if AVOID.search(text) else ():
            for found in AVOID.finditer(part):
                at = line + part.count("\n", 0, found.start())
                yield f"{path}:{at}: {found[0]!r}"


def raising(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function, not one within it, has a `raise` that names an exception."""
    rest: list[ast.AST] = [*function.body]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Raise) and node.exc is not None:
            return True
        rest += ast.iter_child_nodes(node)
    return False


def functions(
    tree: ast.Module | ast.ClassDef,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the public functions of a module and the public methods of its public classes."""
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from functions(node)
        else:
            yield node


def silent_raises(folder: str = "asl") -> Iterator[str]:
    """Yield the public functions that raise without saying so."""
    for path, _, tree in modules(folder):
        for node in functions(tree):
            if raising(node) and "raise" not in (ast.get_docstring(node) or "").lower():
                yield f"{path}:{node.lineno}: {node.name}"


def repeated_classes(folder: str = "asl") -> Iterator[str]:
    """Yield the public names of classes that more than one module defines."""
    found: dict[str, list[str]] = {}
    for path, _, tree in modules(folder):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path)
    for name, paths in sorted(found.items()):
        if len(paths) > 1:
            yield f"{name}: {', '.join(paths)}"


CHECKS = (words_to_avoid, silent_raises, repeated_classes)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_words_are_plain(check: Callable[[], Iterator[str]]) -> None:
    """No word of the list, no silent `raise`, no class name for two things."""
    assert [*check()] == []


def test_a_word_to_avoid_is_found() -> None:
    """In docstrings and comments, not in code."""
    text = '"""What is\ntold."""\ntold = "told"  # nobody\n'
    lines = [line for line, part in prose(text, ast.parse(text)) if AVOID.search(part)]
    assert lines == [1, 3]


if __name__ == "__main__":
    for check in CHECKS:
        print(*check(*sys.argv[1:]), sep="\n")
