"""The fields of states that no state of a workflow has: each is reported where it is."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.lowering import Flow, WorkStep
from asl.dialects.terms import RESULT, DataPath, placement

__all__ = ["CARRIED", "REPORTED", "report"]

_SHAPING: Final = frozenset(
    ("InputPath", "OutputPath", "ResultSelector", "ResultPath", "Output", "Assign")
)
"""Fields that shape data, which the input and the output of a step say."""
_OF_MAP: Final = frozenset(
    (
        "ItemReader",
        "ItemBatcher",
        "ResultWriter",
        "ToleratedFailureCount",
        "ToleratedFailurePercentage",
        "ToleratedFailureCountPath",
        "ToleratedFailurePercentagePath",
    )
)
_OF_APPROVAL: Final = frozenset(
    (
        "Timeout",
        "OnTimeout",
        "Escalation",
        "Editable",
        "Policy",
        "RequiredApprovers",
        "Notifications",
        "ItemsPath",
        "BatchMode",
    )
)
_LIMITS: Final = frozenset(
    ("TimeoutSeconds", "HeartbeatSeconds", "TimeoutSecondsPath", "HeartbeatSecondsPath")
)
_OF_ALL: Final = frozenset(("Type", "Comment", "QueryLanguage", "Next", "End", "Catch"))
REPORTED: Final = (_OF_ALL - {"Comment"}) | _SHAPING
"""Fields of all states that are carried, or reported where they have an effect."""
_GIVEN: Final = ("Parameters", "Arguments")
CARRIED: Final = {
    "Task": frozenset(("Agent", "Resource", *_GIVEN, "Retry")),
    "Choice": frozenset(("Choices", "Default")),
    "Map": frozenset(
        (
            *("ItemProcessor", "Iterator", "ItemsPath", "Items", "ItemSelector", *_GIVEN),
            "MaxConcurrency",
        )
    ),
    "Parallel": frozenset(("Branches", *_GIVEN)),
    "Pass": frozenset(("Result", *_GIVEN)),
    "Wait": frozenset(("Seconds", "SecondsPath", "Timestamp", "TimestampPath")),
    "Checkpoint": frozenset(("Name", "Name.$", "Storage", "Storage.$", "TTL", "TTL.$")),
    "Approval": frozenset(("Prompt", "Prompt.$", "Options", "Choices", "Default")),
    "Succeed": frozenset[str](),
    "Fail": frozenset(("Error", "Cause", "ErrorPath", "CausePath")),
}
"""The fields of each type that are carried; a state of another type is reported as a whole."""


class LossReporter(Protocol):
    """The machine whose steps are written."""

    @property
    def whole(self) -> Flow:
        """Its steps."""

    def lost(self, code: str, message: str, pointer: str, instead: str | None = None) -> None:
        """Report what no workflow can say."""


def report(machine: LossReporter, step: WorkStep) -> None:
    """Report the fields of a state that are not carried."""
    if step.kind not in CARRIED:
        return  # the replacement reports all of it
    if step.kind in _SKIPPED:
        code, message = _SKIPPED[step.kind]
        machine.lost(code, message, step.pointer, "it is left out")
    for field in step.state:
        if field not in _OF_ALL | _SHAPING | CARRIED[step.kind]:
            pointer = f"{step.pointer}/{escape(field)}"
            machine.lost(*_loss(step.kind, field, pointer))
    for field in _shaping(step):
        pointer = f"{step.pointer}/{field}"
        if step.kind == "Succeed":
            message = "the output of a run is its whole context"
            machine.lost("L-OUTPUT", message, pointer, "it is part of the context")
        else:
            machine.lost(
                "L-TRANSFORM", f"states of a workflow have no {field!r}", pointer, "it is left out"
            )
    if step.handlers:
        targets = [machine.whole.steps.get(each.target) for each in step.handlers]
        failing = all(each is not None and each.kind == "Fail" for each in targets)
        code = "L-CATCH-FAIL" if failing else "L-CATCH"
        machine.lost(
            code,
            "errors are not caught: a failure of the state fails the run",
            f"{step.pointer}/Catch",
        )


_SKIPPED: Final = {
    "Wait": ("L-WAIT", "no state waits, or fails for an invalid time"),
    "Checkpoint": ("L-CHECKPOINT", "the platform stores runs itself"),
}
_CARRYING: Final = frozenset(("Task", "Pass"))
"""Types of states that are written with what their fields make of the data."""
_UNSHAPED: Final[Mapping[str, Json]] = {"InputPath": "$", "OutputPath": "$"}
"""Fields that shape nothing with this value."""


def _shaping(step: WorkStep) -> Iterator[str]:
    """Yield the fields that shape the data of a state otherwise than the state written for it."""
    if "Assign" in step.state:
        yield "Assign"
    if step.kind in _CARRYING or step.kind not in CARRIED:
        return
    carried = {"ResultPath"} if step.machines or step.kind == "Approval" else set()
    carried |= {"InputPath"} if step.machines else set()
    place = placement(step.output)
    if step.machines and (place is None or place.value == DataPath(RESULT)):
        return
    for field, value in step.state.items():
        if field in _SHAPING - carried - {"Assign"} and value != _UNSHAPED.get(field):
            yield field


def _loss(kind: str, field: str, where: str) -> tuple[str, str, str, str | None]:
    if field in _LIMITS:
        return "L-TIMEOUT", "no state has a time limit", where, None
    if kind == "Map" and field in _OF_MAP:
        return "L-MAP", f"an iteration has no {field!r}", where, None
    if kind == "Approval" and field in _OF_APPROVAL:
        return "L-APPROVAL", f"a confirmation has no {field!r}", where, None
    if field == "Retry":
        return "L-RETRY-NAMES", "only calls are retried, not whole states", where, None
    return "L-BLOCK", f"no state has {field.removesuffix('.$')!r}", where, None
