"""What a task is given: what moves along, a variable, or a text; anything else is a loss."""

from collections.abc import Mapping
from typing import Final

from asl.core.diagnostics import Severity
from asl.core.values import Json
from asl.dialects.contenox.writing.state import State
from asl.dialects.contenox.writing.templates import as_json, parses, shown
from asl.dialects.contenox.writing.values import Constant, Part, Text, Value, reaches

__all__ = ["REACHING", "given", "inexpressible", "sayable"]

REACHING: Final = "a list on the way of a path, or what is not there, ends the run there"
"""What a query goes through, and a template does not."""
_INEXPRESSIBLE: Final[Mapping[str, str]] = {
    "CX-PARAMS": "a tool is given what moves along, or one variable, or a text",
    "CX-RESULTPATH": "a result takes the place of what moved along; no data grows around it",
    "CX-SELECTOR": "no part of a result is selected like this",
    "CX-INPUTPATH": "no variable of the chain holds this",
    "CX-OUTPUT": "a chain ends with what moves along",
    "CX-PASS": "a task without effect hands on a variable or a text",
    "CX-CATCH": "of an error one text is left",
    "CX-APPROVAL": "a record takes the place of what moved along",
}


def given(state: State, value: Value, code: str, where: str) -> tuple[dict[str, Json], Value]:
    """Return the fields that make a value the input of a task, and what that is then."""
    found = sayable(state, value, code, where)
    if found is None:
        inexpressible(state, value, code, where)
        return {}, state.env.flow
    return found, value


def sayable(state: State, value: Value, code: str, where: str) -> dict[str, Json] | None:
    """Return the fields that make a value the input of a task, None if there are none."""
    if value == state.env.flow:
        return {}
    if isinstance(value, Part) and not value.path and isinstance(value.root, str):
        return {"input_var": value.root}
    if isinstance(value, Text) or (isinstance(value, Constant) and isinstance(value.value, str)):
        said = shown(value, state.env)
        if said is not None and isinstance(value, Text):
            state.lost(
                "CX-GOFMT",
                "a template shows numbers, objects and what is missing in its own way",
                where,
            )
    elif isinstance(value, Part):
        said = shown(value, state.env)
        if said is not None:
            told = "a part of a variable is filled in as a text"
            state.lost(code, told, where, said, Severity.WARNING)
    else:
        said = as_json(value, state.env)
        if said is not None:
            told = "a task can only be given a variable or a text"
            state.lost(code, told, where, "the text of the JSON", Severity.WARNING)
    if said is None or not parses(said):
        return None
    if state.jsonata and reaches(value):
        state.lost("L-REQUIRED", REACHING, where)
    return {"prompt_template": said or '{{""}}'}


def inexpressible(state: State, value: Value, code: str, where: str) -> None:
    """Report a value that no task can be given, where its cause stands.

    Where that lies on one way only, it is reported where the value is used as well.
    """
    why, partly = getattr(value, "why", None), getattr(value, "partly", False)
    causes = [(code, where)] if why is None else [why]
    for cause in dict.fromkeys([*causes, (code, where)] if partly else causes):
        told = _INEXPRESSIBLE.get(cause[0], "no task says this")
        state.lost(cause[0], told, cause[1], "what moves along is there instead")
