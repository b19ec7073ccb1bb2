"""Calls of states: their targets, payloads and options."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from asl.core.lazy import lazy_pattern
from asl.core.values import Json

__all__ = [
    "CallOptions",
    "CallPart",
    "Handover",
    "Invocation",
    "Target",
    "TargetCheck",
    "is_function",
]

_INTEGRATION = lazy_pattern(r"arn:[^:]*:states:[^:]*:[^:]*:([^:.]+)")
_ACTIVITY = lazy_pattern(r"arn:[^:]*:states:[^:]*:[^:]*:activity:[^:]+")
_QUALIFIED = lazy_pattern(r"(arn:[^:]*:lambda:[^:]*:[^:]*:function:[^:]+):[^:]+")
_INVOKE = lazy_pattern(r"arn:[^:]*:states:[^:]*:[^:]*:lambda:invoke")
_FUNCTION = lazy_pattern(r"arn:[^:]*:(?:lambda|\*)")
_PATTERNS = (".sync", ".sync:2", ".waitForTaskToken")


def is_function(name: str) -> bool:
    """Return whether this is the ARN of a Lambda function, or a pattern of such ARNs."""
    return _FUNCTION.match(name) is not None


class Target:
    """The target of a call: an agent or a resource; made when the program is compiled."""

    __slots__ = ("base", "is_helper", "kind", "label", "name", "optional", "pattern", "state")

    def __init__(
        self, kind: str, name: str, state: str, *, is_helper: bool = False, optional: bool = False
    ) -> None:
        self.kind = kind
        """`agent` or `resource`."""
        self.name = name
        self.state = state
        self.is_helper = is_helper
        """Whether it is a helper of the agent, such as a validator; mocks do not replace it."""
        self.optional = optional
        """Whether the state continues if nothing is bound to the name."""
        self.pattern = ""
        """The pattern of an integration: `.sync`, `.sync:2`, `.waitForTaskToken` or none."""
        self.base = name
        """The name without its integration pattern, or the function without its alias."""
        if kind == "resource":
            self.pattern = next((each for each in _PATTERNS if name.endswith(each)), "")
            function = _QUALIFIED.fullmatch(name)
            self.base = function[1] if function else name.removesuffix(self.pattern)
        service = _INTEGRATION.match(name) if kind == "resource" else None
        self.label = name if service is None else service.group(1)
        """The name in AWS's messages: that of an integration is its service (recorded)."""

    @property
    def is_activity(self) -> bool:
        """Whether it is an activity, whose workers poll for tasks."""
        return self.kind == "resource" and _ACTIVITY.fullmatch(self.name) is not None

    @property
    def invokes(self) -> bool:
        """Whether it is the integration `lambda:invoke`."""
        return self.kind == "resource" and _INVOKE.fullmatch(self.base) is not None

    @property
    def by_token(self) -> bool:
        """Whether its result comes by task token."""
        return self.pattern == ".waitForTaskToken" or self.is_activity


class CallPart(NamedTuple):
    """One of several calls in an attempt of a state; they share one timeout."""

    key: str
    """Identifies the call; the same in every attempt of the visit."""
    attempt: int
    """1 for the first attempt."""
    start: float
    """Start of the attempt in epoch seconds."""


class CallOptions:
    """The limits, credentials and agent blocks of a call.

    Args:
        timeout: Seconds from the start of the agent; None for no limit.
        heartbeat: Seconds between two heartbeats; None for no limit.
        state: Name of the state for the cause of a timeout; None for a timeout without a cause.
        credentials: The value of the state's `Credentials`; None without them.
        part: The call among several calls of an attempt; None for the only one.
    """

    __slots__ = (
        "blocks",
        "credentials",
        "enclosing",
        "heartbeat",
        "part",
        "repeats",
        "shared",
        "start",
        "state",
        "timeout",
    )  # fmt: skip

    def __init__(
        self,
        timeout: float | None,
        heartbeat: float | None,
        state: str | None = None,
        credentials: Json = None,
        part: CallPart | None = None,
    ) -> None:
        self.timeout = timeout
        self.heartbeat = heartbeat
        self.state = state
        self.credentials = credentials
        self.part = part
        self.start = None if part is None else part.start
        """Start of the call in epoch seconds; None for now."""
        self.repeats = False
        """Whether the attempt may repeat the call in its remaining time."""
        self.shared = False
        """Whether other calls share these options; shared ones must not be changed."""
        self.enclosing: Any = None
        """The reservation around it: of an outer call, then of this one, for calls within it."""
        self.blocks: dict[str, Any] = {}

    def copy(self) -> "CallOptions":
        """Return a copy that may be changed."""
        made = CallOptions(self.timeout, self.heartbeat, self.state, self.credentials, self.part)
        made.start, made.repeats, made.blocks = self.start, self.repeats, dict(self.blocks)
        made.enclosing = self.enclosing
        return made

    @property
    def is_limited(self) -> bool:
        """Whether the call has a timeout or a heartbeat."""
        return self.timeout is not None or self.heartbeat is not None

    def remaining(self, now: float) -> float | None:
        """Return the remaining seconds at *now* (epoch seconds); None for no limit."""
        if self.timeout is None or self.start is None:
            return self.timeout
        return self.start + self.timeout - now

    def cause(self, what: str, seconds: float | None) -> str | None:
        """Return the cause of a timeout of *seconds*, in which there was no *what*."""
        if self.state is None:
            return None
        return f"state '{self.state}': no {what} within {seconds:g} s"


class Invocation(NamedTuple):
    """A call of an agent or of the handler of a resource; its answer is the result."""

    target: Target
    payload: Json
    options: CallOptions | None = None


class Handover(NamedTuple):
    """A task whose result comes later: by task token, or from a job.

    The result belongs to the token of the current attempt (`StateFrame.token`), so a store can
    record the request, and the machine need not wait in memory.
    """

    target: Target
    payload: Json
    options: CallOptions | None = None


class TargetCheck(NamedTuple):
    """A check that all targets can be called, made before the first call."""

    targets: Sequence[Target]
