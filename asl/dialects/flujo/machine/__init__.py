"""The machine of a blueprint: its states, in JSONata.

A step becomes a Task of its name, or a Pass if it calls no agent, whose `Output` adds the output of
the step to `steps`. The first step of a state of a state machine has the name of that state, and
its rules are a Choice behind the last step. A question is an Approval, branches are a Parallel,
items a Map, and a loop ends with a Choice that leads back.
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
from asl.dialects.flujo.machine.build_context import BuildContext, FlujoMachine, Then
from asl.dialects.flujo.machine.data import FIRST
from asl.dialects.flujo.machine.states import GIVEN, States, StepBuilder
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
    "cache": StepBuilder(steps.cached, steps.cached_entry),
    "StateMachine": StepBuilder(state_machines.state_machine),
}
"""How each kind of steps is built."""


def build_machine(blueprint: Blueprint, options: FlujoOptions) -> FlujoMachine:
    """Build the machine of a blueprint without errors."""
    names = frozenset(step.name for step in blueprint.all_steps)
    whole = BuildContext(options, names)
    machine = _machine(blueprint, whole)
    return FlujoMachine(machine, whole.origins, whole.machines, whole.findings)


def _machine(blueprint: Blueprint, whole: BuildContext) -> dict[str, Json]:
    top = States(whole, KINDS, blueprint)
    if not blueprint.steps:
        output = {"output": query(GIVEN), "context": query(FIRST.context)}
        return {"StartAt": "end", "States": {"end": {"Type": "Succeed", "Output": output}}}
    for step in blueprint.steps:
        top.name(step, "")
    whole.first = top.entry(blueprint.steps[0])
    top.value = GIVEN
    start = top.sequence(blueprint.steps, Then(None, result=True), None)
    return top.machine(str(start))
