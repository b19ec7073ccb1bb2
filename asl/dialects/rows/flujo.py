"""Blueprints of Flujo: steps, and state machines with declarative transitions, in YAML."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from asl.compose.files import Files
from asl.core.diagnostics import Finding
from asl.core.document import Document
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.core.values import Json
from asl.dialects.base import Coverage, Dialect, Written
from asl.dialects.flujo.options import NAMES, options_of
from asl.dialects.plain import Plain
from asl.engine.definitions import AgentDefinition, NoDefinitions

__all__ = ["DIALECT"]

_STEPS = re.compile(r"""^["']?steps["']?[ \t]*:""", re.MULTILINE)
_OTHER = re.compile(
    r"""^["']?(?:States|StartAt|Resources|states|tasks|assistants|execution_config|yaml_config"""
    r"""|jobs|runs)["']?[ \t]*:""",
    re.MULTILINE,
)


def _of_text(text: str) -> bool:
    return _STEPS.search(text) is not None and _OTHER.search(text) is None


def _of_value(value: Mapping[str, Any]) -> bool:
    if "steps" not in value or any(key in value for key in ("StartAt", "states", "tasks")):
        return False
    steps = value["steps"]
    listed = [each for each in (steps if type(steps) is list else ()) if type(each) is dict]
    return not listed or any(  # where there are no steps the reader says so
        "kind" in each or "uses" in each or "agent" in each or "name" in each for each in listed
    )


def _read(
    what: Source | Document,
    limits: Limits = DEFAULT_LIMITS,
    *,
    files: Files | None = None,
    **options: Any,
) -> Document:
    from asl.dialects.flujo.reading import read

    return read(what, limits, options_of(**options), files)


def _write(document: Document, *, prompts: Mapping[str, str]) -> Written:
    from asl.dialects.flujo.writing import write

    return write(document, prompts=prompts)


def _lost(document: Document) -> Iterable[Finding]:
    from asl.dialects.flujo.restoring import lost

    return lost(document)


def _plain(document: Document) -> tuple[dict[str, Json], Plain]:
    from asl.dialects.flujo.plain import plain

    return plain(document)


def _words(part: Mapping[str, Any], written: Json) -> str | None:
    from asl.dialects.flujo.words import words

    return words(part, written)


def _coverage() -> Coverage:
    from asl.dialects.flujo.writing import COVERAGE

    return COVERAGE


def _agents(document: Mapping[str, Any]) -> Mapping[str, AgentDefinition]:
    if "Flujo" not in document.get("Metadata", ()):
        return NoDefinitions
    from asl.dialects.flujo.agents import definitions

    return definitions(document)


DIALECT = Dialect(
    "flujo",
    "Flujo blueprint",
    _of_text,
    _of_value,
    _read,
    _write,
    _lost,
    NAMES,
    plain=_plain,
    importing=True,
    words=_words,
    defining=True,
    coverage=_coverage,
    agents=_agents,
)
