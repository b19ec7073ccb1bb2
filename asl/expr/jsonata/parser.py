"""Parse queries: common ones here, all others with the library.

Common queries consist of calls, constants, names and operators, and bind no names. The library's
parser also has the messages of all syntax errors.

Queries written by a dialect's reader often differ in their texts only. These texts are lifted out;
the rest of the source is its form, with '' in place of each.
"""

import re
from collections.abc import Callable
from json import JSONDecoder
from typing import Any, Final

from asl.core.errors import ExpressionFault
from asl.expr.jsonata.analysis import ParsedTree
from asl.expr.query_protocol import Reference

__all__ = [
    "SyntaxNode",
    "check_length",
    "join_surrogates",
    "lift_texts",
    "parse",
    "parse_common",
    "source_offset",
    "syntax_error",
    "too_deep",
]

CODE = "V-JSONATA-01"

LONGEST = 65_536
"""Characters of a source."""


def parse(source: str, java: bool = False) -> ParsedTree:
    """Return the tree of a source with its analysis.

    Args:
        source: The source.
        java: As in `QueryLimits`: no operators of JSONata 2.1, and Java's patterns.

    Raises:
        ExpressionFault: V-JSONATA-01, with the offset of the syntax error.
        RecursionError: Operators are nested too deeply for the stack.
    """
    check_length(source)
    tree = parse_common(source)
    if tree is None:
        from asl.expr.jsonata.library import parse_with_library

        tree = parse_with_library(source, java)
    return tree


def check_length(source: str) -> None:
    """Check the length of a source.

    Raises:
        ExpressionFault: V-JSONATA-01 for a source that is too long.
    """
    if len(source) > LONGEST:
        raise ExpressionFault(f"the expression is longer than {LONGEST} characters", LONGEST, CODE)


def too_deep(offset: int) -> ExpressionFault:
    """Return the error of an expression that nests too deeply."""
    return syntax_error("the expression is nested too deeply", offset)


def syntax_error(message: str, offset: int) -> ExpressionFault:
    """Return the error of a source that is no query."""
    return ExpressionFault(message, offset, CODE)


class SyntaxNode:
    """A node like the library's; absent attributes are those of the class."""

    type: str
    value: Any = None
    position = 0
    called = False
    member: str | None = None
    """The member taken from a variable, as in `Reference`."""
    keep_array = descending = keep_singleton_array = consarray = thunk = False
    lhs: Any = None
    rhs = expression = steps = procedure = arguments = lhs_object = expressions = lhs
    condition = then = _else = predicate = stages = group = focus = index = tuple = lhs
    slot = body = expr = terms = signature = pattern = update = delete = label = ancestor = lhs

    def __init__(self, type: str, **parts: Any) -> None:
        self.__dict__ = parts
        parts["type"] = type


_STOP: Final = r"(?=[ \t\r\n.\[\]{}(),@#;:?+\-*/%|=<>^&!~]|\Z)"
"""The characters that may follow a name."""
_TOKEN: Final = re.compile(
    r"[ \t\r\n]*+(?:"
    rf"([A-Za-z_][A-Za-z0-9_]*){_STOP}"
    rf"|\$([A-Za-z_][A-Za-z0-9_]*|\$?){_STOP}"
    r"|'((?:[^'\\]++|\\[\"\\/bfnrt]|\\u[0-9a-fA-F]{4})*+)'"
    r'|"((?:[^"\\]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+)"'
    r"|((?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
    r"|`([^`]*)`"
    r"|([!<>]=|\.(?!\.)|:(?!=)|\?(?![:?])|\*(?!\*)|/(?!\*)|[\[\](){},+\-%=<>&])"
    r"|(\Z))"
)
_NAME, _VARIABLE, _SINGLE, _DOUBLE, _NUMBER, _QUOTED, _OPERATOR, _END = range(1, 9)
_LITERAL: Final = re.compile(
    r"""('(?:[^'\\]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+'"""
    r"""|"(?:[^"\\]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+")"""
    r"""([ \t\r\n]*+:)?"""
)
"""A text, and the colon after an object key; keys are never lifted."""
_QUOTE: Final = re.compile("['\"]")
_COLON: Final = re.compile(r"[ \t\r\n]*+:")
_LIFTED: Final = "''"
_ESCAPE: Final = re.compile(r"\\(?:u(....)|(.))")
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_JSON: Final = JSONDecoder(strict=False)
"""A decoder with the same escapes."""
_VALUES: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}
_WORDS: Final = ("and", "or", "in")
_POWERS: Final = {
    ".": 75,
    "(": 80,
    **dict.fromkeys(("*", "/", "%"), 60),
    **dict.fromkeys(("+", "-", "&"), 50),
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">=", "in"), 40),
    "and": 30,
    "or": 25,
    "?": 20,
}
"""The binding power of each operator towards its left operand."""
_SIGN: Final = 70
_NOTHING: Final[frozenset[str]] = frozenset()
_DEEPEST: Final = 60
"""Levels that a tree may have here."""


