"""Paths of the data as paths of the context, and rules as conditions."""

import re
from collections.abc import Mapping
from keyword import iskeyword
from typing import Any, Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.flujo.functions.conditions import parse_number
from asl.dialects.flujo.writing.losses import Losses
from asl.expr.paths import parse_path
from asl.expr.text_matching import literal_pieces

__all__ = ["condition", "context_path", "field_of", "referred"]

_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def context_path(path: str) -> str | None:
    """Return a JSONPath as a path of the context, None where there is none for it."""
    try:
        found = parse_path(path)
    except ExpressionFault:
        return None
    if path.startswith("$$") or not found.definite or not found.segments:
        return None
    if not all(isinstance(each, str) for each in found.segments):
        return None
    return "context" + "".join(_step(str(each)) for each in found.segments)


def _step(name: str) -> str:
    if _NAME.fullmatch(name) and not iskeyword(name):
        return f".{name}"
    return f"['{name}']" if "'" not in name else ""


def field_of(path: Json) -> str | None:
    """Return the field of the context that a ResultPath names, None for any other place."""
    if not isinstance(path, str) or not path.startswith("$."):
        return None
    return path[2:] if _NAME.fullmatch(path[2:]) else None


_STATES: Final = re.compile(r"\{%\s*\$states\.input((?:\.[A-Za-z_]\w*)+)\s*%\}", re.ASCII)


def referred(value: Json) -> str | None:
    """Return the path of the context that an expression of JSONata is, None for any other."""
    match = _STATES.fullmatch(value) if isinstance(value, str) else None
    return f"context{match[1]}" if match else None


# --------------------------------------------------------------------------------------------
# Conditions


class _Beyond(Exception):
    """A blueprint has no condition for this; the text says what."""


def condition(rule: Mapping[str, Any], pointer: str, losses: Losses) -> str:
    """Return the condition of a rule; one that cannot be said never holds, which is a loss."""
    try:
        if "Condition" in rule:
            return _query(str(rule["Condition"]), pointer, losses)
        return _rule(rule, pointer, losses)
    except _Beyond as reason:
        losses.add("FL-OPERATOR", f"{reason}, so the rule never matches", pointer)
        return "False"


def _rule(rule: Mapping[str, Any], pointer: str, losses: Losses, *, counts: bool = False) -> str:
    """Return the condition of a rule; with *counts* a failure of it decides what others would."""
    for word, sign in (("And", " and "), ("Or", " or ")):
        if word in rule:
            *before, last = rule[word]
            more = counts or word == "Or"
            parts = [_rule(each, pointer, losses, counts=more) for each in before]
            return f"({sign.join([*parts, _rule(last, pointer, losses, counts=counts)])})"
    if "Not" in rule:
        return f"not ({_rule(rule['Not'], pointer, losses, counts=True)})"
    path = context_path(str(rule.get("Variable")))
    if path is None:
        raise _Beyond(f"{rule.get('Variable')!r} names no field of the context")
    operator = next((each for each in rule if each not in _ASIDE), "")
    value = rule.get(operator)
    if operator == "StringMatches" and isinstance(value, str):
        return _glob(path, value, pointer, losses, counts=counts)
    return _comparison(operator, path, value, pointer, losses)


_ASIDE: Final = ("Variable", "Next", "Assign", "Output", "Comment")
_SIGNS: Final = {
    "Equals": "==",
    "LessThan": "<",
    "LessThanEquals": "<=",
    "GreaterThan": ">",
    "GreaterThanEquals": ">=",
}


_NULL: Final = "what is missing is null here"
_READ: Final = "a text that reads as a number is compared as one, and true is 1"
_OTHERS: Final = "values of other types are compared as well"
_LISTS: Final = "what is no text may have a text in it as well, or makes the condition fail"
_FAILS: Final = "what is no text makes the whole condition fail"


