"""The exceptions every layer shares.

`AslError` and its kin tell the caller of this library that something was used wrongly.
`StateError` is the workflow's own failure: `Retry` and `Catch` see it, never the caller's code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class AslError(Exception):
    """The library was misused, or given something it cannot work with."""


class DocumentNotFound(AslError):
    """No document can be read at `path`; `hint` names a near match in the same folder."""

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
    """A state cannot be tested as asked; text and `code` (`ValidationException`, ...) are AWS's.

    A hint of ours is a note of the exception, so the text stays theirs.
    """

    def __init__(
        self, message: str, code: str = "ValidationException", hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        if hint is not None:
            self.add_note(hint)


class NotJson(AslError):
    """A Python value has no JSON form: `place` is a JSONPath, `found` the Python type's name."""

    def __init__(self, place: str, found: str, reason: str) -> None:
        super().__init__(place, found, reason)
        self.place = place
        self.found = found
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.place}: {self.reason} ({self.found})"


class StateError(Exception):
    """A state failed with an error name and a cause (Specification 6.1); `Fail` may omit both.

    `usage` is what an agent has used before it failed, as it would report it in a result. Where it
    is `mark_usage_unknown`, nobody knows that: the call was given up, or broke off, before its end.
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
    """Return the error of a call of which nobody knows what it has used."""
    error.lost = True
    return error


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it comes from, each once."""
    seen = set[int]()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def cause_for(error: BaseException, cause: BaseException | None) -> BaseException | None:
    """Return *cause* for `raise error from ...`, with all circles in its chain cut.

    Foreign code may raise an error from itself, or one that is raised again may be among its own
    causes: whoever follows them would never end.
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
    """A JSONata expression failed; `location` is the field that holds it, None for no field."""

    __slots__ = ("location",)

    def __init__(self, cause: str, location: str | None = None) -> None:
        super().__init__("States.QueryEvaluationError", cause)
        self.location = location


def too_large(state: str) -> StateError:
    """The error of a state whose input or result is over the limit, in AWS's words."""
    return StateError(
        "States.DataLimitExceeded",
        f"The state/task '{state}' returned a result with a size exceeding the maximum number of "
        "bytes service limit.",
    )


class ExpressionFault(Exception):
    """An expression's text is wrong at `offset` (0-based, in characters); `code` is a rule id."""

    __slots__ = ("code", "hint", "message", "offset")

    def __init__(self, message: str, offset: int, code: str, hint: str | None = None) -> None:
        super().__init__(message, offset, code, hint)
        self.message = message
        self.offset = offset
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        return self.message
