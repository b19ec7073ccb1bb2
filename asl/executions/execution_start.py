"""The description of an execution to start."""

from __future__ import annotations

from typing import NamedTuple

from asl.core.values import Json
from asl.program import Program
from asl.stores.executions import UNREGISTERED, ExecutionOrigin

__all__ = ["ExecutionStart"]


class ExecutionStart(NamedTuple):
    """An execution to start."""

    name: str | None
    """Its name, None for a random one."""
    program: Program
    """Its compiled document."""
    data: Json
    """Its input."""
    express: bool = False
    """Whether it is an express execution."""
    requestor: str | None = None
    """Name of the user who starts it, if known."""
    origin: ExecutionOrigin = UNREGISTERED
    """The registered state machine that it belongs to."""
