"""Functions that speak in pydantic models: one comes in, another goes out.

The annotations of a function say so. Nothing of pydantic is loaded for any other function.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, get_type_hints
from weakref import WeakSet

from asl.core.errors import StateError
from asl.core.values import Json

__all__ = ["input_schema", "typed"]

Function = Callable[..., Any]

_UNTYPED: WeakSet[Any] = WeakSet()
"""The functions that are known to have no models: each run that they are given to asks again."""


def typed(function: Function) -> Function:
    """Return *function* as one that takes and returns JSON, itself where no model is annotated.

    The first parameter is validated by its model; StateError("States.TaskFailed") tells every
    field that is wrong. A model that is returned becomes JSON, by its aliases.
    """
    if type(function) is FunctionType and function in _UNTYPED:
        return function
    hints = _hints(function)
    model = _taken(function, hints)
    if model is None and not _is_model(hints.get("return")):
        if type(function) is FunctionType and len(hints) == len(function.__annotations__):
            _UNTYPED.add(function)
        return function

    if inspect.iscoroutinefunction(_routine(function)):

        @wraps(_routine(function))
        async def awaited(parameters: Json, *call: Any) -> Json:
            return _told(await function(_read(model, parameters, function), *call))

        return awaited

    @wraps(_routine(function))
    def plain(parameters: Json, *call: Any) -> Json:
        return _told(function(_read(model, parameters, function), *call))

    return plain


def input_schema(function: Any) -> Json:
    """Return the JSON Schema of what a function takes, None where no model says it."""
    model = _taken(function, _hints(function)) if callable(function) else None
    return None if model is None else model.model_json_schema()


def _hints(function: Function) -> dict[str, Any]:
    """Return the annotations of a function, none where they are not to be had."""
    routine = _routine(function)
    if not getattr(routine, "__annotations__", None):
        return {}
    try:
        return get_type_hints(routine)
    except (AttributeError, NameError, TypeError):  # names that exist for a type checker only
        return {}


def _routine(function: Function) -> Function:
    """Return what runs when *function* is called: an object's method, where it is an object."""
    return function if inspect.isroutine(function) else type(function).__call__


def _taken(function: Function, hints: dict[str, Any]) -> Any:
    """Return the model of the first parameter, None where it has none."""
    if not hints:
        return None
    first = next((hints.get(name) for name in inspect.signature(function).parameters), None)
    return first if _is_model(first) else None


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and hasattr(annotation, "model_validate")


def _read(model: Any, parameters: Json, function: Function) -> Any:
    if model is None:
        return parameters
    from pydantic import ValidationError

    try:
        return model.model_validate(parameters)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'the whole'}: {fault['msg']}"
            for fault in error.errors()
        )
        name = getattr(function, "__name__", type(function).__name__)
        text = f"{name} takes {model.__name__}, and these parameters are not one: {faults}"
        raise StateError("States.TaskFailed", text) from error


def _told(value: Any) -> Json:
    return value.model_dump(mode="json", by_alias=True) if _is_model(type(value)) else value
