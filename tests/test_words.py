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
"""Words of a private idiom, in docstrings, comments and messages."""

ARGUMENTS = re.compile(r"^Args:\n((?: .*\n?|\n)+)", re.MULTILINE)
REFERENCE = re.compile(r"(?<!\*)\*(\w+)\*(?!\*)")
ARGUMENT = re.compile(r"^ {4}\*{0,2}(\w+):", re.MULTILINE)


def modules(folder: str = "asl") -> Iterator[tuple[str, str, ast.Module]]:
    """Yield path, text and tree of each module."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield str(path.relative_to(ROOT)), *parsed(path)


def prose(text: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring, comment and text of several words."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(words)) if " " in words:
                yield node.lineno, words
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


def undocumented_arguments(folder: str = "asl") -> Iterator[str]:
    """Yield the functions whose docstring names an argument that they do not have."""
    for path, _, tree in modules(folder):
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.args.kwarg:
                continue
            text = ast.get_docstring(node) or ""
            section = ARGUMENTS.search(text)
            given = node.args
            names = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
            if given.vararg is not None:
                names.add(given.vararg.arg)
            listed = ARGUMENT.findall(section[1]) if section else []
            for name in (*listed, *REFERENCE.findall(text)):
                if name not in names:
                    yield f"{path}:{node.lineno}: {node.name} has no argument {name!r}"


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


CHECKS = (words_to_avoid, undocumented_arguments, silent_raises, repeated_classes)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_words_are_plain(check: Callable[[], Iterator[str]]) -> None:
    """No word of the list, no unknown argument, no silent `raise`, no class name for two things."""
    assert [*check()] == []


def test_a_word_to_avoid_is_found() -> None:
    """In docstrings, comments and messages, not in names and keys."""
    text = '"""What is\ntold."""\ntold = "told"  # nobody\n'
    lines = [line for line, part in prose(text, ast.parse(text)) if AVOID.search(part)]
    assert lines == [1, 3]


if __name__ == "__main__":
    for check in CHECKS:
        print(*check(*sys.argv[1:]), sep="\n")
