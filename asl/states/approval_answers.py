"""Answers to approval requests: validation and outcome (companion, 1.2 to 1.9).

Pure functions of plain JSON, shared by handlers, stores and the command line.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from unicodedata import category, normalize

from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.values import Json, compact, is_integer
from asl.expr.times import format_timestamp, is_timestamp
from asl.states.numbers import parse_amount

__all__ = [
    "ANYTHING",
    "AUTHENTICATION",
    "BATCH_KEYS",
    "OWN_KEYS",
    "SYSTEM_USER",
    "AnswerRefused",
    "ApprovalOutcome",
    "check_answer",
    "check_approver",
    "normalize_name",
    "sort_items",
]

AUTHENTICATION = "authentication"
"""The key of an answer for how a service has authenticated the approver; not part of the record."""
OWN_KEYS = frozenset(
    {"approval", "approver", "timestamp", "comment", "edited_content", "roles", "digest"}
    | {AUTHENTICATION}
)
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode categories without letters of names: controls, formats, unassigned characters."""
FILLERS = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800"
    + "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
)
"""Invisible characters of other categories (Unicode, Default_Ignorable_Code_Point)."""
SYSTEM_USER = "system_user"
"""The key of an answer for the user of the operating system who gave it for somebody else."""
ANYTHING = "*"
"""The option for any value, such as a free text."""
VERDICTS = {"approved": True, "rejected": False}
"""Whether the items in each list are approved."""
BATCH_KEYS = frozenset({"decisions", *VERDICTS})


class AnswerRefused(AslError):
    """An answer is refused for the reason in its text; the request stays open."""

    def __init__(self, reason: str, *, forbidden: bool = False, late: bool = False) -> None:
        super().__init__(reason)
        self.forbidden = forbidden
        """Whether the approver lacks permission."""
        self.late = late
        """Whether the request has timed out; the execution handles that when it continues."""


class ApprovalOutcome(NamedTuple):
    """The outcome of an answer: a decision, or None while more approvals are needed."""

    decision: Json
    received: list[Json]
    """The approvals so far."""


def normalize_name(name: str) -> str:
    """Return the normal form of a person's name.

    It is NFKC without invisible characters, and with single blanks between words.
    """
    plain = normalize("NFKC", name)
    seen = "".join(
        each
        for each in plain
        if each.isspace() or not (category(each) in INVISIBLE or each in FILLERS)
    )
    return " ".join(seen.split())


def _same_person(name: str, names: Sequence[str | None]) -> bool:
    """Return whether a name is one of *names*, in any spelling of the same characters."""
    return normalize_name(name).casefold() in [
        normalize_name(each).casefold() for each in names if each
    ]


# Answers


def check_answer(
    body: Mapping[str, Json], answer: Json, received: list[Json], now: float, by: str
) -> ApprovalOutcome:
    """Return the outcome of an answer.

    Args:
        body: The request.
        answer: An option, or an object with one in `approval`.
        received: The approvals so far.
        now: Time of the answer in epoch seconds.
        by: Approver to record if the answer names none.

    Raises:
        AnswerRefused: The answer breaks the rules of the request.
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
    if type(approver) is not str or not (approver := normalize_name(approver)):
        raise AnswerRefused("'approver' must be the name of a person")
    if comment is not None and type(comment) is not str:
        raise AnswerRefused("'comment' must be a text")
    if not is_timestamp(timestamp):
        raise AnswerRefused("'timestamp' is a timestamp such as 2030-01-31T13:45:00Z")
    if "budget" in body:
        _check_amounts(answer)
    policy = body.get("policy", {})
    check_approver(policy, approver, answer.get("roles", []))
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
    if AUTHENTICATION in answer:
        own[AUTHENTICATION] = answer[AUTHENTICATION]
    if verdicts is not None:
        own |= items_by_verdict(range(len(body["items"])), verdicts)
    needed = policy.get("requiredApprovals", 1)
    collected = _collected(received, own)
    if option == options[0] and len(collected) < needed:
        return ApprovalOutcome(None, collected)
    record = {**head, **({} if verdicts is None else _agreed(body, option, verdicts, collected))}
    if needed > 1:
        record["approvals"] = [_approval(body, each) for each in collected]
    known = OWN_KEYS if verdicts is None else OWN_KEYS | BATCH_KEYS
    record |= {key: value for key, value in answer.items() if key not in known | record.keys()}
    decision: dict[str, Json] = {"record": record}
    if AUTHENTICATION in answer:
        decision[AUTHENTICATION] = answer[AUTHENTICATION]
    if "editable" in body:
        decision["edited"] = dict(body["editable"]["fields"])
        for each in collected:
            decision["edited"] |= each.get("edited_content", {})
    return ApprovalOutcome(decision, collected)


def _collected(received: list[Json], answer: dict[str, Json]) -> list[Json]:
    """Return the answers so far with this one; it replaces an earlier one of the same person."""
    for index, each in enumerate(received):
        if _same_person(answer["approver"], [each["approver"]]):
            if {**each, "timestamp": None} == {**answer, "timestamp": None}:
                return received
            return [*received[:index], *received[index + 1 :], answer]
    return [*received, answer]


def _approval(body: Mapping[str, Json], given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the entry of one of several answers in the record."""
    keys = ("approval", "approver", "timestamp", "comment", SYSTEM_USER)
    found = {key: given[key] for key in keys if key in given}
    if "items" in body:
        for key in VERDICTS:
            found[key] = [body["items"][index] for index in given.get(key, ())]
    return found


