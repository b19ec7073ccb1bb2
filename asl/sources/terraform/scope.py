"""Where an expression of Terraform stands, and what its functions ask of who evaluates it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from asl.core.diagnostics import InvalidDocument
from asl.core.source import Source
from asl.core.values import Json
from asl.sources.definition import SourcePart
from asl.sources.read_context import ReadContext
from asl.sources.terraform import syntax
from asl.sources.text import TrackedText

__all__ = ["Evaluation", "Scope", "Undecided"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an expression stands: its file, and the names that are given by what is around it."""

    source: Source
    names: Mapping[str, SourcePart] = field(default_factory=dict)
    called_with: Mapping[str, SourcePart] = field(default_factory=dict)
    """Values for the names of a template, which are written in another file."""

    def written(self, node: syntax.Node) -> str:
        """An expression as it is written, on one line."""
        return " ".join((self.source.text or "")[node.at : node.end].split())

    def having(self, names: Mapping[str, SourcePart]) -> "Scope":
        """The scope with further names."""
        return replace(self, names={**self.names, **names})


class Undecided(Exception):
    """A value is needed that only a deployment knows."""


class Evaluation(Protocol):
    """Works out the expressions of one folder."""

    @property
    def reading(self) -> ReadContext:
        """The values that are given, and the bounds of what is read."""

    def refused(
        self, node: syntax.Node, scope: Scope, message: str, hint: str | None = None
    ) -> InvalidDocument:
        """Return the refusal of an expression."""

    def value(self, node: syntax.Node, scope: Scope) -> SourcePart:
        """Return what an expression comes to; raises InvalidDocument."""

    def text(self, node: syntax.Node, scope: Scope) -> TrackedText:
        """Return what an expression comes to within a text."""

    def settled(self, part: SourcePart, scope: Scope) -> SourcePart:
        """Return the value with stand-ins for what is not known."""

    def json(self, part: SourcePart, scope: Scope) -> Json:
        """Return the value as JSON."""

    def constant(self, value: Json, scope: Scope, at: int) -> SourcePart:
        """Return a JSON value as the value of an expression."""
