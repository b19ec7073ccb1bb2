"""What a value or a field that a schema refuses was probably meant to be: the hints."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from asl.core.diagnostics import Suggestions
from asl.core.json_text import read_data
from asl.core.lazy import lazy_pattern
from asl.core.schemas import jsonschema
from asl.core.values import Json, compact
from asl.expr.templates import SUFFIX

__all__ = ["declares", "field_hint", "renamed_field_hint", "value_hint"]

Schema: TypeAlias = Mapping[str, Any]
"""A schema without references."""
FEW = 12
"""Fields of an object that a hint names where no other is meant by a misspelt one."""
HOLDERS = 3
"""Objects one level below that a hint names as the place of a field."""
LONGEST = 40
"""Characters of a value that a hint repeats."""
IN_JSONATA: Mapping[str, str] = {"Parameters": "Arguments", "ItemsPath": "Items"}
"""The fields of JSONPath that JSONata calls otherwise."""
OLD_BOOLEANS: Mapping[str, bool] = {"yes": True, "on": True, "no": False, "off": False}
"""What YAML took for booleans until its version 1.2."""
_WORDS = lazy_pattern(r"[^\s,]+")
_LIST = lazy_pattern(r"[^\s,]+(?:,\s*[^\s,]+)+")
"""Words that are separated by commas."""
_REFERS = lazy_pattern(r"\$\$?(?:[.\[]|$)|\$[A-Za-z_]|States\.\w+\(")
"""The beginning of a path or an intrinsic call."""


def declares(schema: Schema, field: str) -> bool:
    """Whether a schema names a field, or has a pattern for names such as this."""
    patterns = schema.get("patternProperties", ())
    return field in schema.get("properties", ()) or any(re.search(each, field) for each in patterns)


# --------------------------------------------------------------------------------------------
# Fields


def field_hint(
    field: str,
    schema: Schema,
    suggestions: Suggestions,
    around: Iterable[Schema],
    jsonata: bool = False,
) -> str | None:
    """Return the hint at the field that is meant by one that *schema* does not know.

    Args:
        field: The unknown field.
        schema: The schema of the object that holds it.
        suggestions: Finds fields of a similar name.
        around: The schemas of the object around, if any: the field may belong there.
        jsonata: Whether the state is in JSONata.
    """
    known = schema["properties"]
    hint = renamed_field_hint(field, schema, jsonata) or suggestions.near(field, known)
    if hint is None:
        hint = _level_hint(field, known, around)
    if hint is None and len(known) <= FEW:
        return f"there are {', '.join(known)}"
    return hint


def _level_hint(field: str, known: Mapping[str, Schema], around: Iterable[Schema]) -> str | None:
    """Return the hint at the object one level below or above that has a field of this name."""
    holders = [name for name, member in known.items() if field in _fields(member)]
    if 0 < len(holders) <= HOLDERS:
        return f"it is a field of {' or '.join(map(repr, holders))}: write it there"
    if any(field in _fields(each) for each in around):
        return "it is a field of the object around this one: write it there"
    return None


def _fields(schema: Schema) -> set[str]:
    """Return the fields of a value of any kind that a schema accepts."""
    forms = (schema, *(schema[each] for each in ("then", "else") if each in schema))
    return {field for form in forms for field in form.get("properties", {})}


def renamed_field_hint(field: str, schema: Schema, jsonata: bool = False) -> str | None:
    """Return the hint at what the language calls by another word, or has at another place."""
    for word, meant in schema.get("x-meant", {}).items():
        if word.casefold() == field.replace("_", "").casefold():
            return _at(IN_JSONATA.get(meant, meant) if jsonata else meant)
    return None


def _at(way: str) -> str:
    """Return the hint at a field that may be one of another field: `Policy.Approvers`."""
    field, *within = way.split(".")
    if not within:
        return f"did you mean {field!r}?"
    value = "..."
    for each in reversed(within):
        value = f"{{{compact(each)}: {value}}}"
    return f"write {compact(field)}: {value}"


# --------------------------------------------------------------------------------------------
# Values


def value_hint(
    error: Any, holder: Schema, suggestions: Suggestions, jsonata: bool = False
) -> str | None:
    """Return the hint at the value that is meant; *holder* is the schema of what has it."""
    written, wanted, schema = error.instance, error.validator_value, error.schema
    if type(written) is list and list(error.absolute_path)[-1:] == ["States"]:
        return 'write each state under its name: "States": {"First": {...}}'
    if error.validator == "type":
        if wanted == "array":
            return next(_in_array(written, schema), None)
        if "x-bare" in schema and _fits(written, schema["properties"][schema["x-bare"]]):
            return f"write {{{compact(schema['x-bare'])}: {_shown(written)}}}"
    if type(written) is not str:
        return None
    hint = _computed(written, error, holder, jsonata)
    if hint is not None:
        return hint
    if wanted == "boolean" and written.lower() in OLD_BOOLEANS:
        return f"write {compact(OLD_BOOLEANS[written.lower()])}"
    if error.validator == "enum":
        near = suggestions.near(written, [value for value in wanted if type(value) is str])
        if near is not None:
            return near
    return f"write {written} without quotes" if _quoted(written, schema) else None


def _computed(written: str, error: Any, holder: Schema, jsonata: bool) -> str | None:
    """Return how a value is computed in JSONPath, where it is to be."""
    steps = error.absolute_path
    if jsonata or not steps or type(steps[-1]) is not str:
        return None
    names = [name for name in (steps[-1] + SUFFIX, f"{steps[-1]}Path") if declares(holder, name)]
    if names and _REFERS.match(written):
        return f"write {compact(names[0])}: {_shown(written)}"
    if written.startswith("{%") and names:
        return f'write {compact(names[0])}, or set "QueryLanguage": "JSONata"'
    return None


def _in_array(written: Json, schema: Schema) -> Iterator[str]:
    """Yield the arrays that are probably meant by one value."""
    of_items = {"type": schema["items"]["type"]} if "type" in schema.get("items", {}) else {}
    bounds = {name: schema[name] for name in ("minItems", "maxItems") if name in schema}
    arrays = [[written]]
    if type(written) is str and schema.get("x-words"):
        arrays = [_words(written)]
    elif type(written) is str and _LIST.fullmatch(written):
        arrays = [_WORDS.findall(written), [written]]
    for array in arrays:
        if _fits(array, {"items": of_items, **bounds}):
            yield f"put it in an array: {_shown(array)}"


def _words(command: str) -> list[Json]:
    """Return the words of a command that is written as one text, as a shell reads it."""
    from shlex import split

    try:
        return list(split(command))
    except ValueError:  # a quotation that does not end
        return [command]


def _shown(value: Json) -> str:
    """Return a value as a hint repeats it."""
    text = compact(value)
    if len(text) <= LONGEST:
        return text
    return "[...]" if type(value) is list else "..."


def _quoted(text: str, schema: Schema) -> bool:
    """Whether a text is what the schema wants, but for its quotes."""
    try:
        value = read_data(text)
    except ValueError:
        return False
    return type(value) in (int, float, bool) and _fits(value, schema)


def _fits(value: Json, schema: Schema) -> bool:
    return bool(jsonschema().Draft202012Validator(schema).is_valid(value))