def lift_texts(source: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the form of a source and its lifted texts; None if it has no form.

    All sources of one form have the same result from `parse_common`.
    """
    form: list[str] = []
    texts: list[str] = []
    at = 0
    while (quote := _QUOTE.search(source, at)) is not None:
        start = quote.start()
        end = _end(source, start, quote[0])
        if end is None:
            return None
        key = _COLON.match(source, end) is not None
        if not key:
            text = source[start + 1 : end - 1]
            texts.append(join_surrogates(_unescaped(text) if "\\" in text else text))
        form += (source[at:start], source[start:end] if key else _LIFTED)
        at = end
    found = "".join((*form, source[at:]))
    return None if "`" in found else (found, tuple(texts))  # a name may have quotes in it


def _end(source: str, start: int, quote: str) -> int | None:
    """Return the end of a text that starts at an offset, None if the library must parse it.

    Searching for the closing quote takes a tenth of the pattern's time, and most texts have no
    escapes but line breaks.
    """
    end = source.find(quote, start + 1)
    text = source[start + 1 : end]
    if end < 0 or ("\\" in text and text.count("\\") != text.count("\\n")):
        match = _LITERAL.match(source, start)
        return None if match is None else match.end(1)
    return end + 1


def source_offset(source: str, offset: int) -> int:
    """Return the offset in a source for an offset in its form."""
    for match in _LITERAL.finditer(source):
        if match.start() >= offset:
            break
        if match[2] is None:
            offset += len(match[1]) - len(_LIFTED)
    return offset


def parse_common(source: str, form: bool = False) -> ParsedTree | None:
    """Return the tree of a common source, None if the library must parse it.

    Args:
        source: The source, or its form.
        form: Whether each '' is a lifted text: a node of type `text` whose value is its number.
    """
    try:
        reader = _Reader(source, 0 if form else None)
        tree = reader.parse()
        return ParsedTree(
            tree, _NOTHING, tuple(map(_reference, reader.variables)), (*reader.context,)
        )
    except _Unusual:
        return None


class _Unusual(Exception):
    """The library must parse this source."""


class _Reader:
    """Top-down operator precedence, as in the library; `id` is that of the current token."""

    __slots__ = (
        "context",
        "depth",
        "id",
        "inside",
        "kind",
        "next",
        "position",
        "texts",
        "value",
        "variables",
    )

    def __init__(self, source: str, texts: int | None) -> None:
        self.texts = texts
        """The number of lifted texts read so far, None outside of forms."""
        self.next: Callable[[], re.Match[str] | None] = _TOKEN.scanner(source).match  # type: ignore[attr-defined]
        self.depth = 0
        self.variables: list[SyntaxNode] = []
        """The uses of variables so far."""
        self.context: list[tuple[str, int]] = []
        """The uses of the context item, outside of paths."""
        self.inside = False
        self.id = ""
        """The text of an operator, empty for any other token."""
        self.advance()

    def advance(self) -> None:
        match = self.next()
        if match is None:
            raise _Unusual
        kind = match.lastindex
        assert kind is not None
        found = match[kind]
        self.position = match.end()
        self.kind, self.value, self.id = kind, found, ""
        if kind == _OPERATOR or (kind == _NAME and found in _WORDS):
            self.id = found

    def expect(self, operator: str) -> None:
        if self.id != operator:
            raise _Unusual
        self.advance()

    def parse(self) -> SyntaxNode:
        node = self.expression(0)
        if self.kind != _END:
            raise _Unusual
        return node

    def expression(self, power: int) -> SyntaxNode:
        depth = self.deeper()
        left = self.first()
        while self.id and power < _POWERS.get(self.id, 0):
            self.deeper()
            left = self.infix_expression(left, self.id, self.position)
        self.depth = depth
        return left

    def deeper(self) -> int:
        """Enter a level; return the number of levels around it."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Unusual
        return self.depth - 1

    def first(self) -> SyntaxNode:
        """Read the start of an expression."""
        kind, value, position, operator = self.kind, self.value, self.position, self.id
        if kind == _END:
            raise _Unusual
        self.advance()
        if operator:
            return self.prefix_expression(operator, position)
        if kind == _VARIABLE:
            return self.variable(value, position)
        if kind in (_SINGLE, _DOUBLE):
            if self.texts is not None and self.id != ":":
                self.texts += 1
                return SyntaxNode("text", value=self.texts - 1, position=position)
            text = _unescaped(value) if "\\" in value else value
            return SyntaxNode("string", value=text, position=position)
        if kind == _NUMBER:
            number = float(value)
            if number - number != 0:
                raise _Unusual
            return SyntaxNode("number", value=_whole(number), position=position)
        if kind == _NAME and value in _VALUES:
            return SyntaxNode("value", value=_VALUES[value], position=position)
        if not self.inside:
            self.context.append((value, max(position - len(value), 0)))
        return SyntaxNode("path", steps=[SyntaxNode("name", value=value, position=position)])

    def variable(self, name: str, position: int) -> SyntaxNode:
        node = SyntaxNode("variable", value=name, position=position)
        if name not in ("", "$"):
            self.variables.append(node)
        elif name or not self.inside:
            self.context.append((f"${name}", position - 1 - len(name)))
        return node

    def prefix_expression(self, operator: str, position: int) -> SyntaxNode:
        """Read an expression that starts with an operator."""
        if operator == "-":
            operand = self.expression(_SIGN)
            if operand.type == "number":
                operand.value = _whole(-float(operand.value))
                return operand
            return SyntaxNode("unary", value="-", expression=operand)
        if operator == "(":
            block = SyntaxNode("block", expressions=[self.expression(0)], position=position)
            self.expect(")")
            return block
        if operator == "[":
            items = self.separated("]", self.expression)
            return SyntaxNode("unary", value="[", expressions=items, position=position)
        if operator == "{":
            return SyntaxNode("unary", value="{", lhs_object=self.separated("}", self.pair))
        raise _Unusual

    def separated(self, closing: str, read: Callable[[int], Any]) -> list[Any]:
        """Read comma-separated parts and the closing bracket."""
        found: list[Any] = []
        if self.id != closing:
            found.append(read(0))
            while self.id == ",":
                self.advance()
                found.append(read(0))
        self.expect(closing)
        return found

    def pair(self, power: int) -> list[SyntaxNode]:
        key = self.expression(power)
        self.expect(":")
        return [key, self.expression(power)]

    def infix_expression(self, left: SyntaxNode, operator: str, position: int) -> SyntaxNode:
        """Read an operator after an expression, with its operands."""
        self.advance()
        if operator == "(":
            if left.type == "path" and left.steps[-1].value == "function":
                raise _Unusual
            if left.type == "text":  # a fault names it
                raise _Unusual
            left.called = left.type == "variable"
            arguments = self.separated(")", self.expression)
            return SyntaxNode(
                "function", value="(", procedure=left, arguments=arguments, position=position
            )
        if operator == ".":
            inside, self.inside = self.inside, True
            right = self.expression(_POWERS["."])
            self.inside = inside
            return _path(left, right)
        if operator == "?":
            node = SyntaxNode("condition", condition=left, position=position)
            node.then = self.expression(0)
            if self.id == ":":
                self.advance()
                node._else = self.expression(0)
            return node
        right = self.expression(_POWERS[operator])
        return SyntaxNode("binary", value=operator, lhs=left, rhs=right, position=position)


def _path(left: SyntaxNode, right: SyntaxNode) -> SyntaxNode:
    if left.type not in ("path", "variable", "function", "block"):
        raise _Unusual
    if right.type not in ("path", "function"):
        raise _Unusual
    path = left if left.type == "path" else SyntaxNode("path", steps=[left])
    path.steps += right.steps if right.type == "path" else [right]
    if left.type == "variable" and right.type == "path":
        left.member = right.steps[0].value
    return path


def _reference(node: SyntaxNode) -> Reference:
    name = node.value
    return Reference(name, node.position - len(name) - 1, node.called, node.member)


def _whole(number: float) -> float:
    return int(number) if number.is_integer() else number


def _unescaped(text: str) -> str:
    if "\\u" not in text:  # JSON joins the halves of surrogate pairs
        found, end = _JSON.raw_decode(f'"{text}"')
        if end == len(text) + 2:  # else it contains a double quote
            return str(found)
    return _ESCAPE.sub(_meant, text)


def _meant(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _ESCAPES.get(escape[2], escape[2])


def join_surrogates(text: str) -> str:
    r"""Return a text with its surrogate pairs, written `\ud83d\ude00`, joined."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
