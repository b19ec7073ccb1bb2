"""Steps with machines within: parallel branches, and a body for each item."""

from collections.abc import Iterable
from typing import Final

from asl.core.values import Json
from asl.dialects.expressions import handed, query
from asl.dialects.flujo.blueprint import BlueprintStep, StepBody, steps_of
from asl.dialects.flujo.functions.control_flow import REDUCERS
from asl.dialects.flujo.loop_state import read_loop_state
from asl.dialects.flujo.machine.agents import ANSWER, asking
from asl.dialects.flujo.machine.build_context import Failing, Then
from asl.dialects.flujo.machine.data import INPUT, PREVIOUS, RESULT, call, merged, path, record
from asl.dialects.flujo.machine.states import States
from asl.dialects.flujo.machine.steps import passing
from asl.expr.jsonata.javascript import literal

__all__ = ["iteration", "parallel", "router"]

_ITEM: Final = "$states.context.Map.Item.Value"
_FEEDBACK: Final = query(f"{INPUT}.failure.feedback")
"""The message of a failed branch."""


def parallel(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build the Parallel of a parallel step, and the agent that reduces its results."""
    name = states.name(step)
    if not step.branches:
        passing(states, step, literal({}), then)
        return
    state: dict[str, Json] = {"Type": "Parallel"}
    states.put(name, state, step.pointer)
    if name == states.whole.first:
        state["Arguments"] = query(states.scope(name).data)
    end = _end(states, step.branches.values())
    ignored = {"error": _FEEDBACK} if end.bare else {"failed": _FEEDBACK}
    ignores = step.value.get("on_branch_failure") == "ignore"
    state["Branches"] = [
        _forked(states, body.steps, branch, end, ignored if ignores else None)
        for branch, body in step.branches.items()
    ]
    reduce = step.value.get("reduce")
    if isinstance(reduce, dict):
        reduce = reduce.get("strategy", reduce.get("kind"))
    if failing is not None:
        state["Catch"] = states.catch(step, failing, name)
    if not isinstance(reduce, str) or reduce in REDUCERS:
        state |= _joined(states, step, then, name, end, reduce)
        return
    following = states.whole.part(name, "reduce")
    state |= _joined(states, step, Then(following), name, end, None)
    states.value = path(INPUT, "steps", step.name)
    _reducing(states, step, following, reduce, then, failing)


def _end(states: States, bodies: Iterable[StepBody]) -> Then:
    """Return the end of branches: with their data only if something of it is used."""
    listed = [*bodies]
    names = [each.name for body in listed for each in steps_of(body.steps)]
    needed = any(map(_writes, listed)) or any(map(states.is_read, names))
    return Then(None, keeps=True) if needed else Then(None, bare=True)


def _joined(
    states: States, step: BlueprintStep, then: Then, name: str, end: Then, reduce: Json
) -> dict[str, Json]:
    """Return the fields of a Parallel behind its branches."""
    context = states.scope(name).context
    bodies = [*step.branches.values()]
    if any(map(_writes, bodies)):
        strategy = step.value.get("merge_strategy", "context_update")
        context = call("merged", context, RESULT, literal(strategy))
    results = [f"{RESULT}[{index}]" for index in range(len(bodies))]
    inner = [] if end.bare else [f"{each}.steps" for each in results]
    if end.bare:
        outputs = record(dict(zip(step.branches, results, strict=True)))
    else:
        outputs = call("outputs", RESULT, literal([*step.branches]))
    if reduce is not None:
        outputs = _reduced(str(reduce), outputs, [*step.branches], results if end.bare else [])
    output = states.done(step, outputs, then, name, context=context, inner=inner)
    return {"Output": output, **states.going(then)}


def _reduced(reduce: str, outputs: str, names: list[str], results: list[str]) -> str:
    """Return the outputs of branches as one value."""
    match reduce:
        case "keys" if results:
            return literal(names)
        case "values" if results:
            return f"[{', '.join(results)}]"
        case "first" | "last" if results:
            return results[0 if reduce == "first" else -1]
    return call("reduced", outputs, literal(reduce))


def _writes(body: StepBody) -> bool:
    """Whether steps may write into the context."""
    return any(
        each.flags or each.kind in ("StateMachine", "loop", "map") or "context_" in str(each.agent)
        for each in steps_of(body.steps)
    )


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
        f"{function!r} is code, so an agent of its name is called",
        step.at("reduce"),
        f"bind an agent of this name, or take one of {', '.join(REDUCERS)}",
    )
    arguments: dict[str, Json] = {
        "input": query(states.value),
        "context": query(states.shared(name)),
    }
    asking(states, step, name, function, arguments, then, failing)


def router(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build an agent that names branches, and those branches as a Parallel."""
    name, agent = states.name(step), step.spec["router_agent"]
    if isinstance(agent, dict):
        agent = agent.get("id", agent.get("path", step.name))
    if not step.branches:
        passing(states, step, literal({}), then)
        return
    following = states.whole.part(name, "branches")
    scope = states.scope(name)
    arguments: dict[str, Json] = {
        "input": states.argument(step, name),
        "context": query(states.shared(name)),
    }
    routed = merged([scope.data, {"routes": call("routes", ANSWER)}])
    chosen = str(agent).removeprefix("agents.")
    asking(states, step, name, chosen, arguments, Then(following), failing, query(routed))
    state: dict[str, Json] = {"Type": "Parallel"}
    states.put(following, state, step.pointer)
    states.value = states.opened
    branches: list[Json] = []
    end = Then(None, keeps=True)
    for branch, body in step.branches.items():
        machine = _forked(states, body.steps, branch, end, None)
        gate, skipped = (states.whole.part(branch, each) for each in ("if", "skipped"))
        asked = query(f"{literal(branch)} in {INPUT}.routes")
        rule = {"Condition": asked, "Next": machine["StartAt"]}
        gates = {
            gate: {"Type": "Choice", "Choices": [rule], "Default": skipped},
            **machine["States"],
            skipped: {"Type": "Pass", "Output": {"skipped": True}, "End": True},
        }
        branches.append({"StartAt": gate, "States": gates})
    state["Branches"] = branches
    if failing is not None:
        state["Catch"] = states.catch(step, failing, following)
    state |= _joined(states, step, then, following, end, None)


def iteration(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build the Map of a map step."""
    name, source = states.name(step), step.spec["iterable_input"]
    around = read_loop_state(step)
    if around.first:
        following = states.whole.part(name, "items")
        given = literal(around.first), states.value
        prepared = query(call("prepared", states.scope(name).data, *given))
        states.put(name, {"Type": "Pass", "Output": prepared, "Next": following}, step.pointer)
        states.value = states.opened
        name = following
    scope = states.scope(name)
    items = query(call("items", scope.context, literal(source)))
    state: dict[str, Json] = {
        "Type": "Map",
        "Items": handed(source) if isinstance(source, list) else items,
        "ItemSelector": query(merged([scope.data, {"previous_step": _ITEM}])),
        "MaxConcurrency": 1,
    }
    states.put(name, state, step.pointer)
    body = step.body("map", "body")
    end = _end(states, [body])
    inner = states.fork(name)
    inner.value = PREVIOUS
    state["ItemProcessor"] = _machine(
        inner, body.steps, name, end, _failed_item(end), len(body.steps) == 1
    )
    if failing is not None:
        state["Catch"] = states.catch(step, failing, name)
    context = scope.context
    if _writes(body):
        context = call("merged", context, RESULT, literal("later"))
    outputs = RESULT if end.bare else call("outputs", RESULT)
    if around.output is not None:
        outputs = call("output", scope.data, literal(around.output), outputs)
    output = states.done(step, outputs, then, name, context=context)
    state |= {"Output": output} | states.going(then)


def _failed_item(end: Then) -> Json:
    """Return the result of a failed item."""
    return None if end.bare else {"failed": _FEEDBACK}


def _forked(
    states: States, steps: Iterable[BlueprintStep], name: str, end: Then, ignored: Json
) -> dict[str, Json]:
    """Build a branch, see `_machine`."""
    return _machine(states.fork(name), steps, name, end, ignored, ignored is not None)


def _machine(
    inner: States,
    steps: Iterable[BlueprintStep],
    name: str,
    end: Then,
    ignored: Json,
    ignores: bool = True,
) -> dict[str, Json]:
    """Build a machine within a state.

    Args:
        inner: Its states.
        steps: The steps.
        name: Name of the machine.
        end: The transition of the last step.
        ignored: Result of a failure.
        ignores: Whether a failure has a result, and does not fail the state.
    """
    listed = [*steps]
    for step in listed:
        inner.name(step)
    failing = None
    if ignores:
        failed = inner.whole.part(name, "failed")
        inner.states[failed] = {"Type": "Pass", "Output": ignored, "End": True}
        failing = Failing(failed)
    start = inner.sequence(listed, end, failing)
    if ignores:
        inner.states[failed] = inner.states.pop(failed)
    return inner.machine(inner.nothing(name, end) if start is None else start)
