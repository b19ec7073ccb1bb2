"""Evaluated fields of agent-native states, with typed access and errors (3.9)."""

from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import Any

from asl.core.errors import EvaluationFailed, ExpressionFault, StateError
from asl.core.values import Json, excerpt, is_integer, is_number
from asl.expr.paths import Path, parse_reference_path
from asl.expr.times import parse_duration

__all__ = ["BlockSettings", "invalid_field", "read_duration"]


class BlockSettings:
    """The evaluated fields of a state or block; a field with null is absent.

    Each method reads one field and returns None, or an empty value, for an absent one. A wrong
    value raises StateError("States.Runtime"), and EvaluationFailed in JSONata.
    """

    __slots__ = ("block", "jsonata", "state", "values")

    def __init__(
        self, values: Mapping[str, Json], jsonata: bool, block: str = "", state: str = ""
    ) -> None:
        self.values = values
        self.jsonata = jsonata
        self.block = block
        """The prefix of the names of fields: `Consensus.`"""
        self.state = state
        """The name of the state for errors, or empty."""

    def __contains__(self, field: str) -> bool:
        return self.values.get(field) is not None

    def flag(self, field: str, absent: bool = False) -> bool:
        """Return a flag; *absent* for an absent field."""
        found = self._read(field, _is_flag, "true or false")
        return absent if found is None else found is True

    def choice(self, field: str, choices: Collection[str]) -> str | None:
        """Return one of *choices*.

        Raises:
            StateError: The value is another one.
        """
        found: str | None = self.values.get(field)
        if found is not None and found not in choices:
            raise self.invalid_value(field, " or ".join(choices))
        return found

    def name(self, field: str) -> str | None:
        """Return a text that is not empty."""
        found: str | None = self._read(field, _is_name, "a name")
        return found

    def path(self, field: str) -> Path | None:
        """Return a reference path to a member: `$.trace`.

        Raises:
            StateError: The value is no such path.
        """
        text = self.name(field)
        path = None if text is None else _way(text)
        if text is not None and path is None:
            raise self.invalid_value(field, "a path to a member, such as $.found")
        return path

    def one_or_more(self, field: str) -> list[str]:
        """Return the names in a list, or a single name as a list."""
        found = self._read(field, _are_names, "a name or a list of names")
        return [] if found is None else [found] if type(found) is str else found

    def texts(self, field: str) -> list[str] | None:
        """Return a list of texts."""
        found: list[str] | None = self._read(field, _are_texts, "a list of texts")
        return found

    def names(self, field: str, choices: Collection[str]) -> list[str] | None:
        """Return a list of different names of *choices*."""
        found: list[str] | None = self._read(
            field,
            lambda value: (
                type(value) is list
                and all(_is_name(name) and name in choices for name in value)
                and len(set(value)) == len(value) > 0
            ),
            "a list of different names out of {}",
            ", ".join(choices),
        )
        return found

    def count(self, field: str, maximum: int | None = None) -> int | None:
        """Return a whole number from 1, up to *maximum* if given."""
        found = self._read(
            field,
            lambda value: (
                is_integer(value) and value >= 1 and (maximum is None or value <= maximum)
            ),
            "a whole number from 1" if maximum is None else "a whole number from 1 to {}",
            maximum,
        )
        return None if found is None else int(found)

    def number(self, field: str, minimum: float, maximum: float) -> float | None:
        """Return a number from *minimum* to *maximum*."""
        found: float | None = self._read(
            field,
            lambda value: is_number(value) and minimum <= value <= maximum,
            "a number from {:g} to {:g}",
            minimum,
            maximum,
        )
        return found

    def amount(self, field: str) -> float | None:
        """Return any number."""
        found: float | None = self._read(field, is_number, "a number")
        return found

    def fraction(self, field: str) -> float | None:
        """Return a number above 0, up to 1."""
        found: float | None = self._read(field, _is_share, "a number above 0, up to 1")
        return found

    def lifetime(self, field: str) -> Json:
        """Return a duration or `never`, unparsed.

        Raises:
            StateError: States.InvalidTTL for another value.
        """
        found = self.values.get(field)
        if found is None:
            return None
        try:
            parse_duration(found, allow_never=True)
        except ExpressionFault as fault:
            raise StateError("States.InvalidTTL", f"{self._place(field)}: {fault}") from None
        return found

    def members(self, field: str) -> Mapping[str, Json]:
        """Return an object."""
        found = self._read(field, _is_object, "an object")
        return {} if found is None else found

    def objects(self, field: str) -> list[Mapping[str, Json]]:
        """Return a list of objects."""
        found: list[Mapping[str, Json]] | None = self._read(
            field, _are_objects, "a list of objects"
        )
        return [] if found is None else found

    def block_of(self, field: str) -> "BlockSettings":
        """Return the fields of an object, with its name in their errors."""
        return BlockSettings(self.members(field), self.jsonata, f"{self.block}{field}.", self.state)

    def invalid_value(self, field: str, wanted: str) -> StateError:
        """Return the error of a field with another value than *wanted*."""
        cause = f"{self._place(field)} must be {wanted}, not {excerpt(self.values.get(field), 200)}"
        if self.jsonata:
            return EvaluationFailed(cause, self.block + field)
        return StateError("States.Runtime", cause)

    def _place(self, field: str) -> str:
        return (f"state '{self.state}': " if self.state else "") + self.block + field

    def _read(self, field: str, fits: Callable[[Json], bool], wanted: str, *bounds: Any) -> Json:
        value = self.values.get(field)
        if value is None or fits(value):
            return value
        raise self.invalid_value(field, wanted.format(*bounds))


