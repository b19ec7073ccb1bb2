"""Errors of operations on stored executions."""

from collections.abc import Mapping, Sequence

from asl.core.errors import AslError

__all__ = [
    "BindingsMissing",
    "ExecutionBusy",
    "ExecutionExists",
    "ExecutionNotFound",
    "ExecutionNotRedrivable",
    "RequestNotFound",
    "ScheduleNotFound",
]


class ExecutionNotFound(AslError):
    """The store has no execution of this name."""


class ExecutionExists(AslError):
    """The name belongs to an execution with another document or input."""


class RequestNotFound(AslError):
    """The store has no request of this id."""


class ScheduleNotFound(AslError):
    """The store has no schedule of this name."""


class ExecutionNotRedrivable(AslError):
    """The execution did not fail, or the document lacks the states to redrive."""


class ExecutionBusy(AslError):
    """Another process runs the execution."""


class BindingsMissing(AslError):
    """Bindings of earlier runs of the execution are missing; nothing has run."""

    def __init__(self, name: str, missing: Mapping[str, Sequence[str]]) -> None:
        """Args:
        name: The execution.
        missing: The names by kind: `agents`, `resources`, `tools`, `workflows`, `memory`, ...
        """
        listed = "; ".join(
            f"{kind} {', '.join(map(repr, names))}" for kind, names in missing.items()
        )
        super().__init__(
            f"the execution {name!r} had bindings that are missing now: {listed}; "
            "bind them again, nothing has run"
        )
        self.missing = {kind: list(names) for kind, names in missing.items()}
