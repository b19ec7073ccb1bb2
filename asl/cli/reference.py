"""Commands that print the reference: explain and schema."""

import json
import sys
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TypeAlias

import click

from asl.cli import console
from asl.cli.console import Exit
from asl.core.codes import Code, ErrorName, all_codes, all_error_names
from asl.core.diagnostics import did_you_mean
from asl.core.environment import data_folder
from asl.core.errors import AslError
from asl.core.values import Json
from asl.dialects.registry import all_dialects
from asl.states import STATE_TYPES

__all__ = ["bundle", "explain_command", "schema_command"]

Entries: TypeAlias = Mapping[str, Code | ErrorName]

LIST_HINT = "'asl explain' lists all"
_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


@click.command("explain")
@click.argument("codes", metavar="[CODE]...", nargs=-1)
def explain_command(codes: tuple[str, ...]) -> Exit:
    """Explain rules and error names; by default, list all.

    CODE is the code of a finding, the name of an error of a workflow, or a prefix, which lists the
    matching ones.

    \b
        asl explain V-ST-03
        asl explain States.Runtime
        asl explain V-TASK
    """
    coloured = console.has_colour(sys.stdout)
    rules: Entries = {code.id: code for code in all_codes()}
    errors: Entries = {failure.name: failure for failure in all_error_names()}
    if codes:
        parts = [_find_entry(code, {**rules, **errors}, coloured) for code in codes]
    else:
        parts = [_list_entries(rules, coloured), _list_entries(errors, coloured)]
    console.write_result("\n\n".join(parts))
    return Exit.OK


def _find_entry(wanted: str, known: Entries, coloured: bool) -> str:
    """Return the explanation of an entry, or a list of the entries with this prefix.

    Raises:
        AslError: There is no such entry.
    """
    name = wanted.casefold().rstrip("-.")
    matches = {}
    for each, entry in known.items():
        if each.casefold() == name:
            return _explain(each, entry, coloured)
        if each.casefold().startswith((f"{name}-", f"{name}.")):
            matches[each] = entry
    if matches:
        return _list_entries(matches, coloured)
    hint = did_you_mean(wanted, known)
    if hint is None and "." in wanted and not wanted.startswith("States."):
        hint = "documents, agents and services raise errors with other names"
    raise AslError(f"there is no rule or error {wanted!r} ({hint or LIST_HINT})")


def _list_entries(entries: Entries, coloured: bool) -> str:
    """Return a line for each entry, with blank lines between families."""
    width = max(map(len, entries))
    return "\n\n".join(
        "\n".join(_line(f"{name:<{width}}", entries[name], coloured) for name in names)
        for _, names in groupby(entries, lambda name: entries[name].family)
    )


def _line(name: str, entry: Code | ErrorName, coloured: bool) -> str:
    if isinstance(entry, ErrorName):
        return f"{name}  {entry.title}"
    return f"{name}  {_colour(f'{entry.severity:<7}', entry, coloured)}  {entry.title}"


def _explain(name: str, entry: Code | ErrorName, coloured: bool) -> str:
    head = click.style(name, bold=True) if coloured else name
    parts = [entry.explain]
    if isinstance(entry, ErrorName):
        kind = "raised while a workflow runs"
        parts.append(entry.matched)
    else:
        kind = _colour(entry.severity, entry, coloured)
        if entry.aws_severity is not None:
            kind += f" ({entry.aws_severity} under --profile aws)"
        if entry.changes:
            kind += f"; may change: {', '.join(entry.changes)}"
    if entry.hint is not None:
        parts.append(f"What to do: {entry.hint}.")
    paragraphs = [each for part in parts for each in part.split("\n\n")]
    folded = [each if "\n" in each else console.fold_line(each, hanging=0) for each in paragraphs]
    return "\n\n".join([f"{head}: {entry.title}\n{kind}", *folded])


def _colour(text: str, code: Code, coloured: bool) -> str:
    return click.style(text, fg=_COLOURS[code.severity]) if coloured else text


ENDING = ".schema.json"
PREFIX = "urn:asl:schema:"


@click.command("schema")
@click.argument("name", metavar="[NAME]", default="asl")
@click.option(
    "--bundle", "bundled", is_flag=True, help="Print one schema that includes all others."
)
@click.option("--list", "listed", is_flag=True, help="Print the names of the schemas.")
def schema_command(name: str, bundled: bool, listed: bool) -> Exit:
    """Print the JSON Schema (2020-12) of documents or of a part: Task, Retrier, Budget, ...

    The name of a dialect prints the schema of its documents.
    """
    foreign = _dialect_schemas()
    schemas = {**_schemas(), **foreign}
    if listed:
        console.write_result("\n".join(schemas))
    elif bundled and name not in foreign:
        console.write_result(json.dumps(bundle(name), ensure_ascii=False, indent=2))
    else:
        console.write_result(schemas[_schema_name(name, schemas)])
    return Exit.OK


def _dialect_schemas() -> dict[str, str]:
    """Return the texts of the schemas of other languages, by the names of the dialects."""
    found = {each.name: each.json_schema() for each in all_dialects()}
    return {name: _text(schema) for name, schema in found.items() if schema is not None}


def bundle(name: str = "asl") -> dict[str, Json]:
    """Return one schema with local references only, with the schema *name* as its root."""
    schemas = _schemas()
    definitions = {}
    for text in schemas.values():
        local = text.replace(f'"$ref": "{PREFIX}', '"$ref": "#/$defs/')
        schema = json.loads(local.replace("common#/$defs/", "common/$defs/"))
        definitions[schema.pop("$id").removeprefix(PREFIX)] = schema
    root = json.loads(schemas[_schema_name(name, schemas)])
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
        texts["State"] = _text(_add_types(json.loads(texts["State"]), added))
    return texts


def _add_types(state: dict[str, Json], added: Iterable[str]) -> dict[str, Json]:
    """Add the state types of plug-ins to the schema of a state."""
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


def _schema_name(wanted: str, schemas: Mapping[str, str]) -> str:
    """Return the full name of a schema; *wanted* may omit the folder.

    Raises:
        AslError: There is no such schema.
    """
    short = {name.rpartition("/")[2].casefold(): name for name in schemas}
    if wanted in schemas:
        return wanted
    if wanted.casefold() in short:
        return short[wanted.casefold()]
    known = [*schemas, *(name.rpartition("/")[2] for name in schemas)]
    hint = did_you_mean(wanted, known) or "'asl schema --list' lists all"
    raise AslError(f"there is no schema {wanted!r} ({hint})")
