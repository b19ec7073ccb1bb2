"""What people decide: which answers count, and what happens without one (companion, 1.2 to 1.9).

Pure functions of plain JSON, the same ones for a handler, a store and the command line. A
*decision* is what the state is given in the end: `{"record": ...}`, with `edited` where there are
editable fields and `default` where a timeout leads to the state's `Default`.
"""

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple
from unicodedata import category, normalize

from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.values import Json, compact, is_integer
from asl.expr.times import format_timestamp, is_timestamp
from asl.states.numbers import amount

__all__ = [
    "ANYTHING",
    "SYSTEM_USER",
    "AnswerRefused",
    "Asked",
    "Notice",
    "Verdict",
    "notices",
    "request_digest",
]

OWN_KEYS = frozenset(
    {"approval", "approver", "timestamp", "comment", "edited_content", "roles", "digest"}
)
CHANGING = frozenset({"requestId", "createdAt", "expiresAt", "escalatedTo", "digest", "execution"})
"""The keys of a request that say nothing of what is asked."""
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Categories of characters that no name consists of: controls, formats and the unassigned."""
FILLERS = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800"
    + "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
)
"""Invisible characters of other categories (Unicode, Default_Ignorable_Code_Point)."""
ID_DIGITS = 12
"""How many digits of the digest of what is asked are in the id of a request."""
MAX_REPEATS = 1000
"""How often an escalation without a limit of its own is repeated."""
SYSTEM_USER = "system_user"
"""The key of an answer for the user of the operating system who gave it in another's name."""
ANYTHING = "*"
"""The option that stands for any value: people answer in their own words."""
ENDS = ("deadline", "limit")
"""The parts of a plan that depend on the moment: when the execution, or the state, times out."""
VERDICTS = {"approved": True, "rejected": False}
"""The lists of items, and whether those in it are approved."""
BATCH_KEYS = frozenset({"decisions", *VERDICTS})


class AnswerRefused(AslError):
    """An answer is outside of the rules; the request stays open. The text says why."""

    def __init__(self, reason: str, *, forbidden: bool = False, late: bool = False) -> None:
        super().__init__(reason)
        self.forbidden = forbidden
        """Whether it is the person that may not decide."""
        self.late = late
        """Whether the time for it is over: what comes of that, comes when the execution goes on."""


class Verdict(NamedTuple):
    """What an answer comes to: a decision, or None while more of them are needed."""

    decision: Json
    received: list[Json]
    """The approvals that are collected."""


class Notice(NamedTuple):
    """Something that happens while there is no answer; the last one ends the waiting.

    That one has an automatic `decision`, fails the state (`States.Timeout`), or says that the time
    of the whole execution is over.
    """

    after: float
    """Seconds after the request was made."""
    event: str
    """What the history calls it; empty for a mere reminder."""
    details: dict[str, Json]
    decision: Json = None
    fails: bool = False
    expires: bool = False

    @property
    def final(self) -> bool:
        """Whether nobody is asked any more."""
        return self.fails or self.expires or self.decision is not None


class Asked:
    """A request that waits for people."""

    __slots__ = (
        "body", "created", "id", "key", "kind", "plan", "received", "status", "told", "unheard",
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
        self.told = 0
        """How many notices have been sent; the request itself counts."""
        self.unheard: dict[int, str] = {}
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
    ) -> "Asked":
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
        past = islice(self.notices(), max(0, self.told - 1))
        return any(notice.details.get("reason") == "timeout" for notice in past)

    @property
    def digest(self) -> str:
        """SHA-256 of exactly what people see, as compact JSON."""
        return _sha256(self.shown)

    def judged(self, answer: Json, now: float, by: str) -> Verdict:
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
        verdict = _check_answer(self.body, answer, self.received, now, by)
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

    def repeated(self, answer: Json, now: float, by: str) -> bool:
        """Whether it is what somebody has said before the one who has decided it."""
        earlier = self.received[:-1]
        try:
            return _check_answer(self.body, answer, earlier, now, by).received == earlier
        except AnswerRefused:
            return False

    def notices(self) -> Iterator[Notice]:
        """Yield what happens without an answer, in order."""
        return notices(self.body, self.plan, self.created)

    @property
    def wake(self) -> float | None:
        """When something happens next without an answer, in epoch seconds; None for never."""
        notice = next(islice(self.notices(), max(0, self.told - 1), None), None)
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


