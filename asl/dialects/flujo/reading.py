"""From the text of a blueprint to a document of Agent State Language that knows its places."""

from dataclasses import replace
from typing import Final

from asl.core import yaml_text
from asl.core.diagnostics import Finding, place
from asl.core.document import Composition, Document, parsed
from asl.core.errors import InvalidDocument
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.core.values import Json
from asl.dialects import scalars
from asl.dialects.flujo import rules, shape
from asl.dialects.flujo.blueprint import Blueprint
from asl.dialects.flujo.machine import Built, built
from asl.dialects.flujo.options import Options
from asl.dialects.origins import origins_of

__all__ = ["METADATA", "read"]

METADATA: Final = "Flujo"
"""The member of the document's `Metadata` that holds what the language cannot say."""
FAULT: Final = "FL-YAML"


def read(
    what: Source | Document, limits: Limits = DEFAULT_LIMITS, options: Options | None = None
) -> Document:
    """Read a blueprint as a document; raises InvalidDocument with all that is wrong with it."""
    options = options or Options()
    foreign = what if isinstance(what, Document) else _parsed(what, limits)
    foreign = replace(foreign, dialect="flujo")
    findings = [*scalars.otherwise(foreign, "FL-YAML-SCALAR"), *shape.check(foreign.value)]
    _insist(foreign, findings)
    blueprint = Blueprint(foreign.value)
    findings += rules.of_blueprint(blueprint, options)
    _insist(foreign, findings)
    made = built(blueprint, options)
    findings += made.findings
    value = _document(blueprint, made, options)
    origins = {"": (foreign, "")}
    origins |= {pointer: (foreign, at) for pointer, at in origins_of(value, made.origins)}
    return Document(
        value,
        foreign.source,
        "flujo",
        composition=Composition(foreign.value, {}, origins, tuple(dict.fromkeys(findings))),
    )


def _parsed(source: Source, limits: Limits) -> Document:
    """Parse a text with the scalars that the platform sees; faults have the dialect's code."""
    schema = yaml_text.PLATFORM if source.format == "yaml" else None
    try:
        return parsed(source, limits, schema)
    except InvalidDocument as refusal:
        report = refusal.report
        coded = tuple(replace(each, code=FAULT) for each in report.diagnostics)
        raise InvalidDocument(replace(report, diagnostics=coded)) from None


def _insist(foreign: Document, findings: list[Finding]) -> None:
    report = place(foreign, dict.fromkeys(findings))
    if not report.ok:
        raise InvalidDocument(report)


def _document(blueprint: Blueprint, made: Built, options: Options) -> dict[str, Json]:
    comment = blueprint.value.get("description") or blueprint.value.get("name")
    value: dict[str, Json] = {"Comment": comment} if isinstance(comment, str) else {}
    kept: dict[str, Json] = {"blueprint": blueprint.value}
    if made.machines:
        kept["machines"] = made.machines
    reading = options.said()
    if reading:
        kept["reading"] = reading
    return {**value, "QueryLanguage": "JSONata", **made.machine, "Metadata": {METADATA: kept}}
