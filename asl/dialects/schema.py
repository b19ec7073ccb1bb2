"""JSON Schemas of foreign documents, and the findings about a document that does not fit.

A schema is a file in the folder of its dialect. `asl schema NAME` prints it for editors, and the
reader checks documents with the same file. It has the keywords of `_KEYWORDS`, those for objects
and lists, `allOf`, `anyOf`, `not`, `if`, references to its own `$defs`, and annotations:

* `x-rule`: the code of the violated rule, for this schema and those inside it;
* `x-message`: what a value must be or have, in place of the text made from the keywords;
* `x-hint`: what to do about a value that does not fit;
* `x-at-key`: whether a finding is about the key of the value;
* `x-advice`: what to do about properties, by name: about one that is missing, and about one that
  has no effect.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any, Final, NamedTuple, TypeAlias

from asl.core.diagnostics import Finding, did_you_mean
from asl.core.pointers import escape
from asl.core.values import Json, compact, json_equal, type_name

__all__ = ["Codes", "DialectSchema"]


class Codes(NamedTuple):
    """The codes of a dialect.

    Attributes:
        misfit: A value does not fit.
        near_miss: A property has no effect here; it belongs elsewhere, or is called otherwise.
        unknown: A property is unknown.
    """

    misfit: str
    near_miss: str
    unknown: str


Schema: TypeAlias = Mapping[str, Any]


class DialectSchema:
    """The JSON Schema of a dialect.

    Args:
        path: Path of the file.
        codes: Codes of its findings.
    """

    def __init__(self, path: str, codes: Codes) -> None:
        self.path = path
        self.codes = codes

    @cached_property
    def value(self) -> dict[str, Any]:
        """The schema."""
        with open(self.path, "rb") as file:
            value: dict[str, Any] = json.load(file)
        return value

    def check(self, value: Json, pointer: str = "", part: str | None = None) -> list[Finding]:
        """Return what does not fit, and properties without effect as warnings.

        Args:
            value: The document, or a part of it.
            pointer: JSON Pointer of the value in the author's document.
            part: Name of the definition in `$defs` that the value must fit; None for the whole.
        """
        schema = self.value if part is None else self.value["$defs"][part]
        return [*_Check(self.value["$defs"], self.codes).findings(value, schema, pointer, None)]


class _Check:
    """One check of a document."""

    def __init__(self, definitions: Mapping[str, Any], codes: Codes) -> None:
        self.definitions = definitions
        self.codes = codes

    def findings(
        self, value: Json, schema: Schema | bool, pointer: str, rule: str | None
    ) -> Iterator[Finding]:
        """Yield the findings about a value; *rule* is the code of the schemas around this one."""
        if isinstance(schema, bool):
            return
        schema = self._resolve(schema)
        rule = schema.get("x-rule", rule)
        complaint = _complaint(value, schema)
        if complaint is not None:
            yield _misfit(value, schema, complaint, pointer, rule or self.codes.misfit)
            return
        if type(value) is dict:
            yield from self._object(value, schema, pointer, rule)
        elif type(value) is list and "items" in schema:
            for index, each in enumerate(value):
                yield from self.findings(each, schema["items"], f"{pointer}/{index}", rule)
        for each in schema.get("allOf", ()):
            yield from self.findings(value, each, pointer, rule)
        if "if" in schema:
            chosen = "then" if self._fits(value, schema["if"]) else "else"
            yield from self.findings(value, schema.get(chosen, True), pointer, rule)
        refused = "not" in schema and self._fits(value, schema["not"])
        if refused or not any(self._fits(value, each) for each in schema.get("anyOf", (True,))):
            message = f"{_name(pointer)} {schema.get('x-message', 'does not fit')}"
            at_key = not refused or schema.get("x-at-key", False)
            code, hint = rule or self.codes.misfit, schema.get("x-hint")
            yield Finding(code, message, pointer, hint, at_key=at_key)

    def _resolve(self, schema: Schema) -> Schema:
        """Return the schema that a reference leads to."""
        while "$ref" in schema:
            schema = self.definitions[schema["$ref"].removeprefix("#/$defs/")]
        return schema

    def _fits(self, value: Json, schema: Schema | bool) -> bool:
        return next(self.findings(value, schema, "", None), None) is None

    def _object(
        self, value: Mapping[str, Json], schema: Schema, pointer: str, rule: str | None
    ) -> Iterator[Finding]:
        advice = schema.get("x-advice", {})
        for key in schema.get("required", ()):
            if key not in value:
                hint = advice.get(key, f"add {key!r}")
                code = rule or self.codes.misfit
                yield Finding(code, f"{key!r} is missing", pointer, hint, at_key=True)
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for key, each in value.items():
            if key in known:
                yield from self.findings(each, known[key], f"{pointer}/{escape(key)}", rule)
            elif others is False:
                yield self._without_effect(key, known, advice, f"{pointer}/{escape(key)}")
            else:
                yield from self.findings(each, others, f"{pointer}/{escape(key)}", rule)

    def _without_effect(
        self, key: str, known: Mapping[str, Any], advice: Mapping[str, str], pointer: str
    ) -> Finding:
        if key in advice:
            message = f"{key!r} has no effect here"
            return Finding(self.codes.near_miss, message, pointer, advice[key], at_key=True)
        hint = did_you_mean(key, known) or "take it out"
        message = f"{key!r} means nothing here, so it has no effect"
        return Finding(self.codes.unknown, message, pointer, hint, at_key=True)


# Values that do not fit


def _complaint(value: Json, schema: Schema) -> str | None:
    """Return what a value must be by the keywords of a schema about it alone, None if it fits."""
    for keyword, find in _KEYWORDS.items():
        if keyword in schema and (complaint := find(value, schema[keyword], schema)) is not None:
            found: str = schema.get("x-message", complaint)
            return found
    return None


def _type(value: Json, wanted: str | list[str], schema: Schema) -> str | None:
    names = wanted if isinstance(wanted, list) else [wanted]
    if type_name(value) in names or (type(value) is int and "integer" in names):
        return None
    if names == ["integer"]:
        return "must be a whole number"
    return f"must be {'an' if names[0][0] in 'aeiou' else 'a'} {' or '.join(names)}"


def _enum(value: Json, choices: list[Json], schema: Schema) -> str | None:
    if any(json_equal(value, each) for each in choices):
        return None
    return f"must be one of {', '.join(map(str, choices))}"


def _const(value: Json, wanted: Json, schema: Schema) -> str | None:
    return _enum(value, [wanted], schema)


def _range(value: Json, bound: float, schema: Schema) -> str | None:
    least, most = schema.get("minimum"), schema.get("maximum")
    if type(value) not in (int, float) or (
        (least is None or least <= value) and (most is None or value <= most)
    ):
        return None
    if most is None:
        return f"must be {least} or more"
    return f"must be {most} or less" if least is None else f"must be from {least} to {most}"


def _min_length(value: Json, least: int, schema: Schema) -> str | None:
    short = isinstance(value, str) and len(value) < least
    return "must not be empty" if short else None


def _pattern(value: Json, pattern: str, schema: Schema) -> str | None:
    if not isinstance(value, str) or _compiled(pattern).search(value):
        return None
    return f"must match {pattern}"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_KEYWORDS: Final[Mapping[str, Callable[[Json, Any, Schema], str | None]]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _range,
    "maximum": _range,
    "minLength": _min_length,
    "pattern": _pattern,
}
"""The keywords about a value alone."""


def _name(pointer: str) -> str:
    holder, _, last = pointer.rpartition("/")
    if last.isdecimal():
        return f"item {last} of {holder.rpartition('/')[2]!r}"
    return repr(last or "the document")


def _misfit(value: Json, schema: Schema, complaint: str, pointer: str, code: str) -> Finding:
    shown = type_name(value)
    if isinstance(value, int | float | str):
        shown = compact(value) if type(value) is bool else repr(value)[:60]
    hint = schema.get("x-hint") or _hint(value, schema, complaint)
    message = f"{_name(pointer)} {complaint}, not {shown}"
    at_key = value is None or schema.get("x-at-key", False)
    return Finding(code, message, pointer, hint, at_key=at_key)


def _hint(value: Json, schema: Schema, complaint: str) -> str:
    if value is None:
        return "leave the key out"
    if "string" in complaint and type(value) in (int, float, bool):
        return "put the text in quotes"
    choices = [each for each in schema.get("enum", ()) if type(each) is str]
    if choices:
        near = did_you_mean(value, choices) if type(value) is str else None
        return near or f"there are {', '.join(choices)}"
    wanted = complaint.removeprefix("must ")
    return f"write {wanted[3:]}" if wanted.startswith("be ") else f"it must {wanted}"
