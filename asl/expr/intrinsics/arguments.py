"""Read the arguments of intrinsic functions, or fail with `States.IntrinsicFailure`.

Every check takes the function's name and the argument's position (from 1) for the cause.
"""

from collections.abc import Callable

from asl.core.errors import StateError
from asl.core.values import (
    MAX_DEPTH,
    Json,
    compact,
    deeper_than,
    is_integer,
    is_number,
    measure,
    type_name,
)
from asl.core.work import WorkMeter

SMALL = 1024
"""Characters and members that are not counted as work."""
BYTES_READ = 16
"""Bytes of a value's JSON measured in one step; for plain text it is `TEXT_READ`."""
TEXT_READ = 256
MAX_CHARACTERS = 10_000
"""The longest text that may be hashed or encoded (Specification 1.2)."""


class IntrinsicFailure(StateError):
    """An intrinsic function failed at run time; `aws_message` is AWS's message."""

    __slots__ = ("aws_message",)

    def __init__(self, function: str, cause: str, aws_message: str | None = None) -> None:
        super().__init__("States.IntrinsicFailure", f"{function}: {cause}")
        self.aws_message = aws_message or f"Invalid arguments in {function}"


def failure(function: str, cause: str, aws_message: str | None = None) -> IntrinsicFailure:
    """Return the failure of an intrinsic function, with AWS's message if it differs from ours."""
    return IntrinsicFailure(function, cause, aws_message)


def _mismatch(function: str, position: int, wanted: str, value: Json) -> StateError:
    found = "null" if value is None else f"{type_name(value)} {_excerpt(value)}"
    return failure(function, f"argument {position} must be {wanted}, found {found}")


def _excerpt(value: Json) -> str:
    """Return the value's JSON text if it is short, else dots, for messages."""
    return compact(value) if measure(value, 60) <= 60 else "..."


def array(function: str, position: int, value: Json) -> list[Json]:
    """Return the argument as an array.

    Raises:
        StateError: States.IntrinsicFailure for any other argument.
    """
    if type(value) is list:
        return value
    raise _mismatch(function, position, "an array", value)


def object_argument(function: str, position: int, value: Json) -> dict[str, Json]:
    """Return the argument as an object.

    Raises:
        StateError: States.IntrinsicFailure for any other argument.
    """
    if type(value) is dict:
        return value
    raise _mismatch(function, position, "an object", value)


def string(function: str, position: int, value: Json) -> str:
    """Return the argument as a string.

    Raises:
        StateError: States.IntrinsicFailure for any other argument.
    """
    if type(value) is str:
        return value
    raise _mismatch(function, position, "a string", value)


def number(function: str, position: int, value: Json) -> int | float:
    """Return the argument as a number; booleans are none.

    Raises:
        StateError: States.IntrinsicFailure for any other argument.
    """
    if is_number(value):
        return value  # type: ignore[no-any-return]  # is_number is no type guard
    raise _mismatch(function, position, "a number", value)


def integer(function: str, position: int, value: Json) -> int:
    """Return the argument as an integer; 3.0 is one, 3.5 is not.

    Raises:
        StateError: States.IntrinsicFailure for any other argument.
    """
    if is_integer(value):
        return int(value)
    raise _mismatch(function, position, "an integer", value)


def encodable(function: str, text: str) -> str:
    """Return the text if it is short enough to be hashed or encoded.

    Raises:
        StateError: States.IntrinsicFailure above `MAX_CHARACTERS`.
    """
    if len(text) > MAX_CHARACTERS:
        raise failure(function, f"the text has more than {MAX_CHARACTERS} characters")
    return text


def text_of(
    function: str,
    value: Json,
    limit: int,
    write: Callable[[Json], str] = compact,
    work: WorkMeter | None = None,
) -> str:
    """Return a string unchanged, any other value as text.

    Args:
        function: Name of the function, for the cause.
        value: The value.
        limit: Bytes that the text may have.
        write: Writes the text of a value, by default as compact JSON.
        work: Counts the work, None for none.

    Raises:
        StateError: As `check_bounds` does.
    """
    if type(value) is str:
        if len(value) > limit:
            raise _too_large(function, limit)
        return value
    if type(value) in (dict, list):
        check_bounds(function, value, limit, work)
    return write(value)


def size_of(function: str, value: Json, limit: int, work: WorkMeter | None = None) -> int:
    """Return the bytes in UTF-8 of a string, or of the compact JSON of any other value.

    Raises:
        StateError: "States.DataLimitExceeded" above `limit`.
        WorkExceeded: Measuring takes more than *work* has left.
    """
    if type(value) is str:
        if work is not None and len(value) > SMALL:
            work.spend(len(value) // TEXT_READ)
        size = len(value.encode())
    elif work is None:
        size = measure(value, limit)
    else:
        size = measure(value, min(limit, (work.steps + 1) * BYTES_READ))
        if size <= limit:
            work.spend(size // BYTES_READ)
    if size > limit:
        raise _too_large(function, limit)
    return size


def check_bounds(function: str, value: Json, limit: int, work: WorkMeter | None = None) -> None:
    """Check that a value is small enough for a recursive walk.

    A loop of `Pass` states can share a list within itself until its text is astronomically long, or
    nest one without end.

    Raises:
        StateError: States.DataLimitExceeded above `limit` bytes, States.IntrinsicFailure beyond
            `MAX_DEPTH` levels.
        WorkExceeded: Measuring takes more than *work* has left.
    """
    size_of(function, value, limit, work)
    if deeper_than(value, MAX_DEPTH):
        raise failure(function, f"the value is nested deeper than {MAX_DEPTH} levels")


def _too_large(function: str, limit: int) -> StateError:
    return StateError(
        "States.DataLimitExceeded", f"{function}: the value is larger than {limit} bytes"
    )
