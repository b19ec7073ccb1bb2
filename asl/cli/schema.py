"""`asl schema`: the JSON Schemas of the language, piece by piece or as one."""

import json
from pathlib import Path

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.resources import folder
from asl.core.values import Json

__all__ = ["bundle", "command"]

ENDING = ".schema.json"
PREFIX = "urn:asl:schema:"


@click.command("schema")
@click.argument("name", metavar="[NAME]", default="asl")
@click.option("--bundle", "bundled", is_flag=True, help="Print one schema that holds all others.")
@click.option("--list", "listed", is_flag=True, help="Print the names of the schemas.")
def command(name: str, bundled: bool, listed: bool) -> Exit:
    """Print the JSON Schema (2020-12) of documents, or of one piece: Task, Retrier, Budget, ..."""
    files = _files()
    if listed:
        streams.result("\n".join(files))
    elif bundled:
        streams.result(json.dumps(bundle(name), ensure_ascii=False, indent=2))
    else:
        streams.result(files[_name(name, files)].read_text(encoding="utf-8"))
    return Exit.OK


def bundle(name: str = "asl") -> dict[str, Json]:
    """Return one schema in which every reference is local, with the piece *name* as its root."""
    files = _files()
    definitions = {}
    for path in files.values():
        text = path.read_text(encoding="utf-8")
        text = text.replace(f'"$ref": "{PREFIX}', '"$ref": "#/$defs/')
        schema = json.loads(text.replace("common#/$defs/", "common/$defs/"))
        definitions[schema.pop("$id").removeprefix(PREFIX)] = schema
    root = json.loads(files[_name(name, files)].read_text(encoding="utf-8"))
    return {
        "$schema": root["$schema"],
        "$ref": f"#/$defs/{root['$id'].removeprefix(PREFIX)}",
        "$defs": definitions,
    }


def _files() -> dict[str, Path]:
    """The schema files by their names: `asl`, `State`, `states/Task`, ..."""
    root = folder("schemas")
    paths = sorted(root.rglob(f"*{ENDING}"))
    return {path.relative_to(root).as_posix().removesuffix(ENDING): path for path in paths}


def _name(wanted: str, files: dict[str, Path]) -> str:
    """Find a name; the folder may be left out."""
    short = {name.rpartition("/")[2].casefold(): name for name in files}
    if wanted in files:
        return wanted
    if wanted.casefold() in short:
        return short[wanted.casefold()]
    known = [*files, *(name.rpartition("/")[2] for name in files)]
    hint = did_you_mean(wanted, known) or "'asl schema --list' names all"
    raise AslError(f"there is no schema {wanted!r} ({hint})")
