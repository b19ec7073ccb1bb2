"""Approvals: gates in front of states."""

from typing import Final

from asl.core.diagnostics import Severity
from asl.dialects.codemie.writing.gates import decide
from asl.dialects.codemie.writing.machine import SILENT, WorkflowMachine
from asl.dialects.lowering import Flow, WorkStep
from asl.dialects.terms import INPUT, Literal, Placement, Record, paths_of, placement

__all__ = ["approval"]

_UNSAID: Final = "a confirmation only continues or cancels the run"


def approval(machine: WorkflowMachine, step: WorkStep) -> None:
    """Report what a gate does not say, and write one that no state behind it can be."""
    decision = decide(step, machine.flow)
    pointer = machine.at(step, "Options")
    if decision.lost:
        lost = ", ".join(map(repr, decision.lost))
        message = f"{_UNSAID}: the answer {lost} is not offered"
        machine.lost("L-APPROVAL", message, pointer, f"continuing leads to {decision.granted!r}")
    elif "Options" in step.state:
        machine.lost(
            "L-PROMPT",
            "the platform offers to continue or to cancel the run, no other options",
            pointer,
        )
    for each in decision.odd:
        machine.lost("L-APPROVAL", f"{_UNSAID}: the rule is not evaluated", each.pointer)
    _recorded(machine, step)
    if step.name in machine.gates:
        return
    prompt = step.fields.get("Prompt")
    said = prompt.value if isinstance(prompt, Literal) and isinstance(prompt.value, str) else ""
    state = machine.workflow.transforming(
        machine.id(step), {"mappings": []}, {**SILENT, **machine.next(decision.granted)}
    )
    machine.add(step, {**state, "task": said, "interrupt_before": True})


def _recorded(machine: WorkflowMachine, step: WorkStep) -> None:
    """Report that the decision is nowhere, as an error where it is read."""
    place = placement(step.output)
    if place is None:
        return
    read = _reads(machine.whole, place, step)
    message = "the answer of an approval is not stored"
    hint = "store what is read later with an agent behind the approval"
    severity = Severity.ERROR if read else None
    machine.lost("L-RECORD", message, machine.at(step, "ResultPath", "Output"), hint, severity)


def _reads(flow: Flow, place: Placement, source: WorkStep) -> bool:
    """Whether a step behind an Approval reads its record, other than to decide."""
    members = place.value.members if isinstance(place.value, Record) else ()
    places = [place.steps] if place.steps else [(key,) for key, _ in members]
    for step in flow.steps.values():
        if step.name == source.name or step.pointer == source.choice:
            continue
        conditions = [each.condition for each in step.exits if each.condition is not None]
        for term in (step.input, *step.fields.values(), *conditions):
            for path in paths_of(term):
                if path.root == INPUT and any(path.steps[: len(e)] == e for e in places):
                    return True
    return False
