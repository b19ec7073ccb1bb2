"""Functions annotated with pydantic models or dataclasses.

pydantic is not loaded for other functions.
"""

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import is_dataclass
from functools import lru_cache, partial, wraps
from types import FunctionType
from typing import Any, get_args, get_type_hints
from weakref import WeakSet

from asl.core.errors import StateError
from asl.core.values import Json

__all__ = ["input_schema", "json_function"]

Function = Callable[..., Any]

_UNTYPED: WeakSet[Any] = WeakSet()
"""The functions that are known to have no models: each run that they are given to asks again."""


def json_function(function: Function) -> Function:
    """Return *function* as one that takes and returns JSON, itself where no model is annotated.

    The first parameter is validated by its annotation, where that mentions a model or a dataclass;
    StateError("States.TaskFailed") lists every wrong field. The result becomes JSON, with the
    aliases of its models.
    """
    if type(function) is FunctionType and function in _UNTYPED:
        return function
    hints = _hints(function)
    taken, given = _taken(function, hints), hints.get("return")
    if taken is None and not _mentions_model(given):
        if type(function) is FunctionType and len(hints) == len(function.__annotations__):
            _UNTYPED.add(function)
        return function

    if inspect.iscoroutinefunction(_routine(function)):

        @wraps(_routine(function))
        async def awaited(parameters: Json, *call: Any) -> Json:
            return _told(await function(_read(taken, parameters, function), *call))

        return awaited

    @wraps(_routine(function))
    def plain(parameters: Json, *call: Any) -> Json:
        return _told(function(_read(taken, parameters, function), *call))

    return plain


def input_schema(function: Any) -> Json:
    """Return the JSON Schema of what a function takes, None where no model says it."""
    taken = _taken(function, _hints(function)) if callable(function) else None
    return None if taken is None else _adapter(taken).json_schema()


def _hints(function: Function) -> dict[str, Any]:
    """Return the annotations of a function that are to be had: a type checker may know more."""
    routine = _routine(function)
    found: dict[str, Any] = {}
    for name, annotation in getattr(routine, "__annotations__", {}).items():
        one = FunctionType((lambda: None).__code__, getattr(routine, "__globals__", {}))
        one.__annotations__ = {name: annotation}
        with suppress(AttributeError, NameError, TypeError):
            found |= get_type_hints(one)
    return found


def _routine(function: Function) -> Function:
    """Return what runs when *function* is called: an object's method, where it is an object."""
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _taken(function: Function, hints: dict[str, Any]) -> Any:
    """Return the annotation of the first parameter, None where it mentions no model."""
    if not hints:
        return None
    first = next((hints.get(name) for name in inspect.signature(function).parameters), None)
    return first if _mentions_model(first) else None


def _mentions_model(annotation: Any) -> bool:
    return _is_model(annotation) or any(map(_mentions_model, get_args(annotation)))


def _is_model(annotation: Any) -> bool:
    if not isinstance(annotation, type):
        return False
    return hasattr(annotation, "model_validate") or is_dataclass(annotation)


@lru_cache(maxsize=256)
def _adapter(annotation: Any) -> Any:
    """Return what reads an annotation; pydantic is not loaded before."""
    from pydantic import TypeAdapter

    return TypeAdapter(annotation)


def _read(taken: Any, parameters: Json, function: Function) -> Any:
    if taken is None:
        return parameters
    from pydantic import ValidationError

    try:
        return _adapter(taken).validate_python(parameters)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'the whole'}: {fault['msg']}"
            for fault in error.errors()
        )
        name = getattr(_routine(function), "__name__", type(function).__name__)
        kind = taken.__name__ if isinstance(taken, type) else str(taken)
        text = f"{name} takes {kind}, and these parameters are not one: {faults}"
        raise StateError("States.TaskFailed", text) from error


def _told(value: Any) -> Json:
    """Return what is returned as JSON: the models and dataclasses in lists and objects, too."""
    if _is_model(type(value)):
        kind: Any = type(value)
        return _adapter(kind).dump_python(value, mode="json", by_alias=True)
    if isinstance(value, list):
        return [_told(each) for each in value]
    if isinstance(value, dict):
        return {key: _told(each) for key, each in value.items()}
    return value
