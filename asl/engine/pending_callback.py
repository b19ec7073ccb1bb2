"""Callbacks: tasks that are answered by task token, as a store holds them."""

from asl.core.values import Json
from asl.expr.times import format_timestamp
from asl.states.errors import CallbackError

__all__ = ["ACTIVITY", "TOKEN", "PendingCallback"]

TOKEN = "token"
ACTIVITY = "activity"
"""Kinds of callbacks: sent to a handler, or polled by an activity worker."""


class PendingCallback:
    """A task that is answered by its token; all times are epoch seconds.

    It is open until it is `answered`, times out (`timeout`), or is `closed` because its answer is
    no longer needed.
    """

    __slots__ = (
        "created",
        "heartbeat",
        "key",
        "kind",
        "last_heartbeat",
        "outcome",
        "payload",
        "state",
        "status",
        "taken_at",
        "target",
        "timeout",
        "token",
        "worker",
    )  # fmt: skip

    def __init__(
        self,
        token: str,
        key: str,
        kind: str,
        target: str,
        state: str,
        payload: Json,
        created: float,
        timeout: float | None,
        heartbeat: float | None,
    ) -> None:
        self.token = token
        self.key = key
        self.kind = kind
        self.target = target
        """`Resource` of the state."""
        self.state = state
        self.payload = payload
        self.created = created
        self.timeout = timeout
        self.heartbeat = heartbeat
        self.status = "open"
        self.taken_at: float | None = None
        """Time at which the handler or a worker took the task, None before."""
        self.worker: str | None = None
        self.last_heartbeat = created if kind == TOKEN else None
        """Time of the latest heartbeat, None before there can be one."""
        self.outcome: list[Json] | None = None
        """Time of the answer, the output, and null or name and cause of a failure."""

    @property
    def due(self) -> float | None:
        """Time at which it times out without a heartbeat or an answer, None for never."""
        ends = []
        if self.timeout is not None:
            ends.append(self.created + self.timeout)
        if self.heartbeat is not None and self.last_heartbeat is not None:
            ends.append(self.last_heartbeat + self.heartbeat)
        return min(ends, default=None)

    @property
    def is_heartbeat_due(self) -> bool:
        """Whether the due timeout is that of the heartbeat."""
        return self.timeout is None or self.due != self.created + self.timeout

    @property
    def is_well_formed(self) -> bool:
        """Return whether values read from a store have the types that this class writes.

        Values nested in them are not checked; code that uses them may raise as for wrong types.
        """
        texts, times = [self.target, self.state], [self.taken_at, self.last_heartbeat, self.due]
        came = [0] if self.outcome is None else self.outcome[:1]
        return (
            all(type(each) is str for each in texts)
            and all(each is None or type(each) in (int, float) for each in [*times, *came])
            and type(self.worker) in (str, type(None))
            and (self.outcome is None or len(self.outcome) == 3)
            and self.view["taskToken"] == self.token
        )

    def answer(self) -> Json:
        """Return the output of the answer.

        Raises:
            StateError: The answer is a failure.
        """
        assert self.outcome is not None
        _, output, failure = self.outcome
        if failure is not None:
            raise CallbackError(*failure)
        return output

    @property
    def view(self) -> dict[str, Json]:
        """The request as workers see it."""
        shown: dict[str, Json] = {
            "type": self.kind,
            "taskToken": self.token,
            "state": self.state,
            "resource": self.target,
            "payload": self.payload,
            "createdAt": format_timestamp(self.created),
        }
        if self.due is not None:
            shown["expiresAt"] = format_timestamp(self.due)
        return shown
