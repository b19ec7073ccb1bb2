"""Outputs of actors: the values in their texts, and their schemas.

A text holds JSON, a Python literal, or either of them within prose.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Final, NoReturn

import orjson

from asl.core.errors import NotJson, StateError
from asl.core.schemas import judge, schema_errors
from asl.core.values import Json, compact, copy_foreign, excerpt, fits, index_of
from asl.core.work import WorkExceeded, WorkLimits, WorkMeter

__all__ = [
    "NOTHING",
    "as_bounded_text",
    "as_text",
    "coerce_literals",
    "context_values",
    "follow_steps",
    "parse_output",
    "parse_schema",
    "read_literal",
    "validate_output",
]

NOTHING: Final[Any] = object()
"""The value of a text that holds none."""

MAX_DEPTH: Final = 100
MAX_SHOWN: Final = 4_000_000
"""Bytes of a value inserted into a text."""
MAX_SCANNED: Final = 1_000_000
"""Characters read again in search of an object that starts at a later brace."""
MAX_MARKS: Final = 250_000
"""Braces and quoted texts read in search of the end of an object."""
MAX_LITERAL: Final = 200_000
"""Characters of a text parsed as a Python literal."""

_FENCES = (
    re.compile(r"```json(.*?)```", re.DOTALL),
    re.compile(r"~~~json(.*?)~~~", re.DOTALL),
)


def as_text(value: Json) -> str:
    """Return the result of an actor as text: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def parse_output(text: str) -> Json:
    """Return the value in a text, else NOTHING.

    The whole text is tried first, then the first fenced block of JSON, then the first object in
    braces. `null` and `None` are no values.
    """
    found = _parse_whole(text)
    if found is not NOTHING:
        return found
    for fence in _FENCES:
        if match := fence.search(text):
            found = _parse_whole(match[1].strip())
            if found is not NOTHING:
                return found
    for part in _braced(text):
        found = _parse_whole(part)
        return found if isinstance(found, dict) else NOTHING
    return NOTHING


def as_bounded_text(value: Json, meter: WorkMeter) -> str:
    """Return a value as text and count its work.

    Raises:
        WorkExceeded: The value is too large.
    """
    if isinstance(value, dict | list) and not fits(value, MAX_SHOWN):
        meter.exceed("bytes")
    text = as_text(value)
    meter.spend(len(text) >> 3 if text is not value else 1)
    return text


def follow_steps(value: Json, steps: Iterable[str], meter: WorkMeter) -> Json:
    """Return the value at some steps, else NOTHING; texts along them are parsed."""
    for step in steps:
        if isinstance(value, str):
            meter.spend(len(value))
            value = parse_output(value)
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and (index := index_of(step, value)) is not None:
            value = value[index]
        else:
            return NOTHING
    return value


def context_values(output: Json) -> dict[str, Json]:
    """Return the members that an output writes to the context: those of an object, or of the
    objects in a list.
    """
    if isinstance(output, dict):
        return output
    merged: dict[str, Json] = {}
    for each in output if isinstance(output, list) else ():
        if isinstance(each, dict):
            merged.update(each)
    return merged


def coerce_literals(output: dict[str, Json]) -> dict[str, Json]:
    """Return an output for conditions: texts at its root become the literals that they hold."""
    return {key: read_literal(each) if type(each) is str else each for key, each in output.items()}


