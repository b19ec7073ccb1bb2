"""Maps and Parallels: iterations and forks."""

from typing import Any, Final

from asl.core.diagnostics import Severity
from asl.core.values import Json
from asl.dialects.codemie.config import END
from asl.dialects.codemie.writing.expressions import Unsayable
from asl.dialects.codemie.writing.machine import WorkflowMachine
from asl.dialects.codemie.writing.scope import ContextScope, is_replaced, keys_written
from asl.dialects.codemie.writing.transforms import Transformation, writes
from asl.dialects.lowering import Flow, WorkStep
from asl.dialects.terms import INPUT, ITEM, RESULT, DataPath, Literal, Term, paths_of, placement

__all__ = ["branches", "fork", "iteration", "workers"]

ITEMS: Final = "items"
"""The key under which a Map's items are handed to its first state."""


def _nested(machine: WorkflowMachine, step: WorkStep) -> None:
    """Report branches within a branch that meet before it ends."""
    within = machine.last is not None and not machine.scope.item
    if within and any(machine.lead(each.target) is not None for each in step.exits):
        message = "the platform may run the state behind the outer branches twice"
        hint = "join all branches in one state"
        machine.lost("L-NESTEDJOIN", message, step.pointer, hint)


def _after(machine: WorkflowMachine, step: WorkStep) -> dict[str, Json]:
    """Return `next` of the states that end the machines of a step."""
    if step.decides:
        return {"state_id": machine.choosing(step)}
    return machine.next(step.exits[0].target)


def _inner(machine: WorkflowMachine, flow: Flow, data: Term, *, item: bool) -> ContextScope:
    """Return the scope of a machine within a step, whose data is this to begin with."""
    steps = flow.steps.values()
    replaced = any(is_replaced(each) and each.exits and _goes_on(each) for each in steps)
    if replaced and data not in (DataPath(INPUT), DataPath(ITEM)):
        data = DataPath(INPUT)
    return ContextScope(machine.scope.places, data, frozenset(keys_written(steps)), item)


def _goes_on(step: WorkStep) -> bool:
    return any(each.target is not None for each in step.exits)


def _reads_whole(flow: Flow) -> bool:
    """Whether a step of a machine reads its data as a whole, or as an array."""
    for step in flow.steps.values():
        exits = [each.condition for each in step.exits if each.condition is not None]
        for term in (step.input, *step.fields.values(), *exits):
            for path in paths_of(term):
                if path.root == INPUT and not (path.steps and isinstance(path.steps[0], str)):
                    return True
    return False


def _unplaced(machine: WorkflowMachine, step: WorkStep) -> Severity | None:
    """Return how severe it is that an array of results is nowhere."""
    goes_on = any(machine.lead(each.target) is not None for each in step.exits)
    return Severity.ERROR if goes_on and _reads_whole(machine.whole) else None


# --------------------------------------------------------------------------------------------
# Map


def iteration(machine: WorkflowMachine, step: WorkStep) -> None:
    """Write a Map: a transformation gives the items, its workers are chained by their key."""
    made = Transformation(machine, machine.scope_of(step))
    items = machine.scope.meant(step.fields.get("Items", DataPath(INPUT)))
    pointer = machine.at(step, "ItemsPath", "Items")
    if machine.scope.item:
        message = "an iteration within another one ends with the outer one"
        machine.lost("L-NESTED", message, step.pointer)
    try:
        made.add(ITEMS, items)
    except Unsayable as fault:
        hint = "the items are read from the key 'value'"
        machine.lost("L-PATH", fault.loss.message, pointer, hint)
        made.add(ITEMS, DataPath(INPUT, ("value",)))
    to = {**workers(machine, step, None), "store_in_context": False}
    mappings: dict[str, Any] = {"mappings": made.mappings}
    if machine.scope.item:
        to["include_in_llm_history"] = False
        machine.node(step, mappings, to, finish_iteration=True)
    else:
        machine.node(step, mappings, to)


