"""Chains for the writers of other languages: states without the functions of chains."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from asl.core.document import Document
from asl.core.pointers import resolve_pointer
from asl.core.values import Json
from asl.dialects.contenox.chain import Chain, Task
from asl.dialects.contenox.functions.templates import find_macros
from asl.dialects.contenox.meanings import MEANINGS
from asl.dialects.contenox.reader import METADATA
from asl.dialects.expressions import handed, query
from asl.dialects.lowering import Flow, WorkStep, lower, passes_on
from asl.dialects.lowering.selected_branches import unroll_selections
from asl.dialects.lowering.unread_keys import Keys, keys_read_from, without_unread
from asl.dialects.terms import INPUT, DataPath, Literal, Record, Term, member
from asl.dialects.terms import replace as replace_term
from asl.dialects.terms.expansion import expand_functions
from asl.dialects.terms.jsonata import print_jsonata

__all__ = ["portable_value"]


def portable_value(document: Document, with_definitions: bool) -> dict[str, Json]:
    """Return the machine of a chain for other languages.

    Expressions are JSONata without functions of chains, outputs have no data that is never read,
    and a tool has the name of its provider. An expression that JSONata cannot say is unchanged.

    Args:
        document: A document that was read from a chain.
        with_definitions: Whether the other language defines agents: then a model is given its
            prompt only, its system prompt and its settings are those of its definition.
    """
    value: Any = document.composed_value
    about = value["Metadata"][METADATA]
    chain = Chain(about["chain"], about["profile"])
    actors = _Actors(chain, with_definitions)
    flow = unroll_selections(_with_own_outputs(lower(value, MEANINGS)))
    flow = _with_decisions(_with_read_keys(_with_results(_with_task_names(flow))))
    states = {
        name: actors.state(_printed(value, value["States"][name], step), step)
        for name, step in flow.steps.items()
    }
    found = {**value, "StartAt": flow.start, "States": states}
    return expand_functions(found, MEANINGS, lambda *_: None)


# Steps ------------------------------------------------------------------------------------------


def _with_own_outputs(flow: Flow) -> Flow:
    """Return a flow in which the output of a Choice is that of its exit without a condition."""
    steps = dict(flow.steps)
    for name, step in flow.steps.items():
        if step.kind == "Choice" and step.output != DataPath(INPUT):
            last = step.exits[-1]._replace(output=step.output)
            steps[name] = replace(step, output=DataPath(INPUT), exits=(*step.exits[:-1], last))
    return flow._replace(steps=steps)


def _with_task_names(flow: Flow) -> Flow:
    """Return a flow whose Choices read the output of a task by its name where it decides itself."""
    before = Counter(target for step in flow.steps.values() for target in step.targets)
    steps = dict(flow.steps)
    for step in flow.steps.values():
        choice = steps.get(step.exits[0].target or "") if len(step.exits) == 1 else None
        if choice is None or choice.kind != "Choice" or before[choice.name] != 1:
            continue
        names = _first_names(step.output)

        def renamed(term: Term, names: Mapping[str, str] = names) -> Term | None:
            if _is_input(term) and term.steps and term.steps[0] in names:
                return DataPath(INPUT, (names[str(term.steps[0])], *term.steps[1:]))
            return None

        exits = (
            each
            if each.condition is None
            else each._replace(condition=replace_term(each.condition, renamed))
            for each in choice.exits
        )
        steps[choice.name] = replace(choice, exits=tuple(exits))
    return flow._replace(steps=steps)


def _first_names(output: Term) -> Mapping[str, str]:
    """Return the keys of an output -> the first key with the same value."""
    members = output.members if isinstance(output, Record) else ()
    return {key: next(first for first, same in members if same == each) for key, each in members}


def _with_results(flow: Flow) -> Flow:
    """Return a flow whose last steps have the result of the run as their output."""
    steps = {name: _with_result(step, flow.steps) for name, step in flow.steps.items()}
    targets = {target for step in steps.values() for target in step.targets} | {flow.start}
    return flow._replace(steps={name: each for name, each in steps.items() if name in targets})


def _with_result(step: WorkStep, steps: Mapping[str, WorkStep]) -> WorkStep:
    """Return a step with the output of the Succeed behind it, where that has a form."""
    end = steps.get(step.exits[0].target or "") if len(step.exits) == 1 else None
    if step.kind not in ("Task", "Pass") or end is None or end.kind != "Succeed":
        return step
    output = replace_term(
        end.output, lambda each: member(step.output, each.steps) if _is_input(each) else None
    )
    if print_jsonata(output) is None:
        return step
    return replace(step, output=output, exits=(step.exits[0]._replace(target=None),))


def _is_input(term: Term) -> TypeGuard[DataPath]:
    return isinstance(term, DataPath) and term.root == INPUT


def _with_read_keys(flow: Flow) -> Flow:
    """Return a flow whose outputs have only the keys that are read behind them."""
    read = keys_read_from(flow)

    def behind(targets: Iterable[str | None]) -> Keys:
        keys = [None if each is None else read[each] for each in targets]
        return None if None in keys else frozenset[str]().union(*filter(None, keys))

    def pruned(step: WorkStep) -> WorkStep:
        targets = [each.target for each in step.exits if each.output is None]
        exits = (
            each
            if each.output is None
            else each._replace(output=without_unread(each.output, behind([each.target])))
            for each in step.exits
        )
        caught = (
            each._replace(output=without_unread(each.output, behind([each.target])))
            for each in step.handlers
        )
        output = without_unread(step.output, behind(targets)) if step.exits else step.output
        return replace(step, output=output, exits=tuple(exits), handlers=tuple(caught))

    return flow._replace(steps={name: pruned(step) for name, step in flow.steps.items()})


def _with_decisions(flow: Flow) -> Flow:
    """Return a flow in which a Pass that does nothing is the Choice that only it leads to."""
    before = Counter(target for step in flow.steps.values() for target in step.targets)
    steps = dict(flow.steps)
    for name, step in flow.steps.items():
        choice = flow.steps.get(step.exits[0].target or "") if passes_on(step) else None
        if choice is not None and choice.kind == "Choice" and _is_alone(choice, before):
            steps[name] = replace(step, kind="Choice", output=choice.output, exits=choice.exits)
            del steps[choice.name]
    return flow._replace(steps=steps)


def _is_alone(choice: WorkStep, before: Mapping[str, int]) -> bool:
    """Whether a Choice may have another name: only one step leads to it, and has its data."""
    return before[choice.name] == 1 and choice.output == DataPath(INPUT)


# States -----------------------------------------------------------------------------------------


def _printed(value: Json, state: Mapping[str, Any], step: WorkStep) -> dict[str, Any]:
    """Return a state of the hub document *value* with the outputs and exits of a step."""
    if step.kind == "Choice":
        return _choice(value, state, step)
    made = dict(state)
    if "Next" in state:
        made["Next"] = step.exits[-1].target
    if "Next" in state and made["Next"] is None:
        del made["Next"]
        made["End"] = True
    if "Output" in state:
        made["Output"] = _field(step.output, state["Output"])
    if "Catch" in state:
        handlers = zip(state["Catch"], step.handlers, strict=True)
        made["Catch"] = [
            {**each, "Output": _field(handler.output, each["Output"])} for each, handler in handlers
        ]
    return made


def _choice(value: Json, state: Mapping[str, Any], step: WorkStep) -> dict[str, Any]:
    """Return the state of a Choice; *state* is the one that has its name in the hub document."""
    made: dict[str, Any] = {key: each for key, each in state.items() if key == "Comment"}
    rules: list[Json] = []
    for each in step.exits:
        if each.condition is None:
            made["Default"] = each.target
            if each.output is not None and each.output != DataPath(INPUT):
                made["Output"] = _field(each.output, state.get("Output"))
            continue
        written = resolve_pointer(value, each.pointer)
        known: Mapping[str, Json] = written if isinstance(written, dict) else {}
        rule: dict[str, Json] = {"Condition": _field(each.condition, known.get("Condition"))}
        if each.output is not None and each.output != DataPath(INPUT):
            rule["Output"] = _field(each.output, known.get("Output"))
        rules.append({**rule, "Next": each.target})
    return {"Type": "Choice", "Choices": rules, **made}


def _field(term: Term, written: Json) -> Json:
    """Return the field with the value of a term; *written* is the field in the hub document."""
    if isinstance(term, Literal):
        return handed(term.value)
    printed = print_jsonata(term)
    return written if printed is None else query(printed)


# Actors -----------------------------------------------------------------------------------------


class _Actors:
    """The agents of a chain elsewhere."""

    def __init__(self, chain: Chain, with_definitions: bool) -> None:
        self.tasks = chain.tasks
        self.with_definitions = with_definitions
        others = {each.id for each in chain.tasks.values() if each.handler != "tools"}
        tools = (each for each in chain.tasks.values() if each.handler == "tools")
        self.providers = {each.id: each.provider for each in tools if each.provider not in others}

    def state(self, state: dict[str, Any], step: WorkStep) -> dict[str, Any]:
        """Return a state with the agent that it has elsewhere, and what that is given."""
        task = self.tasks.get(state.get("Agent", ""))
        if task is None:
            return state
        if task.id in self.providers:
            given = {key: each for key, each in state["Arguments"].items() if key != "provider"}
            return {**state, "Agent": self.providers[task.id], "Arguments": given}
        if not self.with_definitions or task.handler == "execute_tool_calls":
            return state
        return {**state, "Arguments": _of_prompt(task, step.input, state["Arguments"])}


def _of_prompt(task: Task, payload: Term, written: Mapping[str, Json]) -> dict[str, Json]:
    """Return what a model is given whose definition has its system prompt and its settings."""
    system = str(task.value.get("system_instruction") or "")
    is_constant = next(iter(find_macros(system)), None) is None
    left_out = ("config", "system") if is_constant else ("config",)
    given = {key: each for key, each in written.items() if key not in left_out}
    if "messages" not in given or not is_constant:
        return given
    message = member(payload, ("messages", -1, "content"))
    return {"prompt": _field(message, given.pop("messages")), **given}
