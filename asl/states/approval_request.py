"""Approval requests and their decisions (companion, 1.2 to 1.9).

A decision is `{"record": ...}`, with `edited` for editable fields and `default` for a timeout that
leads to the state's `Default`.
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
"""The keys of a request that are not part of its content."""
ID_DIGITS = 12
"""Number of digits of the digest of the content in the id of a request."""
ENDS = ("deadline", "limit")
"""The parts of a plan that depend on the time of the request: timeouts of execution and state."""


class ApprovalRequest:
    """An open approval request."""

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
        """The approvals so far."""
        self.notices_sent = 0
        """Number of sent notices, including the request itself."""
        self.failed_notices: dict[int, str] = {}
        """Errors of notices that were not sent, by number; the request itself is 1."""
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

        After a redrive the same effect may have another content, so the id includes its digest.
        """
        made = cls(f"{execution_id}:{key}", key, kind, body, plan, created)
        if redrives:
            made.id += f":{made.content_digest[:ID_DIGITS]}"
        return made

    @property
    def content_digest(self) -> str:
        """SHA-256 of the content and the timeouts, as compact JSON.

        Answers and the remaining time of the execution do not change it.
        """
        plan = {key: value for key, value in self.plan.items() if key not in ENDS}
        return _sha256({"type": self.kind, **self.body, "plan": plan})

    @property
    def view(self) -> dict[str, Json]:
        """The request as approvers see it."""
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
        """Return whether the timeout was restarted by an escalation."""
        if self.plan.get("onTimeout") != "Escalate":
            return False
        past = islice(self.notices(), max(0, self.notices_sent - 1))
        return any(notice.details.get("reason") == "timeout" for notice in past)

    @property
    def is_well_formed(self) -> bool:
        """Whether a request read from a store has the right shape.

        Values of other types may also raise the errors of computations with them.
        """
        shown, plan = self.view, self.plan
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
        """SHA-256 of the request as approvers see it, as compact JSON."""
        return _sha256(self.view)

    def judge(self, answer: Json, now: float, by: str) -> ApprovalOutcome:
        """Return the outcome of an answer; a decision includes the digest of the request.

        Args:
            answer: The answer.
            now: Time of the answer in epoch seconds.
            by: Approver to record if the answer names none.

        Raises:
            AnswerRefused: The answer breaks the rules, or has the `digest` of another request
                (`request_digest`).
        """
        known = (request_digest(self.view), self.digest)
        if type(answer) is dict and answer.get("digest", known[0]) not in known:
            raise AnswerRefused(
                "the request has changed since it was shown: review it again, then answer"
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
        """Return whether an answer repeats one from before the decision."""
        earlier = self.received[:-1]
        try:
            return check_answer(self.body, answer, earlier, now, by).received == earlier
        except AnswerRefused:
            return False

    def notices(self) -> Iterator[Notice]:
        """Yield the notices in order."""
        return notices(self.body, self.plan, self.created)

    @property
    def wake(self) -> float | None:
        """Time of the next notice in epoch seconds; None for no further notice."""
        notice = next(islice(self.notices(), max(0, self.notices_sent - 1), None), None)
        return None if notice is None else self.created + notice.after


def request_digest(request: Mapping[str, Json]) -> str:
    """Return the digest of the content of a request, for the `digest` of an answer.

    Args:
        request: A request as approvers see it (`result.pending`, `store.pending()`).

    Returns:
        SHA-256 in hexadecimal digits. Answers of others and escalations do not change it.
    """
    asked = {key: value for key, value in request.items() if key not in CHANGING}
    if "policy" in asked:
        asked["policy"] = {**asked["policy"], "received": []}
    return _sha256(asked)


def _sha256(value: Json) -> str:
    from hashlib import sha256

    return sha256(compact(value).encode()).hexdigest()
