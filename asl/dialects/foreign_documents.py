"""Functions that the readers of all languages share: parse, report, restore."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from asl.core import yaml_text
from asl.core.diagnostics import Finding, InvalidDocument
from asl.core.document import Composition, Document, Origins, origin_of, parse_source
from asl.core.pointers import escape
from asl.core.source import Limits, Source, Span
from asl.core.values import Json, json_equal
from asl.core.yaml_schema import PLATFORM
from asl.states.machines import nested_machines

__all__ = [
    "Part",
    "as_platform",
    "document",
    "kept",
    "origins_of",
    "reinterpreted_scalars",
    "same",
    "unsaid",
]


def origins_of(
    value: Mapping[str, Any], parts: Iterable[tuple[Mapping[str, Json], str]]
) -> Iterator[tuple[str, str]]:
    """Yield where states and rules stand in a document, and where they are written.

    *parts* are those that were built, each with its JSON Pointer in the foreign document.
    """
    written = {id(part): pointer for part, pointer in parts}
    todo: list[tuple[Mapping[str, Any], str]] = [(value, "")]
    while todo:
        machine, base = todo.pop()
        for name, state in machine["States"].items():
            pointer = f"{base}/States/{escape(name)}"
            if id(state) in written:
                yield pointer, written[id(state)]
            for index, rule in enumerate(state.get("Choices", ())):
                if id(rule) in written:
                    yield f"{pointer}/Choices/{index}", written[id(rule)]
            for steps, inner in nested_machines(state):
                todo.append((inner, pointer + "".join(f"/{step}" for step in steps)))


@dataclass(frozen=True)
class Part:
    """A named object of a foreign document, and its JSON Pointer there."""

    value: Mapping[str, Any]
    pointer: str

    @cached_property
    def id(self) -> str:
        """Its name."""
        return str(self.value["id"])


_UNREADABLE: Final = "close what is open before this: a quote, a bracket, a list, an indentation"


def as_platform(source: Source, limits: Limits, code: str) -> Document:
    """Parse a text with the scalars of YAML 1.1; its faults have this code.

    Raises InvalidDocument.
    """
    schema = PLATFORM if source.format == "yaml" else None
    try:
        return parse_source(source, limits, schema)
    except InvalidDocument as refusal:
        report = refusal.report
        coded = tuple(
            each._replace(code=code, hint=each.hint or _UNREADABLE) for each in report.diagnostics
        )
        raise InvalidDocument(replace(report, diagnostics=coded)) from None


def document(
    foreign: Document,
    value: dict[str, Json],
    parts: Iterable[tuple[Mapping[str, Json], str]],
    findings: Iterable[Finding],
    homes: Origins = MappingProxyType({}),
) -> Document:
    """Return the document of a foreign one, with the origins of its parts there.

    *parts* are as `origins_of` takes them, *findings* what there is to say; *homes* are the
    imported documents by their places.
    """
    origins = {"": (foreign, ""), **homes}
    for pointer, at in origins_of(value, parts):
        origins[pointer] = origin_of(at, foreign, homes) if homes else (foreign, at)
    found = tuple(dict.fromkeys(findings))
    composition = Composition(foreign.value, {}, origins, found)
    return Document(value, foreign.source, foreign.dialect, composition=composition)


# --------------------------------------------------------------------------------------------
# The way back


def kept(value: Mapping[str, Any], metadata: str, holds: str) -> Mapping[str, Any] | None:
    """Return the description of the source in a document, None if there is none.

    It is under this member of its `Metadata`, and has an object under *holds*.
    """
    found = value.get("Metadata")
    found = found.get(metadata) if type(found) is dict else None
    return found if type(found) is dict and type(found.get(holds)) is dict else None


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two documents have the same machine."""
    return json_equal(_machine(one), _machine(other))


def unsaid(reading: Mapping[str, Json]) -> Iterator[Finding]:
    """Yield a loss for each reader option that the written text does not contain."""
    for name, value in reading.items():
        listed = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        option = name if value is True else f"{name}={listed}"
        message = f"it was read with {option}, which the output does not record"
        yield Finding("L-READING", message, "", f"read it with --reading {option}")


def _machine(value: Mapping[str, Any]) -> dict[str, Json]:
    return {key: value.get(key) for key in ("QueryLanguage", "StartAt", "States")}


_WORD = re.compile(r"[^\s,\]}#]+")


def reinterpreted_scalars(foreign: Document, code: str) -> Iterator[Finding]:
    """Yield the scalars of a text that YAML 1.2 would read otherwise than its platform does."""
    if foreign.source.format == "yaml" and foreign.source.text is not None:
        yield from _reinterpreted(foreign.value, foreign.span, foreign.source.text, "", code)


def _reinterpreted(
    value: Json, span: Span, text: str, pointer: str, code: str
) -> Iterator[Finding]:
    if isinstance(span.members, dict):
        for key, member in span.members.items():
            yield from _reinterpreted(value[key], member, text, f"{pointer}/{escape(key)}", code)
    elif span.members is not None:
        for index, member in enumerate(span.members):
            yield from _reinterpreted(value[index], member, text, f"{pointer}/{index}", code)
    elif type(value) in (bool, int, float):
        match = _WORD.match(text, span.at)
        if match is None or match[0][0] in "*&!\"'":
            return
        meant = yaml_text.core_scalar(match[0])
        if meant != value or type(meant) is not type(value):
            shown = str(value).lower() if type(value) is bool else repr(value)
            yield Finding(
                code,
                f"the platform reads {match[0]} as {shown}",
                pointer,
                "put it in quotes if it is text, or write the value that is meant",
            )
