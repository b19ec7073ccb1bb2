"""The terms of an approval request from evaluated fields: options, approvers, timeouts.

Shared by the Approval state and by tools that need consent (`Tools.RequireApproval`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from asl.core.values import Json
from asl.states.approval_answers import normalize_name
from asl.states.settings import BlockSettings, invalid_field, read_duration

__all__ = [
    "OPTIONS",
    "parse_approver_policy",
    "parse_channels",
    "parse_options",
    "parse_waiting_plan",
]

OPTIONS = ("approve", "reject")
ON_TIMEOUT = ("AutoReject", "AutoApprove", "Escalate", "Fail")


def parse_options(found: Json) -> list[str]:
    """Return the options of a request; the default ones for None.

    Raises:
        StateError: The value is no list of texts.
    """
    if found is None:
        return list(OPTIONS)
    if type(found) is not list or not found or any(type(each) is not str for each in found):
        raise invalid_field("Options", "a non-empty list of texts", found)
    return found


def parse_approver_policy(
    rules: BlockSettings, other: int | None, requestor: str | None
) -> dict[str, Json]:
    """Return the approvers of a request, and the number of required approvals.

    Args:
        rules: The fields of `Policy`.
        other: The number of required approvals in another field; None for no such field.
        requestor: The user who started the execution; None if unknown.

    Raises:
        StateError: A field does not fit.
    """
    found: dict[str, Json] = {
        "requiredApprovals": rules.count("RequiredApprovals")
        or rules.count("RequiredApprovers")
        or other
        or 1,
        "received": [],
    }
    if rules.members("Approvers"):
        found["approvers"] = _approvers(rules.block_of("Approvers"), found["requiredApprovals"])
    if rules.flag("ExcludeRequestor") and requestor is not None:
        found["excludes"] = requestor
    if rules.flag("RequireReason"):
        found["requireReason"] = True
    return found


def _approvers(listed: BlockSettings, needed: int) -> dict[str, Json]:
    """Return the approvers; an empty list, as after a misspelt field, allows no one.

    Raises:
        StateError: Fewer approvers are listed than are *needed*.
    """
    users, roles = listed.texts("Users"), listed.texts("Roles")
    people = {normalize_name(user).casefold() for user in users or ()}
    if people and roles is None and needed > len(people):
        most = f"at most {len(people)}, the number of approvers"
        raise invalid_field("Policy.RequiredApprovals", most, needed)
    lists = {"users": users, "roles": roles}
    return {key: names for key, names in lists.items() if names is not None} or {"users": []}


def parse_waiting_plan(
    fields: BlockSettings, otherwise: str, rules: Mapping[str, Json], message: Json
) -> dict[str, Any]:
    """Return the timeouts and escalations of a request (`asl.states.approval_notices.notices`).

    Args:
        fields: `Timeout` and `OnTimeout`.
        otherwise: The action of a timeout without `OnTimeout`, and after an escalation.
        rules: The fields of `Escalation`.
        message: The text of its notifications, None for none.

    Raises:
        StateError: A field does not fit.
    """
    found: dict[str, Any] = {}
    if "Timeout" in fields:
        written = fields.values["Timeout"]
        found["timeout"] = read_duration("Timeout", written)
        found["written"] = written
        found["onTimeout"] = fields.choice("OnTimeout", ON_TIMEOUT) or otherwise
        if found["onTimeout"] == "Escalate":
            found["afterEscalation"] = otherwise
            found["escalateTo"] = rules.get("EscalateTo")
    found["escalations"] = list(
        _escalations(BlockSettings(rules, fields.jsonata, f"{fields.block}Escalation."), message)
    )
    return found


def _escalations(rules: BlockSettings, message: Json) -> Iterator[dict[str, Json]]:
    written = rules.values
    if "After" in written:
        entry = {
            "after": read_duration("After", written["After"]),
            "notify": written.get("Notify"),
            "message": message,
        }
        repeat = written.get("Repeat")
        if type(repeat) is dict:
            if "Every" in repeat:
                entry["every"] = read_duration("Every", repeat["Every"], positive=True)
            times = rules.block_of("Repeat").count("MaxTimes")
            if times is not None:
                entry["times"] = times
        elif repeat is not None:
            entry["every"] = read_duration("Repeat", repeat, positive=True)
        yield entry
    for number, level in enumerate(rules.objects("Levels"), 1):
        yield {
            "after": read_duration("After", level.get("After")),
            "level": number,
            "notify": level.get("Notify"),
            "message": message,
            "approves": BlockSettings(level, rules.jsonata, f"{rules.block}Levels.").flag(
                "AutoApprove"
            ),
        }


def parse_channels(fields: BlockSettings) -> tuple[dict[str, Json], list[Json]]:
    """Return the `Notifications` of a request, and the reminders of their channels."""
    found = {key: each for key, each in fields.members("Notifications").items() if each is not None}
    return found, list(_reminders(fields.block_of("Notifications")))


def _reminders(notifications: BlockSettings) -> Iterator[dict[str, Json]]:
    for channel in notifications.objects("Channels"):
        if "OnlyAfter" in channel:
            yield {"after": read_duration("OnlyAfter", channel["OnlyAfter"]), "channel": channel}
