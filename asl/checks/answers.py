"""Whether a mocked result is one that the service could answer (AWS, recorded)."""

from collections.abc import Iterator, Mapping
from typing import Any

from asl.checks.models import action_of, model_of
from asl.core.errors import InvalidTest
from asl.core.values import Json, is_number

__all__ = ["MODES", "check_answer"]

MODES = ("STRICT", "PRESENT", "NONE")
"""All that is there and required, only what is there, nothing: `fieldValidationMode`."""

_PARSED = {("lambda", "invoke"): "Payload", ("bedrockruntime", "invokeModel"): "Body"}
"""What the model has as bytes and a workflow gets from an integration as the JSON that it holds."""
_KINDS = {"string": "a string", "text": "a string", "number": "a number", "boolean": "a boolean"}


def check_answer(resource: str, result: Json, mode: str) -> None:
    """Raise InvalidTest for a result that the action named by *resource* never has.

    A task that waits has the result of something else than its action; it is not checked.
    """
    action = action_of(resource)
    if action is None or action.waits or mode == "NONE":
        return
    model = model_of(action.service)
    shape = model["actions"].get(action.name)
    if shape is None:
        return
    parsed = None if action.sdk else _PARSED.get((action.service, action.name))
    if type(result) is dict and parsed in result:
        result = {**result, parsed: ""}
    for fault in _faults(model["shapes"], shape, result, "", mode == "STRICT"):
        raise InvalidTest(f"Mock result schema validation error: {fault}")


def _faults(
    shapes: Mapping[str, Any], name: str, value: Json, field: str, strict: bool
) -> Iterator[str]:
    """Yield what is wrong with a value of this shape, which is that of the field."""
    shape = shapes.get(name, {})
    wanted = _wanted(name, shape)
    if wanted is not None and not _is(wanted, value):
        yield f"Field '{field}' must be {wanted}"
    elif "fields" in shape:
        yield from _of_object(shapes, shape, value, strict)
    elif "items" in shape:
        for item in value:
            yield from _faults(shapes, shape["items"], item, field, strict)
    elif "values" in shape:
        for key, item in value.items():
            yield from _faults(shapes, shape["values"], item, key, strict)
    elif "enum" in shape and value not in shape["enum"]:
        yield f"Field '{field}' is not an expected value"
    elif "min" in shape and value < shape["min"]:
        yield f"Field '{field}' is less than the minimum value"
    elif "max" in shape and value > shape["max"]:
        yield f"Field '{field}' exceeds the maximum value"
    elif name == "text" and not value:
        yield f"Field '{field}' is shorter than the minimum length"


def _of_object(
    shapes: Mapping[str, Any], shape: Mapping[str, Any], value: Json, strict: bool
) -> Iterator[str]:
    required = shape.get("required", ()) if strict else ()
    for name, kind in shape["fields"].items():
        if value.get(name) is not None:
            yield from _faults(shapes, kind, value[name], name, strict)
        elif name in required:
            yield f"Required field '{name}' is missing"


def _wanted(name: str, shape: Mapping[str, Any]) -> str | None:
    if not shape:
        return _KINDS.get(name)
    if "items" in shape:
        return "an array"
    if "fields" in shape or "values" in shape:
        return "an object"
    return "a string" if "enum" in shape else "a number"


def _is(wanted: str, value: Json) -> bool:
    if wanted == "a number":
        return is_number(value)
    kinds = {"a string": str, "a boolean": bool, "an array": list, "an object": dict}
    return type(value) is kinds[wanted]
