"""The fields of states that no state of a workflow has: each is reported where it stands."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from asl.checks.workflow import objects
from asl.dialects.codemie.writing.results import steps

__all__ = ["REPORTED", "report"]

_SHAPING: Final = {
    "InputPath": "$",
    "OutputPath": "$",
    "ResultSelector": None,
    "ResultPath": None,
    "Output": None,
    "Assign": None,
}
"""Fields that shape data -> the value without effect."""
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
REPORTED: Final = (_OF_ALL - {"Comment"}) | _SHAPING.keys()
"""Fields of all states that are carried, or reported where they have an effect."""


class Machine(Protocol):
    """The machine whose states are written."""

    @property
    def states(self) -> Mapping[str, Mapping[str, Any]]:
        """Its states by their names."""

    def at(self, name: str, *steps: str | int) -> str:
        """Return the JSON Pointer of a place in a state."""

    def lost(self, code: str, message: str, pointer: str, instead: str | None = None) -> None:
        """Report what no workflow can say."""


def report(
    machine: Machine, name: str, state: Mapping[str, Any], said: frozenset[str] | None
) -> None:
    """Report every field of a state beside *said*; nothing where that is None."""
    if said is None:
        return  # all of it is reported by what stands in
    kind = state["Type"]
    for field, value in state.items():
        if field in _OF_ALL or field in said:
            continue
        if field in _SHAPING and value == _SHAPING[field]:
            continue
        if field == "OutputPath" and steps(value) and (kind == "Succeed" or "End" in state):
            message = "a run ends with its whole context"
            machine.lost("L-OUTPUT", message, machine.at(name, field), f"{value} is in it")
            continue
        machine.lost(*_loss(kind, field, machine.at(name, field)))
    catchers = [each for _, each in objects(state, "Catch")]
    if catchers:
        targets = [machine.states.get(str(each.get("Next")), {}) for each in catchers]
        failing = all(each.get("Type") == "Fail" for each in targets)
        code = "L-CATCH-FAIL" if failing else "L-CATCH"
        machine.lost(code, "a failure fails the whole run there", machine.at(name, "Catch"))


def _loss(kind: str, field: str, where: str) -> tuple[str, str, str, str | None]:
    if field in _SHAPING:
        return "L-TRANSFORM", f"no state of a workflow has {field!r}", where, "it is left out"
    if field in _LIMITS:
        return "L-TIMEOUT", "no state has a time limit", where, None
    if kind == "Map" and field in _OF_MAP:
        return "L-MAP", f"an iteration has no {field!r}", where, None
    if kind == "Approval" and field in _OF_APPROVAL:
        return "L-APPROVAL", f"a gate has no {field!r}", where, None
    if field == "Retry":
        return "L-RETRY-NAMES", "only calls are tried again, no state as a whole", where, None
    if field in ("ItemSelector", "Parameters", "Arguments"):
        return "L-SELECTOR", "workers and branches get the context", where, None
    return "L-BLOCK", f"no state has {field.removesuffix('.$')!r}", where, None
