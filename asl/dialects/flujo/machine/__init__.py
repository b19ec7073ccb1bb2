"""The machine of a blueprint: its states, in JSONata.

A step becomes a Task of its name (a Pass if it calls no agent) whose `Output` puts the result into
the data. Each state of a state machine begins with a state of its name, its rules are a Choice
behind its last step; a question is an Approval, branches are a Parallel, items a Map, rounds a
Choice that leads back.
"""

from collections.abc import Mapping
from typing import Final

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import Blueprint
from asl.dialects.flujo.machine import (
    agents,
    approvals,
    conditionals,
    fan_out,
    loops,
    state_machines,
    steps,
)
from asl.dialects.flujo.machine.build_context import INPUT, BuildContext, FlujoMachine, Then
from asl.dialects.flujo.machine.states import States, StepBuilder
from asl.dialects.flujo.options import FlujoOptions

__all__ = ["FlujoMachine", "build_machine"]

KINDS: Final[Mapping[str, StepBuilder]] = {
    "step": StepBuilder(steps.work),
    "hitl": StepBuilder(approvals.approval, approvals.approval_entry),
    "conditional": StepBuilder(conditionals.conditional),
    "loop": StepBuilder(loops.loop),
    "parallel": StepBuilder(fan_out.parallel),
    "map": StepBuilder(fan_out.iteration),
    "dynamic_router": StepBuilder(fan_out.router),
    "agentic_loop": StepBuilder(agents.agentic),
    "cache": StepBuilder(steps.cached, steps.kept_at),
    "StateMachine": StepBuilder(state_machines.state_machine),
}
"""How each kind of steps is built."""


def build_machine(blueprint: Blueprint, options: FlujoOptions) -> FlujoMachine:
    """Build the machine of a blueprint without errors."""
    whole = BuildContext(options)
    machine = _machine(blueprint, whole)
    return FlujoMachine(machine, whole.origins, whole.machines, whole.findings)


def _machine(blueprint: Blueprint, whole: BuildContext) -> dict[str, Json]:
    top = States(whole, KINDS, blueprint)
    if not blueprint.steps:
        output = query(f"$flujo_result({INPUT})")
        return {"StartAt": "end", "States": {"end": {"Type": "Succeed", "Output": output}}}
    for step in blueprint.steps:
        top.name(step, "")
    whole.first = top.entry(blueprint.steps[0])
    start = top.sequence(blueprint.steps, Then(top.end()), None)
    return top.machine(str(start))