def person(name: str) -> str:
    """Return the name of a person in its normal form.

    NFKC, without invisible characters, and with single blanks between its words.
    """
    plain = normalize("NFKC", name)
    seen = "".join(
        each
        for each in plain
        if each.isspace() or not (category(each) in INVISIBLE or each in FILLERS)
    )
    return " ".join(seen.split())


def _same_person(name: str, names: Sequence[str | None]) -> bool:
    """Whether a name is one of *names*, however they are written."""
    return person(name).casefold() in [person(each).casefold() for each in names if each]


def _sha256(value: Json) -> str:
    from hashlib import sha256

    return sha256(compact(value).encode()).hexdigest()


# Answers


def _check_answer(
    body: Mapping[str, Json], answer: Json, received: list[Json], now: float, by: str
) -> Verdict:
    """Return what an answer comes to, given at *now* by somebody who is *by* if it does not say.

    Raises AnswerRefused for one outside of the rules.
    """
    if type(answer) is str or (ANYTHING in body["options"] and type(answer) is not dict):
        answer = {"approval": answer}
    if type(answer) is not dict:
        raise AnswerRefused("an answer is an option, or an object with one in 'approval'")
    options = body["options"]
    if "approval" not in answer and "decision" in answer:
        answer = {**answer, "approval": answer["decision"]}
    verdicts = _verdicts(body, answer) if "items" in body else None
    option = answer.get("approval")
    if verdicts is not None and answer.keys() & BATCH_KEYS:
        option = _whole(body, verdicts)
    if option is None:
        raise AnswerRefused(f"the answer has no 'approval': one of {_listed(options)}")
    if option not in options and ANYTHING not in options:
        hint = did_you_mean(option, options) if type(option) is str else None
        raise AnswerRefused(
            f"{compact(option)} is no option: choose one of {_listed(options)}"
            + (f" ({hint})" if hint else "")
        )
    approver, comment = answer.get("approver", by), answer.get("comment")
    timestamp = answer.get("timestamp", format_timestamp(now))
    if type(approver) is not str or not (approver := person(approver)):
        raise AnswerRefused("'approver' is the name of whoever decides")
    if comment is not None and type(comment) is not str:
        raise AnswerRefused("'comment' is a text")
    if not is_timestamp(timestamp):
        raise AnswerRefused("'timestamp' is a timestamp such as 2030-01-31T13:45:00Z")
    if "budget" in body:
        _check_amounts(answer)
    policy = body.get("policy", {})
    _check_approver(policy, approver, answer.get("roles", []))
    if policy.get("requireReason") and not (comment and comment.strip()):
        raise AnswerRefused("a reason is required: say why in 'comment'")
    edits = _edits(body, answer.get("edited_content"))
    head = {
        "approval": option, "approver": approver, "timestamp": timestamp, "comment": comment,
    }  # fmt: skip
    if SYSTEM_USER in answer:
        head[SYSTEM_USER] = answer[SYSTEM_USER]
        if type(head[SYSTEM_USER]) is not str:
            raise AnswerRefused(f"{SYSTEM_USER!r} is the name of a user of the operating system")
    own = {**head, **({"edited_content": edits} if edits else {})}
    if verdicts is not None:
        own |= _by_verdict(range(len(body["items"])), verdicts)
    needed = policy.get("requiredApprovals", 1)
    collected = _collected(received, own)
    if option == options[0] and len(collected) < needed:
        return Verdict(None, collected)
    record = {**head, **({} if verdicts is None else _agreed(body, option, verdicts, collected))}
    if needed > 1:
        record["approvals"] = [_approval(body, each) for each in collected]
    known = OWN_KEYS if verdicts is None else OWN_KEYS | BATCH_KEYS
    record |= {key: value for key, value in answer.items() if key not in known | record.keys()}
    decision: dict[str, Json] = {"record": record}
    if "editable" in body:
        decision["edited"] = dict(body["editable"]["fields"])
        for each in collected:
            decision["edited"] |= each.get("edited_content", {})
    return Verdict(decision, collected)


