"""What a store refuses."""

from asl.core.errors import AslError

__all__ = [
    "ExecutionBusy",
    "ExecutionExists",
    "ExecutionNotFound",
    "ExecutionNotRedrivable",
    "RequestNotFound",
]


class ExecutionNotFound(AslError):
    """The store has no execution of this name."""


class ExecutionExists(AslError):
    """There is an execution of this name, of another document or another input."""


class RequestNotFound(AslError):
    """The store has no request of this id."""


class ExecutionNotRedrivable(AslError):
    """The execution has nothing to be done again, or the document lacks where it stands."""


class ExecutionBusy(AslError):
    """Another process is at work on the execution."""
