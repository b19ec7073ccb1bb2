"""Checks of an Approval beyond its schema: V-APR-* (Specification 6.9).

Checks that involve other states are in `asl.checks.approvals`.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from asl.core.diagnostics import Finding, Severity
from asl.core.errors import ExpressionFault
from asl.core.values import Json, compact, is_integer
from asl.expr.paths import parse_path, parse_result_path
from asl.expr.times import parse_duration
from asl.states.base import Node
from asl.states.choice import check_rules

__all__ = ["check_approval", "check_terms"]

SETTLED = ("AutoReject", "AutoApprove", "Fail")
"""The values of `OnTimeout` that end the waiting."""


def check_approval(node: Node) -> Iterator[Finding]:
    """Check that decisions and timeouts have a next state, and that escalations take effect."""
    yield from check_rules(node)
    yield from _ways(node)
    yield from _editable(node)
    yield from check_terms(node)


def check_terms(node: Node) -> Iterator[Finding]:
    """Check the timeouts, approvers and escalations of an approval request.

    Args:
        node: The state, or the object that has the fields.
    """
    yield from _idle(node)
    yield from _approvals(node)
    yield from _escalation(node)
    if node.value.get("OnTimeout") == "AutoApprove":
        yield Finding(
            "V-APR-14",
            "'AutoApprove' counts a missing answer as consent",
            node.at("OnTimeout"),
            "'AutoReject' or 'Escalate' is safer",
            severity=Severity.WARNING,
        )


def _ways(node: Node) -> Iterator[Finding]:
    state = node.value
    leads_on = "Next" in state or state.get("End") is True
    if "Choices" in state and "Default" not in state and not leads_on:
        yield Finding(
            "V-APR-05",
            f"{node.name!r} fails for a decision that no rule matches",
            node.pointer,
            "add 'Default'",
            at_key=True,
        )
    timed = "Timeout" in state or "Timeout.$" in state
    if timed and not state.keys() & {"OnTimeout", "OnTimeout.$", "Default", "Catch"}:
        yield Finding(
            "V-APR-07",
            f"{node.name!r} fails with 'States.Timeout' after its timeout",
            node.at("Timeout" if "Timeout" in state else "Timeout.$"),
            "add 'OnTimeout', 'Default' or 'Catch'",
            at_key=True,
        )


# Fields that need others

NEEDED = (
    ((), "OnTimeout", ("Timeout",), "'Timeout'", "add 'Timeout'"),
    ((), "BatchMode", ("ItemsPath",), "items", "add 'ItemsPath'"),
    (("Escalation",), "Notify", ("After",), "a time", "add 'After', or 'Notify' in each level"),
    (("Escalation",), "Message", ("After", "Levels"), "a time", "add 'After' or 'Levels'"),
    (("Escalation",), "Repeat", ("After",), "a first time", "add 'After'"),
    (("Escalation", "Repeat"), "MaxTimes", ("Every",), "an interval", "add 'Every'"),
)
"""`(path to an object, its field, other fields it needs one of, in words, what to do)`."""


def _idle(node: Node) -> Iterator[Finding]:
    """Find fields without effect, because another one is missing."""
    for steps, field, needs, what, hint in NEEDED:
        holder = _within(node.value, steps)
        names = {each.removesuffix(".$") for each in holder}
        if field in names and names.isdisjoint(needs):
            place = field if field in holder else f"{field}.$"
            message = f"{field!r} has no effect without {what}"
            yield Finding("V-APR-17", message, node.at(*steps, place), hint, at_key=True)
    then = "" if "OnTimeout.$" in node.value else node.value.get("OnTimeout", "Fail")
    if then in SETTLED:
        for place in _within(node.value, ("Escalation",)).keys() & {"EscalateTo", "EscalateTo.$"}:
            yield Finding(
                "V-APR-17",
                '\'EscalateTo\' has no effect without "OnTimeout": "Escalate"',
                node.at("Escalation", place),
                "add it, or use 'After' and 'Notify'",
                at_key=True,
            )
    if then == "Escalate" and not _open_or_given(node.value, "Escalation", "EscalateTo"):
        yield Finding(
            "V-APR-17",
            "'Escalate' without 'EscalateTo' sends no notice: it only restarts the timeout",
            node.at("OnTimeout"),
            "add 'EscalateTo' in 'Escalation'",
        )


def _open_or_given(state: Mapping[str, Json], holder: str, field: str) -> bool:
    """Return whether an object of a state has a field, or may have it when the state runs."""
    found = state.get(holder, {})
    if f"{holder}.$" in state or type(found) is not dict:
        return True
    return not found.keys().isdisjoint((field, f"{field}.$"))


def _within(value: Mapping[str, Json], steps: Iterable[str]) -> Mapping[str, Json]:
    """Return the object at a path, an empty one if there is none."""
    found: Json = value
    for step in steps:
        found = found.get(step) if type(found) is dict else None
    return found if type(found) is dict else {}


# Editable


def _editable(node: Node) -> Iterator[Finding]:
    editable = node.value.get("Editable")
    if type(editable) is not dict:
        return
    fields = editable.get("Fields")
    for index, text in enumerate(fields if type(fields) is list else ()):
        if type(text) is str and not node.open(text):
            yield from _field(text, node.at("Editable", "Fields", index))
    target = editable.get("ResultPath")
    if target is None:
        yield Finding(
            "V-APR-08",
            "without 'ResultPath' the edited values go to $.editedContent",
            node.at("Editable"),
            'write "ResultPath": "$.editedContent" if this is intended',
            at_key=True,
        )
    elif type(target) is str and not node.open(target):
        try:
            parse_result_path(target)
        except ExpressionFault as fault:
            yield Finding("V-ST-05", fault.message, node.at("Editable", "ResultPath"), fault.hint)


def _field(text: str, pointer: str) -> Iterator[Finding]:
    try:
        path = parse_path(text)
    except ExpressionFault as fault:
        yield Finding("V-APR-09", fault.message, pointer, fault.hint)
        return
    if not path.definite:
        message = f"{text!r} may select several values, so none of them can be edited"
        yield Finding("V-APR-09", message, pointer, "name one value: $.draft.title")


# Number of approvals

NUMBERS = (("Policy", "RequiredApprovals"), ("Policy", "RequiredApprovers"), ("RequiredApprovers",))
"""The fields with the number of approvals; the first one counts."""


def _approvals(node: Node) -> Iterator[Finding]:
    """Find contradictory numbers of approvals, and one above the number of approvers."""
    written = list(_numbers(node.value))
    for place, number in written[1:]:
        if number != written[0][1]:
            yield Finding(
                "V-APR-10",
                f"the number of approvals is given by {'.'.join(written[0][0])!r} as well",
                node.at(*place),
                "leave one of them out",
                at_key=True,
            )
    approvers = _within(node.value, ("Policy", "Approvers"))
    users, number = approvers.get("Users"), written[0][1] if written else 1
    if approvers.keys().isdisjoint(("Roles", "Roles.$")) and type(users) is list:
        there = len({compact(user) for user in users})
        if is_integer(number) and number > there:
            yield Finding(
                "V-APR-10",
                f"{number} approvals are required, but there are only {there} approvers",
                node.at("Policy", "Approvers", "Users"),
                "list more users or 'Roles', or require fewer approvals",
                at_key=True,
            )


def _numbers(state: Mapping[str, Json]) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Yield place and value of each number of approvals; a value may be computed."""
    for *steps, field in NUMBERS:
        holder = _within(state, steps)
        for name in (field, f"{field}.$"):
            if name in holder:
                yield (*steps, name), holder[name]


