"""The intrinsic function of a name: of the language, or of a dialect."""

from asl.expr.intrinsics.dialects import belonging
from asl.expr.intrinsics.table import FUNCTIONS, Function

__all__ = ["function"]


def function(name: str) -> Function | None:
    """Return the function of this name, of the language or of a dialect; None if there is none."""
    return FUNCTIONS.get(name) if name.startswith("States.") else belonging(name)
