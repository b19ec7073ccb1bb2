"""What foreign code raises, as an error of the state that asked it."""

from __future__ import annotations

from asl.core.errors import NotJson, StateError
from asl.core.values import whole_text
from asl.states.calls import Target
from asl.states.errors import HeartbeatMissed, Raised, Reported

__all__ = ["bounded_text", "described", "is_fault", "named"]

MAX_CAUSE = 32_768
"""Characters of a cause, as with AWS."""


def is_fault(error: BaseException) -> bool:
    """Whether an exception is a fault of the code that raised it."""
    return isinstance(error, Exception | SystemExit) and not isinstance(error, StateError | NotJson)


def named(error: StateError | NotJson, target: Target) -> StateError:
    """Give an agent's error a name and a cause that are texts of a bearable length."""
    if isinstance(error, NotJson):
        return Raised("States.TaskFailed", _text(f"{target.name} returned no JSON: {error}"))
    if isinstance(error, HeartbeatMissed):
        return error
    if target.by_token and error.name != "States.Timeout":
        return Reported(_text(error.name), _text(error.cause))
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
    return whole_text(text[:MAX_CAUSE])


def described(error: BaseException) -> str:
    """Return what an exception of foreign code says, in a bearable length."""
    name = type(error).__name__
    try:
        said = str(error)
    except Exception:  # foreign code again: even the text of its error may fail
        return name
    return bounded_text(f"{name}: {said}" if said else name)
