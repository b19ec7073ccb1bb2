"""Steps with machines within: branches side by side, and a body for each item."""

from asl.core.values import Json
from asl.dialects.expressions import handed, query
from asl.dialects.flujo.blueprint import BlueprintStep, StepBody
from asl.dialects.flujo.functions.control_flow import REDUCERS
from asl.dialects.flujo.loop_state import read_loop_state
from asl.dialects.flujo.machine.agents import asking
from asl.dialects.flujo.machine.build_context import INPUT, RESULT, Failing, Then
from asl.dialects.flujo.machine.states import States
from asl.dialects.flujo.machine.steps import passing
from asl.expr.jsonata.javascript import literal

__all__ = ["iteration", "parallel", "router"]


def parallel(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build the Parallel of a parallel step, and the agent that reduces its results."""
    name = states.name(step)
    bodies = step.branches
    if not bodies:
        passing(states, step, literal({}), then)
        return
    branches: list[Json] = [
        _forked(states, body, branch if bodies else name) for branch, body in bodies.items()
    ]
    flags: dict[str, Json] = {**step.flags}
    reduce = step.value.get("reduce")
    if isinstance(reduce, dict):
        reduce = reduce.get("strategy", reduce.get("kind"))
    coded = isinstance(reduce, str) and reduce not in REDUCERS
    if reduce and not coded:
        flags["reduce"] = reduce
    merge = step.value.get("merge_strategy", "context_update")
    if merge != "context_update":
        flags["merge"] = merge
    if step.value.get("on_branch_failure") == "ignore":
        flags["ignore"] = True
    output = states.call(
        "join",
        literal(step.name),
        RESULT,
        literal([*bodies]),
        literal(flags) if flags else None,
    )
    state: dict[str, Json] = {"Type": "Parallel", "Branches": branches}
    if name == states.whole.first:
        state["Arguments"] = query(states.call("data"))
    if failing is not None:
        state["Catch"] = states.catch(step, failing)
    if coded:
        following = states.whole.part(name, "reduce")
        state |= {"Output": query(output), "Next": following}
        states.put(name, state, step.pointer)
        _reducing(states, step, following, str(reduce), then, failing)
        return
    state["Output"] = query(states.closing(output, then))
    states.put(name, state | states.going(then), step.pointer)


def _reducing(
    states: States,
    step: BlueprintStep,
    name: str,
    function: str,
    then: Then,
    failing: Failing | None,
) -> None:
    states.found(
        "FL-CODE",
        f"{function!r} is code, so an agent of its name is asked",
        step.at("reduce"),
        f"bind an agent of this name, or take one of {', '.join(REDUCERS)}",
    )
    arguments: dict[str, Json] = {
        "input": query(f"{INPUT}.previous_step"),
        "context": query(f"{INPUT}.context"),
    }
    asking(states, step, name, function, arguments, then, failing)


def router(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build an agent that names branches, and those branches side by side."""
    name, agent = states.name(step), step.spec["router_agent"]
    if isinstance(agent, dict):
        agent = agent.get("id", agent.get("path", step.name))
    if not step.branches:
        passing(states, step, literal({}), then)
        return
    following = states.whole.part(name, "branches")
    arguments: dict[str, Json] = {
        "input": query(states.given(step, name)),
        "context": query(states.context(name)),
    }
    routed = states.call("routed", literal(step.name), RESULT)
    chosen = str(agent).removeprefix("agents.")
    asking(states, step, name, chosen, arguments, Then(following), failing, routed)
    branches: list[Json] = []
    for branch, body in step.branches.items():
        machine = _forked(states, body, branch)
        gate, skipped = (states.whole.part(branch, each) for each in ("if", "skipped"))
        asked = query(f"{literal(branch)} in {INPUT}.routes")
        machine["States"] |= {
            gate: {
                "Type": "Choice",
                "Choices": [{"Condition": asked, "Next": machine["StartAt"]}],
                "Default": skipped,
            },
            skipped: {"Type": "Pass", "Output": {"skipped": True}, "End": True},
        }
        branches.append({"StartAt": gate, "States": machine["States"]})
    flags = literal(step.flags) if step.flags else None
    names = literal([*step.branches])
    output = states.call("join", literal(step.name), RESULT, names, flags)
    state: dict[str, Json] = {"Type": "Parallel", "Branches": branches}
    if failing is not None:
        state["Catch"] = states.catch(step, failing)
    state["Output"] = query(states.closing(output, then))
    states.put(following, state | states.going(then), step.pointer)


def iteration(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build the Map of a map step."""
    name, source = states.name(step), step.spec["iterable_input"]
    body = step.body("map", "body")
    if len(body.steps) == 1:
        processor = _forked(states, body, name)
    else:
        inner = states.fork(name)
        start = inner.sequence(body.steps, Then(None), None)
        if start is None:
            start = states.whole.part(name, "nothing")
            inner.states[start] = {"Type": "Pass", "End": True}
        processor = inner.machine(start)
    items = literal(source) if isinstance(source, list) else states.call("items", literal(source))
    around = read_loop_state(step)
    if around.first:
        following = states.whole.part(name, "items")
        prepared = query(states.call("prepared", literal(around.first)))
        states.put(name, {"Type": "Pass", "Output": prepared, "Next": following}, step.pointer)
        name = following
    selector = f"$flujo_item({INPUT}, $states.context.Map.Item.Value)"
    state: dict[str, Json] = {
        "Type": "Map",
        "Items": query(items) if not isinstance(source, list) else handed(source),
        "ItemSelector": query(selector),
        "MaxConcurrency": 1,
        "ItemProcessor": processor,
    }
    if failing is not None:
        state["Catch"] = states.catch(step, failing)
    flags = step.flags if around.output is None else {**step.flags, "output": around.output}
    collected = literal(flags) if flags else None
    output = states.call("collect", literal(step.name), RESULT, collected)
    state["Output"] = query(states.closing(output, then))
    states.put(name, state | states.going(then), step.pointer)


def _forked(
    states: States, body: StepBody, name: str, lead: dict[str, Json] | None = None
) -> dict[str, Json]:
    """Build a branch; one that fails hands back its message, so that the others go on."""
    branch = states.fork(name)
    failed = states.whole.part(name, "failed")
    for step in body.steps:
        branch.name(step)
    start = branch.sequence(body.steps, Then(None), Failing(failed))
    output = f"{{'failed': {INPUT}.output.last_step.feedback}}"
    branch.states[failed] = {"Type": "Pass", "Output": query(output), "End": True}
    if start is None:
        start = states.whole.part(name, "nothing")
        branch.states[start] = {"Type": "Pass", "End": True}
    return branch.machine(start)
