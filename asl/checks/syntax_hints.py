"""What people write who come from another language, and how JSONata says it.

Only hints come of it: that something is wrong, and where, is known already.
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
"""Characters of a text that is written anew in a hint."""
NEAR: Final = 40
"""Characters in front of a fault in which the word that led to it is looked for."""

_COMPARES = "a single = compares, != tells what differs"
_FUNCTION = "a function is written function($x) { ... }"
_BINDS = "($x := 1; $x + 1) binds a name; the last expression is the value"
_ADDS = "nothing is changed in place: write $x + 1"
_CHOOSES = "write condition ? value : other"
_EACH = "array.expression gives one value for each item, $map(array, function($x) { ... }) too"

OPERATORS: Final[Mapping[str, str]] = {
    "==": _COMPARES,
    "===": _COMPARES,
    "!==": _COMPARES,
    "<>": _COMPARES,
    "&&": "write the word 'and'; & joins texts",
    "||": "write the word 'or'",
    "!": "$not(...) negates",
    "=>": _FUNCTION,
    "->": _FUNCTION,
    "++": _ADDS,
    "--": _ADDS,
    "+=": _ADDS,
    "-=": _ADDS,
    "//": "a comment is written /* ... */",
    "?.": "a path over what is missing finds nothing: a point is enough",
    "[?": "a filter has no question mark: [price < 10]",
    "**": "$power(base, exponent)",
    "^": "$power(base, exponent); ^ sorts: array^(key)",
    "..": "** goes down through all levels: $a.**.b",
    ";": _BINDS,
}
"""Operators that JSONata does not have."""

WORDS: Final[Mapping[str, str]] = {
    "not": OPERATORS["!"],
    "is": "= compares, also with null; $exists(...) tells whether there is anything",
    "if": _CHOOSES,
    "else": _CHOOSES,
    "let": _BINDS,
    "const": _BINDS,
    "var": _BINDS,
    "return": "the last expression is the value: (...; $x)",
    "lambda": _FUNCTION,
    "for": _EACH,
    "new": "there are no objects to make: $now() gives the time as a text, $millis() as a number",
}
"""Words behind which JSONata expects no further one."""

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
    "undefined": "$exists(...) tells whether there is anything",
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
"""Functions that have another name here, or need none."""

_NOTICED_LATE = ("//", "^")
"""Those that JSONata reads as something else, which then does not go on as it should."""
_LONG = "join texts and values in one expression: {% 'text' & $value %}"
_OPERATOR = re.compile(r"\[\?|\?\.|\.\.|\*\*|;|\^|//|[=!<>&|+-]+")
_WORD = re.compile(r"(?<![\w$.])[a-z]+\b")
_LIST = re.compile(r"\bin\s*\([^()]*\Z")
_NAME = re.compile(r"[\w$.]+")
_FORMATTED = re.compile(r"(?<![\w$])f['\"]")


def syntax_hint(source: str, offset: int) -> str | None:
    """Say how that is written which stands where *source* could not be read any further."""
    start = max(0, offset - NEAR)
    before, near = source[start:offset], source[start : offset + NEAR]
    for found in _OPERATOR.finditer(near):
        ahead = found.start() <= len(before)
        beside = ahead and not near[found.end() : len(before)].strip()
        if found[0] in OPERATORS and (beside or (ahead and found[0] in _NOTICED_LATE)):
            return OPERATORS[found[0]]
    if _LIST.search(before):
        return "a list is written in brackets: $x in ['a', 'b']"
    if _FORMATTED.search(before):
        return _JOINS
    for found in reversed([*_WORD.finditer(near)]):
        if found.start() <= len(before) and found[0] in WORDS:
            return WORDS[found[0]]
    return None


def name_hint(name: str) -> str | None:
    """Say what is meant by a name that stands for nothing."""
    if " " in name or "$" in name:
        return f"backticks are for names; texts have quotes, and {_JOINS}"
    return NAMES.get(name)


def function_hint(name: str) -> str | None:
    """Say which function is meant, or what does without one."""
    return FUNCTIONS.get(name)


def text_hint(text: str) -> str | None:
    """Say how a text with expressions in it is written as a single one; None without any."""
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
    """Return an expression as it stands beside `&`."""
    return expression if _NAME.fullmatch(expression) else f"({expression})"
