"""Approvals: a tool asks people, and what it answers decides where to go."""

from collections.abc import Iterator
from typing import Final

from asl.dialects.contenox.writing.choices import choosing
from asl.dialects.contenox.writing.knowledge import Env
from asl.dialects.contenox.writing.outputs import resulting
from asl.dialects.contenox.writing.state import State, Way, default
from asl.dialects.contenox.writing.tasks import call, stands_in
from asl.dialects.contenox.writing.transitions import ended, goto
from asl.dialects.contenox.writing.values import Members, Part, Value, at, merged

__all__ = ["approval"]

_RECORD: Final = ("approval", "approver", "timestamp", "comment")
"""What is known of a decision."""


def approval(state: State) -> Iterator[Way]:
    """Let a tool ask people; what it answers decides where to go."""
    stands_in(state)
    yield from call(state, state.name, state.env.flow, state.at())
    record = Part(state.id)
    data = _decided(state, record)
    state.env = Env(data, record, state.env.variables)
    rules = state.value.get("Choices") or []
    otherwise = state.value.get("Default", state.value.get("Next"))
    if rules:
        state.raw = state.input = Members(data, (("approval", at(record, ("approval",))),))
        name = f"{state.name}:if"
        state.then([default(state.chain.id(name))])
        yield from choosing(state, name, rules, otherwise)
    elif otherwise is not None:
        state.then([default(goto(state, str(otherwise)))])
        yield str(otherwise), state.env
    else:
        ended(state, state.env, "Type")


def _decided(state: State, record: Part) -> Value:
    """Return the data with the record of the decision."""
    if not state.jsonata and "ResultPath" in state.value:
        return resulting(state, state.raw, state.value, record, "ResultPath")
    new: dict[str, Value] = {name: at(record, (name,)) for name in _RECORD}
    return merged(state.raw, new, ("CX-APPROVAL", state.at()))
