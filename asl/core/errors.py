"""The exceptions that all layers share.

`AslError` and its subclasses report wrong use of this library to the caller. `StateError` is the
failure of a workflow's state, for `Retry` and `Catch`; it never reaches the caller's code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class AslError(Exception):
    """The library was used wrongly, or got input that it cannot use."""


class DocumentNotFound(AslError):
    """There is no readable document at `path`; `hint` names a similar file."""

    def __init__(self, path: str, reason: str, hint: str | None = None) -> None:
        super().__init__(path, reason, hint)
        self.path = path
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        path = self.path if len(self.path) <= 200 else self.path[:199] + "…"
        text = f"cannot read {path!r}: {self.reason}"
        return f"{text} ({self.hint})" if self.hint else text


class InvalidTest(AslError):
    """A state cannot be tested as requested; message and `code` (`ValidationException`, ...) are
    AWS's.

    A hint of ours is added as a note, so the message stays AWS's.
    """

    def __init__(
        self, message: str, code: str = "ValidationException", hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        if hint is not None:
            self.add_note(hint)


class NotJson(AslError):
    """A Python value has no JSON form; `place` is a JSONPath, `found` the name of its type."""

    def __init__(self, place: str, found: str, reason: str) -> None:
        super().__init__(place, found, reason)
        self.place = place
        self.found = found
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.place}: {self.reason} ({self.found})"


class StateError(Exception):
    """A state failed with an error name and a cause (Specification 6.1); `Fail` may omit both.

    `usage` is the usage reported by a failed agent call. `lost` says that its usage is unknown: the
    call was abandoned or broke off.
    """

    __slots__ = ("cause", "name")
    usage: Mapping[str, Any] | None = None
    lost = False

    def __init__(self, name: str | None, cause: str | None = None) -> None:
        super().__init__(name, cause)
        self.name = name
        self.cause = cause

    def __str__(self) -> str:
        return ": ".join(str(part) for part in (self.name, self.cause) if part is not None)


E = TypeVar("E", bound=StateError)


def mark_usage_unknown(error: E) -> E:
    """Return the error with its usage marked as unknown."""
    error.lost = True
    return error


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that caused it, each once."""
    seen = set[int]()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def cause_for(error: BaseException, cause: BaseException | None) -> BaseException | None:
    """Return *cause* for `raise error from ...`, with all cycles in its chain cut.

    Foreign code may raise an error from itself, or raise one again that is among its own causes; a
    reader of the chain would then never end.
    """
    if cause is error:
        cause = None
    seen = {id(error)}
    each: BaseException | None = error if cause is None else cause
    while each is not None:
        seen.add(id(each))
        if id(each.__cause__) in seen:
            each.__cause__ = None
        if id(each.__context__) in seen:
            each.__context__ = None
        each = each.__cause__ or each.__context__
    return cause


class EvaluationFailed(StateError):
    """A JSONata expression failed; `location` is its field, None without a field."""

    __slots__ = ("location",)

    def __init__(self, cause: str, location: str | None = None) -> None:
        super().__init__("States.QueryEvaluationError", cause)
        self.location = location


def too_large(state: str) -> StateError:
    """Return the error of a state whose input or result exceeds the limit, in AWS's words."""
    return StateError(
        "States.DataLimitExceeded",
        f"The state/task '{state}' returned a result with a size exceeding the maximum number of "
        "bytes service limit.",
    )


class ExpressionFault(Exception):
    """A syntax error at `offset` (characters, from 0); `code` is the id of a rule."""

    __slots__ = ("code", "hint", "message", "offset")

    def __init__(self, message: str, offset: int, code: str, hint: str | None = None) -> None:
        super().__init__(message, offset, code, hint)
        self.message = message
        self.offset = offset
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        return self.message