def read_literal(text: str) -> Json:
    """Return the value of a text for conditions: its literal, else the text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.strip() == "None":
        return None
    found = _parse_whole(text)
    if found is NOTHING:
        found = _read_number(text)
    # With blanks around it the word is a text, as on the platform.
    return text if found is NOTHING or type(found) is bool else found


_DIGITPART = "[0-9](?:_?[0-9])*"
_NUMBER = re.compile(
    rf"""\s*(?P<sign>[-+]?)\s*(?:
    (?P<int>0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|0(?:_?0)*|[1-9](?:_?[0-9])*)
  | (?P<float>(?:(?:{_DIGITPART})?\.{_DIGITPART}|{_DIGITPART}\.)(?:[eE][-+]?{_DIGITPART})?
    |{_DIGITPART}[eE][-+]?{_DIGITPART})
    )\s*""",
    re.VERBOSE,
)


def _read_number(text: str) -> Json:
    """Return the number of a text in any spelling of Python, else NOTHING."""
    match = _NUMBER.fullmatch(text) if len(text) <= _DIGITS else None
    if match is None:
        return NOTHING
    if match["int"]:
        return int(match["sign"] + match["int"], 0)
    number = float(match["sign"] + match["float"])
    return number if isfinite(number) else NOTHING


def _parse_whole(text: str) -> Json:
    stripped = text.strip()
    if stripped in ("", "null", "None"):
        return NOTHING
    try:
        return copy_foreign(json.loads(stripped, parse_constant=_no_number, parse_float=_finite))
    except (ValueError, NotJson, RecursionError):
        pass
    if len(stripped) > MAX_LITERAL:
        return NOTHING
    try:
        return copy_foreign(_Literal(stripped).value())
    except (_NotLiteral, NotJson, ValueError):
        return NOTHING


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


def _braced(text: str) -> Iterator[str]:
    """Yield the first part of a text in balanced braces."""
    start, scanned = text.find("{"), 0
    meter = WorkMeter(WorkLimits(steps=MAX_MARKS))
    for _ in range(100):
        if start < 0 or scanned > MAX_SCANNED:
            return
        try:
            end = _closing(text, start, meter)
        except WorkExceeded:
            return
        if end is not None:
            yield text[start:end]
            return
        scanned += len(text) - start
        start = text.find("{", start + 1)


_MARK = re.compile(r'"(?:[^"\\]|\\.)*+"|["{}]', re.DOTALL)
_BRACE = re.compile("[{}]")


def _marks(text: str, start: int) -> Iterator[re.Match[str]]:
    """Yield braces and quoted texts; after an unclosed quote, braces only."""
    for match in _MARK.finditer(text, start):
        if match[0] == '"':
            yield from _BRACE.finditer(text, match.end())
            return
        yield match


def _closing(text: str, start: int, meter: WorkMeter) -> int | None:
    depth = 0
    for match in _marks(text, start):
        meter.spend()
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.end()
    return None


class _NotLiteral(Exception):
    """The text is no literal of the subset."""


_TOKEN = re.compile(
    r"""\s*+(?:
    (?P<mark>[][(){},:])
  | (?P<name>True|False|None)(?![A-Za-z0-9_])
  | (?P<float>-?\s*(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+))
    (?![\w.])
  | (?P<int>-?\s*(?:0|[1-9][0-9]*))(?![\w.])
  | (?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
  )""",
    re.VERBOSE | re.DOTALL,
)
_NAMES = {"True": True, "False": False, "None": None}
_ESCAPE = re.compile(
    r"\\(?:(?P<hex>x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|(?P<octal>[0-7]{1,3})"
    r"|(?P<other>.))",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "\n": ""}
_PLAIN = "\\'\""
_DIGITS: Final = 4000


class _Literal:
    """Parses a Python literal of dicts, lists, tuples, strings, numbers, booleans and None."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind, self.token = "", ""
        self.advance()

    def value(self) -> Json:
        """Return the value of the whole text; raises _NotLiteral."""
        found = self.read(0)
        if self.kind:
            raise _NotLiteral
        return found

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            if self.text[self.at :].strip():
                raise _NotLiteral
            self.kind, self.token = "", ""
            return
        self.at = match.end()
        self.kind = match.lastgroup or ""
        self.token = match[self.kind]

    def took(self, mark: str) -> bool:
        if self.kind == "mark" and self.token == mark:
            self.advance()
            return True
        return False

    def read(self, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise _NotLiteral
        kind, token = self.kind, self.token
        self.advance_or_fail()
        if kind == "mark":
            if token == "{":
                return self.mapping(depth)
            if token in "[(":
                return self.items("]" if token == "[" else ")", depth)
            raise _NotLiteral
        if kind == "name":
            return _NAMES[token]
        if kind == "text":
            return unescape(token[1:-1])
        digits = "".join(token.split())
        if len(digits) > _DIGITS:
            raise _NotLiteral
        return int(digits) if kind == "int" else _finite(digits)

    def advance_or_fail(self) -> None:
        if not self.kind:
            raise _NotLiteral
        self.advance()

    def items(self, end: str, depth: int) -> Json:
        found: list[Json] = []
        comma = False
        while not self.took(end):
            found.append(self.read(depth + 1))
            if not self.took(","):
                if not self.took(end):
                    raise _NotLiteral
                break
            comma = True
        if end == ")" and len(found) == 1 and not comma:
            return found[0]
        return found

    def mapping(self, depth: int) -> Json:
        found: dict[str, Json] = {}
        while not self.took("}"):
            key = self.read(depth + 1)
            if type(key) is not str or not self.took(":"):
                raise _NotLiteral
            found[key] = self.read(depth + 1)
            if not self.took(","):
                if not self.took("}"):
                    raise _NotLiteral
                break
        return found


def unescape(text: str) -> str:
    """Return a Python string without its escapes."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    if match["hex"]:
        return chr(int(match["hex"][1:], 16))
    if match["octal"]:
        return chr(int(match["octal"], 8))
    other = match["other"]
    if other in _PLAIN:
        return other
    return _ESCAPES.get(other, f"\\{other}")


_FORMATS: Final = frozenset(("date", "email", "ipv4", "ipv6"))
"""Formats of texts that the platform validates in the same way everywhere."""
SHOWN: Final = 20
"""Errors of one answer in a message."""


def parse_schema(text: str) -> dict[str, Json] | None:
    """Return the JSON Schema in a text, None for a text that only describes a shape."""
    try:
        schema = orjson.loads(text)
    except ValueError:
        return None
    if type(schema) is not dict or type(schema.get("type")) is not str:
        return None
    if type(schema.get("properties")) is not dict or not _local(schema):
        return None
    return None if schema_errors(schema, "Draft7Validator") else schema


def _local(schema: Json) -> bool:
    """Return whether every reference is within the schema."""
    if type(schema) is list:
        return all(map(_local, schema))
    if type(schema) is not dict:
        return True
    target = schema.get("$ref")
    if type(target) is str and not target.startswith("#/"):
        return False
    return all(map(_local, schema.values()))


def validate_output(result: Json, schema: Mapping[str, Json]) -> Json:
    """Return an answer that fits a schema.

    Args:
        result: The answer.
        schema: The JSON Schema.

    Raises:
        StateError: CM.OutputSchema for any other answer; its cause lists the errors for the agent.
    """
    output = parse_output(as_text(result))
    value = as_text(result) if output is NOTHING else output
    faults = sorted(_faults(value, compact(schema)))
    if faults:
        raise StateError("CM.OutputSchema", "; ".join(faults[:SHOWN]))
    return result


def _faults(value: Json, schema: str) -> set[str]:
    try:
        errors = judge(schema, "Draft7Validator", value, formats=_FORMATS)
        return {_error_text(error) for error in errors}
    except WorkExceeded as error:
        return {f"the answer cannot be judged: {error}"}


def _error_text(error: Any) -> str:
    place = "".join(f"/{step}" for step in error.absolute_path)
    return f"{place or 'the answer'}: {excerpt(error.message, 200)}"
