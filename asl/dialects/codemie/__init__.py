"""Workflows of CodeMie: actors, and states with a `next` block, in YAML."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from asl.core.diagnostics import Finding
from asl.core.dialect_parts import DialectFunction
from asl.core.document import Document
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.core.values import Json
from asl.dialects.base import Coverage, Dialect, WriterResult
from asl.dialects.codemie.options import NAMES, CodemieOptions
from asl.dialects.terms import Meanings
from asl.engine.definitions import AgentDefinition

__all__ = ["DIALECT"]

TOOLS = frozenset(("tools",))
"""The option of the writer: the agents that are tools, not assistants."""
_KEYS = ("execution_config", "yaml_config", "states", "assistants", "custom_nodes")
_AUTONOMOUS = re.compile(r"""mode[ \t]*:[ \t]*["']?Autonomous\b""")


def _has(text: str, key: str) -> bool:
    """Whether a YAML text has a key at its root, by the look of its lines."""
    at = -1
    while (at := text.find(key, at + 1)) >= 0:
        before, after = text[at - 1 : at], text[at + len(key) : at + len(key) + 40].lstrip("\"' \t")
        if after.startswith(":") and (at == 0 or before == "\n"):
            return True
        if before in ("'", '"') and after.startswith(":") and text[at - 2 : at - 1] in ("", "\n"):
            return True
    return False


def _of_text(text: str) -> bool:
    if any(_has(text, key) for key in ("States", "StartAt", "Resources")):
        return False
    return any(_has(text, key) for key in _KEYS) or any(
        match.start() == 0 or text[match.start() - 1] == "\n"
        for match in _AUTONOMOUS.finditer(text)
    )


def _of_value(value: Mapping[str, Any]) -> bool:
    if "StartAt" in value:
        return False
    if type(value.get("execution_config")) is dict or type(value.get("yaml_config")) is str:
        return True
    return any(type(value.get(key)) is list for key in ("states", "assistants"))


def _read(what: Source | Document, limits: Limits = DEFAULT_LIMITS, **options: bool) -> Document:
    from asl.dialects.codemie.reader import read

    return read(what, limits, CodemieOptions(**options))


def _write(
    document: Document, tools: Collection[str] = (), *, prompts: Mapping[str, str]
) -> WriterResult:
    from asl.dialects.codemie.writing import write

    return write(document, tools, prompts=prompts)


def _lost(document: Document) -> Iterable[Finding]:
    from asl.dialects.codemie.round_trip import lost

    return lost(document)


def _meanings() -> Meanings:
    from asl.dialects.codemie.meanings import MEANINGS

    return MEANINGS


def _meaning_losses(document: Document) -> Iterable[Finding]:
    from asl.dialects.codemie.meaning_losses import meaning_losses

    return meaning_losses(document)


_TEXT = r"""(['"])((?:\\.|(?!\1)[^\\])*)\1"""
_HOLDS = re.compile(rf"\{{%\s*\$codemie_holds\([^'\"]*, {_TEXT}.*\)\s*%\}}", re.DOTALL)
_ITEMS = re.compile(rf"\{{%\s*\$codemie_items\([^'\"]*, {_TEXT}.*\)\s*%\}}", re.DOTALL)


def _words(part: Mapping[str, Json], written: Json) -> str | None:
    """Return the condition of a choice rule, or the key of the items of a Map, as written."""
    condition = _HOLDS.fullmatch(str(part.get("Condition")))
    if condition is not None:
        return " ".join(condition[2].split())
    items = _ITEMS.fullmatch(str(part.get("Items")))
    return None if items is None else f"iter_key {items[2]}"


def _coverage() -> Coverage:
    from asl.dialects.codemie.writing import COVERAGE

    return COVERAGE


def _agents(document: Mapping[str, Any]) -> Mapping[str, AgentDefinition]:
    from asl.dialects.codemie.agents import definitions

    return definitions(document)


def _json_schema() -> Mapping[str, Json]:
    from asl.dialects.codemie.schema import SCHEMA

    return SCHEMA.value


def _named_states(document: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    config = document.get("execution_config")
    states = (config if isinstance(config, dict) else document).get("states")
    for each in states if isinstance(states, list) else ():
        if isinstance(each, dict):
            yield str(each.get("id", "")), each


def _functions() -> Mapping[str, DialectFunction]:
    from asl.dialects.codemie.functions.table import TABLE

    return TABLE


DIALECT = Dialect(
    "codemie",
    "CodeMie workflow",
    _of_text,
    _of_value,
    _read,
    _write,
    _lost,
    NAMES,
    TOOLS,
    takes_prompts=True,
    describe_part=_words,
    coverage=_coverage,
    agents=_agents,
    meanings=_meanings,
    meaning_losses=_meaning_losses,
    namespace="CodeMie",
    functions=_functions,
    named_states=_named_states,
    codes=os.path.join(os.path.dirname(__file__), "codes.toml"),
    json_schema=_json_schema,
    error_names=os.path.join(os.path.dirname(__file__), "errors.toml"),
    marks=(
        r"(?:^|[{,])[ \t]*[\"']?(?:assistants|execution_config)[\"']?[ \t]*:",
        r"(?:^|[{,])[ \t]*[\"']?(?:states|yaml_config)[\"']?[ \t]*:",
    ),
)
