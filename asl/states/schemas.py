"""The JSON Schemas of the language, and of the state types that packages add."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from asl.core.environment import data_folder
from asl.core.errors import AslError
from asl.core.values import Json
from asl.states.registry import STATE_TYPES

__all__ = [
    "URN",
    "Schema",
    "decides",
    "foreign_fields",
    "free_fields",
    "inert_fields",
    "known_fields",
    "native_fields",
    "resolve_schema",
    "typed_fields",
]

URN: Final = "urn:asl:schema:"
Schema: TypeAlias = Mapping[str, Any]


@cache
def _files() -> Mapping[str, Schema]:
    import orjson

    schemas = [
        orjson.loads(file.read_bytes()) for file in data_folder("schemas").rglob("*.schema.json")
    ]
    # States and agents are validated one at a time, so the schema of their parent accepts any.
    singles: dict[str, Schema] = {f"{URN}{name}": {} for name in ("State", "agents:Agent")}
    return {**{schema["$id"]: schema for schema in schemas}, **singles}


def resolve_schema(reference: str) -> Schema:
    """Return the schema that a reference leads to, as it is written.

    Args:
        reference: `urn:asl:schema:states:Task`, or with a JSON Pointer into it after `#`.

    Raises:
        AslError: There is no such schema.
    """
    urn, _, pointer = reference.partition("#/")
    node: Any = _files().get(urn)
    if node is None:
        added = STATE_TYPES.get(urn.removeprefix(f"{URN}states:"))
        if added is None:
            raise AslError(f"a schema refers to the unknown schema {urn!r}")
        node = added.schema
    for step in filter(None, pointer.split("/")):
        node = node[step]
    schema: Schema = node
    return schema


@cache
def known_fields(name: str) -> frozenset[str]:
    """Return the fields that a schema names: `known_fields("states:Task")`."""
    return frozenset(resolve_schema(URN + name)["properties"])


@cache
def inert_fields(name: str) -> frozenset[str]:
    """Return the fields that a schema marks as without effect on a run (`x-inert`)."""
    properties = resolve_schema(URN + name)["properties"]
    return frozenset(field for field, schema in properties.items() if "x-inert" in schema)


@cache
def native_fields(name: str) -> frozenset[str]:
    """Return the fields that Amazon's language does not have (`x-native`)."""
    properties = resolve_schema(URN + name)["properties"]
    return frozenset(field for field, schema in properties.items() if "x-native" in schema)


def decides(name: str, field: str, value: Json) -> bool:
    """Return whether a field decides about the path or the output of a run (`x-decides`).

    Args:
        name: Name of the schema of a state or a document.
        field: Name of the field.
        value: Value of the field; a member of it may be what decides.
    """
    schema = resolve_schema(URN + name)["properties"].get(field, {})
    block = resolve_schema(schema["$ref"]) if "$ref" in schema else {}
    members = block.get("properties", {})
    given = (key.removesuffix(".$") for key in value) if isinstance(value, dict) else ()
    inner = any("x-decides" in members.get(key, {}) for key in given)
    return inner or "x-decides" in schema or "x-decides" in block


@cache
def foreign_fields(name: str, kind: str) -> frozenset[str]:
    """Return the fields of a block that mean something for other state types alone (`x-states`).

    Args:
        name: The schema of the block: `blocks:Progress`.
        kind: The name of a state type.
    """
    properties = resolve_schema(URN + name)["properties"]
    return frozenset(
        field
        for field, schema in properties.items()
        if "x-states" in schema and kind not in schema["x-states"]
    )


@cache
def typed_fields(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the fields of an object that belong to one of its types (`x-type`), by that type.

    Args:
        name: The schema of the object: `blocks:GuardrailRule`.
    """
    properties = resolve_schema(URN + name)["properties"]
    types = {field: schema["x-type"] for field, schema in properties.items() if "x-type" in schema}
    return {
        kind: tuple(field for field in types if types[field] == kind) for kind in types.values()
    }


@cache
def free_fields() -> frozenset[str]:
    """Return the names of fields of blocks that hold an object of the author (`x-free`)."""
    return frozenset(name for schema in _files().values() for name in _free_in(schema))


def _free_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from _free_in(each)
    if isinstance(schema, dict):
        for name, each in schema.items():
            if isinstance(each, dict) and each.get("x-free") is True:
                yield name
            yield from _free_in(each)
