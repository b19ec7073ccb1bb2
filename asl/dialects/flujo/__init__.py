"""Blueprints of Flujo: steps, and state machines with declarative transitions, in YAML."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from asl.compose.files import Files
from asl.core.diagnostics import Finding
from asl.core.dialect_parts import DialectFunction
from asl.core.document import Document
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.core.values import Json
from asl.dialects.base import Coverage, Dialect, WriterResult
from asl.dialects.flujo.options import NAMES, parse_options
from asl.dialects.terms import Meanings
from asl.engine.definitions import AgentDefinition, NoDefinitions
from asl.program import EntryEvents

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
    from asl.dialects.flujo.reader import read

    return read(what, limits, parse_options(**options), files)


def _write(
    document: Document,
    *,
    prompts: Mapping[str, str],
    agents: Mapping[str, AgentDefinition] = NoDefinitions,
) -> WriterResult:
    from asl.dialects.flujo.writing import write

    return write(document, prompts=prompts, agents=agents)


def _lost(document: Document) -> Iterable[Finding]:
    from asl.dialects.flujo.round_trip import lost

    return lost(document)


def _meanings() -> Meanings:
    from asl.dialects.flujo.meanings import MEANINGS

    return MEANINGS


def _meaning_losses(document: Document) -> Iterable[Finding]:
    from asl.dialects.flujo.meaning_losses import meaning_losses

    return meaning_losses(document)


_TEXT: Final = r"""(['"])((?:\\.|(?!\1)[^\\])*)\1"""
_CONDITIONS: Final = tuple(
    (re.compile(pattern, re.DOTALL), said)
    for pattern, said in (
        (r"\$flujo_fails\(.*\)|\$flujo_key\(.*\) = null", "it fails"),
        (rf"\$not\(\$flujo_when\([^'\"]*, {_TEXT}[^'\"]*\)\)", r"not \2"),
        (rf"\$flujo_when\([^'\"]*, {_TEXT}[^'\"]*\)", r"\2"),
        (r"\$not\(\$flujo_when\(.*\)\)", "false"),
        (r"\$flujo_when\(.*\)", "true"),
        (r"\$flujo_key\(.*\) = '(.*)'", r"\1"),
        (r"\$not\(\$exists\(.*\)\) or .* = null", "it fails"),
        (r"\$flujo_data\(\$states\.input\)\.\S+ = '(.*)'", r"\1"),
        (r"\$states\.input\.rounds\.\S+ < (.*)", r"fewer than \1 rounds"),
        (r"\$flujo_requested\(.*\) = null", "no next_state"),
        (r"\$flujo_exhausted\(.*?, (\d+)\)(?: and .*)?", r"\1 hops"),
        (r"\$flujo_resumes\(.*, '(.*)'\)", r"\1"),
        (r"\$flujo_resumes\(.*\)", "unknown state"),
        (r"\$states\.input\.decision = '(.*)'", r"\1"),
        (r"'(.*)' in \$states\.input\.routes", r"\1"),
    )
)
"""Descriptions of conditions without an expression in the blueprint."""


def _words(part: Mapping[str, Json], written: Json) -> str | None:
    """Return when a choice rule is taken, in terms of the blueprint."""
    if "Condition" not in part:
        return None
    if isinstance(written, dict) and isinstance(written.get("when"), str):
        return " ".join(written["when"].split())
    if isinstance(written, str):
        return " ".join(written.split())
    condition = str(part["Condition"]).removeprefix("{%").removesuffix("%}").strip()
    for pattern, said in _CONDITIONS:
        match = pattern.fullmatch(condition)
        if match is not None:
            return match.expand(said)
    return None


def _coverage() -> Coverage:
    from asl.dialects.flujo.writing import COVERAGE

    return COVERAGE


def _agents(document: Mapping[str, Any]) -> Mapping[str, AgentDefinition]:
    from asl.dialects.flujo.agents import definitions

    return definitions(document)


def _json_schema() -> Mapping[str, Json]:
    from asl.dialects.flujo.schema import SCHEMA

    return SCHEMA.value


def _named_states(document: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield the steps of a blueprint; the states of a state machine instead of its step."""
    steps = document.get("steps")
    for each in steps if isinstance(steps, list) else ():
        if isinstance(each, dict) and isinstance(each.get("states"), dict):
            yield from each["states"].items()
        elif isinstance(each, dict):
            yield str(each.get("name") or each.get("step") or ""), each


def _functions() -> Mapping[str, DialectFunction]:
    from asl.dialects.flujo.functions.table import TABLE

    return TABLE


def _history_events(metadata: Json) -> EntryEvents | None:
    from asl.dialects.flujo.functions.history import history_hook

    return history_hook(metadata)


DIALECT = Dialect(
    "flujo",
    "Flujo blueprint",
    _of_text,
    _of_value,
    _read,
    _write,
    _lost,
    NAMES,
    meanings=_meanings,
    meaning_losses=_meaning_losses,
    reads_imports=True,
    describe_part=_words,
    takes_prompts=True,
    takes_agents=True,
    coverage=_coverage,
    agents=_agents,
    functions=_functions,
    named_states=_named_states,
    history_events=_history_events,
    codes=os.path.join(os.path.dirname(__file__), "codes.toml"),
    json_schema=_json_schema,
    error_names=os.path.join(os.path.dirname(__file__), "errors.toml"),
    marks=(
        r"(?:^|[{,])[ \t]*[\"']?steps[\"']?[ \t]*:",
        r"(?:^|[{,])[ \t]*[\"']?(?:version|name)[\"']?[ \t]*:",
        r"\bkind[\"']?[ \t]*:[ \t]*[\"']?"
        r"(?:step|parallel|conditional|loop|map|hitl|cache|dynamic_router)\b"
        r"|\buses[\"']?[ \t]*:[ \t]*[\"']?(?:agents\.|[\w.]+:[\w.]+)",
    ),
)
