"""`asl convert --explain`: the states of a document next to what they became, and the losses."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from shutil import get_terminal_size
from typing import Final

from asl.cli import console
from asl.core.diagnostics import Diagnostic, Severity
from asl.core.document import Document
from asl.core.pointers import escape
from asl.core.printable import printable
from asl.core.values import Json
from asl.dialects.base import Conversion
from asl.dialects.registry import dialect
from asl.dialects.yaml_writer import to_yaml

__all__ = ["explanation_json", "write_explanation"]

NARROW: Final = 60
"""Columns below which the two sides are one below the other."""
LEAST: Final = 24
"""Columns of a line at least."""
STYLES: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
SEPARATOR: Final = " | "


@dataclass(frozen=True, slots=True)
class StateLoss:
    """A loss at one state."""

    code: str
    severity: Severity
    message: str
    hint: str | None
    pointer: str


@dataclass(frozen=True, slots=True)
class ExplainedState:
    """A part of the document that was converted, and its counterpart.

    Attributes:
        name: Name of the state; empty for the rest of the document.
        source: The part in the source language, None if only the target has it.
        target: The part in the target language, None if it is left out or merged into another.
        losses: The losses at the part.
    """

    name: str
    source: Json
    target: Json
    losses: tuple[StateLoss, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the step as a JSON object."""
        losses = [
            {
                "code": each.code,
                "severity": str(each.severity),
                "message": each.message,
                "hint": each.hint,
                "pointer": each.pointer,
            }
            for each in self.losses
        ]
        return {"state": self.name, "source": self.source, "target": self.target, "losses": losses}


def explanation_json(document: Document, conversion: Conversion) -> dict[str, Json]:
    """Return an explained conversion as a JSON object.

    Args:
        document: The document that was converted.
        conversion: Its conversion.

    Returns:
        `{"from", "to", "ok", "faithful", "states": [{"state", "source", "target", "losses"}]}`.
    """
    return {
        "from": document.dialect,
        "to": conversion.dialect,
        "ok": conversion.ok,
        "faithful": conversion.faithful,
        "states": [each.to_json() for each in _steps(document, conversion)],
    }


def write_explanation(document: Document, conversion: Conversion) -> None:
    """Print source and target of each state side by side, with the losses between them."""
    for line in _lines(document, conversion, max(get_terminal_size().columns, LEAST)):
        console.write_line(line.text, style=line.style)


# --------------------------------------------------------------------------------------------
# Parts


def _steps(document: Document, conversion: Conversion) -> Iterator[ExplainedState]:
    """Yield the states in the order of the document, then the rest."""
    sources = _parts(_source(document), document.dialect)
    targets = _parts(conversion.document, conversion.dialect)
    places = _places(document, [*sources])
    losses: dict[str, list[StateLoss]] = {name: [] for name in sources}
    rest: list[StateLoss] = []
    for diagnostic in conversion.losses:
        for name, loss in _by_state(diagnostic, places):
            losses.get(name or "", rest).append(loss)
    for name, source in sources.items():
        target = targets.pop(_counterpart(name, targets), None)
        yield ExplainedState(name, source, target, tuple(losses[name]))
    for name, target in targets.items():
        yield ExplainedState(name, None, target, ())
    if rest:
        yield ExplainedState("", None, None, tuple(rest))


def _source(document: Document) -> Json:
    """Return the value of a document as its author wrote it."""
    composition = document.composition
    return document.value if composition is None else composition.written


def _places(document: Document, names: Sequence[str]) -> Mapping[str, str]:
    """Return the pointers of the states in the text, with their names."""
    found = {}
    for name in names:
        _, pointer = document.origin(f"/States/{escape(name)}")
        found[pointer] = name
    return found


def _by_state(
    diagnostic: Diagnostic, places: Mapping[str, str]
) -> Iterator[tuple[str | None, StateLoss]]:
    """Yield the losses of an entry of the report, with the names of their states."""
    for each in diagnostic.all_places:
        loss = StateLoss(
            diagnostic.code, diagnostic.severity, each.message, each.hint, each.pointer
        )
        at = each.pointer
        while at and at not in places:
            at = at.rpartition("/")[0]
        yield places.get(at), loss


def _parts(value: Json, language: str) -> dict[str, Json]:
    """Return the states of a document in any language by their names, the first of each name."""
    found: dict[str, Json] = {}
    named = dialect(language).named_states(value) if isinstance(value, dict) else ()
    for name, part in named:
        found.setdefault(name, part)
    return found


def _counterpart(name: str, targets: Mapping[str, Json]) -> str:
    """Return the name that a state has in the target."""
    wanted = _letters(name)
    return next((each for each in targets if each == name or _letters(each) == wanted), name)


def _letters(name: str) -> str:
    return "".join(each for each in name.casefold() if each.isalnum())


# --------------------------------------------------------------------------------------------
# Text


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    style: str | None = None


def _lines(document: Document, conversion: Conversion, width: int) -> Iterator[_Line]:
    yield _Line(f"{document.dialect} -> {conversion.dialect}", "blue")
    for step in _steps(document, conversion):
        yield _Line("")
        yield _Line(step.name or "the document", "blue")
        yield from _beside(_shown(step.source), _shown(step.target), width)
        for loss in step.losses:
            yield _Line(f"  {loss.severity} {loss.code}: {loss.message}", STYLES[loss.severity])
            if loss.hint:
                yield _Line(f"    {loss.hint}")


def _shown(part: Json) -> list[str]:
    return [] if part is None else [printable(each) for each in to_yaml(part).splitlines()]


def _beside(source: Sequence[str], target: Sequence[str], width: int) -> Iterator[_Line]:
    """Yield two texts in two columns, or one below the other where there is no room."""
    if width < NARROW:
        for each in _folded(source, width - 2):
            yield _Line(f"< {each}")
        for each in _folded(target, width - 2):
            yield _Line(f"> {each}")
        return
    half = (width - len(SEPARATOR)) // 2
    for left, right in zip_longest(_folded(source, half), _folded(target, half), fillvalue=""):
        yield _Line(f"{left:<{half}}{SEPARATOR}{right}".rstrip())


def _folded(lines: Sequence[str], width: int) -> list[str]:
    """Return lines that are no longer than *width*; their continuations are indented."""
    found: list[str] = []
    for each in lines:
        indent = " " * min(len(each) - len(each.lstrip()) + 2, width // 2)
        found += textwrap.wrap(
            each, width, subsequent_indent=indent, drop_whitespace=False, break_on_hyphens=False
        ) or [""]
    return found
