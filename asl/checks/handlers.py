"""Names of errors, Retry and Catch: V-RETRY-02, -05..07, -09..11, V-CATCH-02, V-CATCH-05.

Specification 4.1 to 4.4.
"""

import re
from collections.abc import Iterator, Mapping
from math import log

from asl.checks.workflow import CheckedWorkflow, below, handlers
from asl.core import aws_messages
from asl.core.codes import error_names_of
from asl.core.diagnostics import Finding, Severity, Wording, did_you_mean
from asl.core.profile import Profile
from asl.core.values import Json, is_integer, is_number
from asl.states.base import Node

__all__ = ["ERROR_NAMES", "check"]

ALL = "States.ALL"
ANY_TASK_FAILURE = "States.TaskFailed"
NOT_A_TASK_FAILURE = frozenset(
    {ALL, "States.Timeout", "States.HeartbeatTimeout", "States.Runtime", "States.DataLimitExceeded"}
)
NONE_FOR_AWS = NOT_A_TASK_FAILURE - {"States.DataLimitExceeded"} | {"States.QueryEvaluationError"}
ERROR_NAMES = frozenset(
    {
        "States.ALL",
        "States.AgentNotFound",
        "States.BranchFailed",
        "States.BudgetExceeded",
        "States.CheckpointExpired",
        "States.CheckpointIncompatible",
        "States.CheckpointNotFound",
        "States.DataLimitExceeded",
        "States.ExceedToleratedFailureThreshold",
        "States.FileNotFound",
        "States.FileReadError",
        "States.HeartbeatTimeout",
        "States.IntrinsicFailure",
        "States.InvalidApproval",
        "States.InvalidTTL",
        "States.ItemReaderFailed",
        "States.MemoryKeyNotFound",
        "States.MemoryNotConfigured",
        "States.NoChoiceMatched",
        "States.ParameterPathFailure",
        "States.ParseError",
        "States.Permissions",
        "States.QueryEvaluationError",
        "States.RateLimitExceeded",
        "States.ResultPathMatchFailure",
        "States.ResultWriterFailed",
        "States.Runtime",
        "States.StateNotFound",
        "States.TaskFailed",
        "States.TemplateError",
        "States.Timeout",
        "States.ValidationError",
        "States.WorkflowNotFound",
    }
)
"""The reserved names that the language raises or matches (Specification 4.1)."""
_BY_LETTERS = {name.removeprefix("States.").lower(): name for name in ERROR_NAMES}
_PLAIN = frozenset(
    {
        "States.FileNotFound",
        "States.FileReadError",
        "States.InvalidApproval",
        "States.ParseError",
        "States.Permissions",
        "States.Runtime",
        "States.StateNotFound",
        "States.TemplateError",
        "States.Timeout",
        "States.ValidationError",
    }
)
"""Reserved names that errors of other programs often have, without `States.`."""
CONFLICT = "States.ReferencePathConflict"
"""What AWS raises for `States.ResultPathMatchFailure`."""
HTTP_ERROR = re.compile(r"States\.Http\.(?:Socket|StatusCode\.[1-5][0-9]{2})")
"""What AWS raises for `http:invoke`: an answer that is no success, and none in time."""
BARE_NAMES = ("RateLimitExceeded", "BudgetExceeded")
DAY = 86_400
MOST = 99_999_999


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield what is wrong with the error handlers of every state."""
    for node in workflow.nodes():
        if "Retry" in node.value:
            yield from _names(workflow, node, "Retry", "V-RETRY-02")
            for index, entry in handlers(node.value, "Retry"):
                yield from _delays(node, node.at("Retry", index), entry)
        if "Catch" in node.value:
            yield from _names(workflow, node, "Catch", "V-CATCH-02")
        if "Model" in node.value:
            listed = below(node.value, "Model").get("FallbackOn")
            for name, place in _places(listed, node.at("Model", "FallbackOn")).items():
                yield from _name(workflow, name, place, "never leads to another model")


# --------------------------------------------------------------------------------------------
# Error names


def _names(
    workflow: CheckedWorkflow, node: Node, field: str, wildcard_rule: str
) -> Iterator[Finding]:
    listed = list(handlers(node.value, field))
    earlier: dict[str, str] = {}
    for index, entry in listed:
        pointer = node.at(field, index, "ErrorEquals")
        places = _places(entry.get("ErrorEquals"), pointer)
        if ALL in places:
            last = index == listed[-1][0]
            yield from _wildcard(len(places) == 1, last, pointer, wildcard_rule)
        for name, place in places.items():
            yield from _name(workflow, name, place, "is never retried or caught")
        if "" in places:
            yield Finding(
                f"{wildcard_rule[:-1]}1",
                "no error has an empty name",
                places[""],
                "remove it, or name the error",
                severity=Severity.WARNING,
                aws=Wording(code=""),
            )
        yield from _repeated(places, earlier, workflow.profile)
        for name, place in places.items():
            earlier.setdefault(name, place)


def _repeated(
    places: Mapping[str, str], earlier: Mapping[str, str], profile: Profile
) -> Iterator[Finding]:
    """Yield one finding for the names of an entry that earlier entries match already."""
    matched = {
        name: by
        for name in places
        if name != "States.Runtime" and (by := _matched_by(name, earlier, profile)) is not None
    }
    if matched:
        names = ", ".join(map(repr, matched))
        yield Finding(
            "V-RETRY-11",
            f"an earlier entry already matches {names}",
            places[next(iter(matched))],
            "remove the entry" if len(matched) == len(places) else None,
            related=tuple((by, "this one") for by in dict.fromkeys(matched.values())),
        )


def _places(listed: Json, pointer: str) -> dict[str, str]:
    """Return the error names in a list and where each is listed first."""
    places: dict[str, str] = {}
    for index, name in enumerate(listed if type(listed) is list else ()):
        if type(name) is str:
            places.setdefault(name, f"{pointer}/{index}")
    return places


def _wildcard(alone: bool, last: bool, pointer: str, rule: str) -> Iterator[Finding]:
    wording = Wording(aws_messages.LAST_AND_ALONE)
    if not alone:
        yield Finding(
            rule, f"{ALL!r} must be the only name in its 'ErrorEquals'", pointer, aws=wording
        )
    if not last:
        message = f"{ALL!r} matches everything, so the entries after it never apply"
        yield Finding(rule, message, pointer, aws=wording)


def _name(workflow: CheckedWorkflow, name: str, pointer: str, handled: str) -> Iterator[Finding]:
    if name == "States.Runtime":
        yield Finding("V-RETRY-09", f"'States.Runtime' {handled}", pointer)
    elif name.startswith("States.") and not (_is_raised(name) or _is_told(workflow, name)):
        yield Finding(
            "V-CATCH-05",
            f"the language raises no error {name!r}",
            pointer,
            workflow.suggestions.near(name, ERROR_NAMES),
        )
    elif (meant := _meant(workflow, name)) is not None and not _is_told(workflow, name):
        message = f"{name!r} is no reserved name, so it matches only an error of exactly this name"
        yield Finding("V-CATCH-05", message, pointer, meant)
    elif (meant := _meant_of_dialect(workflow, name)) is not None and not _is_told(workflow, name):
        message = f"{name!r} is no error of the dialect, so only an agent can raise it"
        yield Finding("V-CATCH-05", message, pointer, meant)
    elif name.endswith("."):
        message = f"{name!r} matches only an error of exactly this name"
        yield Finding("V-CATCH-05", message, pointer, "list the names in full")


def _meant(workflow: CheckedWorkflow, name: str) -> str | None:
    """Return a hint at the reserved name that is meant by a name without `States.`.

    `Task.Failed`, `state.Timeout`, `States_ALL` and `TaskFailed` are meant as reserved names. A
    name that functions have for errors of their own, such as `Timeout`, is not.
    """
    if name in BARE_NAMES or name.startswith("States."):
        return None
    prefix, _, rest = name.partition(".")
    full = f"States.{rest}"
    if rest and did_you_mean(prefix, ("States",)) is not None:
        return f"did you mean {full!r}?" if full in ERROR_NAMES else _near(workflow, full)
    letters = re.sub(r"[^a-z]", "", name.lower())
    meant = _BY_LETTERS.get(letters.removeprefix("states"))
    if meant is None or (meant in _PLAIN and letters == name.lower()):
        return None
    return f"did you mean {meant!r}?"


def _meant_of_dialect(workflow: CheckedWorkflow, name: str) -> str | None:
    """Return a hint at the error of the document's dialect that is meant by a similar name."""
    metadata = workflow.value.get("Metadata")
    for namespace in metadata if "." in name and type(metadata) is dict else ():
        known = [each.name for each in error_names_of(namespace)]
        if name not in known and (near := workflow.suggestions.near(name, known)) is not None:
            return near
    return None


