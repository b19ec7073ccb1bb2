"""Tasks, and replacements of states without a counterpart: states that run an actor."""

from collections.abc import Mapping
from typing import Any, Final

from asl.core.diagnostics import Severity
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.codemie.tasks import RETRIED
from asl.dialects.codemie.writing.expressions import Unsayable
from asl.dialects.codemie.writing.machine import WorkflowMachine
from asl.dialects.codemie.writing.scope import is_merged, is_replaced
from asl.dialects.codemie.writing.texts import Texts, unreadable
from asl.dialects.codemie.writing.transforms import Transformation, ended, transform, writes
from asl.dialects.lowering import WorkStep
from asl.dialects.names import lost_integration
from asl.dialects.terms import (
    INPUT,
    RESULT,
    DataPath,
    Items,
    Literal,
    Placement,
    Record,
    Term,
    member,
    replace,
)
from asl.expr.templates import SUFFIX

__all__ = ["prepare", "stand_in", "task"]

_STANDS_IN: Final = {
    "Debate": "L-DEBATE",
    "Include": "L-INCLUDE",
    "Workflow": "L-INCLUDE",
}
_TASKS: Final = ("task", "prompt", "instruction", "input")
"""Members of an input that are the text of an assistant's task, rather than a part of it."""
MOST_ATTEMPTS: Final = 100
MOST_BACKOFF: Final = 10
"""Bounds of a policy."""


def prepare(machine: WorkflowMachine, step: WorkStep) -> None:
    """Make what a Task is given, and what is to be computed for it in front of it."""
    agent = step.state.get("Agent", step.state.get("Resource"))
    tool = "Agent" not in step.state or machine.workflow.is_tool(str(agent))
    given = _Given(machine, step, tool=tool)
    machine.given[step.name] = given.arguments() if tool else given.instruction()
    mappings = given.transformation.mappings
    if mappings:
        id = machine.workflow.id(f"{machine.id(step)}_input")
        machine.workflow.places[id] = step.pointer
        machine.computed[step.name] = [str(each["output_field"]) for each in mappings]
        machine.prepared[step.name] = machine.workflow.transforming(
            id, {"mappings": mappings}, {"state_id": machine.id(step), **_UNTOLD}
        )


_UNTOLD: Final[Mapping[str, Json]] = {"include_in_llm_history": False}


