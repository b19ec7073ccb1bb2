"""The machine of a blueprint: its states, in JSONata.

A step becomes a Task of its name (a Pass where nobody is asked) whose `Output` puts the result into
the data. Each state of a state machine begins with a state of its name, its rules are a Choice
behind its last step; a question is an Approval, branches are a Parallel, items a Map, rounds a
Choice that leads back.
"""

from collections.abc import Mapping
from typing import Final

from asl.core.values import Json
from asl.dialects.flujo.blueprint import Blueprint
from asl.dialects.flujo.machine import (
    agents,
    conditionals,
    forks,
    loops,
    questions,
    state_machines,
    steps,
)
from asl.dialects.flujo.machine.states import Kind, States
from asl.dialects.flujo.machine.terms import INPUT, Built, Then
from asl.dialects.flujo.machine.whole import Whole
from asl.dialects.flujo.options import Options
from asl.dialects.queries import query

__all__ = ["Built", "built"]

KINDS: Final[Mapping[str, Kind]] = {
    "step": Kind(steps.work),
    "hitl": Kind(questions.question, questions.asked_at),
    "conditional": Kind(conditionals.conditional),
    "loop": Kind(loops.loop),
    "parallel": Kind(forks.parallel),
    "map": Kind(forks.iteration),
    "dynamic_router": Kind(forks.router),
    "agentic_loop": Kind(agents.agentic),
    "cache": Kind(steps.cached, steps.kept_at),
    "StateMachine": Kind(state_machines.state_machine),
}
"""How each kind of steps is built."""


def built(blueprint: Blueprint, options: Options) -> Built:
    """Build the machine of a blueprint without errors."""
    whole = Whole(options)
    machine = _machine(blueprint, whole)
    return Built(machine, whole.origins, whole.machines, whole.findings)


def _machine(blueprint: Blueprint, whole: Whole) -> dict[str, Json]:
    top = States(whole, KINDS, blueprint)
    if not blueprint.steps:
        output = query(f"$flujo_result({INPUT})")
        return {"StartAt": "end", "States": {"end": {"Type": "Succeed", "Output": output}}}
    for step in blueprint.steps:
        top.name(step, "")
    whole.first = top.entry(blueprint.steps[0])
    start = top.sequence(blueprint.steps, Then(top.end()), None)
    return top.machine(str(start))
