"""Task chains of Contenox: tasks with handlers, and branches with operators, in JSON."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding
from asl.core.dialect_parts import DialectFunction
from asl.core.document import Document
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.core.values import Json, compact
from asl.dialects.base import Coverage, Dialect, WriterResult, parse_names
from asl.dialects.terms import Meanings
from asl.engine.definitions import AgentDefinition, NoDefinitions

__all__ = ["DIALECT"]

_TASKS = re.compile(r"""^["']?tasks["']?[ \t]*:""", re.MULTILINE)
_HANDLER = re.compile(r"""\b(?:handler|type)["']?[ \t]*:""")
_OTHER = re.compile(
    r"""^["']?(?:States|StartAt|states|steps|Resources)["']?[ \t]*:""", re.MULTILINE
)

_MACRO = re.compile(r"\{\{\s*var:([^{}]*)\}\}")

_CALL: Final = {"content": "", "tool_calls": [{"id": "1", "name": "tool", "arguments": {}}]}
"""The answer of a model that asks for a tool."""


def _of_text(text: str) -> bool:
    found = _TASKS.search(text) is not None and _HANDLER.search(text) is not None
    return found and _OTHER.search(text) is None


def _of_value(value: Mapping[str, Any]) -> bool:
    if "tasks" not in value or any(key in value for key in ("StartAt", "states", "steps")):
        return False
    tasks = value["tasks"]
    objects = [each for each in (tasks if type(tasks) is list else ()) if type(each) is dict]
    return (
        not objects  # the reader says what is wrong
        or any("handler" in each or "transition" in each for each in objects)
        or all("id" in each and "type" in each for each in objects)
    )


def _read(
    what: Source | Document,
    limits: Limits = DEFAULT_LIMITS,
    *,
    profile: str | None = None,
    external_exits: bool = False,
    approve: object = (),
) -> Document:
    from asl.dialects.contenox.reader import read

    tools = parse_names("approve", approve)
    return read(what, limits, profile=profile, external_exits=external_exits, approve=tools)


def _write(
    document: Document,
    *,
    profile: str = "union",
    agents: Mapping[str, AgentDefinition] = NoDefinitions,
) -> WriterResult:
    from asl.dialects.contenox.writing import write

    return write(document, profile=profile, agents=agents)


def _lost(document: Document) -> Iterable[Finding]:
    from asl.dialects.contenox.round_trip import lost

    return lost(document)


def _unsaid(document: Document) -> Iterable[tuple[Json, Json]]:
    macros = _MACRO.findall(compact(document.composed_value))
    named = {name.strip().removeprefix("var:") for each in macros for name in each.split("|")}
    for answer in ("text", {}, _CALL):
        data = {} if answer == {} else "text"
        given = {"input": data, "vars": dict.fromkeys(sorted(named), "text")} if named else data
        yield given, answer


_CONDITIONS: Final = {
    "{% $not($exists($states.input.eval)) %}": "on_failure",
    "{% $contenox_asked": "calls what is asked about",
}
"""Descriptions of conditions without a branch, by the start of the condition."""


def _words(part: Mapping[str, Json], written: Json) -> str | None:
    """Return when a choice rule is taken, or what a state does, in terms of the chain."""
    if "Condition" in part:
        if isinstance(written, dict) and "operator" in written:
            said = (written["operator"], written.get("edge"), str(written.get("when", "")))
            return " ".join(filter(None, said))
        condition = str(part["Condition"])
        return next(
            (said for begun, said in _CONDITIONS.items() if condition.startswith(begun)), None
        )
    if isinstance(written, dict) and part.get("Type") in ("Task", "Pass", "Fail"):
        handler = written.get("handler", written.get("type"))
        return handler if isinstance(handler, str) else None
    return None


def _meanings() -> Meanings:
    from asl.dialects.contenox.meanings import MEANINGS

    return MEANINGS


def _portable_value(document: Document, with_definitions: bool) -> Json:
    from asl.dialects.contenox.portable import portable_value

    return portable_value(document, with_definitions)


def _meaning_losses(document: Document) -> Iterable[Finding]:
    from asl.dialects.contenox.meaning_losses import meaning_losses

    return meaning_losses(document)


def _coverage() -> Coverage:
    from asl.dialects.contenox.writing import COVERAGE

    return COVERAGE


def _agents(document: Mapping[str, Any]) -> Mapping[str, AgentDefinition]:
    from asl.dialects.contenox.agents import definitions

    return definitions(document)


def _json_schema() -> Mapping[str, Json]:
    from asl.dialects.contenox.schema import SCHEMA

    return SCHEMA.value


def _named_states(document: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    tasks = document.get("tasks")
    for each in tasks if isinstance(tasks, list) else ():
        if isinstance(each, dict):
            yield str(each.get("id", "")), each


def _functions() -> Mapping[str, DialectFunction]:
    from asl.dialects.contenox.functions.table import TABLE

    return TABLE


DIALECT = Dialect(
    "contenox",
    "Contenox task chain",
    _of_text,
    _of_value,
    _read,
    _write,
    _lost,
    read_options=frozenset(("profile", "external_exits", "approve")),
    write_options=frozenset(("profile",)),
    sample_data=_unsaid,
    describe_part=_words,
    coverage=_coverage,
    agents=_agents,
    meanings=_meanings,
    portable_value=_portable_value,
    takes_agents=True,
    meaning_losses=_meaning_losses,
    functions=_functions,
    named_states=_named_states,
    codes=os.path.join(os.path.dirname(__file__), "codes.toml"),
    json_schema=_json_schema,
    error_names=os.path.join(os.path.dirname(__file__), "errors.toml"),
    file_ending=".json",
    marks=(
        r"(?:^|[{,])[ \t]*[\"']?tasks[\"']?[ \t]*:",
        r"\bhandler[\"']?[ \t]*:",
        r"\btransition[\"']?[ \t]*:",
    ),
)