def _way(text: str) -> Path | None:
    try:
        path = parse_reference_path(text)
    except ExpressionFault:
        return None
    return path if path.root == "$" and path.segments else None


def _is_flag(value: Json) -> bool:
    return type(value) is bool


def _is_name(value: Json) -> bool:
    return type(value) is str and value != ""


def _are_names(value: Json) -> bool:
    return _is_name(value) or (type(value) is list and all(map(_is_name, value)))


def _are_texts(value: Json) -> bool:
    return type(value) is list and all(type(each) is str for each in value)


def _are_objects(value: Json) -> bool:
    return type(value) is list and all(map(_is_object, value))


def _is_share(value: Json) -> bool:
    return is_number(value) and 0 < value <= 1


def _is_object(value: Json) -> bool:
    return type(value) is dict


MAX_WAIT = 1e10
"""Maximum seconds of a duration: some 300 years."""


def read_duration(
    field: str, value: Json, *, positive: bool = False, allow_never: bool = False
) -> float:
    """Return the seconds of a duration.

    Args:
        field: The field, for errors.
        value: A duration such as `"2h"`, or a number of seconds.
        positive: Whether 0 is refused.
        allow_never: Whether `never` is allowed; it and durations above MAX_WAIT are infinite.

    Raises:
        StateError: States.InvalidTTL for no duration, States.Runtime for one out of bounds.
    """
    try:
        if type(value) not in (str, int, float):
            raise invalid_field(field, "a duration", value, "States.InvalidTTL")
        seconds = parse_duration(value, allow_never=allow_never)
    except ExpressionFault as fault:
        raise StateError("States.InvalidTTL", f"{field}: {fault}") from None
    if seconds > MAX_WAIT and allow_never:
        return inf
    if seconds > MAX_WAIT or (positive and seconds == 0):
        bounds = f"{'above 0 and ' if positive else ''}at most {MAX_WAIT:.0f} seconds"
        raise StateError("States.Runtime", f"{field} must be {bounds}, got {value!r}")
    return seconds


def invalid_field(
    field: str, wanted: str, found: Json, error: str = "States.Runtime"
) -> StateError:
    """Return the error of a field with another value than *wanted*."""
    return StateError(error, f"{field} must be {wanted}, not {excerpt(found, 200)}")
