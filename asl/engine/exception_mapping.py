"""What foreign code raises, as an error of the state that asked it."""

from __future__ import annotations

from collections.abc import Iterator

from asl.core.errors import NotJson, StateError
from asl.core.values import replace_surrogates
from asl.states.calls import Target
from asl.states.errors import (
    Cancelled,
    Exhausted,
    Expired,
    HeartbeatMissed,
    Raised,
    Reported,
    Suspended,
)

__all__ = [
    "alone",
    "bounded_error",
    "bounded_text",
    "describe_exception",
    "exception_message",
    "is_cancellation",
    "is_control_flow",
    "is_fault",
    "leaves",
    "make_portable",
    "named",
]

MAX_CAUSE = 32_768
"""Characters of a cause, as with AWS."""


_OWN = (Suspended, Cancelled, Expired, Exhausted, KeyboardInterrupt)
_PACKAGE = __name__.partition(".")[0]


def is_control_flow(error: BaseException) -> bool:
    """Whether an exception is how the engine, or the process, ends or pauses: it flies on."""
    return isinstance(error, _OWN) or (isinstance(error, GeneratorExit) and _closes(error))


def _closes(error: GeneratorExit) -> bool:
    """Whether an exception closes a coroutine of this package, and was not raised by an agent.

    Closing a coroutine closes those that it awaits first, silently: the exception begins in the
    outer one.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__"))
    return module.partition(".")[0] == _PACKAGE


def make_portable(error: BaseException) -> BaseException:
    """Return an exception of foreign code as futures and tasks can carry it.

    They cannot carry StopIteration, close what awaits them for GeneratorExit, and end the event
    loop for SystemExit.
    """
    if isinstance(error, StopIteration | GeneratorExit | SystemExit) and not is_control_flow(error):
        return Raised("States.TaskFailed", describe_exception(error))
    return error


def is_cancellation(error: BaseException) -> bool:
    """Whether an exception is that of a task that was cancelled; asyncio is not loaded for it."""
    return type(error).__name__ == "CancelledError"


def is_fault(error: BaseException) -> bool:
    """Whether an exception is a fault of the code that raised it."""
    named = isinstance(error, StateError | NotJson)
    return not (named or is_control_flow(error) or is_cancellation(error))


def alone(error: BaseException) -> BaseException:
    """Return the exception that a group is about, if it holds a single one; any other as it is."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in a group and its groups; any other by itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaves(each)
    else:
        yield error


def named(error: StateError | NotJson, target: Target) -> StateError:
    """Give an agent's error a name and a cause that are texts of a bearable length."""
    if isinstance(error, NotJson):
        return Raised("States.TaskFailed", _text(f"{target.name} returned no JSON: {error}"))
    if isinstance(error, HeartbeatMissed):
        return error
    if target.by_token and error.name != "States.Timeout":
        return Reported(_text(error.name), _text(error.cause))
    return bounded_error(error)


def bounded_error(error: StateError) -> Raised:
    """Return an error of foreign code with a name and a cause that are texts of bearable length."""
    name = _text(error.name) if error.name else "States.TaskFailed"
    blamed = Raised(name, _text(error.cause))
    blamed.usage, blamed.lost = error.usage, error.lost
    return blamed


def _text(value: object) -> str | None:
    if value is None:
        return None
    return bounded_text(value if isinstance(value, str) else repr(value))


def bounded_text(text: str) -> str:
    """Return a text as a cause may be."""
    return replace_surrogates(text[:MAX_CAUSE])


def describe_exception(error: BaseException) -> str:
    """Return what an exception of foreign code says, in a bearable length.

    A group says what each exception in it does.
    """
    error = alone(error)
    if isinstance(error, BaseExceptionGroup):
        inner = "; ".join(map(describe_exception, leaves(error)))
        return bounded_text(f"{type(error).__name__}: {error.message}: {inner}")
    name, message = type(error).__name__, exception_message(error)
    return bounded_text(f"{name}: {message}" if message else name)


def exception_message(error: BaseException) -> str:
    """Return the message of an exception of foreign code, empty if it cannot be read."""
    try:
        return str(error)
    except Exception:  # foreign code again: even the text of its error may fail
        return ""
