"""Choices: the state in front decides by its output, or a transformation by what it extracts."""

from typing import Any

from asl.core.values import Json
from asl.dialects.codemie.writing.conditions import Conditions, variables
from asl.dialects.codemie.writing.machine import Machine, State
from asl.dialects.codemie.writing.reads import Extracted, Output, Reads
from asl.dialects.codemie.writing.results import Result
from asl.dialects.codemie.writing.transforms import failing

__all__ = ["choice", "chooses", "chosen"]


def choice(machine: Machine, name: str, state: State) -> None:
    """Write a Choice as a state of its own, which extracts what it reads."""
    reads = Extracted(machine.way)
    to = _routed(machine, name, state, reads)
    silent: dict[str, Json] = {"store_in_context": False, "include_in_llm_history": False}
    machine.node(name, {"mappings": reads.mappings()}, {**silent, **to})


def chooses(machine: Machine, state: State, result: Result) -> bool:
    """Whether all that a Choice reads lies in the result of the state in front of it."""
    reads = Output(result)
    return state.get("InputPath", "$") == "$" and all(
        (reads.present(path) if presence else reads.name(path)) is not None
        for rule in state.get("Choices", ())
        for path, presence in variables(rule)
    )


def chosen(machine: Machine, name: str, state: State, result: Result) -> dict[str, Json]:
    """Return where a state goes that decides by its own output."""
    return _routed(machine, name, state, Output(result))


def _routed(machine: Machine, name: str, state: State, reads: Reads) -> dict[str, Json]:
    """Return the form of `next` that decides as the rules do."""
    cases: list[Any] = []
    conditions = Conditions(reads, machine.workflow.losses.append)
    for index, rule in enumerate(state.get("Choices", ())):
        where = machine.at(name, "Choices", index)
        text = conditions.said(rule, where)
        cases.append({"condition": text, "state_id": machine.target(rule.get("Next"))})
        if "Assign" in rule or "Output" in rule:
            machine.lost("L-TRANSFORM", "a case only leads somewhere", where)
    if "Default" in state:
        otherwise = machine.target(state["Default"])
    else:
        where = machine.at(name)
        machine.lost("L-NODEFAULT", "a switch always leads somewhere", where, "a state that fails")
        otherwise = failing(machine, f"{name}_unmatched", "States.NoChoiceMatched")
    if len(cases) != 1:
        return {"switch": {"cases": cases, "default": otherwise}}
    (case,) = cases
    said = {"expression": case["condition"], "then": case["state_id"], "otherwise": otherwise}
    return {"condition": said}