def _collected(received: list[Json], answer: dict[str, Json]) -> list[Json]:
    """Return the answers so far with this one; a person's later one replaces the earlier."""
    for index, each in enumerate(received):
        if _same_person(answer["approver"], [each["approver"]]):
            if {**each, "timestamp": None} == {**answer, "timestamp": None}:
                return received
            return [*received[:index], *received[index + 1 :], answer]
    return [*received, answer]


def _approval(body: Mapping[str, Json], given: Mapping[str, Json]) -> dict[str, Json]:
    """Return what the record says of the answer of one among several."""
    keys = ("approval", "approver", "timestamp", "comment", SYSTEM_USER)
    found = {key: given[key] for key in keys if key in given}
    if "items" in body:
        for key in VERDICTS:
            found[key] = [body["items"][index] for index in given.get(key, ())]
    return found


def _check_amounts(answer: Mapping[str, Json]) -> None:
    """Refuse new limits of a budget that are none."""
    if "MaxCost" in answer and amount(answer["MaxCost"]) is None:
        raise AnswerRefused("'MaxCost' is an amount such as \"2.50\"")
    tokens = answer.get("MaxTokens", 0)
    if not is_integer(tokens) or tokens < 0:
        raise AnswerRefused("'MaxTokens' is a whole number from 0")


def _check_approver(policy: Mapping[str, Json], approver: str, roles: Json) -> None:
    if type(roles) is not list or not all(type(role) is str for role in roles):
        raise AnswerRefused("'roles' is a list of names")
    if _same_person(approver, [policy.get("excludes")]):
        raise AnswerRefused(
            f"{approver!r} asked for the decision and may not take it", forbidden=True
        )
    approvers = policy.get("approvers")
    if not approvers:
        return
    users, wanted = approvers.get("users", []), approvers.get("roles", [])
    if _same_person(approver, users) or not set(roles).isdisjoint(wanted):
        return
    who = " or ".join(
        [*([f"one of {_listed(users)}"] if users else []),
         *([f"somebody in the role {_listed(wanted)}"] if wanted else [])]
    )  # fmt: skip
    who = who or "nobody is listed in 'Approvers', so nobody"
    raise AnswerRefused(f"{approver!r} may not decide this: {who} may", forbidden=True)


def _edits(body: Mapping[str, Json], edits: Json) -> dict[str, Json]:
    if edits is None:
        return {}
    if "editable" not in body:
        raise AnswerRefused("nothing of this request may be edited")
    if type(edits) is not dict:
        raise AnswerRefused("'edited_content' is an object with the changed fields")
    fields = body["editable"]["fields"]
    for key in edits:
        if key not in fields:
            hint = did_you_mean(key, fields)
            raise AnswerRefused(
                f"{key!r} is no editable field: they are {_listed(list(fields))}"
                + (f" ({hint})" if hint else "")
            )
    return edits


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))


# Batches


def _verdicts(body: Mapping[str, Json], answer: Mapping[str, Json]) -> dict[int, bool]:
    """Return whether each decided item is approved, by its index."""
    count, options = len(body["items"]), body["options"]
    if not answer.keys() & BATCH_KEYS:
        return dict.fromkeys(range(count), answer.get("approval") == options[0])
    verdicts = _decisions(answer, options, count)
    missing = [str(index) for index in range(count) if index not in verdicts]
    if missing and not body["batch"].get("allowPartial", False):
        raise AnswerRefused(f"every item needs a decision; there is none on {', '.join(missing)}")
    return verdicts


