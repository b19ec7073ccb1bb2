"""Approvals: a gate in front of the state that they lead to."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from asl.dialects.lowering import Flow, StepExit, WorkStep
from asl.dialects.terms import INPUT, RESULT, Comparison, DataPath, Literal, member

__all__ = ["Decision", "decide"]

_OPTIONS: Final = ("approve", "reject")
"""The options of an Approval that names none."""
_ANY: Final = "*"
"""The option that means any answer."""


_DECISION: Final = DataPath(RESULT, ("approval",))


class Decision(NamedTuple):
    """What a gate makes of the options of an Approval.

    Attributes:
        granted: The step to which going on leads, None where that ends the machine.
        lost: Options that no one can choose there.
        odd: Exits whose condition is not about one option.
    """

    granted: str | None
    lost: tuple[str, ...]
    odd: tuple[StepExit, ...]


def decide(step: WorkStep, flow: Flow) -> Decision:
    """Return what a gate makes of an Approval: going on is its first option.

    To cancel a run means one other option, which ends it.

    Args:
        step: The Approval.
        flow: The machine that it is a part of.
    """
    given = step.state.get("Options")
    first, *others = map(str, given if isinstance(given, list) and given else _OPTIONS)
    ways: dict[str, str | None] = {}
    odd: list[StepExit] = []
    default: str | None = None
    for each in step.exits:
        options = None if each.condition is None else _options(step, each)
        if each.condition is None:
            default = each.target
        elif options is None:
            odd.append(each)
        else:
            for option in options:
                ways.setdefault(option, each.target)
    granted = ways.get(first, default)
    if first == _ANY:
        targets = {each.target for each in step.exits if each.condition is not None}
        away = not all(_stops(target, flow.steps) for target in targets - {granted})
        return Decision(granted, (_ANY,) if away else (), ())
    turned = [each for each in others if ways.get(each, default) != granted]
    ends = all(_stops(ways.get(each, default), flow.steps) for each in turned)
    lost = () if ends and len(turned) < 2 else tuple(turned)
    return Decision(granted, lost, tuple(odd))


def _options(step: WorkStep, exit: StepExit) -> list[str] | None:
    """Return the options for which an exit is taken, None if its condition is about more."""
    match exit.condition:
        case Comparison("=" | "in", DataPath() as path, Literal(value)):
            read = member(step.output, path.steps) if path.root == INPUT else path
            if read == _DECISION:
                return [str(each) for each in (value if isinstance(value, list) else [value])]
    return None


def _stops(target: str | None, steps: Mapping[str, WorkStep]) -> bool:
    return target is None or target not in steps or steps[target].kind in ("Fail", "Succeed")
