"""Where a state leads: to the task of another one, or to the end with the document's data."""

from collections.abc import Iterator

from asl.core.diagnostics import Severity
from asl.dialects.contenox.chain import END
from asl.dialects.contenox.writing.inputs import inexpressible, sayable
from asl.dialects.contenox.writing.knowledge import Env
from asl.dialects.contenox.writing.outputs import output
from asl.dialects.contenox.writing.state import State, Way, default
from asl.dialects.contenox.writing.values import Members, Unknown, parts

__all__ = ["ended", "goto", "leave", "needed"]


def leave(state: State, env: Env) -> Iterator[Way]:
    """Add the transition of the task that was added last; yield where the state leads."""
    following = state.value.get("Next")
    if following is None:
        ended(state, env, "OutputPath")
        return
    state.then([default(goto(state, str(following)))])
    yield str(following), env


def goto(state: State, name: str) -> str:
    """Return where a branch leads that leads to the state of a name."""
    target = state.chain.states.get(name)
    if target is None or (target["Type"] == "Succeed" and not needed(state, name)):
        return END
    return state.chain.id(name)


def needed(state: State, name: str) -> bool:
    """Whether a Succeed has a task: what it gives is not what has moved along.

    A failure leads to a task as well, and a chain begins with one.
    """
    chain = state.chain
    env = chain.envs.get(name)
    if env is None or name in chain.entries:
        return name in chain.entries
    return output(State(chain, name, env)) != env.flow


def ended(state: State, env: Env, field: str) -> None:
    """End the chain with the data of the document, which *field* has shaped."""
    if env.data == env.flow:
        state.then([default(END)])
        return
    last = state.knowing(env)
    where = state.at(field) if field in state.value else state.at()
    found = sayable(last, env.data, "CX-OUTPUT", where)
    if found is None:
        if isinstance(env.data, Members) and Unknown not in map(type, parts(env.data)):
            told = "a chain ends with what moves along; all other data stays in its variables"
            state.lost("CX-OUTPUT", told, where, None, Severity.WARNING)
        else:
            inexpressible(last, env.data, "CX-OUTPUT", where)
        state.then([default(END)])
        return
    id = state.chain.id(f"{state.name}:end")
    state.then([default(id)])
    state.add({"id": id, "handler": "noop", **found})
    state.then([default(END)])