def _whole(body: Mapping[str, Json], verdicts: Mapping[int, bool]) -> str:
    """Return the decision on a batch that those on its items come to."""
    options, rules = body["options"], body["batch"]
    rate, least = _rate(body["items"], verdicts), rules.get("minApproved")
    if least is None and rules.get("allowPartial", False):
        passed = rate > 0
    else:
        passed = rate >= (1 if least is None else least)
    chosen: str = options[0] if passed else options[-1]
    return chosen


def _agreed(
    body: Mapping[str, Json], option: str, last: dict[int, bool], answers: list[Json]
) -> dict[str, Json]:
    """Return what the record says of a batch on which several have decided, the *last* by *option*.

    Items that one of them rejects are rejected, those that all approve are approved.
    """
    items, options = body["items"], body["options"]
    # What older stores have collected says nothing of items, so nobody has approved them there.
    approved = set(range(len(items))).intersection(*(each.get("approved", ()) for each in answers))
    rejected = set[int]().union(*(each.get("rejected", ()) for each in answers))
    verdicts = {**dict.fromkeys(approved, True), **dict.fromkeys(rejected, False)}
    if option == options[0] and verdicts != last:
        option = _whole(body, verdicts)
    return {"approval": option, **_sorted(items, verdicts)}


def _decisions(answer: Mapping[str, Json], options: list[str], length: int) -> dict[int, bool]:
    """Return what an answer says of items."""
    yes, no = {"approve", options[0]}, {"reject", options[-1]}
    if "decisions" in answer:
        decisions = answer["decisions"]
        if type(decisions) is not dict or not all(
            type(each) is str and each in yes | no for each in decisions.values()
        ):
            raise AnswerRefused("'decisions' is an object of 'approve' or 'reject' by index")
        pairs = [(index, each in yes) for index, each in decisions.items()]
    else:
        pairs = []
        for key, approves in VERDICTS.items():
            indices = answer.get(key, [])
            if type(indices) is not list:
                raise AnswerRefused(f"{key!r} is a list of indices")
            pairs += [(index, approves) for index in indices]
    verdicts: dict[int, bool] = {}
    for written, approved in pairs:
        index = _index(written, length)
        if verdicts.setdefault(index, approved) != approved:
            raise AnswerRefused(f"item {index} is both approved and rejected")
    return verdicts


def _index(written: Json, length: int) -> int:
    if type(written) is str and written.isascii() and written.isdecimal() and len(written) < 10:
        written = int(written)
    if is_integer(written) and 0 <= written < length:
        return int(written)
    raise AnswerRefused(f"there is no item {compact(written)}: indices run from 0 to {length - 1}")


def _sorted(items: list[Json], verdicts: Mapping[int, bool]) -> dict[str, Json]:
    return {**_by_verdict(items, verdicts), "approvalRate": _rate(items, verdicts)}


def _by_verdict(items: Sequence[Json], verdicts: Mapping[int, bool]) -> dict[str, Json]:
    """Return the items that are approved, and those that are rejected, in their order."""
    return {
        key: [item for index, item in enumerate(items) if verdicts.get(index) is approves]
        for key, approves in VERDICTS.items()
    }


def _rate(items: Sequence[Json], verdicts: Mapping[int, bool]) -> float:
    return sum(verdicts.values()) / len(items) if items else 0


# Time


def notices(body: Mapping[str, Json], plan: Mapping[str, Json], created: float) -> Iterator[Notice]:
    """Yield what happens without an answer, in order, up to the end of the waiting."""
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
    # Of what happens at the same instant the timeout is first: nobody is told any more.
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


def _by_system(body: Mapping[str, Json], option: str, who: str, when: float) -> dict[str, Json]:
    record: dict[str, Json] = {
        "approval": option,
        "approver": f"system:{who}",
        "timestamp": format_timestamp(when),
        "comment": None,
    }
    if "items" in body:
        approved = option == body["options"][0]
        record |= _sorted(body["items"], dict.fromkeys(range(len(body["items"])), approved))
    return record


def _automatic(body: Mapping[str, Json], record: dict[str, Json]) -> dict[str, Json]:
    if "editable" not in body:
        return {"record": record}
    return {"record": record, "edited": body["editable"]["fields"]}
