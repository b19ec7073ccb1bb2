"""Validation of TestState requests, with AWS's messages (AWS, recorded)."""

from collections.abc import Iterator, Mapping
from typing import Any

from asl.checks.service_catalog import action_of, model_of
from asl.core.errors import AslError, InvalidTest
from asl.core.values import Json, is_number
from asl.states import type_of

__all__ = [
    "CONTEXT_MEMBERS",
    "MODES",
    "check_answer",
    "check_context",
    "check_iterations",
    "check_mock",
]

MODES = ("STRICT", "PRESENT", "NONE")
"""`fieldValidationMode`: check present and required fields, present fields only, nothing."""

_PARSED = {("lambda", "invoke"): "Payload", ("bedrockruntime", "invokeModel"): "Body"}
"""Fields with bytes in the model and parsed JSON in the result of the integration."""
_KINDS = {"string": "a string", "text": "a string", "number": "a number", "boolean": "a boolean"}


def check_answer(resource: str, result: Json, mode: str) -> None:
    """Check a mocked result by the model of its action.

    Results of tasks that wait (`.sync`, `.waitForTaskToken`) are not checked.

    Raises:
        InvalidTest: The action never returns such a result.
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
    """Yield the faults of the value of a field by its shape in the model."""
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
        yield f"Field '{field}' is smaller than the minimum length"


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


_RUN = "Task, Wait, Pass, Succeed, Fail, Choice"
_TEXT, _NUMBER, _ANY = "a string", "a number", ""
CONTEXT_MEMBERS = {
    "Execution": {
        "Id": _TEXT,
        "Input": _ANY,
        "Name": _TEXT,
        "RoleArn": _TEXT,
        "StartTime": _TEXT,
        "RedriveCount": _NUMBER,
        "RedriveTime": _TEXT,
    },
    "State": {"EnteredTime": _TEXT, "Name": _TEXT, "RetryCount": _NUMBER},
    "StateMachine": {"Id": _TEXT, "Name": _TEXT},
    "Task": {"Token": _TEXT},
}
"""The members of a context object, and what each of them is."""


def check_configuration(configuration: Mapping[str, Json], mock: Mapping[str, Json] | None) -> None:
    """Check the configuration of a test.

    Raises:
        InvalidTest: A number of failed iterations is configured without a mock.
    """
    if "mapIterationFailureCount" in configuration and mock is None:
        raise InvalidTest(
            "TestState does not support MapIterationFailureCount when a mock is not specified."
        )


def check_mock(state: Mapping[str, Json], mock: Mapping[str, Json] | None) -> None:
    """Check that a state can have this mock, or none.

    Raises:
        InvalidTest: AWS refuses the mock.
        AslError: The validation mode is unknown.
    """
    kind = state["Type"]
    if mock is None:
        if type_of(state).concurrent:
            raise InvalidTest(
                "TestState API does not support Map or Parallel states. "
                f"Supported state types include: [{_RUN}]",
                "InvalidDefinition",
            )
        return
    if "result" in mock and "errorOutput" in mock:
        raise InvalidTest(
            "A test mock should have only one of the following fields: [result, errorOutput]."
        )
    if not (type_of(state).aws and type_of(state).effect):
        raise InvalidTest(f"State type '{kind}' is not supported when a mock is specified")
    mode = mock.get("fieldValidationMode", MODES[0])
    if mode not in MODES:
        raise AslError(f"fieldValidationMode is one of {', '.join(MODES)}, not {mode!r}")
    if "result" in mock:
        _check_result(state, mock["result"], mode)


def _check_result(state: Mapping[str, Json], result: Json, mode: str) -> None:
    if state["Type"] == "Map" and "ResultWriter" in state:
        if type(result) is not dict:
            raise InvalidTest("Mocked result must be a JSON object.")
    elif state["Type"] != "Task" and type(result) is not list:
        raise InvalidTest("Mocked result must be an array.")
    elif state["Type"] == "Parallel" and len(result) != len(state["Branches"]):
        raise InvalidTest(
            "Mocked result must contain the same number of items as number of Parallel branches."
        )
    elif type(state.get("Resource")) is str and type(result) is dict:
        check_answer(state["Resource"], result, mode)


def check_context(state: Mapping[str, Json], context: Mapping[str, Json]) -> None:
    """Check the context object of a request.

    Raises:
        InvalidTest: A field is unknown or has a wrong type.
    """
    for name, value in context.items():
        if name == "Map":
            raise _unfit("'Map' field is not supported when mocking a Context object")
        if name not in CONTEXT_MEMBERS:
            raise _unfit(f"Field '{name}' is not allowed")
        if type(value) is not dict:
            raise _unfit(f"{name} must be an object")
        for field, each in value.items():
            _check_field(name, field, each)
    if "Task" in context and not _waits(state):
        raise _unfit(
            "Context object contains 'Task' when state is not a Task state with a '.sync' or "
            "'.waitForTaskToken' service integration pattern"
        )


def _check_field(name: str, field: str, value: Json) -> None:
    if field not in CONTEXT_MEMBERS[name]:
        raise _unfit(f"Field '{field}' is not allowed")
    kind = CONTEXT_MEMBERS[name][field]
    if (kind == _TEXT and type(value) is not str) or (kind == _NUMBER and not is_number(value)):
        raise _unfit(f"{name}.{field} must be {kind}")


def _waits(state: Mapping[str, Json]) -> bool:
    ends = (".sync", ".sync:2", ".waitForTaskToken")
    return state["Type"] == "Task" and str(state.get("Resource")).endswith(ends)


def _unfit(message: str) -> InvalidTest:
    return InvalidTest(f"Invalid Context object provided: {message}")


def check_iterations(failures: int, iterations: int) -> None:
    """Check the number of failed iterations.

    Raises:
        InvalidTest: It is larger than the number of iterations.
    """
    if failures > iterations:
        raise InvalidTest(
            "Map iteration failure count must be less than or equal to the number of Map iterations"
        )
