"""What a state makes of its data: its output, its result in place, its variables."""

from collections.abc import Mapping
from typing import Any

from asl.core.errors import ExpressionFault
from asl.dialects.contenox.writing.knowledge import Variables
from asl.dialects.contenox.writing.meanings import Reader
from asl.dialects.contenox.writing.state import State
from asl.dialects.contenox.writing.values import Constant, Unknown, Value, at, placed
from asl.expr.paths.syntax import parse_path

__all__ = ["assigned", "output", "resulting"]


def output(state: State, result: Value | None = None) -> Value:
    """Return the output of a state with a result, or without one."""
    value = state.value
    if state.jsonata:
        if "Output" not in value:
            return state.raw if result is None else result
        return state.reader(("CX-OUTPUT", state.at("Output")), result).structure(value["Output"])
    found = state.input if result is None else result
    if result is not None and "ResultSelector" in value:
        why = ("CX-SELECTOR", state.at("ResultSelector"))
        found = Reader(state.env, result, why=why).template(value["ResultSelector"])
    if result is not None:
        found = resulting(state, state.raw, value, found, "ResultPath")
    path = value.get("OutputPath", "$")
    if path is None:
        return Constant({})
    return Reader(state.env, found, why=("CX-OUTPUT", state.at("OutputPath"))).expression(path)


def resulting(
    state: State, raw: Value, holder: Mapping[str, Any], result: Value, *way: str | int
) -> Value:
    """Return the data after a result is placed by the `ResultPath` that stands at *way*."""
    text = holder.get("ResultPath", "$")
    if text is None:
        return raw
    try:
        path = parse_path(text)
    except (ExpressionFault, TypeError):
        return Unknown(("CX-RESULTPATH", state.at(*way)))
    steps = tuple(each for each in path.segments if isinstance(each, str | int))
    if path.root != "$":
        return raw
    return placed(raw, steps, result, ("CX-RESULTPATH", state.at(*way)))


def assigned(state: State, holder: Mapping[str, Any], reader: Reader) -> Variables:
    """Return the variables of the document after an `Assign`."""
    given = holder.get("Assign")
    if type(given) is not dict:
        return state.env.variables
    found = reader.structure(given) if state.jsonata else reader.template(given)
    new = {name.removesuffix(".$"): at(found, (name.removesuffix(".$"),)) for name in given}
    return state.env.assigned(new)