class _Given:
    """What a Task is given, as text or arguments."""

    def __init__(self, machine: WorkflowMachine, step: WorkStep, *, tool: bool) -> None:
        self.machine = machine
        self.step = step
        self.scope = machine.scope_of(step)
        self.tool = tool
        self.transformation = Transformation(machine, self.scope)
        self.pointer = machine.at(step, "Parameters", "Arguments", "InputPath")
        self.own = step.state.get("Arguments", step.state.get("Parameters"))
        self.input = self.scope.meant(step.input)

    def instruction(self) -> dict[str, Json]:
        """Return the text that an assistant gets: a line for each member of its input."""
        whole = isinstance(self.input, DataPath) and not self.input.steps
        if whole and isinstance(self.input, DataPath) and self.scope.place(self.input) is None:
            message = "an assistant gets a text instead of the data"
            hint = "the text is the comment or the name of the state"
            self.machine.lost("L-PARAMETERS", message, self.step.pointer, hint)
            return self.said([str(self.step.state.get("Comment") or self.step.name)], False)
        members = _members(self.input)
        if members is None:
            return self.said([self.text(self.input, ())], not isinstance(self.input, Literal))
        lines: list[str] = []
        for key, each in members.items():
            text = self.text(each, (key,))
            lines[:0] = [text] if key in _TASKS else []
            lines += [] if key in _TASKS else [f"{key}: {text}"]
        fixed = all(isinstance(each, Literal) for each in members.values())
        return self.said(lines, not fixed)

    def said(self, lines: list[str], resolved: bool) -> dict[str, Json]:
        """Return the task of these lines, and whether there is something to resolve in them."""
        task: dict[str, Json] = {"task": "\n".join(lines)}
        if resolved or unreadable("\n".join(lines)):
            task["resolve_dynamic_values_in_prompt"] = resolved
        return task

    def arguments(self) -> dict[str, Json]:
        """Return the arguments that a tool gets."""
        if self.input == DataPath(INPUT):
            return {}
        members = _members(self.input)
        if members is None:
            message = "the arguments of a tool are an object"
            self.machine.lost("L-PARAMETERS", message, self.pointer, "the tool gets the context")
            return {}
        return {"tool_args": {key: self.argument(e, (key,)) for key, e in members.items()}}

    def argument(self, term: Term, way: tuple[str, ...]) -> Json:
        if isinstance(term, Literal):
            if term.value in ("", None):
                message = (
                    "an empty argument is omitted, or gets the value of its name in the context"
                )
                self.machine.lost("L-PARAMETERS", message, self.at(way))
            return self.text(term, way) if isinstance(term.value, str) else term.value
        members = _members(term)
        if members is not None:
            return {key: self.argument(each, (*way, key)) for key, each in members.items()}
        if isinstance(term, Items):
            return [self.argument(each, way) for each in term.items]
        message = "an argument with the value null is omitted"
        hint = "let the tool use null for a missing argument"
        self.machine.lost("L-PARAMETERS", message, self.at(way), hint)
        return self.text(term, way)

    def at(self, way: tuple[str, ...]) -> str:
        """Return the JSON Pointer of a member of the input."""
        pointer, held = self.pointer, self.own
        for key in way:
            written = key if isinstance(held, dict) and key in held else f"{key}{SUFFIX}"
            if not isinstance(held, dict) or written not in held:
                break
            pointer, held = f"{pointer}/{escape(written)}", held[written]
        return pointer

    def written(self, way: tuple[str, ...]) -> str:
        """Return the expression of a member of the input, as it is written."""
        held = self.own
        for key in way:
            held = held.get(key, held.get(f"{key}{SUFFIX}")) if isinstance(held, dict) else None
        return held if isinstance(held, str) else ""

    def text(self, term: Term, way: tuple[str, ...]) -> str:
        """Return a term as a text; one that no text says is left as it is written."""

        def compute(part: Term) -> str:
            return self.transformation.compute(part, way[-1] if way else "input")

        try:
            text = Texts(self.scope, compute).text(term)
        except Unsayable as fault:
            code, message, _ = fault.loss
            self.machine.lost(code, message, self.at(way), "it stays unchanged", Severity.ERROR)
            return self.written(way)
        dynamic = self.tool or not isinstance(self.input, Literal)
        if isinstance(term, Literal) and dynamic and unreadable(text):
            message = "double braces in a text are placeholders"
            self.machine.lost("L-PARAMETERS", message, self.at(way), "if the context has the name")
        return text


def _members(term: Term) -> Mapping[str, Term] | None:
    """Return the members of an object that is written out."""
    if isinstance(term, Literal) and isinstance(term.value, dict):
        return {key: Literal(each) for key, each in term.value.items()}
    return dict(term.members) if isinstance(term, Record) and term.base is None else None


def task(machine: WorkflowMachine, step: WorkStep) -> None:
    """Write a Task: an agent becomes an assistant or a tool, a resource a tool."""
    field = "Agent" if "Agent" in step.state else "Resource"
    agent = str(step.state.get(field))
    tool = field == "Resource" or machine.workflow.is_tool(agent)
    pointer = machine.at(step, field)
    actor = machine.workflow.actor(agent, tool, pointer)
    told = lost_integration(agent)
    if told is not None:
        machine.lost("L-INTEGRATION", told, pointer, "a tool of the same name")
    made: dict[str, Json] = {
        "id": machine.id(step),
        "tool_id" if tool else "assistant_id": actor,
        **machine.given[step.name],
    }
    _finished(machine, step, made)


def stand_in(machine: WorkflowMachine, step: WorkStep) -> None:
    """Write an assistant in the place of what has no counterpart."""
    message = f"a workflow has no {step.kind} states"
    machine.lost(
        _STANDS_IN[step.kind], message, step.pointer, "an assistant with the name of the state"
    )
    topic = step.state.get("Topic", step.state.get("Comment", step.name))
    made: dict[str, Json] = {
        "id": machine.id(step),
        "assistant_id": machine.workflow.actor(step.name, False, step.pointer),
        "task": topic if isinstance(topic, str) else step.name,
    }
    _finished(machine, step, made)


