"""States that only hand on data: tasks without effect."""

from collections.abc import Iterator

from asl.dialects.contenox.writing.inputs import sayable
from asl.dialects.contenox.writing.knowledge import Env, renamed, renewed
from asl.dialects.contenox.writing.outputs import assigned, output
from asl.dialects.contenox.writing.state import State, Way
from asl.dialects.contenox.writing.transitions import leave
from asl.dialects.contenox.writing.values import (
    Constant,
    Part,
    Text,
    Unknown,
    Value,
    moving,
    roots,
)

__all__ = ["pass_", "skipped"]


def pass_(state: State) -> Iterator[Way]:
    """Write a Pass."""
    id = state.id
    data, where = _passed(state)
    variables = assigned(state, state.value, state.reader(None, data))
    found = sayable(state, data, "CX-PASS", where) if _wanted(data) else None
    state.add({"id": id, "handler": "noop", **(found or {})})
    env = Env(data, data if found else state.env.flow, variables)
    if env.flow != Part(id):
        named = id in roots(env.flow) or isinstance(env.flow, Text) or moving(env.flow)
        env = renamed(env, id) if named else renewed(env, id)
    yield from leave(state, env)


def skipped(state: State) -> Iterator[Way]:
    """Put a task without effect where nothing does what the state does."""
    if state.value["Type"] == "Wait":
        state.lost(
            "CX-WAIT", "no task waits, or fails because it cannot", None, "a task without effect"
        )
    else:
        told = "an engine keeps its runs by itself"
        state.lost("CX-CHECKPOINT", told, None, "a task without effect")
    yield from pass_(state)


def _passed(state: State) -> tuple[Value, str]:
    """Return what a Pass hands on, and where that is said."""
    if state.value["Type"] == "Checkpoint" and "ResultPath" in state.value:
        where = state.at("ResultPath")
        return output(state, Unknown(("CX-PASS", where))), where
    if state.jsonata:
        return output(state), state.at("Output")
    if "Result" in state.value:
        return output(state, Constant(state.value["Result"])), state.at("Result")
    if "Parameters" in state.value:
        where = state.at("Parameters")
        result = state.reader(("CX-PASS", where)).template(state.value["Parameters"])
        return output(state, result), where
    return output(state, state.input), state.at()


def _wanted(data: Value) -> bool:
    """Whether a Pass can hand on its data exactly; else whoever uses it says what is lost."""
    if isinstance(data, Constant):
        return isinstance(data.value, str)
    return isinstance(data, Text) or (isinstance(data, Part) and not data.path)