def workers(machine: WorkflowMachine, step: WorkStep, source: WorkStep | None) -> dict[str, Json]:
    """Return how the workers of a Map are entered, which follow the state that is written."""
    key = None if source is None else machine.items_key(source, step)
    key = ITEMS if key is None else key
    _nested(machine, step)
    limit = step.fields.get("MaxConcurrency")
    if isinstance(limit, Literal) and type(limit.value) is int:
        machine.workflow.concurrency.append(limit.value)
    following = _after(machine, step)
    after = str(following.pop("state_id"))
    flow = next(iter(step.machines.values()))
    selector = step.fields.get("ItemSelector")
    data = DataPath(ITEM) if selector is None else machine.scope.meant(selector)
    scope = _inner(machine, flow, data, item=True)
    last = _collected(machine, step)
    inner = machine.inner(flow, scope, after, following if last is None else last)
    begun = len(machine.behind)
    first = machine.followed(inner)
    _chained(machine, machine.behind[begun:], key, after, step)
    return {"state_id": first, "iter_key": key}


def _collected(machine: WorkflowMachine, step: WorkStep) -> dict[str, Json] | None:
    """Return the flags that write the results of the last workers, None without any."""
    place = placement(step.output)
    pointer = machine.at(step, "ResultPath", "Output")
    if place is None:
        return {"store_in_context": False}
    if place.value == DataPath(RESULT) and place.steps:
        machine.lost(
            "L-MAPRESULT",
            "the results are stored as texts, appended to a list under one key",
            pointer,
        )
        return {"output_key": writes(machine, step, place.steps), "append_to_context": True}
    if place.value == DataPath(RESULT):
        message, severity = "the array of results is not written anywhere", _unplaced(machine, step)
        machine.lost("L-MAPRESULT", message, step.pointer, severity=severity)
        return None
    message = "the array of results is not transformed"
    machine.lost("L-MAPRESULT", message, pointer, severity=Severity.ERROR)
    return None


def _chained(
    machine: WorkflowMachine, states: list[dict[str, Any]], key: str, after: str, step: WorkStep
) -> None:
    """Let the item go on from worker to worker, and mark the last ones where it chooses."""
    plain = all("state_id" in each["next"] and "iter_key" not in each["next"] for each in states)
    if not plain:
        message = "the platform leaves an iteration at a state that branches or forks"
        machine.lost("L-PERITEM", message, step.pointer)
    for each in states:
        to = each["next"]
        if "state_id" not in to or "iter_key" in to:
            continue
        if to["state_id"] != after:
            to["iter_key"] = key
        elif not plain and after != END:
            each["finish_iteration"] = True


# --------------------------------------------------------------------------------------------
# Parallel


def fork(machine: WorkflowMachine, step: WorkStep) -> None:
    """Write a Parallel: a transformation that gives nothing leads to all its branches."""
    to = branches(machine, step, None)
    machine.node(step, {"mappings": []}, {**to, "store_in_context": False})


def branches(machine: WorkflowMachine, step: WorkStep, source: WorkStep | None) -> dict[str, Json]:
    """Return `next` of a state that leads to the branches of a Parallel."""
    _nested(machine, step)
    after = str(_after(machine, step)["state_id"])
    place = placement(step.output)
    if place is not None:
        placed = place.value == DataPath(RESULT) and place.steps
        message = "the array of results is not stored; each branch stores its own result"
        severity = None if placed else _unplaced(machine, step)
        machine.lost("L-PARRESULT", message, step.pointer, severity=severity)
    data = machine.scope.meant(step.input)
    heads: list[Json] = []
    for index, flow in enumerate(step.machines.values()):
        last: dict[str, Json] = {}
        if place is None:
            last = {"store_in_context": False}
        elif place.value == DataPath(RESULT) and place.steps:
            last = {"output_key": machine.scope.places.key((*place.steps, index))}
        scope = _inner(machine, flow, data, item=machine.scope.item)
        heads.append(machine.followed(machine.inner(flow, scope, after, last)))
    return {"state_ids": heads}
