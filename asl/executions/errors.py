"""What a store refuses."""

from collections.abc import Mapping, Sequence

from asl.core.errors import AslError

__all__ = [
    "BindingsMissing",
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


class BindingsMissing(AslError):
    """Names are not bound any more that an execution had when it ran; nothing has run."""

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
