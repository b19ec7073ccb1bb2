"""Options of the reader of workflows."""

from dataclasses import asdict, dataclass, fields
from typing import Final

from asl.core.values import Json

__all__ = ["DEFAULT", "NAMES", "CodemieOptions"]


@dataclass(frozen=True, slots=True)
class CodemieOptions:
    """Options of the reader."""

    implicit_retry: bool = True
    """Add the default retrier of the platform to every Task, also if the workflow has none."""
    accept_legacy: bool = False
    """Report legacy features that the platform refuses today as warnings, not errors."""
    expand_values: bool = False
    """Resolve placeholders in the values of placeholders too, as on the platform: an answer with
    placeholders can then read any key of the context."""

    def said(self) -> dict[str, Json]:
        """Return what differs from the defaults."""
        own, usual = asdict(self), asdict(DEFAULT)
        return {name: value for name, value in own.items() if value != usual[name]}


DEFAULT: Final = CodemieOptions()
NAMES: Final = frozenset(each.name for each in fields(CodemieOptions))
