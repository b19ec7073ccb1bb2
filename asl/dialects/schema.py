"""JSON Schemas of foreign documents, and the findings about a document that does not fit.

A schema is a file in the folder of its dialect. `asl schema NAME` prints it for editors, and the
reader checks documents with the same file. It has the keywords of `_KEYWORDS`, those for objects
and lists, `allOf`, `anyOf`, `not`, `if`, references to its own `$defs`, and annotations:

* `x-rule`: the code of the violated rule, for this schema and those inside it;
* `x-message`: what a value must be or have, in place of the text made from the keywords;
* `x-hint`: what to do about a value that does not fit;
* `x-at-key`: whether a finding is about the key of the value;
* `x-advice`: what to do about properties, by name: about one that is missing, and about one that
  has no effect;
* `x-state`: for editors, that the value names a state of the document.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from types import NoneType
from typing import Any, Final, NamedTuple, TypeAlias

from asl.core.diagnostics import Finding, did_you_mean
from asl.core.pointers import escape
from asl.core.values import Json, Opaque, compact, json_equal, type_name

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

    @cached_property
    def _compiler(self) -> "_Compiler":
        return _Compiler(self.value["$defs"], self.codes)

    @cached_property
    def _root(self) -> "_Node":
        return _Node(self.value, self._compiler)

    def check(self, value: Json, pointer: str = "", part: str | None = None) -> list[Finding]:
        """Return what does not fit, and properties without effect as warnings.

        Args:
            value: The document, or a part of it.
            pointer: JSON Pointer of the value in the author's document.
            part: Name of the definition in `$defs` that the value must fit; None for the whole.
        """
        found: list[Finding] = []
        node = self._root if part is None else self._compiler.definition(part)
        node.check(value, pointer, self.codes.misfit, found)
        return found


class _Compiler:
    """Compiles schemas; a definition is compiled once, when it is first needed."""

    def __init__(self, definitions: Mapping[str, Schema], codes: Codes) -> None:
        self.definitions = definitions
        self.codes = codes
        self.nodes: dict[str, _Node] = {}

    def definition(self, name: str) -> "_Node":
        """Return the compiled definition of this name."""
        node = self.nodes.get(name)
        if node is None:
            node = self.nodes[name] = _Node.__new__(_Node)  # it may refer to itself
            node.__init__(self.definitions[name], self)  # type: ignore[misc]
        return node

    def compile(self, schema: Schema | bool) -> "_Node | None":
        """Return a compiled schema, None for one that every value fits."""
        if isinstance(schema, bool) or not schema.keys() - _ANNOTATIONS:
            return None
        if "$ref" in schema:
            return self.definition(schema["$ref"].removeprefix("#/$defs/"))
        return _Node(schema, self)


def _case(schema: Schema) -> tuple[str, str] | None:
    """Return the property and the text that decide whether a schema applies, None for others."""
    condition = schema.get("if", {})
    if schema.keys() != {"if", "then"} or condition.keys() != {"properties", "required"}:
        return None
    for key, each in condition["properties"].items():
        if condition["required"] == [key] and each.keys() == {"const"}:
            text = each["const"]
            return (key, text) if type(text) is str else None
    return None


class _Node:
    """A compiled schema."""

    def __init__(self, schema: Schema, compiler: _Compiler) -> None:
        compile = compiler.compile
        self.schema = schema
        self.codes = compiler.codes
        self.rule: str | None = schema.get("x-rule")
        names = schema.get("type", ())
        self.types: frozenset[type] | None = None
        if names:
            listed = names if isinstance(names, list) else [names]
            self.types = frozenset(each for name in listed for each in _TYPES[name])
        self.keywords = [(_KEYWORDS[key], schema[key]) for key in schema if key in _KEYWORDS]
        self.required: list[str] = schema.get("required", [])
        self.closed = schema.get("additionalProperties") is False
        self.others = compile(schema.get("additionalProperties", True))
        self.properties = {
            name: compile(each) for name, each in schema.get("properties", {}).items()
        }
        self.items = compile(schema.get("items", True))
        parts = schema.get("allOf", ())
        self.cases = {each: compile(part["then"]) for part in parts if (each := _case(part))}
        self.decisive = dict.fromkeys(key for key, _ in self.cases)
        self.all = [node for each in parts if not _case(each) and (node := compile(each))]
        self.any = [compile(each) for each in schema.get("anyOf", ())]
        self.refused = compile(schema["not"]) if "not" in schema else None
        self.condition = compile(schema["if"]) if "if" in schema else None
        self.then, self.otherwise = (compile(schema.get(key, True)) for key in ("then", "else"))
        self.is_simple = schema.keys() <= _SIMPLE
        self.is_leaf = not schema.keys() - _ANNOTATIONS - {"type"}
        """Whether it is only about the type of a value."""

    def check(self, value: Json, pointer: str, rule: str, found: list[Finding]) -> None:
        """Add the findings about a value; *rule* is the code of the schemas around this one."""
        rule = self.rule or rule
        if self.types is not None and type(value) not in self.types:
            found.append(_misfit(value, self.schema, _wanted(self.schema), pointer, rule))
            return
        for find, operand in self.keywords:
            complaint = find(value, operand, self.schema)
            if complaint is not None:
                found.append(_misfit(value, self.schema, complaint, pointer, rule))
                return
        if type(value) is dict:
            self._check_object(value, pointer, rule, found)
        elif type(value) is list and self.items is not None:
            for index, each in enumerate(value):
                self.items.check(each, f"{pointer}/{index}", rule, found)
        for node in self.all:
            node.check(value, pointer, rule, found)
        if self.cases and type(value) is dict:
            for key in self.decisive:
                chosen = value.get(key)
                case = self.cases.get((key, chosen)) if type(chosen) is str else None
                if case is not None:
                    case.check(value, pointer, rule, found)
        if self.condition is not None:
            branch = self.then if self.condition.fits(value) else self.otherwise
            if branch is not None:
                branch.check(value, pointer, rule, found)
        refused = self.refused is not None and self.refused.fits(value)
        if refused or (self.any and not any(not node or node.fits(value) for node in self.any)):
            message = f"{_name(pointer)} {self.schema.get('x-message', 'does not fit')}"
            at_key = not refused or self.schema.get("x-at-key", False)
            found.append(Finding(rule, message, pointer, self.schema.get("x-hint"), at_key=at_key))

    def fits(self, value: Json) -> bool:
        """Return whether a value fits."""
        if not self.is_simple:
            found: list[Finding] = []
            self.check(value, "", "", found)
            return not found
        if self.types is not None and type(value) not in self.types:
            return False
        if any(find(value, operand, self.schema) for find, operand in self.keywords):
            return False
        if self.refused is not None and self.refused.fits(value):
            return False
        return type(value) is not dict or (
            all(key in value for key in self.required)
            and all(
                node is None or key not in value or node.fits(value[key])
                for key, node in self.properties.items()
            )
        )

    def _check_object(
        self, value: Mapping[str, Json], pointer: str, rule: str, found: list[Finding]
    ) -> None:
        for key in self.required:
            if key not in value:
                hint = self.schema.get("x-advice", {}).get(key, f"add {key!r}")
                found.append(Finding(rule, f"{key!r} is missing", pointer, hint, at_key=True))
        properties, others = self.properties, self.others
        if not properties and not self.closed and others is None:
            return
        for key, each in value.items():
            if key in properties:
                node = properties[key]
            elif self.closed:
                found.append(self._without_effect(key, f"{pointer}/{escape(key)}"))
                continue
            else:
                node = others
            if node is None or (node.is_leaf and node.types and type(each) in node.types):
                continue
            node.check(each, f"{pointer}/{escape(key)}", rule, found)

    def _without_effect(self, key: str, pointer: str) -> Finding:
        advice = self.schema.get("x-advice", {})
        if key in advice:
            message = f"{key!r} has no effect here"
            return Finding(self.codes.near_miss, message, pointer, advice[key], at_key=True)
        hint = did_you_mean(key, self.properties) or "remove it"
        message = f"{key!r} is unknown here and has no effect"
        return Finding(self.codes.unknown, message, pointer, hint, at_key=True)


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (NoneType,),
    "number": (int, float),
    "object": (dict,),
    "string": (str, Opaque),
}
"""The classes of the values of a type."""
_SIMPLE: Final = frozenset(("type", "enum", "const", "required", "properties", "not"))
"""Keywords that `fits` applies without making findings."""
_ANNOTATIONS: Final = frozenset(("title", "description", "$schema", "$id", "$defs", "x-state"))


# Values that do not fit


def _wanted(schema: Schema) -> str:
    """Return what a value must be by the type in a schema."""
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if names == ["integer"]:
        return "must be a whole number"
    return f"must be {'an' if names[0][0] in 'aeiou' else 'a'} {' or '.join(names)}"


def _enum(value: Json, choices: list[Json], schema: Schema) -> str | None:
    kind = type(value)
    for each in choices:
        if (type(each) is kind and each == value) if kind is str else json_equal(value, each):
            return None
    return f"must be one of {', '.join(map(str, choices))}"


def _const(value: Json, wanted: Json, schema: Schema) -> str | None:
    if type(value) is type(wanted) is str:
        return None if value == wanted else f"must be {wanted}"
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
    if not isinstance(value, str) or re.search(pattern, value):
        return None
    return f"must match {pattern}"


_KEYWORDS: Final[Mapping[str, Callable[[Json, Any, Schema], str | None]]] = {
    "enum": _enum,
    "const": _const,
    "minimum": _range,
    "maximum": _range,
    "minLength": _min_length,
    "pattern": _pattern,
}
"""The keywords about a value alone, besides its type."""


def _name(pointer: str) -> str:
    holder, _, last = pointer.rpartition("/")
    if last.isdecimal():
        return f"item {last} of {holder.rpartition('/')[2]!r}"
    return repr(last or "the document")


def _misfit(value: Json, schema: Schema, complaint: str, pointer: str, code: str) -> Finding:
    complaint = schema.get("x-message", complaint)
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
