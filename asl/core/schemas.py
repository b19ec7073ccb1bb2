"""Validate values by JSON Schemas with counted work.

Schemas come from documents and agents, values from models: a `WorkMeter` counts the work, RE2
matches patterns, and references are never fetched. A pattern that RE2 does not support matches
everything.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache
from importlib.util import find_spec
from math import prod
from types import ModuleType
from typing import Any, Final

from asl.core.diagnostics import Finding
from asl.core.lazy import lazy_pattern
from asl.core.pointers import escape
from asl.core.regex import find_all, linear
from asl.core.values import Json, compact, measure
from asl.core.work import LIMITS, WorkExceeded, WorkLimits, WorkMeter

__all__ = [
    "faults",
    "identity",
    "input_schema",
    "jsonschema",
    "judge",
    "schema_errors",
    "schema_faults",
]

GRAMMARS: Final = "rfc3987_syntax"
"""Compiles 38 grammars when it is imported, which takes seconds of processor time."""


@cache
def jsonschema() -> Any:
    """Return the module jsonschema; the grammars of the format `iri` are imported on use."""
    deferred = "jsonschema" not in sys.modules and GRAMMARS not in sys.modules
    if deferred and find_spec(GRAMMARS) is not None:
        sys.modules[GRAMMARS] = _Deferred(GRAMMARS)
    try:
        import jsonschema as library
    finally:
        if isinstance(sys.modules.get(GRAMMARS), _Deferred):
            del sys.modules[GRAMMARS]
    return library


class _Deferred(ModuleType):
    """A stand-in for the grammar module while jsonschema is imported."""

    @staticmethod
    def is_valid_syntax(term: str, value: str) -> bool:
        """Return whether a value has the syntax of a term, as the real module decides."""
        from importlib import import_module

        return bool(import_module(GRAMMARS).is_valid_syntax(term, value))


SCHEMAS: Final = WorkLimits(steps=4_000_000)
"""Work limits for validating a schema; several keywords of the draft apply to each of its own."""
SHOWN: Final = 10
"""Faults of one value that are reported."""
KEYWORD: Final = 32
"""Steps of one keyword against one value."""
REFERENCE: Final = 150
"""Steps of one lookup of a reference."""
ERROR: Final = 80
"""Steps of one error."""
NODE: Final = 4
"""Steps of one part of a value that is compared."""
SEARCH: Final = 12
"""Steps of one search for a pattern in a short text."""
COMPILED: Final = 400
"""Steps of compiling a pattern, for each time that it repeats a part."""
COUNT: Final = lazy_pattern(r"\{(?:\d+,)?(\d+),?\}")
MOST_REPEATS: Final = 1000
"""How often RE2 lets a pattern repeat a part."""
CHARACTERS: Final = 24
"""Characters of text that are written or searched in one step."""


class _Judgement:
    """One validation: its meter, and the cached values and patterns of its schema."""

    __slots__ = ("choices", "meter", "patterns")

    def __init__(self, meter: WorkMeter) -> None:
        self.meter = meter
        self.choices: dict[int, frozenset[Hashable]] = {}
        self.patterns: dict[str, tuple[Any, int]] = {}

    def among(self, value: Json, choices: list[Json]) -> bool:
        """Return whether a value equals one of the choices in the schema."""
        known = self.choices.get(id(choices))
        if known is None:
            known = frozenset(identity(each, self.meter) for each in choices)
            self.choices[id(choices)] = known
        return identity(value, self.meter) in known

    def has_match(self, pattern: str, text: str) -> bool:
        """Return whether a pattern is found in a text; an unsupported pattern always is."""
        if pattern not in self.patterns:
            self.patterns[pattern] = self._compile(pattern)
        compiled, repeats = self.patterns[pattern]
        self.meter.spend(SEARCH + len(text) * (6 + repeats) // 150)
        if compiled is None:
            return True
        return next(find_all(compiled, text, self.meter.spend), None) is not None

    def _compile(self, pattern: str) -> tuple[Any, int]:
        """Return a compiled pattern, None if RE2 does not support it, and its repeats."""
        counts = (int(each[:4]) or 1 for each in COUNT.findall(pattern))
        repeats = min(prod(counts), MOST_REPEATS)
        self.meter.spend(COMPILED * repeats + len(pattern))
        try:
            return linear(pattern), repeats
        except ValueError:
            return None, repeats

    def matching_names(self, schema: Any, value: Mapping[str, Json]) -> set[str]:
        """Return the names of an object that match `patternProperties`."""
        patterns: Mapping[str, Any] = schema.get("patternProperties", {})
        return {name for name in value if any(self.has_match(each, name) for each in patterns)}

    def covered_names(self, validator: Any, value: Mapping[str, Json], schema: Any) -> set[str]:
        """Return the names of an object that the keywords of a schema cover."""
        if type(schema) is not dict:
            return set()
        self.meter.spend(KEYWORD + len(schema))
        names = self.matching_names(schema, value)
        names.update(schema.get("properties", {}).keys() & value.keys())
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in schema:
                rest = schema[keyword]
                names.update(name for name in value if _fits(validator, value[name], rest))
        for each in self._alike(validator, value, schema):
            names |= self.covered_names(validator, value, each)
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in schema:
                target = validator._resolver.lookup(schema[keyword])
                there = validator.evolve(schema=target.contents, _resolver=target.resolver)
                names |= self.covered_names(there, value, target.contents)
        return names

    def _alike(self, validator: Any, value: Json, schema: Any) -> Iterator[Any]:
        """Yield the subschemas that apply to the same object and accept it."""
        for keyword in ("allOf", "oneOf", "anyOf"):
            yield from (each for each in schema.get(keyword, ()) if _fits(validator, value, each))
        for name, each in schema.get("dependentSchemas", {}).items():
            if name in value:
                yield each
        if "if" in schema:
            fits = _fits(validator, value, schema["if"])
            if fits:
                yield schema["if"]
            yield schema.get("then" if fits else "else", True)


def _fits(validator: Any, value: Json, schema: Any) -> bool:
    return next(validator.descend(value, schema), None) is None


_JUDGEMENT: ContextVar[_Judgement] = ContextVar("judgement")
"""The judgement that is made now: validators are kept, judgements are not."""


def faults(schema: Json, value: Json) -> str:
    """Return the violations of a schema of draft 2020-12 as one text, empty if there are none."""
    try:
        found = judge(compact(schema), "Draft202012Validator", value)
    except WorkExceeded as error:
        return f"the value cannot be judged by its schema: {error}"
    found.sort(key=lambda each: each.json_path)
    return "; ".join(f"{each.json_path}: {each.message[:300]}" for each in found[:SHOWN])


def judge(
    schema: str,
    draft: str,
    value: Json,
    limits: WorkLimits = LIMITS,
    formats: frozenset[str] = frozenset(),
) -> list[Any]:
    """Validate a value and return the errors.

    Args:
        schema: The schema, as JSON.
        draft: The name of jsonschema's class for the draft.
        value: The value to validate.
        limits: Bounds of the work.
        formats: Names of the values of `format` that are validated.

    Raises:
        WorkExceeded: It takes more work, or the schema refers to itself without end.
    """
    meter = WorkMeter(limits)
    size = measure(value, limits.bytes)
    meter.spend_bytes(size)
    meter.spend(size // CHARACTERS)
    token = _JUDGEMENT.set(_Judgement(meter))
    try:
        return list(_validator(schema, draft, formats).iter_errors(value))
    except RecursionError:
        raise WorkExceeded("levels", limits.levels) from None
    finally:
        _JUDGEMENT.reset(token)


def schema_errors(schema: Json, draft: str) -> list[Any]:
    """Return the errors of a schema against its draft; raises WorkExceeded."""
    meta = getattr(jsonschema(), draft).META_SCHEMA
    return judge(compact(meta), draft, schema, SCHEMAS)


def input_schema(metadata: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the `InputSchema` in the metadata of a document; an empty one without a valid one."""
    schema = metadata.get("InputSchema")
    if type(schema) is not dict:
        return {}
    try:
        return {} if schema_errors(schema, "Draft202012Validator") else schema
    except WorkExceeded:
        return {}


