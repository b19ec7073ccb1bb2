"""Numbers that a state has in its definition or, by the field's Path twin, in its input."""

import re
from collections.abc import Callable

from asl.core.errors import StateError
from asl.core.values import Json, excerpt, is_integer, is_number
from asl.states.base import Compiler
from asl.states.host import Frame

__all__ = ["NO_BOUND", "Number", "number"]

Number = Callable[[Json, Frame], float]
"""`(effective input, frame) -> number`; raises StateError("States.Runtime")."""

NO_BOUND = 2**53
"""What counts as no bound at all, and a float still holds."""

_NUMERAL = re.compile(r"[0-9]{1,9}")


def number(
    compiler: Compiler,
    field: str,
    least: int,
    most: int = NO_BOUND,
    *,
    whole: bool = True,
    numerals: bool = False,
) -> Number | None:
    """Compile *field* or its Path twin, None where neither is given.

    A number from the input lies between *least* and *most*, and is *whole* if that is asked for;
    beyond `NO_BOUND` it counts as that. *numerals* takes it written as text, too.
    """
    if field in compiler.state:
        fixed = compiler.state[field]
        return lambda data, frame: fixed
    if f"{field}Path" not in compiler.state:
        return None
    path, belongs = compiler.reference(f"{field}Path"), is_integer if whole else is_number

    def given(data: Json, frame: Frame) -> float:
        value = path(data, frame)
        if numerals and type(value) is str and _NUMERAL.fullmatch(value):
            value = int(value)
        if not belongs(value) or value < least or (value > most and most != NO_BOUND):
            kind = "a whole number" if whole else "a number"
            bounds = f"from {least} up" if most == NO_BOUND else f"from {least} to {most}"
            raise StateError(
                "States.Runtime",
                f"'{field}Path' must give {kind} {bounds}, not {excerpt(value, 200)}",
            )
        return float(min(value, most))

    return given
