"""Notices of approval requests: reminders, escalations and timeouts (companion, 1.2 to 1.9).

All notices are determined by the request alone.
"""

from collections.abc import Iterator, Mapping
from heapq import merge
from typing import NamedTuple

from asl.core.values import Json
from asl.expr.times import format_timestamp
from asl.states.approval_answers import sort_items

__all__ = ["Notice", "notices"]

MAX_REPEATS = 1000
"""Maximum repetitions of an escalation without its own limit."""


class Notice(NamedTuple):
    """A reminder, an escalation or a timeout; the last notice ends the waiting.

    The last one has an automatic `decision`, fails the state (`States.Timeout`), or marks the
    timeout of the execution.
    """

    after: float
    """Seconds after the request."""
    event: str
    """Name of its event in the history; empty for a reminder."""
    details: dict[str, Json]
    decision: Json = None
    fails: bool = False
    expires: bool = False

    @property
    def final(self) -> bool:
        """Whether it ends the waiting."""
        return self.fails or self.expires or self.decision is not None


def notices(body: Mapping[str, Json], plan: Mapping[str, Json], created: float) -> Iterator[Notice]:
    """Yield the notices of a request in order, up to the end of the waiting.

    Args:
        body: The request.
        plan: Its timeouts and escalations (`parse_waiting_plan`).
        created: Time of the request in epoch seconds.
    """
    timers = [_timeout(body, plan, created)]
    if "deadline" in plan:
        timers.append(iter([Notice(plan["deadline"], "", {}, expires=True)]))
    if "limit" in plan:
        details: dict[str, Json] = {"effect": "States.Timeout"}
        timers.append(iter([Notice(plan["limit"], "ApprovalTimedOut", details, fails=True)]))
    timers += [_escalation(body, each, created) for each in plan.get("escalations", ())]
    timers += [
        iter([Notice(each["after"], "", {"channel": each["channel"]})])
        for each in plan.get("reminders", ())
    ]
    # The timeout comes first among notices of the same time: it ends the notifications.
    for notice in merge(*timers, key=lambda notice: notice.after):
        yield notice
        if notice.final:
            return


def _timeout(
    body: Mapping[str, Json], plan: Mapping[str, Json], created: float
) -> Iterator[Notice]:
    after = plan.get("timeout")
    if after is None:
        return
    action, options = plan["onTimeout"], body["options"]
    if action == "Escalate":
        details = {"reason": "timeout", "notify": plan.get("escalateTo")}
        yield Notice(after, "ApprovalEscalated", details)
        after, action = 2 * after, plan["afterEscalation"]
    if action == "Fail":
        yield Notice(after, "ApprovalTimedOut", {"effect": "States.Timeout"}, fails=True)
        return
    if action == "Default":
        record: dict[str, Json] = {
            "approval": "timeout",
            "approver": None,
            "timestamp": format_timestamp(created + after),
            "comment": None,
            "timedOut": True,
        }
        decision = {**_automatic(body, record), "default": True}
    else:
        rejected = "reject" if "reject" in options else options[-1]
        option = options[0] if action == "AutoApprove" else rejected
        record = _by_system(body, option, "timeout", created + after)
        decision = _automatic(body, {**record, "timedOut": True})
    details = {"effect": action, "approval": record["approval"]}
    yield Notice(after, "ApprovalTimedOut", details, decision)


def _escalation(
    body: Mapping[str, Json], rule: Mapping[str, Json], created: float
) -> Iterator[Notice]:
    details = {
        key: rule[key] for key in ("level", "notify", "message") if rule.get(key) is not None
    }
    if rule.get("approves"):
        record = _by_system(body, body["options"][0], "escalation", created + rule["after"])
        details["approval"] = record["approval"]
        yield Notice(rule["after"], "ApprovalEscalated", details, _automatic(body, record))
        return
    every, times = rule.get("every"), rule.get("times", MAX_REPEATS)
    for number in range(1 if every is None else 1 + min(times, MAX_REPEATS)):
        yield Notice(rule["after"] + number * (every or 0), "ApprovalEscalated", details)


def _by_system(body: Mapping[str, Json], option: str, user: str, when: float) -> dict[str, Json]:
    record: dict[str, Json] = {
        "approval": option,
        "approver": f"system:{user}",
        "timestamp": format_timestamp(when),
        "comment": None,
    }
    if "items" in body:
        approved = option == body["options"][0]
        record |= sort_items(body["items"], dict.fromkeys(range(len(body["items"])), approved))
    return record


def _automatic(body: Mapping[str, Json], record: dict[str, Json]) -> dict[str, Json]:
    if "editable" not in body:
        return {"record": record}
    return {"record": record, "edited": body["editable"]["fields"]}