def identity(
    value: Json, meter: WorkMeter, floats_differ: bool = False, level: int = 1
) -> Hashable:
    """Return a key that is equal for equal JSON values only; *floats_differ* parts 1 from 1.0."""
    meter.spend(NODE)
    kind = type(value)
    if kind is not list and kind is not dict:
        return (kind, value) if kind is bool or (floats_differ and kind is float) else value
    meter.enter(level)
    below = level + 1
    if kind is list:
        return ("array", *(identity(item, meter, floats_differ, below) for item in value))
    return frozenset(
        (key, identity(item, meter, floats_differ, below)) for key, item in value.items()
    )


@lru_cache(maxsize=256)
def _validator(schema: str, draft: str, formats: frozenset[str]) -> Any:
    from referencing import Registry

    checker = jsonschema().FormatChecker(formats) if formats else None
    # Other readers take no integers beyond 64 bits as they are.
    return _counting(draft)(json.loads(schema), registry=Registry(), format_checker=checker)


@cache
def _counting(draft: str) -> Any:
    """Return a validator class of jsonschema whose keywords count their work.

    Keywords that compare values or match patterns are our own.
    """
    kind: Any = getattr(jsonschema(), draft)
    keywords = {**kind.VALIDATORS, **_own_keywords(kind.VALIDATORS)}
    counted = {name: _counted(name, check) for name, check in keywords.items()}
    counting = jsonschema().validators.extend(kind, counted)
    evolve = counting.evolve

    def evolve_alike(validator: Any, **changes: Any) -> Any:
        # A `$schema` within the schema would bring back jsonschema's own classes.
        schema = changes.get("schema", validator.schema)
        if type(schema) is dict and "$schema" in schema:
            changes["schema"] = {key: schema[key] for key in schema if key != "$schema"}
        return evolve(validator, **changes)

    counting.evolve = evolve_alike
    return counting


