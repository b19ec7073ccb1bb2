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

    A number from the input or from an expression lies between *least* and *most*, and is *whole* if
    that is asked for; beyond `NO_BOUND` it counts as that. *numerals* takes it written as text.
    """
    if field in compiler.state:
        computed = compiler.computed(field, "number")
        if computed is not None:
            return _bounded(computed, field, least, most, whole, partial(_unfit, field))
        fixed = compiler.state[field]
        return lambda data, frame: fixed
    if f"{field}Path" not in compiler.state:
        return None
    path, twin = compiler.reference(f"{field}Path"), f"{field}Path"
    if numerals:
        path = _numeral(path)
    return _bounded(path, twin, least, most, whole, partial(StateError, "States.Runtime"))


def _bounded(
    evaluate: Evaluate,
    field: str,
    least: int,
    most: int,
    whole: bool,
    error: Callable[[str], StateError],
) -> Number:
    belongs = is_integer if whole else is_number

    def given(data: Json, frame: Frame) -> float:
        value = evaluate(data, frame)
        if not belongs(value) or value < least or (value > most and most != NO_BOUND):
            kind = "a whole number" if whole else "a number"
            bounds = f"from {least} up" if most == NO_BOUND else f"from {least} to {most}"
            raise error(f"'{field}' must give {kind} {bounds}, not {excerpt(value, 200)}")
        return float(min(value, most))

    return given


def _unfit(field: str, cause: str) -> StateError:
    return EvaluationFailed(cause, field)


def _numeral(path: Evaluate) -> Evaluate:
    """Take a number written as text, too."""

    def number(data: Json, frame: Frame) -> Json:
        value = path(data, frame)
        return int(value) if type(value) is str and _NUMERAL.fullmatch(value) else value

    return number
