"""Reader of blueprints: a document of Agent State Language with its source positions."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from asl.compose.files import Files
from asl.core.diagnostics import did_you_mean, raise_for_errors
from asl.core.document import Composition, Document
from asl.core.errors import AslError
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.core.values import Json
from asl.dialects.flujo import rules, schema
from asl.dialects.flujo.blueprint import Blueprint
from asl.dialects.flujo.engine import of_engine
from asl.dialects.flujo.imports import Linker
from asl.dialects.flujo.machine import FlujoMachine, build_machine
from asl.dialects.flujo.options import FlujoOptions
from asl.dialects.foreign_documents import as_platform, document, reinterpreted_scalars

__all__ = ["METADATA", "read"]

METADATA: Final = "Flujo"
"""The member of the document's `Metadata` that holds what the language cannot say."""
FAULT: Final = "FL-YAML"


def read(
    what: Source | Document,
    limits: Limits = DEFAULT_LIMITS,
    options: FlujoOptions | None = None,
    files: Files | None = None,
) -> Document:
    """Read a blueprint as a document; raises InvalidDocument with all errors.

    Imported blueprints are read from *files*.
    """
    options = options or FlujoOptions()
    foreign = what if isinstance(what, Document) else as_platform(what, limits, FAULT)
    foreign = replace(foreign, dialect="flujo")
    findings = [
        *reinterpreted_scalars(foreign, "FL-YAML-SCALAR"),
        *schema.check(foreign.value),
    ]
    raise_for_errors(foreign, findings)
    linker = Linker(files, limits)
    blueprint = linker.blueprint(foreign.value)
    findings += [*linker.findings, *rules.of_blueprint(blueprint, options)]
    homes = linker.homes
    if homes:
        foreign = replace(foreign, composition=Composition(foreign.value, {}, homes))
    raise_for_errors(foreign, findings)
    findings += of_engine(blueprint)
    _ends(blueprint, options)
    made = build_machine(blueprint, options)
    findings += made.findings
    value = _document(blueprint, made, options, linker.kept)
    return document(foreign, value, made.origins, findings, homes)


def _ends(blueprint: Blueprint, options: FlujoOptions) -> None:
    """Raise AslError for an end state that shall fail the run and is in no machine."""
    if not options.fail_states:
        return
    known = dict.fromkeys(_end_states(blueprint))
    for name in options.fail_states:
        if name not in known:
            near = did_you_mean(name, known) or f"there are {', '.join(known) or 'none'}"
            raise AslError(f"fail_states: there is no end state {name!r} ({near})")


def _end_states(blueprint: Blueprint) -> Iterator[str]:
    for step in blueprint.all_steps:
        if step.kind == "StateMachine":
            yield from step.machine.ends
    for each in blueprint.imported.values():
        yield from _end_states(each)


def _document(
    blueprint: Blueprint, made: FlujoMachine, options: FlujoOptions, imported: Mapping[str, Json]
) -> dict[str, Json]:
    comment = blueprint.value.get("description") or blueprint.value.get("name")
    value: dict[str, Json] = {"Comment": comment} if isinstance(comment, str) else {}
    kept: dict[str, Json] = {"blueprint": blueprint.value}
    if imported:
        kept["imports"] = {**imported}
    if made.machines:
        kept["machines"] = made.machines
    reading = options.said()
    if reading:
        kept["reading"] = reading
    return {**value, "QueryLanguage": "JSONata", **made.machine, "Metadata": {METADATA: kept}}
