"""Numbers that a state has in its definition or, by the field's Path twin, in its input."""

import re
from collections.abc import Callable
from functools import partial

from asl.core.errors import EvaluationFailed, StateError
from asl.core.values import Json, excerpt, is_integer, is_number
from asl.expr.frame import Evaluate, Frame
from asl.states.base import Compiler

__all__ = ["NO_BOUND", "Number", "number"]

Number = Callable[[Json, Frame], float]
"""`(effective input, frame) -> number`; raises StateError("States.Runtime"), or
EvaluationFailed for the value of an expression."""

NO_BOUND = 2**53
"""What counts as no bound at all, and a float still holds."""

_NUMERAL = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")


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

    A number from the input or from an expression lies between *least* and *most*, and is *whole* if
    that is asked for; beyond `NO_BOUND` it counts as that. *numerals* takes it written as text.
    What does not fit is told in AWS's words (recorded).
    """
    if field in compiler.state:
        computed = compiler.computed(field, "number")
        if computed is not None:
            unfit = partial(EvaluationFailed, location=field)
            return _bounded(computed, field, "", least, most, whole, unfit)
        fixed = compiler.state[field]
        return lambda data, frame: fixed
    if f"{field}Path" not in compiler.state:
        return None
    path, source = compiler.reference(f"{field}Path"), compiler.state[f"{field}Path"]
    if numerals:
        path = _numeral(path)
    return _bounded(path, field, source, least, most, whole, partial(StateError, "States.Runtime"))


def _bounded(
    evaluate: Evaluate,
    field: str,
    source: str,
    least: int,
    most: int,
    whole: bool,
    error: Callable[[str], StateError],
) -> Number:
    """Compile a number that *evaluate* gives, for a reference path from *source*."""
    belongs = is_integer if whole else is_number
    where = f"The {field}Path field refers to" if source else f"The {field} field has the"

    def given(data: Json, frame: Frame) -> float:
        value = evaluate(data, frame)
        if not belongs(value):
            shown = value if type(value) is str else excerpt(value, 200)
            kind = "integer" if whole else "float"
            tail = f": {source}" if source else ""
            raise error(f'{where} value "{shown[:200]}" which is not a valid {kind}{tail}')
        if value < least or (value > most and most != NO_BOUND):
            raise error(f"{field} {_range(least, most)}")
        return float(min(value, most))

    return given


def _range(least: int, most: int) -> str:
    if most != NO_BOUND:
        return f"must be between {least} and {most}."
    return "cannot be negative." if least == 0 else f"must be at least {least}."


def _numeral(path: Evaluate) -> Evaluate:
    """Take a number written as text, too."""

    def number(data: Json, frame: Frame) -> Json:
        value = path(data, frame)
        if type(value) is str and _NUMERAL.fullmatch(value):
            return float(value) if "." in value else int(value)
        return value

    return number
