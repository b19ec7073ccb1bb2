"""Approvals: a gate in front of the state that they lead to."""

from typing import Final

from asl.core.values import compact
from asl.dialects.codemie.writing.machine import Machine, State, approved, passes

__all__ = ["approval"]

_OPTIONS: Final = ("approve", "reject")
"""The options of an Approval that names none."""
ANY: Final = "*"
"""The option that stands for any answer."""


def approval(machine: Machine, name: str, state: State) -> None:
    """Put a gate in front of the state to which approval leads."""
    where, granted = machine.at(name), approved(state)
    gated = machine.states.get(granted) if granted is not None else None
    if (
        granted is None
        or gated is None
        or passes(gated)
        or gated.get("Type") in ("Succeed", "Fail")
    ):
        machine.lost("L-APPROVAL", "nothing runs behind this gate", where, "nobody is asked")
        return
    lost = _unreachable(machine, state, granted)
    if lost:
        machine.lost(
            "L-APPROVAL",
            f"a gate can only go on or cancel the run: nobody can answer {', '.join(lost)} there",
            machine.at(name, "Options") if "Options" in state else where,
            f"going on leads to {granted!r}",
        )
    if state.get("ResultPath", "$") is not None:
        told = "what people answer is not written anywhere"
        place = machine.at(name, "ResultPath") if "ResultPath" in state else where
        machine.lost("L-RECORD", told, place, "let an agent note what has to be read later")
    prompt = state.get("Prompt", state.get("Prompt.$", ""))
    shown = prompt if type(prompt) is str else compact(prompt)
    machine.gates[granted] = (shown if "{%" not in shown else "", where)


def _unreachable(machine: Machine, state: State, granted: str) -> list[str]:
    """Return the options that a gate cannot offer: those after which the run would go on.

    To cancel a run stands for one option that ends it.
    """
    options = state.get("Options")
    first, *others = map(repr, options if type(options) is list and options else _OPTIONS)
    rules = {rule.get("Next") for rule in state.get("Choices", ())} - {granted}
    targets = rules if not others else rules | {state.get("Default", state.get("Next"))}
    ends = all(
        machine.states.get(str(each), {}).get("Type") in ("Fail", "Succeed")
        for each in targets - {None}
    )
    if not others:
        return [] if ends or first != repr(ANY) else [first]
    return [] if ends and len(others) == 1 else others
