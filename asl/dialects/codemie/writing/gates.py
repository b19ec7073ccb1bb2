"""Approvals: a gate in front of the state that they lead to."""

from asl.core.values import compact
from asl.dialects.codemie.writing.machine import Machine, State, approved, passes

__all__ = ["approval"]


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
    options = state.get("Options")
    if (type(options) is list and len(options) > 2) or not _ends(machine, state, granted):
        machine.lost(
            "L-APPROVAL",
            "a gate can only go on or cancel the run",
            where,
            f"going on leads to {granted!r}",
        )
    if state.get("ResultPath", "$") is not None:
        told = "what people answer is not written anywhere"
        machine.lost("L-RECORD", told, where, "let an agent note what has to be read later")
    prompt = state.get("Prompt", state.get("Prompt.$", ""))
    shown = prompt if type(prompt) is str else compact(prompt)
    machine.gates[granted] = (shown if "{%" not in shown else "", where)


def _ends(machine: Machine, state: State, granted: str) -> bool:
    """Whether every other way than that of approval ends the run."""
    others = {rule.get("Next") for rule in state.get("Choices", ())} | {state.get("Default")}
    return all(
        machine.states.get(str(each), {}).get("Type") in ("Fail", "Succeed")
        for each in others - {granted, None}
    )
