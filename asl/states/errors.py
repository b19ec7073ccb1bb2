"""What an effect may end in instead of an answer."""

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
    """An error that the document or an agent raised by name: its cause is passed on untouched."""


class CallbackError(RaisedError):
    """A failure that came by task token; it may lack its name and its cause."""


class HeartbeatMissed(StateError):
    """A missed heartbeat: reported as `States.Timeout`, matched by both names (register C-12)."""

    def __init__(self, cause: str | None) -> None:
        super().__init__("States.Timeout", cause)


class Suspension(BaseException):
    """The machine waits for people, and nothing of it needs to stay in memory meanwhile."""


class ExecutionTimeout(BaseException):
    """The execution's own time limit has passed; no catcher of the workflow may see this."""


class ExecutionCancellation(BaseException):
    """Somebody has asked for the end of the execution; no catcher of the workflow may see this."""


class BudgetOverrun(BaseException):
    """A state around has spent more than it may: it fails, whatever the machines in it catch."""

    def __init__(self, frame: StateFrame, visit: int, error: StateError) -> None:
        super().__init__(error)
        self.frame = frame
        """The machine of that state."""
        self.visit = visit
        self.error = error
