"""What the readers of all languages do: parse as their platform does, refuse, make the document."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from asl.core.diagnostics import Finding, InvalidDocument
from asl.core.document import Composition, Document, Origins, origin_of, parse_source
from asl.core.source import Limits, Source
from asl.core.values import Json, json_equal
from asl.core.yaml_schema import PLATFORM
from asl.dialects.origins import origins_of

__all__ = ["Part", "as_platform", "document", "kept", "same", "unsaid"]


@dataclass(frozen=True)
class Part:
    """An object of a foreign document with a name, and where it stands there."""

    value: Mapping[str, Any]
    pointer: str

    @cached_property
    def id(self) -> str:
        """Its name."""
        return str(self.value["id"])


_UNREADABLE: Final = "see what is open before this: a quote, a bracket, a list, an indentation"


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
    """Return the document that was made of a foreign one, and knows where its parts stand there.

    *parts* are as `origins_of` takes them, *findings* what there is to say; *homes* are what the
    foreign one imports, by where that stands in both.
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
    """Return what a document says of what it was read from, None if nothing.

    That stands under this member of its `Metadata`, and *holds* an object.
    """
    found = value.get("Metadata")
    found = found.get(metadata) if type(found) is dict else None
    return found if type(found) is dict and type(found.get(holds)) is dict else None


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two documents have the same machine."""
    return json_equal(_machine(one), _machine(other))


def unsaid(reading: Mapping[str, Json]) -> Iterator[Finding]:
    """Yield the options that a document was read with, which are not written down."""
    for name, value in reading.items():
        listed = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        option = name if value is True else f"{name}={listed}"
        message = f"it was read with {option}, which is not written down"
        yield Finding("L-READING", message, "", f"read it with --reading {option}")


def _machine(value: Mapping[str, Any]) -> dict[str, Json]:
    return {key: value.get(key) for key in ("QueryLanguage", "StartAt", "States")}