def _comparison(operator: str, path: str, value: Json, pointer: str, losses: Losses) -> str:
    match operator:
        case "IsNull":
            losses.add("FL-NULL", _NULL, pointer)
            return f"{path} {'==' if value else '!='} None"
        case "IsPresent":
            losses.add("FL-NULL", "null is missing here", pointer)
            return f"{path} {'!=' if value else '=='} None"
    for kind in ("String", "Numeric", "Boolean"):
        sign = _SIGNS.get(operator.removeprefix(kind).removesuffix("Path"))
        if operator.startswith(kind) and sign is not None:
            if operator.endswith("Path"):
                other = context_path(str(value))
                if other is None:
                    raise _Beyond(f"{value!r} names no field of the context")
                losses.add("FL-COERCE", _OTHERS, pointer)
                return f"{path} {sign} {other}"
            return f"{path} {sign} {_literal(value, pointer, losses)}"
    raise _Beyond(f"a condition knows no {operator!r}")


def _literal(value: Json, pointer: str, losses: Losses) -> str:
    if value is None:
        return repr(value)
    if isinstance(value, int | float):
        losses.add("FL-COERCE", _READ, pointer)
        if value < 0:
            losses.add(
                "FL-NEGATIVE",
                "a condition has no negative numbers, so this rule never matches",
                pointer,
                "keep the number in the context and compare with that",
            )
        return repr(value)
    if not isinstance(value, str):
        raise _Beyond("a condition compares texts and numbers")
    if parse_number(value) is not None:
        message = f"the text {value!r} reads as a number, so it may be compared as one"
        losses.add("FL-COERCE", message, pointer)
    return repr(value)


def _glob(path: str, pattern: str, pointer: str, losses: Losses, *, counts: bool) -> str:
    match literal_pieces(pattern):
        case [text]:
            return f"{path} == {_literal(text, pointer, losses)}"
        case [text, ""] if text:
            test = f"{path}.startswith({text!r})"
        case ["", text] if text:
            test = f"{path}.endswith({text!r})"
        case ["", text, ""]:
            losses.add("FL-COERCE", _LISTS, pointer)
            return f"{text!r} in {path}"
        case _:
            raise _Beyond(f"a condition knows no pattern like {pattern!r}")
    if counts:
        losses.add("FL-COERCE", _FAILS, pointer)
    return test


_TOKEN: Final = re.compile(
    r"\s*(?:(?P<path>\$states\.input(?:\.[A-Za-z_]\w*)+)|(?P<text>'[^'\\]*'|\"[^\"\\]*\")"
    r"|(?P<number>\d+(?:\.\d+)?)(?![\w.])|(?P<word>\b(?:and|or|in|true|false|null)\b)"
    r"|(?P<not>\$not\s*\()|(?P<exists>\$exists\s*\(\s*(\$states\.input(?:\.[A-Za-z_]\w*)+)\s*\))"
    r"|(?P<sign>!=|<=|>=|[=<>()\[\],]))",
    re.ASCII,
)
_WORDS: Final = {"true": "True", "false": "False", "null": "None"}


def _query(text: str, pointer: str, losses: Losses) -> str:
    """Return a Condition of JSONata that compares fields of the input."""
    body = text.strip().removeprefix("{%").removesuffix("%}").strip()
    parts: list[str] = []
    at = 0
    while at < len(body):
        match = _TOKEN.match(body, at)
        if match is None:
            raise _Beyond(f"a condition knows no {body[at : at + 40].strip()!r}")
        at = match.end()
        said = match[0].strip()
        match match.lastgroup:
            case "path":
                if parts[-1:] == ["=="] and parts[-2].startswith("context."):
                    losses.add("FL-NULL", _NULL, pointer)
                parts.append(said.replace("$states.input", "context", 1))
            case "text":
                parts.append(_literal(said[1:-1], pointer, losses))
            case "word":
                if said == "null":
                    losses.add("FL-NULL", _NULL, pointer)
                if said in ("true", "false"):
                    losses.add("FL-COERCE", _READ, pointer)
                parts.append(_WORDS.get(said, said))
            case "not":
                parts.append("not (")
            case "sign":
                if said == "!=":
                    losses.add("FL-NULL", _NULL, pointer)
                parts.append("==" if said == "=" else said)
            case "number":
                losses.add("FL-COERCE", _READ, pointer)
                parts.append(said)
            case _:
                losses.add("FL-NULL", "null is missing here", pointer)
                parts.append(f"{match[7].replace('$states.input', 'context', 1)} != None")
    return " ".join(parts).replace("( ", "(").replace(" )", ")")
