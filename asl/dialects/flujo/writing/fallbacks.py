"""Handlers that run the same work with another agent: the fallback of a step."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from asl.dialects.lowering import Flow, WorkStep
from asl.dialects.terms import INPUT, DataPath

__all__ = ["take_fallbacks"]


def take_fallbacks(flow: Flow) -> tuple[Flow, Mapping[str, WorkStep]]:
    """Take out the steps that run only as the fallback of another one.

    A step with a fallback has the handlers of the fallback: it fails if the fallback does.

    Args:
        flow: The steps of a machine.

    Returns:
        The other steps, and the fallbacks by the names of the steps that have them.
    """
    sources = Counter(target for step in flow.steps.values() for target in step.targets)
    steps = {**flow.steps}
    fallbacks: dict[str, WorkStep] = {}
    for name, step in flow.steps.items():
        found = _fallback(flow, step)
        if name in steps and found is not None and sources[found.name] == 1:
            fallbacks[name] = found
            steps[name] = replace(step, handlers=found.handlers)
            del steps[found.name]
    return flow._replace(steps=steps), fallbacks


def _fallback(flow: Flow, step: WorkStep) -> WorkStep | None:
    """Return the step that a step leads to if it fails, if both do the same otherwise."""
    if step.kind != "Task" or not step.handlers:
        return None
    first = step.handlers[0]
    if "States.ALL" not in first.errors or first.output != DataPath(INPUT) or first.assign:
        return None
    found = flow.steps[first.target]
    same = found.kind == "Task" and _work(found) == _work(step)
    return found if same and found.name != flow.start else None


def _work(step: WorkStep) -> tuple[object, ...]:
    """Return what a step does with its data, apart from its agent."""
    exits = tuple(each._replace(pointer="") for each in step.exits)
    return step.input, step.output, dict(step.assign), exits
