"""Numbers that a state has in its definition or, by the field's Path twin, in its input."""

import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from asl.core.errors import EvaluationFailed, StateError
from asl.core.lazy import lazy_pattern
from asl.core.values import Json, excerpt, is_integer, is_number
from asl.expr.frame import Evaluate, Frame
from asl.states.base import Compiler

__all__ = ["AMOUNT", "MAX_SECONDS", "NO_BOUND", "Number", "amount", "number"]

Number = Callable[[Json, Frame], float]
"""`(effective input, frame) -> number`; raises StateError("States.Runtime"), or
EvaluationFailed for the value of an expression."""

MAX_SECONDS = 99_999_999
"""Seconds that a definition, or an expression in it, may say."""

NO_BOUND = 2**53
"""What counts as no bound at all, and a float still holds."""

AMOUNT = "[$\u00a2-\u00a5\u20a0-\u20cf]?([0-9]+(?:[.][0-9]+)?)"
"""The pattern of an amount of money; its group is the number."""

_NUMERAL = lazy_pattern(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")
_WHOLE = lazy_pattern(r"-?[0-9]{1,19}")

_OUT_OF_BOUNDS = {
    "MaxConcurrency": "Expected non-negative integer for MaxConcurrency, got '{value}' instead.",
}
"""Fields that AWS words in a way of their own."""


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
    that is asked for; beyond `NO_BOUND` it counts as that. *numerals* reads it by its text, as AWS
    does. What does not fit is told in AWS's words (recorded).
    """
    wanted = _Wanted(field, least, most, whole)
    if field in compiler.state:
        computed = compiler.computed(field, "number")
        if computed is not None:
            return _bounded(computed, wanted, wanted.unfit_result)
        fixed = compiler.state[field]
        return lambda data, frame: fixed
    if f"{field}Path" not in compiler.state:
        return None
    path, source = compiler.reference(f"{field}Path"), compiler.state[f"{field}Path"]
    if numerals:
        path = _numeral(path, whole)
    return _bounded(path, wanted, partial(wanted.unfit_reference, source))


class _Wanted(NamedTuple):
    """What a field takes, and what is said of a value that it does not take."""

    field: str
    least: int
    most: int
    whole: bool

    def belongs(self, value: Json) -> bool:
        """Whether the value is a number of the right kind."""
        return is_integer(value) if self.whole else is_number(value)

    def within(self, value: float) -> bool:
        """Whether a number of the right kind lies between the bounds."""
        return self.least <= value and (value <= self.most or self.most == NO_BOUND)

    @property
    def bounds(self) -> str:
        if self.most != NO_BOUND:
            return f"must be between {self.least} and {self.most}"
        return "cannot be negative" if self.least == 0 else f"must be at least {self.least}"

    def unfit_result(self, value: Json) -> StateError:
        """Return the error for the value of an expression."""
        cause = (
            f"{self.field} {self.bounds} but was: {value}"
            if self.belongs(value)
            else f"The {self.field} field cannot be parsed as an integer: {value}"
        )
        return EvaluationFailed(cause, self.field)

    def unfit_reference(self, source: str, value: Json) -> StateError:
        """Return the error for what the path *source* leads to."""
        if self.belongs(value):
            words = _OUT_OF_BOUNDS.get(self.field, f"{self.field} {self.bounds}.")
            return StateError("States.Runtime", words.format(value=value))
        shown = value if type(value) is str else excerpt(value, 200)
        return StateError(
            "States.Runtime",
            f'The {self.field}Path field refers to value "{shown[:200]}" '
            f"which is not a valid {'integer' if self.whole else 'float'}: {source}",
        )


def _bounded(evaluate: Evaluate, wanted: _Wanted, unfit: Callable[[Json], StateError]) -> Number:
    def given(data: Json, frame: Frame) -> float:
        value = evaluate(data, frame)
        if not (wanted.belongs(value) and wanted.within(value)):
            raise unfit(value)
        return float(min(value, wanted.most))

    return given


def _numeral(path: Evaluate, whole: bool) -> Evaluate:
    """Read a number by its text, whether that is a string or not: "2" is whole, 2.0 is not."""

    def number(data: Json, frame: Frame) -> Json:
        value = path(data, frame)
        text = excerpt(value) if is_number(value) else value
        if type(text) is not str:
            return value
        if whole:
            return int(text) if _WHOLE.fullmatch(text) and -(2**63) <= int(text) < 2**63 else text
        return float(text) if _NUMERAL.fullmatch(text) else value

    return number


def amount(value: Json) -> Decimal | None:
    """Return an amount of money (`"$2.50"`, `"3"`, `4`), None for any other value.

    An amount beyond `NO_BOUND` counts as that: a float holds it.
    """
    if is_number(value):
        return min(Decimal(str(value)), Decimal(NO_BOUND)) if value >= 0 else None
    found = re.fullmatch(AMOUNT, value) if type(value) is str else None
    return None if found is None else min(Decimal(found[1]), Decimal(NO_BOUND))
