"""Mapping of exceptions of user code to errors of the calling state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

from asl.core.errors import NotJson, StateError
from asl.core.values import replace_surrogates
from asl.states.calls import Target
from asl.states.errors import (
    BudgetOverrun,
    CallbackError,
    ExecutionCancellation,
    ExecutionTimeout,
    HeartbeatMissed,
    RaisedError,
    Suspension,
)

__all__ = [
    "bounded_error",
    "bounded_text",
    "describe_exception",
    "exception_message",
    "is_cancellation",
    "is_control_flow",
    "is_fault",
    "leaf_exceptions",
    "make_portable",
    "map_exceptions",
    "normalize_error",
    "unwrap_group",
]

MAX_CAUSE = 32_768
"""Maximum length of a cause in characters, as with AWS."""

MAX_LEAVES = 100
"""Maximum number of exceptions of a group in its description."""

_OWN = (Suspension, ExecutionCancellation, ExecutionTimeout, BudgetOverrun, KeyboardInterrupt)
_PACKAGE = __name__.partition(".")[0]


def is_control_flow(error: BaseException) -> bool:
    """Return whether an exception is one with which the engine or the process ends or pauses."""
    return isinstance(error, _OWN) or (isinstance(error, GeneratorExit) and _closes(error))


def _closes(error: GeneratorExit) -> bool:
    """Return whether an exception closes a coroutine of this package, not raised by an agent.

    Closing a coroutine first closes those that it awaits, silently: the traceback begins in the
    outer one.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__"))
    return module.partition(".")[0] == _PACKAGE


def make_portable(error: BaseException) -> BaseException:
    """Return an exception of user code in a form that futures and tasks can carry.

    They cannot carry StopIteration, close the awaiting coroutine for GeneratorExit, and end the
    event loop for SystemExit.
    """
    if isinstance(error, StopIteration | GeneratorExit | SystemExit) and not is_control_flow(error):
        return RaisedError("States.TaskFailed", describe_exception(error))
    return error


def is_cancellation(error: BaseException) -> bool:
    """Return whether an exception is asyncio's CancelledError, without loading asyncio."""
    return type(error).__name__ == "CancelledError"


def is_fault(error: BaseException) -> bool:
    """Return whether an exception is a bug of the code that raised it."""
    named = isinstance(error, StateError | NotJson)
    return not (named or is_control_flow(error) or is_cancellation(error))


def unwrap_group(error: BaseException) -> BaseException:
    """Return the only exception in a group; any other exception unchanged."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def leaf_exceptions(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in a group and its subgroups; any other exception itself."""
    todo = [error]
    while todo:
        each = todo.pop()
        if isinstance(each, BaseExceptionGroup):
            todo.extend(reversed(each.exceptions))
        else:
            yield each


def normalize_error(error: StateError | NotJson, target: Target) -> StateError:
    """Return an agent's error with name and cause as text of bounded length."""
    if isinstance(error, NotJson):
        return RaisedError("States.TaskFailed", _text(f"{target.name} returned no JSON: {error}"))
    if isinstance(error, HeartbeatMissed):
        return error
    if target.by_token and error.name != "States.Timeout":
        return CallbackError(_text(error.name), _text(error.cause))
    return bounded_error(error)


def bounded_error(error: StateError) -> RaisedError:
    """Return an error of user code with name and cause as text of bounded length."""
    name = _text(error.name) if error.name else "States.TaskFailed"
    blamed = RaisedError(name, _text(error.cause))
    blamed.usage, blamed.lost = error.usage, error.lost
    return blamed


def _text(value: object) -> str | None:
    if value is None:
        return None
    return bounded_text(value if isinstance(value, str) else repr(value))


@contextmanager
def map_exceptions(
    make_error: Callable[[str], Exception], passes: Callable[[BaseException], bool]
) -> Iterator[None]:
    """Convert exceptions that user code raises in the block; a StateError is only bounded.

    Args:
        make_error: Returns the error for a description of an exception.
        passes: Whether an exception propagates unchanged, as control flow always does.
    """
    try:
        yield
    except BaseException as error:  # user code may raise any class, SystemExit included
        if is_control_flow(error) or passes(error):
            raise
        if isinstance(error, StateError):
            raise bounded_error(error) from error
        raise make_error(describe_exception(error)) from error


def bounded_text(text: str) -> str:
    """Cut a text to the maximum length of a cause."""
    return replace_surrogates(text[:MAX_CAUSE])


def describe_exception(error: BaseException) -> str:
    """Return type and message of an exception of user code, in bounded length.

    A group is described by the first exceptions in it.
    """
    error = unwrap_group(error)
    if isinstance(error, BaseExceptionGroup):
        leaves = islice(leaf_exceptions(error), MAX_LEAVES)
        inner = "; ".join(map(describe_exception, leaves))
        return bounded_text(f"{type(error).__name__}: {error.message}: {inner}")
    name, message = type(error).__name__, exception_message(error)
    return bounded_text(f"{name}: {message}" if message else name)


def exception_message(error: BaseException) -> str:
    """Return the message of an exception of user code, empty if it cannot be read."""
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # user code: even the text of its error may fail
        return ""
