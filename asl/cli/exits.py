"""What the command's exit codes mean. They are published: never renumber them."""

from enum import IntEnum

__all__ = ["MEANINGS", "Exit", "of_status"]


class Exit(IntEnum):
    """The exit codes of every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INVALID = 3
    PAUSED = 4
    ENDED_EARLY = 5


MEANINGS = {
    Exit.OK: "succeeded",
    Exit.FAILED: "the workflow or a case failed, or diff, fmt or doctor found something",
    Exit.USAGE: "wrong usage: options, input, agents file, or a file that cannot be read",
    Exit.INVALID: "a document has errors, or is not as its lock says",
    Exit.PAUSED: "the workflow is paused",
    Exit.ENDED_EARLY: "timed out or aborted, also by Ctrl-C",
}

_STATUSES = {
    "SUCCEEDED": Exit.OK,
    "FAILED": Exit.FAILED,
    "PAUSED": Exit.PAUSED,
    "TIMED_OUT": Exit.ENDED_EARLY,
    "ABORTED": Exit.ENDED_EARLY,
}


def of_status(status: str) -> Exit:
    """Return the exit code for the status of an execution."""
    return _STATUSES[status]
