"""What a state may ask of the world, and the frame through which it asks.

The interpreter and the state types know these protocols only. A host answers: in memory, on a
virtual clock, on disk or inside another engine.
"""

import re
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.frame import Frame as ExpressionFrame
from asl.program import Machine, Step

__all__ = [
    "ABSENT",
    "Expired",
    "Fan",
    "Frame",
    "HeartbeatMissed",
    "Host",
    "Joined",
    "Options",
    "Raised",
    "Record",
    "Target",
]

ABSENT: Json = object()
"""Stands in `Joined.values` where a tolerated child failed: no JSON value at all."""

Record: TypeAlias = tuple[Any, ...]
"""One entry of the flat history: `(kind, time, frame, visit, step, ...)`."""


class Raised(StateError):
    """An error that the document or an agent raised by name: its cause is passed on untouched."""


class HeartbeatMissed(StateError):
    """A missed heartbeat: reported as `States.Timeout`, matched by both names (register C-12)."""

    def __init__(self, cause: str | None) -> None:
        super().__init__("States.Timeout", cause)


class Expired(BaseException):
    """The execution's own time limit has passed; no catcher of the workflow may see this."""


_INTEGRATION = re.compile(r"arn:[^:]*:states:[^:]*:[^:]*:([^:.]+)")


class Target:
    """Whom a state calls; one per state, made when the program is compiled."""

    __slots__ = ("kind", "name", "state")

    def __init__(self, kind: str, name: str, state: str) -> None:
        self.kind = kind
        """`agent` or `resource`."""
        self.name = name
        self.state = state

    @property
    def label(self) -> str:
        """The name in AWS's messages: that of an integration is its service (recorded)."""
        service = _INTEGRATION.match(self.name) if self.kind == "resource" else None
        return self.name if service is None else service.group(1)


class Options:
    """The limits of one call, in seconds from the agent's start.

    *state* is the name for the cause of a timeout, None where a timeout has no cause.
    """

    __slots__ = ("heartbeat", "state", "timeout")

    def __init__(
        self, timeout: float | None, heartbeat: float | None, state: str | None = None
    ) -> None:
        self.timeout = timeout
        self.heartbeat = heartbeat
        self.state = state

    def cause(self, what: str, seconds: float | None) -> str | None:
        """Return the cause of a timeout: *what* did not come within *seconds*."""
        if self.state is None:
            return None
        return f"state '{self.state}': no {what} within {seconds:g} s"


class Fan:
    """Children that one state starts. They are made when a worker takes them, never before."""

    __slots__ = ("child", "length", "limit", "tolerated")

    def __init__(
        self,
        length: int,
        child: Callable[[int], "Frame"],
        limit: int = 0,
        tolerated: float | None = None,
    ) -> None:
        self.length = length
        self.child = child
        self.limit = limit
        """How many may be in flight at once; 0 for no limit."""
        self.tolerated = tolerated
        """How many may fail without failing the whole; None: none, and its own error counts."""


class Joined:
    """What a fan came to: values in order, `ABSENT` for each tolerated failure."""

    __slots__ = ("failed", "values")

    def __init__(self, values: list[Json], failed: int) -> None:
        self.values = values
        self.failed = failed


class Frame(ExpressionFrame, Protocol):
    """The running machine as a state type and a host see it."""

    host: "Host"
    step: Step
    data: Json
    visit: int
    item: Json

    @property
    def execution_id(self) -> str:
        """The id of the execution that the machine belongs to."""
        ...

    @property
    def path(self) -> str:
        """The path of forks from the top machine down to this one: `/Each@12.0[17]`."""
        ...

    @property
    def key(self) -> str:
        """The key of the effect under way: names its answer, idempotency and randomness."""
        ...

    @property
    def retries(self) -> int:
        """How often the present visit has been retried, all retriers together."""
        ...

    def child(self, index: int, machine: Machine, data: Json, item: Json = ABSENT) -> "Frame":
        """Return the frame of a machine that this one forks."""
        ...

    def account(self, state: str, result: Json) -> None:
        """Count the usage that an agent reports in its raw result."""
        ...

    def before_start(self) -> "Frame":
        """Return this machine as an `ItemSelector` sees it: its item, in its parent's state."""
        ...

    @property
    def emit(self) -> Callable[[Record], object]:
        """Take one history record; observation only."""
        ...


class Host(Protocol):
    """Performs effects. Each method returns the answer or raises StateError, and sets `at.now`."""

    async def invoke(
        self, at: Frame, target: Target, payload: Json, options: Options | None = None
    ) -> Json:
        """Call an agent or a resource handler and return its raw result."""
        ...

    async def sleep_until(self, at: Frame, when: float) -> None:
        """Return when the clock has reached *when* (epoch seconds)."""
        ...

    async def fork(self, at: Frame, fan: Fan) -> Joined:
        """Run the children of *fan*; the first failure beyond the tolerated ones is raised."""
        ...

    async def tick(self, at: Frame) -> None:
        """Stay cancellable: called after every bounded stretch of pure states."""
        ...