def _finished(machine: WorkflowMachine, step: WorkStep, made: dict[str, Json]) -> None:
    """Add a state that runs an actor, with its policy and with what becomes of its answer."""
    made["retry_policy"] = _policy(machine, step)
    place = ended(machine, step)
    if place is None or place.value == DataPath(RESULT) or _is_merge(place):
        made["next"] = {
            **_forgotten(machine, step),
            **machine.going(step, _stored(machine, step, place)),
        }
        machine.add(step, made)
        return
    _merged(machine, step)
    key = machine.workflow.keys.new(f"{machine.id(step)}_answer")
    id = machine.workflow.id(f"{machine.id(step)}_output")
    machine.workflow.places[id] = step.pointer
    shaped = replace(step.output, lambda part: _within(part, key))
    to: dict[str, Json] = {"state_id": id, "output_key": key, **_forgotten(machine, step)}
    node = transform(machine, step, id, shaped, (key,))
    node["next"][_FORGET] = [key]
    machine.behind.insert(0, node)
    made["next"] = to
    machine.add(step, made)


_FORGET: Final = "reset_keys_in_context_store"


def _forgotten(machine: WorkflowMachine, step: WorkStep) -> dict[str, Json]:
    """Return the flag that removes what was computed in front of a step."""
    computed = machine.computed.get(step.name)
    return {} if computed is None else {_FORGET: [*computed]}


def _within(part: Term, key: str) -> Term | None:
    """Return where a part of an answer is that is kept under a key."""
    if isinstance(part, DataPath) and part.root == RESULT:
        return member(DataPath(INPUT), (key, *part.steps))
    return None


def _is_merge(place: Placement) -> bool:
    """Whether all that is written are members of an answer, under their own names."""
    value = place.value
    return (
        not place.steps
        and isinstance(value, Record)
        and value.base in (None, DataPath(INPUT))
        and all(each == DataPath(RESULT, (key,)) for key, each in value.members)
    ) or is_merged(value)


def _stored(machine: WorkflowMachine, step: WorkStep, place: Placement | None) -> dict[str, Json]:
    """Return the flags that write an answer where its state writes it."""
    if place is None:
        return {"store_in_context": False}
    if place.steps:
        _merged(machine, step)
        return {"output_key": writes(machine, step, place.steps)}
    if not is_replaced(step):
        return {}
    goes_on = any(machine.lead(each.target) is not None for each in step.exits)
    if machine.scope.item and goes_on:
        return {"override_task": True}
    pointer = machine.at(step, "ResultPath", "Output")
    machine.lost("L-REPLACE", "the previous context stays: the output is merged into it", pointer)
    return {"clear_context_store": "keep_current"}


def _merged(machine: WorkflowMachine, step: WorkStep) -> None:
    """Report where the members of an answer are."""
    where = machine.at(step, "ResultPath", "Output")
    message = "an answer is stored as text under its key, its members are in the context"
    machine.lost("L-ROOTMERGE", message, where)


def _policy(machine: WorkflowMachine, step: WorkStep) -> dict[str, Json]:
    """Return the one policy that comes nearest to the retriers of a state."""
    state, where = step.state, machine.at(step, "Retry")
    retriers = [
        each
        for each in state.get("Retry", ())
        if type(each) is dict and _number(each, "MaxAttempts", 3) != 0
    ]
    if not retriers:
        if state.get("Retry"):
            machine.lost("L-RETRY-NAMES", "a retry policy has no error names", where)
        return {"max_attempts": 1}
    widest = max(retriers, key=lambda each: _number(each, "MaxAttempts", 3))
    names = {error for each in state["Retry"] for error in each.get("ErrorEquals", ())}
    if len(retriers) > 1 or names != {RETRIED}:
        machine.lost(
            "L-RETRY-NAMES",
            "a retry policy has no error names: the platform retries every transient error",
            where,
            "one policy with the largest number of attempts",
        )
    made: dict[str, Json] = {
        "max_attempts": min(MOST_ATTEMPTS, int(_number(widest, "MaxAttempts", 3)) + 1),
        "initial_interval": _number(widest, "IntervalSeconds", 1),
        "backoff_factor": min(MOST_BACKOFF, max(1, _number(widest, "BackoffRate", 2.0))),
    }
    longest = "MaxDelaySeconds" if "MaxDelaySeconds" in widest else "MaxIntervalSeconds"
    if longest in widest:
        made["max_interval"] = _number(widest, longest, 128)
    return made


def _number(retrier: Mapping[str, Any], field: str, default: float) -> float:
    """Return a number of a retrier, the default where it is a parameter that is not filled in."""
    value = retrier.get(field, default)
    return value if type(value) in (int, float) else default
