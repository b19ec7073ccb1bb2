"""`asl schema`: the JSON Schemas of the language, piece by piece or as one."""

import json
from collections.abc import Iterable, Mapping

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.core.diagnostics import did_you_mean
from asl.core.environment import data_folder
from asl.core.errors import AslError
from asl.core.values import Json
from asl.states import STATE_TYPES

__all__ = ["bundle", "command"]

ENDING = ".schema.json"
PREFIX = "urn:asl:schema:"


@click.command("schema")
@click.argument("name", metavar="[NAME]", default="asl")
@click.option("--bundle", "bundled", is_flag=True, help="Print one schema that holds all others.")
@click.option("--list", "listed", is_flag=True, help="Print the names of the schemas.")
def command(name: str, bundled: bool, listed: bool) -> Exit:
    """Print the JSON Schema (2020-12) of documents, or of one piece: Task, Retrier, Budget, ..."""
    schemas = _schemas()
    if listed:
        streams.result("\n".join(schemas))
    elif bundled:
        streams.result(json.dumps(bundle(name), ensure_ascii=False, indent=2))
    else:
        streams.result(schemas[_name(name, schemas)])
    return Exit.OK


def bundle(name: str = "asl") -> dict[str, Json]:
    """Return one schema in which every reference is local, with the piece *name* as its root."""
    schemas = _schemas()
    definitions = {}
    for text in schemas.values():
        local = text.replace(f'"$ref": "{PREFIX}', '"$ref": "#/$defs/')
        schema = json.loads(local.replace("common#/$defs/", "common/$defs/"))
        definitions[schema.pop("$id").removeprefix(PREFIX)] = schema
    root = json.loads(schemas[_name(name, schemas)])
    return {
        "$schema": root["$schema"],
        "$ref": f"#/$defs/{root['$id'].removeprefix(PREFIX)}",
        "$defs": definitions,
    }


def _schemas() -> dict[str, str]:
    """Return the texts of the schemas by name: `asl`, `State`, `states/Task`, ..."""
    root = data_folder("schemas")
    paths = sorted(root.rglob(f"*{ENDING}"))
    texts = {
        path.relative_to(root).as_posix().removesuffix(ENDING): path.read_text(encoding="utf-8")
        for path in paths
    }
    added = {kind.name: kind.schema for kind in STATE_TYPES.values() if kind.schema is not None}
    if added:
        texts |= {f"states/{name}": _text(schema) for name, schema in added.items()}
        texts["State"] = _text(_with_types(json.loads(texts["State"]), added))
    return texts


def _with_types(state: dict[str, Json], added: Iterable[str]) -> dict[str, Json]:
    """Return the schema of any state that knows the types which packages add."""
    for name in added:
        state["properties"]["Type"]["enum"].append(name)
        state["allOf"].append(
            {
                "if": {"properties": {"Type": {"const": name}}, "required": ["Type"]},
                "then": {"$ref": f"{PREFIX}states:{name}"},
            }
        )
    return state


def _text(schema: Mapping[str, Json]) -> str:
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


def _name(wanted: str, schemas: Mapping[str, str]) -> str:
    """Find a name; the folder may be left out."""
    short = {name.rpartition("/")[2].casefold(): name for name in schemas}
    if wanted in schemas:
        return wanted
    if wanted.casefold() in short:
        return short[wanted.casefold()]
    known = [*schemas, *(name.rpartition("/")[2] for name in schemas)]
    hint = did_you_mean(wanted, known) or "'asl schema --list' names all"
    raise AslError(f"there is no schema {wanted!r} ({hint})")