def _near(workflow: CheckedWorkflow, name: str) -> str | None:
    return workflow.suggestions.near(name, ERROR_NAMES)


def _is_raised(name: str) -> bool:
    return name in ERROR_NAMES or name == CONFLICT or HTTP_ERROR.fullmatch(name) is not None


def _is_told(workflow: CheckedWorkflow, name: str) -> bool:
    """Whether a Fail state of the document ends with the error."""
    return any(node.value.get("Error") == name for node in workflow.nodes())


def _matched_by(name: str, earlier: Mapping[str, str], profile: Profile) -> str | None:
    """Return the place of the earlier name that already matches this one."""
    for other in _synonyms(name):
        if other in earlier:
            return earlier[other]
    if name not in (NONE_FOR_AWS if profile.aws else NOT_A_TASK_FAILURE):
        return earlier.get(ANY_TASK_FAILURE)
    return None


def _synonyms(name: str) -> tuple[str, ...]:
    bare = name.removeprefix("States.")
    if bare in BARE_NAMES:
        return (bare, f"States.{bare}")
    if name == "States.HeartbeatTimeout":
        return (name, "States.Timeout")
    return (name,)


# --------------------------------------------------------------------------------------------
# Delays


def _delays(node: Node, pointer: str, entry: Mapping[str, Json]) -> Iterator[Finding]:
    interval = entry.get("IntervalSeconds", 1)
    if is_number(interval) and interval == 0:
        yield Finding(
            "V-RETRY-06",
            "AWS documents only whole numbers from 1 up, not 0",
            f"{pointer}/IntervalSeconds",
            severity=Severity.WARNING,
        )
    elif is_number(interval) and interval > 0 and not is_integer(interval):
        yield Finding(
            "V-RETRY-06",
            f"AWS takes only whole numbers, not {interval}",
            f"{pointer}/IntervalSeconds",
            severity=Severity.ERROR if node.profile.aws else Severity.WARNING,
            aws=Wording(str(aws_messages.wrong_type("integer"))),
        )
    if "MaxIntervalSeconds" in entry:
        yield Finding(
            "V-RETRY-05",
            "the cap of the delay is named 'MaxDelaySeconds'",
            f"{pointer}/MaxIntervalSeconds",
            severity=Severity.WARNING,
            at_key=True,
            aws=Wording(aws_messages.unknown_field("MaxIntervalSeconds"), at=pointer),
        )
    field = "MaxDelaySeconds" if "MaxDelaySeconds" in entry else "MaxIntervalSeconds"
    most = entry.get(field)
    if most is not None and is_number(most) and is_number(interval) and 0 < most <= interval:
        yield Finding(
            "V-RETRY-05",
            f"{field!r} must be greater than the interval of {interval} seconds",
            f"{pointer}/{field}",
        )
    if most is None and _grows_beyond_a_day(entry, interval):
        yield Finding(
            "V-RETRY-10",
            "the last delay is longer than a day",
            pointer,
            "set 'MaxDelaySeconds' or lower 'MaxAttempts'",
        )
    jitter = entry.get("JitterStrategy")
    if type(jitter) is str and jitter != jitter.upper() and jitter.upper() in JITTERS:
        yield Finding(
            "V-RETRY-07",
            f"the strategy must be written {jitter.upper()!r}",
            f"{pointer}/JitterStrategy",
            severity=Severity.WARNING,
            aws=Wording(aws_messages.one_of(["NONE", "FULL"])),
        )


JITTERS = ("NONE", "FULL", "DECORRELATED")


def _grows_beyond_a_day(entry: Mapping[str, Json], interval: Json) -> bool:
    attempts, rate = entry.get("MaxAttempts", 3), entry.get("BackoffRate", 2.0)
    if not (is_number(interval) and is_integer(attempts) and is_number(rate)):
        return False
    if not 1 <= attempts <= MOST or rate < 1 or interval <= 0:
        return False
    # Logarithms, as the delay itself may be too large for any number.
    return bool(log(interval) + (attempts - 1) * log(rate) > log(DAY) + 1e-9)
