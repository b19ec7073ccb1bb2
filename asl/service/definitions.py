"""Operations on definitions: TestState and ValidateStateMachineDefinition."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from asl.checks.aws import unreadable
from asl.compiler.single_state import states_of
from asl.core.diagnostics import InvalidDocument
from asl.core.document import Document
from asl.core.errors import AslError, InvalidTest
from asl.core.json_text import read_data
from asl.core.render.formats import aws_answer
from asl.core.values import Json, compact
from asl.documents.checking import check
from asl.documents.loading import load
from asl.runs.state_tests import test_state as run_test
from asl.service.arns import RequestScope
from asl.service.errors import ServiceError, validation_error
from asl.service.service import (
    StatesService,
    check_role,
    invalid_definition,
    read_definition,
)

__all__ = [
    "run_state_test",
    "test_state",
    "validate_definition",
    "validate_state_machine_definition",
]

MAX_RESULTS: Final = 100
"""Largest number of diagnostics in a response."""
_VALUES: Final = frozenset(
    {
        "errorDetails",
        "maxConcurrency",
        "request",
        "response",
        "toleratedFailureCount",
        "toleratedFailurePercentage",
    }
)
"""Members of `inspectionData` that are not JSON texts."""


async def test_state(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Test one state.

    Raises:
        ServiceError: The request is refused.
    """
    return await asyncio.to_thread(run_state_test, service, request)


def run_state_test(service: StatesService, request: Mapping[str, Any]) -> dict[str, Json]:
    """Test one state; blocks the caller.

    Raises:
        ServiceError: The request is refused.
    """
    try:
        return _answer(service, request)
    except InvalidTest as refusal:
        raise ServiceError(refusal.code, str(refusal)) from None
    except InvalidDocument as refusal:
        raise invalid_definition(refusal.report) from None
    except AslError as refusal:
        raise validation_error(str(refusal)) from None


def _answer(service: StatesService, request: Mapping[str, Any]) -> dict[str, Json]:
    document = read_definition(request["definition"])
    mock, role = request.get("mock"), request.get("roleArn")
    if role is not None:
        check_role(role)
    elif mock is None and _is_task(document, request.get("stateName")):
        raise InvalidTest("RoleArn must be specified when testing a Task state")
    parsed = partial(_parsed, request)
    answer = run_test(
        document,
        parsed("input", "the input", "InvalidExecutionInput", {}),
        state=request.get("stateName"),
        mock=None if mock is None else _mock(mock),
        context=parsed("context", "context"),
        variables=parsed("variables", "variables", default={}),
        level=request.get("inspectionLevel", "INFO"),
        reveal_secrets=request.get("revealSecrets", False),
        configuration=request.get("stateConfiguration"),
        role=role,
        agents=service.bindings.get("agents"),
        resources=service.bindings.get("resources"),
    ).to_json()
    if "output" in answer:
        answer["output"] = compact(answer["output"])
    if "inspectionData" in answer:
        answer["inspectionData"] = {
            name: value if name in _VALUES else compact(value)
            for name, value in answer["inspectionData"].items()
        }
    return answer


def _is_task(document: Document, name: str | None) -> bool:
    """Return whether the state to test is a Task.

    Raises:
        InvalidDocument: The definition has errors.
    """
    kinds = [document.value.get("Type")]
    if "States" in document.value:
        check(document, profile="aws").raise_for_errors()
        kinds = [each.state["Type"] for each in states_of(document.value) if each.name == name]
    return "Task" in kinds


def _mock(mock: Mapping[str, Any]) -> Mapping[str, Json]:
    """Return a mock with its result as a value instead of JSON text."""
    if "result" not in mock:
        return mock
    return {**mock, "result": _parsed(mock, "result", "Mocked result")}


def _parsed(
    request: Mapping[str, Any],
    member: str,
    what: str,
    code: str = "ValidationException",
    default: Json = None,
) -> Any:
    """Return the value of a member that is JSON text.

    Raises:
        InvalidTest: It is not JSON.
    """
    if member not in request:
        return default
    try:
        return read_data(request[member])
    except ValueError:
        raise InvalidTest(f"{what} must be valid JSON", code) from None


async def validate_state_machine_definition(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Check a definition."""
    return validate_definition(service, request)


def validate_definition(service: StatesService, request: Mapping[str, Any]) -> dict[str, Json]:
    """Check a definition."""
    severity = request.get("severity", "ERROR")
    express = request.get("type") == "EXPRESS"
    text = request["definition"].encode(errors="surrogatepass")
    try:
        report = check(load(text, format="json"), profile=service.profile, express=express)
    except InvalidDocument as refusal:
        report = unreadable(refusal.report)
    answer = aws_answer(report)
    shown = [each for each in answer["diagnostics"] if severity in ("WARNING", each["severity"])]
    most = request.get("maxResults") or MAX_RESULTS
    return {**answer, "diagnostics": shown[:most], "truncated": len(shown) > most}
