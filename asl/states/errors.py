"""The errors and interruptions of effects."""

from asl.core.errors import StateError
from asl.states.effects import StateFrame

__all__ = [
    "BudgetOverrun",
    "CallbackError",
    "ExecutionCancellation",
    "ExecutionTimeout",
    "HeartbeatMissed",
    "RaisedError",
    "Suspension",
]


class RaisedError(StateError):
    """An error raised by name by the document or an agent; its cause is passed on unchanged."""


class CallbackError(RaisedError):
    """A failure reported by task token; name and cause are optional."""


class HeartbeatMissed(StateError):
    """A missed heartbeat: reported as `States.Timeout`, matched by both names (register C-12)."""

    def __init__(self, cause: str | None) -> None:
        super().__init__("States.Timeout", cause)


class Suspension(BaseException):
    """The machine waits for an approval or a callback and may leave memory meanwhile."""


class ExecutionTimeout(BaseException):
    """The execution has timed out; catchers of the workflow do not see this."""


class ExecutionCancellation(BaseException):
    """The execution is cancelled; catchers of the workflow do not see this."""


class BudgetOverrun(BaseException):
    """A state exceeds its budget: it fails, whatever the machines within it catch."""

    def __init__(self, frame: StateFrame, visit: int, error: StateError) -> None:
        super().__init__(error)
        self.frame = frame
        """The machine of that state."""
        self.visit = visit
        self.error = error
