"""Hints for syntax of other languages in JSONata expressions.

The parser has already found the fault and its place.
"""

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Final

from asl.expr.jsonata.javascript import literal
from asl.expr.query_protocol import DELIMITERS

__all__ = ["ALONE", "function_hint", "name_hint", "syntax_hint", "text_hint"]

ALONE: Final = "an expression is written '{% ... %}', without blanks before or after"
SHORT: Final = 200
"""Maximum characters of a text that a hint rewrites."""
NEAR: Final = 40
"""Characters before a fault that are searched for its cause."""

_COMPARES = "write = to compare for equality, != for inequality"
_FUNCTION = "write function($x) { ... } for a function"
_BINDS = "($x := 1; $x + 1) binds a name; the last expression is the value"
_ADDS = "JSONata has no assignment operators: write $x + 1"
_CHOOSES = "write condition ? value : other"
_EACH = "array.expression gives one value for each item, $map(array, function($x) { ... }) too"

OPERATORS: Final[Mapping[str, str]] = {
    "==": _COMPARES,
    "===": _COMPARES,
    "!==": _COMPARES,
    "<>": _COMPARES,
    "&&": "write the word 'and'; & joins texts",
    "||": "write the word 'or'",
    "!": "write $not(...) for a negation",
    "=>": _FUNCTION,
    "->": _FUNCTION,
    "++": _ADDS,
    "--": _ADDS,
    "+=": _ADDS,
    "-=": _ADDS,
    "//": "a comment is written /* ... */",
    "?.": "write a dot: a path over missing data is empty",
    "[?": "a filter has no question mark: [price < 10]",
    "**": "$power(base, exponent)",
    "^": "$power(base, exponent); ^ sorts: array^(key)",
    "..": "** goes down through all levels: $a.**.b",
    ";": _BINDS,
}
"""Operators of other languages."""

WORDS: Final[Mapping[str, str]] = {
    "not": OPERATORS["!"],
    "is": "write = to compare, also with null; $exists(...) tests for a value",
    "if": _CHOOSES,
    "else": _CHOOSES,
    "let": _BINDS,
    "const": _BINDS,
    "var": _BINDS,
    "return": "the last expression is the value: (...; $x)",
    "lambda": _FUNCTION,
    "for": _EACH,
    "new": "JSONata has no constructors: $now() is the time as a string, $millis() as a number",
}
"""Keywords of other languages."""

_CONVERTS = "$string(...) makes a text, $number(...) a number"
_COUNTS = "$count(...) counts the items of an array, $length(...) the characters of a text"
_WRITES = "$string(...) makes JSON text, $parse(...) reads it"
_JOINS = "& joins texts, $append(...) arrays"

NAMES: Final[Mapping[str, str]] = {
    "True": "write true",
    "False": "write false",
    "None": "write null",
    "nil": "write null",
    "NULL": "write null",
    "undefined": "$exists(...) tests for a value",
    "this": "the input is $states.input",
    "JSON": _WRITES,
    "json": _WRITES,
    "Math": "$max, $min, $round, $floor, $ceil, $abs, $power and $sqrt are functions of their own",
    "len": _COUNTS,
    "str": _CONVERTS,
    "int": _CONVERTS,
    "float": _CONVERTS,
    "input": "the input is $states.input",
    "result": "the result is $states.result",
    "context": "the context object is $states.context",
}
"""Names of other languages, and members of `$states` without it."""

FUNCTIONS: Final[Mapping[str, str]] = {
    "len": _COUNTS,
    "size": _COUNTS,
    "str": _CONVERTS,
    "toString": _CONVERTS,
    "int": _CONVERTS,
    "float": _CONVERTS,
    "parseInt": _CONVERTS,
    "parseFloat": _CONVERTS,
    "json": _WRITES,
    "stringify": _WRITES,
    "concat": _JOINS,
    "format": _JOINS,
    "if": _CHOOSES,
    "date": "$now() is the time as a text; $toMillis(text) reads one, $fromMillis(...) writes one",
    "upper": "$uppercase(...)",
    "toUpper": "$uppercase(...)",
    "toUpperCase": "$uppercase(...)",
    "lower": "$lowercase(...)",
    "toLower": "$lowercase(...)",
    "toLowerCase": "$lowercase(...)",
    "includes": "$contains(text, part), or value in array",
    "first": "array[0]",
    "last": "array[-1]",
    "slice": "$substring(text, start, length), or array[[0..2]]",
    "length": _COUNTS,
    "push": _JOINS,
    "forEach": _EACH,
    "values": "object.* gives the values of its members",
    "eval": "$parse reads JSON text",
}
"""Functions of other languages."""

_NOTICED_LATE = ("//", "^")
"""Operators with another meaning in JSONata; the syntax error follows later."""
_LONG = "join texts and values in one expression: {% 'text' & $value %}"
_OPERATOR = re.compile(r"\[\?|\?\.|\.\.|\*\*|;|\^|//|[=!<>&|+-]+")
_WORD = re.compile(r"(?<![\w$.])[a-z]+\b")
_LIST = re.compile(r"\bin\s*\([^()]*\Z")
_NAME = re.compile(r"[\w$.]+")
_FORMATTED = re.compile(r"(?<![\w$])f['\"]")


def syntax_hint(source: str, offset: int) -> str | None:
    """Return the JSONata form of the foreign syntax at a syntax error; None if unknown."""
    start = max(0, offset - NEAR)
    before, near = source[start:offset], source[start : offset + NEAR]
    for found in _OPERATOR.finditer(near):
        ahead = found.start() <= len(before)
        beside = ahead and not near[found.end() : len(before)].strip()
        if found[0] in OPERATORS and (beside or (ahead and found[0] in _NOTICED_LATE)):
            return OPERATORS[found[0]]
    if _LIST.search(before):
        return "write a list in brackets: $x in ['a', 'b']"
    if _FORMATTED.search(before):
        return _JOINS
    for found in reversed([*_WORD.finditer(near)]):
        if found.start() <= len(before) and found[0] in WORDS:
            return WORDS[found[0]]
    return None


def name_hint(name: str) -> str | None:
    """Return the hint for an unknown name; None without one."""
    if " " in name or "$" in name:
        return f"backticks are for names; texts have quotes, and {_JOINS}"
    return NAMES.get(name)


def function_hint(name: str) -> str | None:
    """Return the hint for an unknown function; None without one."""
    return FUNCTIONS.get(name)


def text_hint(text: str) -> str | None:
    """Return the hint to write a text with expressions as one expression; None without any."""
    opening, closing = DELIMITERS
    if len(text) > SHORT:
        return _LONG if closing in text.partition(opening)[2] else None
    texts, expressions, rest = [], [], text
    while opening in rest:
        text, _, rest = rest.partition(opening)
        expression, closed, rest = rest.partition(closing)
        if not closed:
            return None
        texts.append(text)
        expressions.append(expression.strip())
    if not expressions:
        return None
    texts.append(rest)
    if len(expressions) == 1 and not "".join(texts).strip():
        return ALONE
    quoted = [literal(text) if text else "" for text in texts]
    parts = [part for pair in zip_longest(quoted, map(_operand, expressions))
             for part in pair if part]  # fmt: skip
    return f"write a single expression: {opening} {' & '.join(parts)} {closing}"


def _operand(expression: str) -> str:
    """Return an expression as an operand of `&`."""
    return expression if _NAME.fullmatch(expression) else f"({expression})"
