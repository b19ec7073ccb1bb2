"""Whether a value keeps to a JSON Schema, as one closure a schema.

Almost every document is right, and to say so takes neither the words for faults nor the import of a
library that costs more than all else in a small run. What is not accepted here goes to the library.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from asl.core.values import Json

__all__ = ["Accepts", "compile_schema"]

Accepts: TypeAlias = Callable[[Json], bool]
_Schema: TypeAlias = Mapping[str, Any]


def compile_schema(schema: _Schema) -> Accepts:
    """Return what accepts just the values that a schema allows; it may lead back to itself.

    The schema has no references. Raises KeyError for a keyword that our schemas do not use.
    """
    return _Acceptance().of(schema)


class _Acceptance:
    """Makes closures of schemas, one of each."""

    def __init__(self) -> None:
        self.made: dict[int, list[Accepts]] = {}
        """What came of each schema, by its identity; empty as long as it is under way."""

    def of(self, schema: Any) -> Accepts:
        if type(schema) is bool:
            return _anything if schema else _nothing
        made = self.made.get(id(schema))
        if made is None:
            made = self.made[id(schema)] = []
            tests = [self._test(keyword, wanted, schema) for keyword, wanted in schema.items()]
            if not _OF_MEMBERS.isdisjoint(schema):
                tests.append(self._members(schema))
            made.append(_every(tests))
        elif not made:
            return lambda value: made[0](value)
        return made[0]

    def _test(self, keyword: str, wanted: Any, schema: _Schema) -> Accepts:
        if keyword.startswith("x-") or keyword in _OF_MEMBERS or keyword in _BESIDE:
            return _anything
        if keyword in _APPLYING:
            return _APPLYING[keyword](self, wanted, schema)
        return _ASSERTING[keyword](wanted)

    def _members(self, schema: _Schema) -> Accepts:
        patterns = [
            (re.compile(pattern).search, self.of(each))
            for pattern, each in schema.get("patternProperties", {}).items()
        ]
        named = {
            name: _every([self.of(each), *(test for found, test in patterns if found(name))])
            for name, each in schema.get("properties", {}).items()
        }
        others = self.of(schema.get("additionalProperties", True))

        def by_pattern(name: str, item: Json) -> bool:
            tests = [test for found, test in patterns if found(name)]
            return all(test(item) for test in tests or (others,))

        def accepts(value: Json) -> bool:
            if type(value) is dict:
                for name, item in value.items():
                    test = named.get(name)
                    if test is _anything:
                        continue
                    if test is not None:
                        if not test(item):
                            return False
                    elif not (by_pattern(name, item) if patterns else others(item)):
                        return False
            return True

        return accepts

    def items(self, wanted: Any, schema: _Schema) -> Accepts:
        each = self.of(wanted)
        return lambda value: type(value) is not list or all(map(each, value))

    def names(self, wanted: Any, schema: _Schema) -> Accepts:
        each = self.of(wanted)
        return lambda value: type(value) is not dict or all(map(each, value))

    def all_of(self, wanted: Any, schema: _Schema) -> Accepts:
        return _every([self.of(each) for each in wanted])

    def any_of(self, wanted: Any, schema: _Schema) -> Accepts:
        return _any([self.of(each) for each in wanted])

    def none_of(self, wanted: Any, schema: _Schema) -> Accepts:
        accepts = self.of(wanted)
        return lambda value: not accepts(value)

    def choice(self, wanted: Any, schema: _Schema) -> Accepts:
        condition, then = self.of(wanted), self.of(schema.get("then", True))
        otherwise = self.of(schema.get("else", True))
        return lambda value: then(value) if condition(value) else otherwise(value)


_Applying: TypeAlias = Callable[[_Acceptance, Any, _Schema], Accepts]

_APPLYING: Mapping[str, _Applying] = {
    "items": _Acceptance.items,
    "propertyNames": _Acceptance.names,
    "allOf": _Acceptance.all_of,
    "anyOf": _Acceptance.any_of,
    "not": _Acceptance.none_of,
    "if": _Acceptance.choice,
}
_OF_MEMBERS = frozenset({"properties", "patternProperties", "additionalProperties"})
"""What says together which members an object may have."""
_BESIDE = frozenset({"then", "else", "default", "examples"})
"""What says nothing by itself."""


def _anything(value: Json) -> bool:
    return True


def _nothing(value: Json) -> bool:
    return False


def _every(tests: list[Accepts]) -> Accepts:
    needed = [test for test in tests if test is not _anything]
    if not needed:
        return _anything
    if len(needed) == 1:
        return needed[0]

    def every(value: Json) -> bool:
        for test in needed:  # noqa: SIM110 - a generator costs more than most tests
            if not test(value):
                return False
        return True

    return every


def _any(tests: list[Accepts]) -> Accepts:
    def some(value: Json) -> bool:
        for test in tests:  # noqa: SIM110 - as above
            if test(value):
                return True
        return False

    return some


def _number(value: Json) -> bool:
    return type(value) is int or type(value) is float


_KINDS: Mapping[str, Accepts] = {
    "object": lambda value: type(value) is dict,
    "array": lambda value: type(value) is list,
    "string": lambda value: type(value) is str,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
    "number": _number,
    "integer": lambda value: _number(value) and value == value // 1,
}


def _type(wanted: Any) -> Accepts:
    if type(wanted) is str:
        return _KINDS[wanted]
    return _any([_KINDS[each] for each in wanted])


def _enum(wanted: Any) -> Accepts:
    return lambda value: any(_same(value, each) for each in wanted)


def _same(value: Json, other: Json) -> bool:
    """Whether two atoms are one; to JSON, true is not 1."""
    return bool(value == other) and (type(value) is bool) == (type(other) is bool)


def _pattern(wanted: str) -> Accepts:
    # Compiled by the library's cache when a value comes: most patterns never meet one.
    return lambda value: type(value) is not str or re.search(wanted, value) is not None


def _of_numbers(fits: Callable[[Json, Any], bool]) -> Callable[[Any], Accepts]:
    return lambda bound: lambda value: not _number(value) or fits(value, bound)


def _of_size(
    kind: type[str | list[Json] | dict[str, Json]], fits: Callable[[int, int], bool]
) -> Callable[[int], Accepts]:
    return lambda bound: lambda value: not isinstance(value, kind) or fits(len(value), bound)


def _unique(wanted: bool) -> Accepts:
    def accepts(value: Json) -> bool:
        if type(value) is not list:
            return True
        return not any(_same(each, other) for i, each in enumerate(value) for other in value[:i])

    return accepts if wanted else _anything


def _required(wanted: list[str]) -> Accepts:
    if len(wanted) == 1:
        only = wanted[0]
        return lambda value: type(value) is not dict or only in value
    names = frozenset(wanted)
    return lambda value: type(value) is not dict or names <= value.keys()


_ASSERTING: Mapping[str, Callable[[Any], Accepts]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda wanted: lambda value: _same(value, wanted),
    "pattern": _pattern,
    "minimum": _of_numbers(lambda value, bound: value >= bound),
    "maximum": _of_numbers(lambda value, bound: value <= bound),
    "exclusiveMinimum": _of_numbers(lambda value, bound: value > bound),
    "exclusiveMaximum": _of_numbers(lambda value, bound: value < bound),
    "minLength": _of_size(str, lambda length, bound: length >= bound),
    "maxLength": _of_size(str, lambda length, bound: length <= bound),
    "minItems": _of_size(list, lambda length, bound: length >= bound),
    "maxItems": _of_size(list, lambda length, bound: length <= bound),
    "minProperties": _of_size(dict, lambda length, bound: length >= bound),
    "uniqueItems": _unique,
    "required": _required,
}
