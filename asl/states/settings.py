"""Fields of agent-native states as they are once their expressions have been evaluated (3.9)."""

from collections.abc import Callable, Collection, Mapping

from asl.core.errors import EvaluationFailed, StateError
from asl.core.values import Json, excerpt, is_integer, is_number
from asl.states.numbers import MAX_SECONDS

__all__ = ["Settings"]

MOST = MAX_SECONDS
"""What a whole number in a definition may come to (Specification 1.2)."""


class Settings:
    """The values of some fields; one that is null counts as absent.

    A value that a field does not take raises StateError("States.Runtime"), in JSONata
    EvaluationFailed, as the value of an expression does.
    """

    __slots__ = ("block", "jsonata", "values")

    def __init__(self, values: Mapping[str, Json], jsonata: bool, block: str = "") -> None:
        self.values = values
        self.jsonata = jsonata
        self.block = block
        """What stands before the name of a field: `Consensus.`"""

    def __contains__(self, field: str) -> bool:
        return self.values.get(field) is not None

    def flag(self, field: str) -> bool:
        """Return whether a field is true."""
        return self._read(field, "true or false", lambda value: type(value) is bool) is True

    def word(self, field: str, words: Collection[str]) -> str | None:
        """Return one of *words*."""
        found: str | None = self._read(field, " or ".join(words), lambda value: value in words)
        return found

    def name(self, field: str) -> str | None:
        """Return a text that is not empty."""
        found: str | None = self._read(field, "a name", _is_name)
        return found

    def names(self, field: str, among: Collection[str]) -> list[str] | None:
        """Return a list of different names out of *among*."""
        found: list[str] | None = self._read(
            field,
            f"a list of different names out of {', '.join(among)}",
            lambda value: (
                type(value) is list
                and all(_is_name(name) and name in among for name in value)
                and len(set(value)) == len(value) > 0
            ),
        )
        return found

    def count(self, field: str) -> int | None:
        """Return a whole number from 1."""
        found = self._read(
            field,
            f"a whole number from 1 to {MOST}",
            lambda value: is_integer(value) and 1 <= value <= MOST,
        )
        return None if found is None else int(found)

    def share(self, field: str) -> float | None:
        """Return a number above 0, up to 1."""
        found: float | None = self._read(
            field, "a number above 0, up to 1", lambda value: is_number(value) and 0 < value <= 1
        )
        return found

    def members(self, field: str) -> Mapping[str, Json]:
        """Return an object."""
        found = self._read(field, "an object", lambda value: type(value) is dict)
        return {} if found is None else found

    def unfit(self, field: str, wanted: str) -> StateError:
        """Return the error of a field that has not the value which is *wanted*."""
        name = self.block + field
        cause = f"{name} is {wanted}, not {excerpt(self.values.get(field), 200)}"
        return (
            EvaluationFailed(cause, name) if self.jsonata else StateError("States.Runtime", cause)
        )

    def _read(self, field: str, wanted: str, fits: Callable[[Json], bool]) -> Json:
        value = self.values.get(field)
        if value is None or fits(value):
            return value
        raise self.unfit(field, wanted)


def _is_name(value: Json) -> bool:
    return type(value) is str and value != ""