def _check_amounts(answer: Mapping[str, Json]) -> None:
    """Check the new limits of a budget in an answer."""
    if "MaxCost" in answer and parse_amount(answer["MaxCost"]) is None:
        raise AnswerRefused("'MaxCost' is an amount such as \"2.50\"")
    tokens = answer.get("MaxTokens", 0)
    if not is_integer(tokens) or tokens < 0:
        raise AnswerRefused("'MaxTokens' is a whole number from 0")


def check_approver(policy: Mapping[str, Json], approver: str, roles: Json) -> None:
    """Check that a policy allows somebody to decide.

    Args:
        policy: The policy of a request.
        approver: Name of the approver.
        roles: Roles of the approver.

    Raises:
        AnswerRefused: It does not.
    """
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
         *([f"a user with the role {_listed(wanted)}"] if wanted else [])]
    )  # fmt: skip
    if not who:
        raise AnswerRefused(
            f"{approver!r} may not decide this: 'Approvers' lists no approver", forbidden=True
        )
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
    """Return the verdicts on items by index; True for an approved one."""
    count, options = len(body["items"]), body["options"]
    if not answer.keys() & BATCH_KEYS:
        return dict.fromkeys(range(count), answer.get("approval") == options[0])
    verdicts = _decisions(answer, options, count)
    missing = [str(index) for index in range(count) if index not in verdicts]
    if missing and not body["batch"].get("allowPartial", False):
        raise AnswerRefused(f"every item needs a decision; there is none on {', '.join(missing)}")
    return verdicts


def _whole(body: Mapping[str, Json], verdicts: Mapping[int, bool]) -> str:
    """Return the decision on a batch from the verdicts on its items."""
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
    """Return the record of a batch with several approvers.

    An item is rejected if one of them rejects it, and approved if all approve it.

    Args:
        body: The request.
        option: The option of the last approver.
        last: The verdicts of the last approver.
        answers: All answers.
    """
    items, options = body["items"], body["options"]
    # Answers in older stores have no verdicts on items, which are not approved then.
    approved = set(range(len(items))).intersection(*(each.get("approved", ()) for each in answers))
    rejected = set[int]().union(*(each.get("rejected", ()) for each in answers))
    verdicts = {**dict.fromkeys(approved, True), **dict.fromkeys(rejected, False)}
    if option == options[0] and verdicts != last:
        option = _whole(body, verdicts)
    return {"approval": option, **sort_items(items, verdicts)}


def _decisions(answer: Mapping[str, Json], options: list[str], length: int) -> dict[int, bool]:
    """Return the verdicts on items in an answer."""
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


def sort_items(items: list[Json], verdicts: Mapping[int, bool]) -> dict[str, Json]:
    """Return the approved and rejected items, and the share of approved ones."""
    return {**items_by_verdict(items, verdicts), "approvalRate": _rate(items, verdicts)}


def items_by_verdict(items: Sequence[Json], verdicts: Mapping[int, bool]) -> dict[str, Json]:
    """Return the approved and the rejected items, each in order."""
    return {
        key: [item for index, item in enumerate(items) if verdicts.get(index) is approves]
        for key, approves in VERDICTS.items()
    }


def _rate(items: Sequence[Json], verdicts: Mapping[int, bool]) -> float:
    return sum(verdicts.values()) / len(items) if items else 0