_Check = Callable[[Any, Any, Any, Any], "Iterator[Any] | None"]
_WALKS: Final = {"items": 1, "additionalItems": 1, "contains": KEYWORD, "propertyNames": 1}
"""Keywords that look at every part of a value, and the steps of one part: a part is judged by a
schema whose keywords count by themselves, but `contains` makes a judgement of its own for each."""


def _counted(name: str, check: _Check) -> _Check:
    """Return a keyword's check that counts its work and the messages that it writes."""
    from referencing.exceptions import Unresolvable

    fixed = REFERENCE if name.endswith("Ref") or name == "$ref" else KEYWORD
    each = 1 if name.startswith("unevaluated") else _WALKS.get(name, 0)

    def counting(validator: Any, wanted: Any, value: Json, schema: Any) -> Iterator[Any]:
        meter = _JUDGEMENT.get().meter
        meter.spend(fixed + _width(wanted) + each * _width(value))
        try:
            for error in check(validator, wanted, value, schema) or ():
                meter.spend(ERROR + len(error.message) // CHARACTERS)
                yield error
        except Unresolvable as error:
            yield jsonschema().ValidationError(f"the schema has no {error.ref!r}")

    return counting


def _width(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _own_keywords(checks: Mapping[str, _Check]) -> dict[str, _Check]:
    """Return the checks of keywords that jsonschema would not do in linear time."""

    def pattern(validator: Any, wanted: str, value: Json, schema: Any) -> Iterator[Any]:
        if type(value) is str and not _JUDGEMENT.get().has_match(wanted, value):
            yield jsonschema().ValidationError(f"{value[:200]!r} does not match {wanted!r}")

    def properties(
        validator: Any, wanted: Mapping[str, Any], value: Json, schema: Any
    ) -> Iterator[Any]:
        judgement = _JUDGEMENT.get()
        for key, each in wanted.items() if type(value) is dict else ():
            for name, part in value.items():
                if judgement.has_match(key, name):
                    yield from validator.descend(part, each, path=name, schema_path=key)

    def additional(validator: Any, wanted: Any, value: Json, schema: Any) -> Any:
        if type(value) is not dict:
            return ()
        known = dict.fromkeys(_JUDGEMENT.get().matching_names(schema, value), True)
        named = {"properties": {**schema.get("properties", {}), **known}}
        return checks["additionalProperties"](validator, wanted, value, named)

    def unevaluated(validator: Any, wanted: Any, value: Json, schema: Any) -> Any:
        if type(value) is not dict:
            return ()
        names = _JUDGEMENT.get().covered_names(
            validator, value, {**schema, "unevaluatedProperties": False}
        )
        named = {"properties": dict.fromkeys(names, True)}
        return checks["unevaluatedProperties"](validator, wanted, value, named)

    def const(validator: Any, wanted: Json, value: Json, schema: Any) -> Iterator[Any]:
        meter = _JUDGEMENT.get().meter
        if identity(value, meter) != identity(wanted, meter):
            yield jsonschema().ValidationError(f"{wanted!r} was expected")

    def enum(validator: Any, wanted: list[Json], value: Json, schema: Any) -> Iterator[Any]:
        if not _JUDGEMENT.get().among(value, wanted):
            yield jsonschema().ValidationError(f"{value!r} is not one of {wanted!r}")

    def unique(validator: Any, wanted: bool, value: Json, schema: Any) -> Iterator[Any]:
        meter = _JUDGEMENT.get().meter
        if not wanted or type(value) is not list:
            return
        if len({identity(item, meter) for item in value}) < len(value):
            yield jsonschema().ValidationError(f"{value!r} has non-unique elements")

    def multiple(validator: Any, wanted: Any, value: Json, schema: Any) -> Iterator[Any]:
        try:
            yield from checks["multipleOf"](validator, wanted, value, schema) or ()
        except OverflowError:  # of an integer and a fraction that is no double
            from fractions import Fraction

            if Fraction(value) % Fraction(wanted):
                yield jsonschema().ValidationError(f"{value!r} is not a multiple of {wanted!r}")

    own: dict[str, _Check] = {
        "multipleOf": multiple,
        "pattern": pattern,
        "patternProperties": properties,
        "additionalProperties": additional,
        "const": const,
        "enum": enum,
        "uniqueItems": unique,
        "unevaluatedProperties": unevaluated,
    }
    return {name: check for name, check in own.items() if name in checks}


def schema_faults(rule: str, schema: Json, pointer: str) -> Iterator[Finding]:
    """Yield why a value at *pointer* is no JSON Schema (2020-12)."""
    try:
        errors = schema_errors(schema, "Draft202012Validator")
    except WorkExceeded as excess:
        yield Finding(rule, f"the schema is too large or too deep to check: {excess}", pointer)
        return
    for error in errors:
        place = "".join(f"/{escape(str(step))}" for step in error.absolute_path)
        yield Finding(rule, f"no JSON Schema: {error.message[:200]}", pointer + place)
