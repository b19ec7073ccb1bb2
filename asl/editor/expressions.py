"""Functions, variables and paths within expressions."""

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from asl.checks.state_test_request import CONTEXT_MEMBERS
from asl.core.values import Json
from asl.editor.shapes import DataShape, member_shapes
from asl.expr.intrinsics.table import FUNCTIONS, IntrinsicFunction
from asl.expr.jsonata.calls import NativeFunction
from asl.expr.jsonata.functions.table import NATIVES

__all__ = ["Proposal", "expression_proposals", "function_text", "word_at"]

_PATH: Final = re.compile(r"(\$\$?(?:[^\W\d]\w*)?)((?:\.[^\W\d]\w*|\[\d+\])*)\.(\w*)$")
_NAME: Final = re.compile(r"(?<![\w.$])\$(\w*)$")
_INTRINSIC: Final = re.compile(r"(?<![\w.$])States\.(\w*)$|(?<![\w.$])(\w*)$")
_WORD: Final = re.compile(r"States\.\w+|\$\$?\w*(?:\.\w+)*")
_LETTERS: Final = {
    "s": "string",
    "n": "number",
    "b": "boolean",
    "a": "array",
    "o": "object",
    "f": "function",
    "x": "any",
    "j": "any",
}


class Proposal(NamedTuple):
    """A word that may follow: `replaces` counts the typed characters that it takes the place of."""

    word: str
    replaces: int
    kind: str
    """`function`, `variable` or `member`."""
    detail: str = ""
    text: str = ""


class Data(NamedTuple):
    """What an expression can read: the variables, and the known shape of the data."""

    variables: Mapping[str, DataShape | None]
    shape: DataShape | None


def expression_proposals(before: str, is_jsonata: bool, data: Data) -> Iterator[Proposal]:
    """Yield what may follow a text in an expression.

    Args:
        before: The expression up to the cursor.
        is_jsonata: Whether it is JSONata; else a path or an intrinsic function.
        data: The variables and data that it can read.
    """
    path = _PATH.search(before)
    if path is not None:
        yield from _members(path, is_jsonata, data)
        return
    named = _NAME.search(before)
    if named is not None:
        count = len(named[0])
        if is_jsonata:
            yield Proposal("$states", count, "variable", "input, result, error and context")
            for native in NATIVES.values():
                yield Proposal(f"${native.name}", count, "function", *function_text(native))
        else:
            yield Proposal("$$", count, "variable", "context object")
        for name, shape in data.variables.items():
            detail = "variable" if shape is None else shape.describe()
            yield Proposal(f"${name}", count, "variable", detail)
        return
    intrinsic = None if is_jsonata else _INTRINSIC.search(before)
    if intrinsic is not None:
        for function in FUNCTIONS.values():
            yield Proposal(function.name, len(intrinsic[0]), "function", *function_text(function))


def _members(path: re.Match[str], is_jsonata: bool, data: Data) -> Iterator[Proposal]:
    root, steps = path[1], [each for each in re.split(r"[.\[\]]", path[2]) if each]
    shape: DataShape | None = None
    if is_jsonata and root == "$states":
        if not steps:
            for name in ("input", "result", "errorOutput", "context"):
                yield Proposal(name, len(path[3]), "member")
            return
        first, *steps = steps
        shape = _CONTEXT if first == "context" else data.shape if first == "input" else None
    elif root == "$$":
        shape = _CONTEXT
    elif root == "$":
        shape = data.shape
    else:
        shape = data.variables.get(root[1:])
    for name, inner in member_shapes(shape, steps).items():
        yield Proposal(name, len(path[3]), "member", "" if inner is None else inner.describe())


def function_text(function: IntrinsicFunction | NativeFunction) -> tuple[str, str]:
    """Return the signature and the description of a function."""
    if isinstance(function, IntrinsicFunction):
        takes = ["|".join(sorted(each)) if len(each) < 6 else "any" for each in function.takes]
        shown = [
            each if number < function.minimum else f"{each}?" for number, each in enumerate(takes)
        ]
        more = ", ..." if function.maximum is None else ""
        signature = f"{function.name}({', '.join(shown)}{more})"
    else:
        shown = [
            "|".join(_LETTERS.get(each, each) for each in parameter.kind.strip("()"))
            + ("?" if parameter.pattern.endswith("?") else "")
            for parameter in function.signature.parameters
        ]
        signature = f"${function.name}({', '.join(shown)})"
    return signature, inspect.getdoc(inspect.unwrap(function.call)) or ""


def word_at(text: str, at: int) -> str | None:
    """Return the function, variable or path at a character of an expression."""
    for found in _WORD.finditer(text):
        if found.start() <= at <= found.end():
            return found[0]
    return None


def _shape_of(members: Mapping[str, Json]) -> DataShape:
    return DataShape(
        {
            name: _shape_of(inner) if isinstance(inner, dict) else None
            for name, inner in members.items()
        }
    )


_CONTEXT: Final = _shape_of(CONTEXT_MEMBERS)
