"""Approval requests: what people are asked, and the decision in the end (companion, 1.2 to 1.9).

A *decision* is what the state is given in the end: `{"record": ...}`, with `edited` where there are
editable fields and `default` where a timeout leads to the state's `Default`.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

from asl.core.values import Json, compact
from asl.expr.times import format_timestamp
from asl.states.approval_answers import (
    BATCH_KEYS,
    OWN_KEYS,
    AnswerRefused,
    ApprovalOutcome,
    check_answer,
)
from asl.states.approval_notices import Notice, notices

__all__ = ["ApprovalRequest", "request_digest"]

CHANGING = frozenset({"requestId", "createdAt", "expiresAt", "escalatedTo", "digest", "execution"})
"""The keys of a request that say nothing of what is asked."""
ID_DIGITS = 12
"""How many digits of the digest of what is asked are in the id of a request."""
ENDS = ("deadline", "limit")
"""The parts of a plan that depend on the moment: when the execution, or the state, times out."""


class ApprovalRequest:
    """A request that waits for people."""

    __slots__ = (
        "body",
        "created",
        "failed_notices",
        "id",
        "key",
        "kind",
        "notices_sent",
        "plan",
        "received",
        "status",
    )  # fmt: skip

    def __init__(
        self,
        id: str,
        key: str,
        kind: str,
        body: Mapping[str, Json],
        plan: Mapping[str, Json],
        created: float,
    ) -> None:
        self.id = id
        self.key = key
        self.kind = kind
        self.body = body
        self.plan = plan
        self.created = created
        """Epoch seconds."""
        self.received: list[Json] = []
        """The approvals that are collected."""
        self.notices_sent = 0
        """How many notices have been sent; the request itself counts."""
        self.failed_notices: dict[int, str] = {}
        """Why notices could not be sent, by their numbers; that of the request itself is 1."""
        self.status = "open"

    @classmethod
    def make(
        cls,
        execution_id: str,
        key: str,
        kind: str,
        body: Mapping[str, Json],
        plan: Mapping[str, Json],
        created: float,
        redrives: int,
    ) -> "ApprovalRequest":
        """Return a new request of an execution.

        After a redrive the same effect may ask something else, so the id names what is asked.
        """
        made = cls(f"{execution_id}:{key}", key, kind, body, plan, created)
        if redrives:
            made.id += f":{made.content_digest[:ID_DIGITS]}"
        return made

    @property
    def content_digest(self) -> str:
        """SHA-256 of what is asked and what happens without an answer, as compact JSON.

        It stays the same whatever is answered, and however long the execution may still take.
        """
        plan = {key: value for key, value in self.plan.items() if key not in ENDS}
        return _sha256({"type": self.kind, **self.body, "plan": plan})

    @property
    def shown(self) -> dict[str, Json]:
        """The request as people see it."""
        shown: dict[str, Json] = {"type": self.kind, "requestId": self.id, **self.body}
        shown["createdAt"] = format_timestamp(self.created)
        if "policy" in shown:
            shown["policy"] = {**shown["policy"], "received": self.received}
        timeout, escalated = self.plan.get("timeout"), self._escalated()
        if timeout is not None and escalated:
            timeout *= 2
        given = (timeout, *map(self.plan.get, ENDS))
        ends = [each for each in given if each is not None]
        if ends:
            shown["expiresAt"] = format_timestamp(self.created + min(ends))
        if escalated and self.plan["escalateTo"] is not None:
            shown["escalatedTo"] = self.plan["escalateTo"]
        return shown

    def _escalated(self) -> bool:
        """Whether the timeout has been started once more."""
        if self.plan.get("onTimeout") != "Escalate":
            return False
        past = islice(self.notices(), max(0, self.notices_sent - 1))
        return any(notice.details.get("reason") == "timeout" for notice in past)

    @property
    def is_well_formed(self) -> bool:
        """Whether what was read from a store has the shape that this class writes.

        What depends on it may also raise what any computation raises for values of other types.
        """
        shown, plan = self.shown, self.plan
        fields = shown.get("editable", {}).get("fields", {})
        policy = shown.get("policy", {})
        approvers = policy.get("approvers", {})
        named = [*approvers.get("users", ()), *approvers.get("roles", ())]
        numbers = [policy.get("requiredApprovals", 1), self.wake or 0]
        return (
            shown["requestId"] == self.id
            and shown["type"] == self.kind
            and len(shown["options"]) > 0
            and all(type(each) is str for each in [*shown["options"], *named])
            and all(type(each) in (int, float) for each in numbers)
            and all(type(each["approver"]) is str for each in self.received)
            and type(shown["promptText"]) in (str, type(None))
            and "prompt" in shown
            and type(shown.get("items", [])) is list
            and type(fields) is type(plan) is dict
            and len(self.content_digest) > 0
        )

    @property
    def digest(self) -> str:
        """SHA-256 of exactly what people see, as compact JSON."""
        return _sha256(self.shown)

    def judge(self, answer: Json, now: float, by: str) -> ApprovalOutcome:
        """Return what an answer comes to, given at *now* by whoever it names, else by *by*.

        A decision has the `digest` of what was shown to whoever has taken it. Raises AnswerRefused
        for an answer outside of the rules, and for one with the `digest` of another prompt
        (`request_digest`).
        """
        known = (request_digest(self.shown), self.digest)
        if type(answer) is dict and answer.get("digest", known[0]) not in known:
            raise AnswerRefused(
                "what is asked has changed since it was shown: look at it again, then answer"
            )
        if type(answer) is dict:
            self._refuse_overwriting(answer)
        verdict = check_answer(self.body, answer, self.received, now, by)
        if verdict.decision is None:
            return verdict
        return verdict._replace(decision={**verdict.decision, "digest": self.digest})

    def _refuse_overwriting(self, answer: dict[str, Json]) -> None:
        """Raise AnswerRefused for a key of the record that would replace a value of the data."""
        more = answer.keys() - OWN_KEYS - BATCH_KEYS - {"decision"}
        for key in sorted(more.intersection(self.plan.get("keeps", ()))):
            raise AnswerRefused(
                f"{key!r} would replace a value of the data: name it in 'Editable', or give the "
                "state a 'ResultPath'"
            )

    def is_repetition(self, answer: Json, now: float, by: str) -> bool:
        """Whether it is what somebody has said before the one who has decided it."""
        earlier = self.received[:-1]
        try:
            return check_answer(self.body, answer, earlier, now, by).received == earlier
        except AnswerRefused:
            return False

    def notices(self) -> Iterator[Notice]:
        """Yield what happens without an answer, in order."""
        return notices(self.body, self.plan, self.created)

    @property
    def wake(self) -> float | None:
        """When something happens next without an answer, in epoch seconds; None for never."""
        notice = next(islice(self.notices(), max(0, self.notices_sent - 1), None), None)
        return None if notice is None else self.created + notice.after


def request_digest(request: Mapping[str, Json]) -> str:
    """Return the digest of what a request asks, which an answer may carry as `digest`.

    Args:
        request: A request as people see it (`result.pending`, `store.pending()`).

    Returns:
        SHA-256 in hexadecimal digits. It stays the same while others answer, and when the request
        is escalated.
    """
    asked = {key: value for key, value in request.items() if key not in CHANGING}
    if "policy" in asked:
        asked["policy"] = {**asked["policy"], "received": []}
    return _sha256(asked)


def _sha256(value: Json) -> str:
    from hashlib import sha256

    return sha256(compact(value).encode()).hexdigest()