# Escalation


def _escalation(node: Node) -> Iterator[Finding]:
    escalation = node.value.get("Escalation")
    if type(escalation) is not dict:
        return
    if "After" in escalation and "Levels" in escalation:
        yield Finding(
            "V-APR-12",
            "'After' and 'Levels' exclude each other",
            node.at("Escalation", "Levels"),
            "make 'After' the first level",
            at_key=True,
        )
    for place in (("Escalation", "Repeat"), ("Escalation", "Repeat", "Every")):
        if _seconds(_within(node.value, place[:-1]).get(place[-1])) == 0:
            message = "the interval of a repeated escalation must be above 0"
            yield Finding("V-APR-03", message, node.at(*place), 'choose a time such as "2h"')
    end = _end(node.value)
    steps = list(_steps(node, escalation))
    for pointer, after in steps:
        if end is not None and after >= end:
            message = f"the escalation is too late: the approval times out after {end:g} seconds"
            yield Finding("V-APR-13", message, pointer, "choose a time before the timeout")
    levels = [step for step in steps if "/Levels/" in step[0]]
    for (earlier, before), (pointer, after) in pairwise(levels):
        if after <= before:
            message = "each level must come later than the one before it"
            yield Finding("V-APR-12", message, pointer, related=((earlier, "the level before"),))


def _steps(node: Node, escalation: Mapping[str, Json]) -> Iterator[tuple[str, float]]:
    """Yield `(pointer, seconds)` of the escalations with a constant time."""
    after = _seconds(escalation.get("After"))
    if after is not None:
        yield node.at("Escalation", "After"), after
    levels = escalation.get("Levels")
    for index, level in enumerate(levels if type(levels) is list else ()):
        after = _seconds(level.get("After")) if type(level) is dict else None
        if after is not None:
            yield node.at("Escalation", "Levels", index, "After"), after


def _end(state: Mapping[str, Json]) -> float | None:
    """Return the seconds until the waiting ends; None if they are computed or unlimited."""
    timeout, then = _seconds(state.get("Timeout")), state.get("OnTimeout", "Fail")
    if timeout is None or "OnTimeout.$" in state or then not in (*SETTLED, "Escalate"):
        return None
    return 2 * timeout if then == "Escalate" else timeout


def _seconds(value: Json) -> float | None:
    try:
        return parse_duration(value) if type(value) is str else None
    except ExpressionFault:
        return None
