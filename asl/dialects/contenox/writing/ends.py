"""States that end a run: Succeed and Fail."""

from collections.abc import Iterable

from asl.core.codes import is_anonymous
from asl.dialects.contenox.chain import END, RAISED
from asl.dialects.contenox.writing.inputs import inexpressible, sayable
from asl.dialects.contenox.writing.outputs import output
from asl.dialects.contenox.writing.state import State, Way, default
from asl.dialects.contenox.writing.templates import shown
from asl.dialects.contenox.writing.transitions import needed
from asl.dialects.contenox.writing.values import Constant, Members, Unknown

__all__ = ["fail", "succeed"]


def succeed(state: State) -> Iterable[Way]:
    """Write a Succeed as a task without effect, where one is needed."""
    if not needed(state, state.name):
        return ()
    data = output(state)
    where = state.at("Output" if "Output" in state.value else "Type")
    fields = sayable(state, data, "CX-OUTPUT", where)
    if fields is None:
        inexpressible(state, data, "CX-OUTPUT", where)
    state.add({"id": state.id, "handler": "noop", **(fields or {})})
    state.then([default(END)])
    return ()


def fail(state: State) -> Iterable[Way]:
    """Write a Fail: its error and its cause are one message."""
    named = not is_anonymous(state.value.get("Error", ""))
    parts = [_said(state, field) for field in ("Error", "Cause") if named or field == "Cause"]
    said = ": ".join(each for each in parts if each is not None) or "failed"
    if state.value.get("Error") != RAISED:
        told = "an error has no name there"
        instead = "its name is part of the message" if named else "the message is kept"
        state.lost("L-FAIL", told, state.at(), instead)
    state.add({"id": state.id, "handler": "raise_error", "prompt_template": said})
    return ()


def _said(state: State, field: str) -> str | None:
    """Return a field of a Fail as part of a template, None where it is absent."""
    reader, given = state.reader(None), state.value
    if f"{field}Path" in given:
        value = reader.expression(given[f"{field}Path"])
    elif field in given:
        value = reader.structure(given[field]) if state.jsonata else Constant(given[field])
    else:
        return None
    found = shown(value, state.env) if not isinstance(value, Unknown | Members) else None
    return found if found is not None else f"({field.lower()})"
