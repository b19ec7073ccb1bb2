"""Tasks, and what stands in for states without a counterpart: calls of tools."""

from collections.abc import Iterator, Mapping
from typing import Final

from asl.core.diagnostics import Severity
from asl.core.values import Json, compact
from asl.dialects.contenox.functions.templates import find_macros
from asl.dialects.contenox.writing.chain import LEFT
from asl.dialects.contenox.writing.failures import caught, retries
from asl.dialects.contenox.writing.inputs import given
from asl.dialects.contenox.writing.knowledge import Env, renewed
from asl.dialects.contenox.writing.meanings import Reader
from asl.dialects.contenox.writing.outputs import assigned, output
from asl.dialects.contenox.writing.state import State, Way
from asl.dialects.contenox.writing.transitions import leave
from asl.dialects.contenox.writing.values import Constant, Members, Part, Value
from asl.dialects.names import lost_integration

__all__ = ["call", "stand_in", "stands_in", "task"]

INPUT: Final = "input"
"""The key under which a tool is given its input."""
_STANDS_IN: Final[Mapping[str, str]] = {
    "Parallel": "CX-PARALLEL",
    "Map": "CX-MAP",
    "Debate": "CX-DEBATE",
    "Approval": "CX-APPROVAL",
    "Include": "L-INCLUDE",
    "Workflow": "L-INCLUDE",
}


def task(state: State) -> Iterator[Way]:
    """Write a Task: its agent, or its resource, becomes a tool."""
    field = "Agent" if "Agent" in state.value else "Resource"
    agent = str(state.value.get(field))
    state.lost(
        "L-RESOURCE",
        f"{agent!r} is a tool there",
        state.at(field),
        "it is given its input under 'input' and what is written out under 'args'",
    )
    told = lost_integration(agent)
    if told is not None:
        state.lost("L-INTEGRATION", told, state.at("Resource"), "a tool of the same name")
    yield from _calling(state, agent, *_payload(state))


def stand_in(state: State) -> Iterator[Way]:
    """Put a tool where something stands that has no counterpart."""
    stands_in(state)
    yield from _calling(state, state.name, state.input, state.at())


def stands_in(state: State) -> None:
    """Report that a tool stands where something has no counterpart."""
    kind = str(state.value["Type"])
    state.lost(
        _STANDS_IN[kind],
        f"there are no {kind} states there",
        None,
        "a tool of its name has to do that",
    )


def call(state: State, tool: str, payload: Value, where: str) -> Iterator[Way]:
    """Add a task that calls a tool; yield where its failure leads.

    What the state works on behind it is what is left when the task has made its variable.
    """
    id = state.id
    named, dynamic = _arguments(state, tool, payload, where)
    fields, value = given(state, dynamic, "CX-PARAMS", where)
    word = "hook" if state.chain.seed else "tools"
    made: dict[str, Json] = {"id": id, "handler": word, **fields, word: named}
    limit = state.value.get("TimeoutSeconds")
    if type(limit) is int:
        made["timeout"] = f"{limit}s"
    elif limit is not None:
        state.lost("CX-META", "no time limit is computed", state.at("TimeoutSeconds"), *LEFT)
    attempts = retries(state)
    if attempts:
        made["retry_on_failure"] = attempts
    state.add(made)
    yield from caught(state, value)
    state.env = renewed(state.env, id)
    state.raw = state.input = state.env.data


def _payload(state: State) -> tuple[Value, str]:
    """Return what the agent of a Task is given, and where that is said."""
    for field in ("Arguments", "Parameters"):
        if field in state.value:
            reader = state.reader(("CX-PARAMS", state.at(field)))
            said = state.value[field]
            found = reader.structure(said) if state.jsonata else reader.template(said)
            return found, state.at(field)
    return state.input, state.at("InputPath" if "InputPath" in state.value else "Type")


def _calling(state: State, tool: str, payload: Value, where: str) -> Iterator[Way]:
    """Call a tool, and leave the state with its result."""
    yield from call(state, tool, payload, where)
    result = Part(state.id)
    reader = state.reader(None, result) if state.jsonata else Reader(state.env, result)
    data = output(state, result)
    yield from leave(state, Env(data, result, assigned(state, state.value, reader)))


def _arguments(
    state: State, tool: str, payload: Value, where: str
) -> tuple[dict[str, Json], Value]:
    """Return a tool with its written out arguments, and the rest of what it is given."""
    named: dict[str, Json] = {"name": tool}
    members = _members(payload)
    if members is None:
        return named, payload
    if not members:
        told = "a tool is always given what moves along"
        state.lost("CX-PARAMS", told, where, None, Severity.WARNING)
    called = _called(members)
    if called is not None:
        name, constant = called
        named |= {"tool_name": name} if name is not None else {}
        others = {INPUT: members[INPUT]}
    else:
        constant = {key: each for key, each in members.items() if isinstance(each, Constant)}
        others = {key: each for key, each in members.items() if key not in constant}
    args = {key: _argument(state, each.value, where) for key, each in constant.items()}
    if args:
        named["args"] = args
    if not others:
        return named, state.env.flow
    if len(others) == 1:
        return named, next(iter(others.values()))
    return named, Members(None, tuple(others.items()), ("CX-PARAMS", where))


def _called(members: Mapping[str, Value]) -> tuple[Json, dict[str, Constant]] | None:
    """Return the tool and its arguments of a call as a chain makes it, None for anything else."""
    if INPUT not in members or not members.keys() <= {INPUT, "tool", "args"}:
        return None
    tool, args = (members.get(key, Constant(None)) for key in ("tool", "args"))
    match tool, args:
        case Constant(str() | None as name), Constant(dict() | None as listed):
            return name, {key: Constant(each) for key, each in (listed or {}).items()}
    return None


def _members(payload: Value) -> dict[str, Value] | None:
    """Return the members of an object that is written out, None for anything else."""
    if isinstance(payload, Members) and payload.base is None:
        return dict(payload.members)
    if isinstance(payload, Constant) and isinstance(payload.value, dict):
        return {key: Constant(each) for key, each in payload.value.items()}
    return None


def _argument(state: State, value: Json, where: str) -> str:
    """Return a value as an argument of a tool, which is a text."""
    text = value if isinstance(value, str) else compact(value)
    if text is not value:
        told = f"arguments of tools are texts, and {text[:60]} is none"
        state.lost("CX-PARAMS", told, where, "its JSON", Severity.WARNING)
    elif any(find_macros(text)):
        state.lost("CX-PARAMS", "this text is expanded there", where)
    return text
