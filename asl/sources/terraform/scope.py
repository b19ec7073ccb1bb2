"""Where an expression of Terraform stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from asl.core.source import Source
from asl.sources.definition import Part
from asl.sources.terraform import hcl

__all__ = ["Scope", "Undecided"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an expression stands: its file, and the names that are given by what is around it."""

    source: Source
    names: Mapping[str, Part] = field(default_factory=dict)
    called_with: Mapping[str, Part] = field(default_factory=dict)
    """Values for the names of a template, which are written in another file."""

    def written(self, node: hcl.Node) -> str:
        """An expression as it is written, on one line."""
        return " ".join((self.source.text or "")[node.at : node.end].split())

    def having(self, names: Mapping[str, Part]) -> "Scope":
        """The scope with further names."""
        return replace(self, names={**self.names, **names})


class Undecided(Exception):
    """A value is needed that only a deployment knows."""
