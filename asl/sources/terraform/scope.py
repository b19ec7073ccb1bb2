"""Scope of a Terraform expression, and the protocol of the evaluator for functions."""

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

__all__ = ["EvaluatorProtocol", "HclScope", "UnknownResult"]


@dataclass(frozen=True, slots=True)
class HclScope:
    """The place of an expression: its file, and the names bound around it."""

    source: Source
    names: Mapping[str, SourcePart] = field(default_factory=dict)
    template_values: Mapping[str, SourcePart] = field(default_factory=dict)
    """Values for the names of a template in another file."""

    def source_text(self, node: syntax.HclNode) -> str:
        """Return an expression as written, on one line."""
        return " ".join((self.source.text or "")[node.at : node.end].split())

    def extend(self, names: Mapping[str, SourcePart]) -> "HclScope":
        """Return the scope with further names."""
        return replace(self, names={**self.names, **names})


class UnknownResult(Exception):
    """A result that is known only after deployment."""


class EvaluatorProtocol(Protocol):
    """Evaluates the expressions of one folder."""

    @property
    def reading(self) -> ReadContext:
        """The caller's values, and the limits of reading."""

    def error(
        self, node: syntax.HclNode, scope: HclScope, message: str, hint: str | None = None
    ) -> InvalidDocument:
        """Return the error of an expression."""

    def value(self, node: syntax.HclNode, scope: HclScope) -> SourcePart:
        """Return the value of an expression; raises InvalidDocument."""

    def text(self, node: syntax.HclNode, scope: HclScope) -> TrackedText:
        """Return the value of an expression as text."""

    def fill_unknown(self, part: SourcePart, scope: HclScope) -> SourcePart:
        """Return the value with stand-ins for its unknown parts."""

    def json(self, part: SourcePart, scope: HclScope) -> Json:
        """Return the value as JSON."""

    def constant(self, value: Json, scope: HclScope, at: int) -> SourcePart:
        """Return a JSON value as the value of an expression."""
