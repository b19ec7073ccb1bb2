"""What the reader of workflows can be told."""

from dataclasses import asdict, dataclass, fields
from typing import Final

from asl.core.values import Json

__all__ = ["DEFAULT", "NAMES", "CodemieOptions"]


@dataclass(frozen=True, slots=True)
class CodemieOptions:
    """How a workflow is read."""

    implicit_retry: bool = True
    """Every Task has the retrier that the platform gives to each state, also where the workflow
    says nothing of it."""
    accept_legacy: bool = False
    """What older workflows have and the platform refuses today is a warning."""
    expand_values: bool = False
    """Placeholders within what placeholders stand for are resolved, too, as on the platform: then
    an answer that holds some reads any key of the context."""

    def said(self) -> dict[str, Json]:
        """Return what differs from the defaults."""
        own, usual = asdict(self), asdict(DEFAULT)
        return {name: value for name, value in own.items() if value != usual[name]}


DEFAULT: Final = CodemieOptions()
NAMES: Final = frozenset(each.name for each in fields(CodemieOptions))
