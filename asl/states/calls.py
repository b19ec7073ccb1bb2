"""Calls: whom a state calls, and what comes with a call beside its payload."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from asl.core.lazy import lazy_pattern
from asl.core.values import Json

__all__ = ["CallOptions", "CallPart", "Handover", "Invocation", "Lookup", "Target", "is_function"]

_INTEGRATION = lazy_pattern(r"arn:[^:]*:states:[^:]*:[^:]*:([^:.]+)")
_ACTIVITY = lazy_pattern(r"arn:[^:]*:states:[^:]*:[^:]*:activity:[^:]+")
_QUALIFIED = lazy_pattern(r"(arn:[^:]*:lambda:[^:]*:[^:]*:function:[^:]+):[^:]+")
_INVOKE = lazy_pattern(r"arn:[^:]*:states:[^:]*:[^:]*:lambda:invoke")
_FUNCTION = lazy_pattern(r"arn:[^:]*:(?:lambda|\*)")
_PATTERNS = (".sync", ".sync:2", ".waitForTaskToken")


def is_function(name: str) -> bool:
    """Whether this is the ARN of a Lambda function, or a pattern of such."""
    return _FUNCTION.match(name) is not None


class Target:
    """Whom a state calls; one per state, made when the program is compiled."""

    __slots__ = ("aside", "base", "kind", "label", "name", "optional", "pattern", "state")

    def __init__(
        self, kind: str, name: str, state: str, *, aside: bool = False, optional: bool = False
    ) -> None:
        self.kind = kind
        """`agent` or `resource`."""
        self.name = name
        self.state = state
        self.aside = aside
        """Whether it is called beside the agent of the state, so that no mock stands for it."""
        self.optional = optional
        """Whether the state goes on where nothing is bound to the name."""
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
        """Whether workers ask for its tasks by themselves."""
        return self.kind == "resource" and _ACTIVITY.fullmatch(self.name) is not None

    @property
    def invokes(self) -> bool:
        """Whether it is asked to call the function that the request names."""
        return self.kind == "resource" and _INVOKE.fullmatch(self.base) is not None

    @property
    def by_token(self) -> bool:
        """Whether its answer comes by task token."""
        return self.pattern == ".waitForTaskToken" or self.is_activity


class CallPart(NamedTuple):
    """One of several calls that an attempt of a state makes; its timeout is that of them all."""

    key: str
    """Names the call: the same in every attempt of the visit."""
    attempt: int
    """1 for the first attempt."""
    began: float
    """When the attempt began."""


class CallOptions:
    """What comes with one call beside its payload: limits, in seconds from the agent's start.

    *state* is the name for the cause of a timeout, None where a timeout has no cause.
    *credentials* are whatever the state's `Credentials` came to, None without them. *part* says
    which one of several calls of an attempt this is, None for the only one. `blocks` is what the
    agent blocks of the state hand over, by the names that `Call` has for it.
    """

    __slots__ = (
        "again", "began", "blocks", "credentials", "heartbeat", "part", "shared", "state",
        "timeout", "within",
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
        self.began = None if part is None else part.began
        """When the call began, None for now."""
        self.again = False
        """Whether the attempt may make the call again, in what is left of its time."""
        self.shared = False
        """Whether other calls have the same, so that nothing of it may be changed."""
        self.within: Any = None
        """The reservation around it: of an outer call, then of this one, for calls within it."""
        self.blocks: dict[str, Any] = {}

    def copy(self) -> "CallOptions":
        """Return options that say the same."""
        made = CallOptions(self.timeout, self.heartbeat, self.state, self.credentials, self.part)
        made.began, made.again, made.blocks = self.began, self.again, dict(self.blocks)
        made.within = self.within
        return made

    @property
    def limited(self) -> bool:
        """Whether the call has a limit at all."""
        return self.timeout is not None or self.heartbeat is not None

    def left(self, now: float) -> float | None:
        """Return how many seconds a call may take from *now* on, None for no limit."""
        if self.timeout is None or self.began is None:
            return self.timeout
        return self.began + self.timeout - now

    def cause(self, what: str, seconds: float | None) -> str | None:
        """Return the cause of a timeout: *what* did not come within *seconds*."""
        if self.state is None:
            return None
        return f"state '{self.state}': no {what} within {seconds:g} s"


class Invocation(NamedTuple):
    """A call of an agent or of the handler of a resource, whose answer is awaited."""

    target: Target
    payload: Json
    options: CallOptions | None = None


class Handover(NamedTuple):
    """What is asked of somebody who answers later: by task token, or from within a job.

    The answer belongs to the token of the present attempt (`Frame.token`), so that a store can keep
    the request and the machine need not wait in memory.
    """

    target: Target
    payload: Json
    options: CallOptions | None = None


class Lookup(NamedTuple):
    """Makes sure that every one of some targets can be called, before the first is."""

    targets: Sequence[Target]
