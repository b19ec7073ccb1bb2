"""The operations of AWS's client on definitions, without AWS."""

from __future__ import annotations

from collections.abc import Mapping
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
from asl.runs.state_tests import test_state

__all__ = ["StepFunctions"]

MAX_RESULTS: Final = 100
"""Maximum number of diagnostics in a response (AWS, ValidateStateMachineDefinition)."""
TYPES: Final = ("STANDARD", "EXPRESS")
SEVERITIES: Final = ("ERROR", "WARNING")
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


class StepFunctions:
    """The methods of `boto3.client("stepfunctions")` that need no deployment.

    Parameters and responses are AWS's: data are JSON texts.

    Args:
        agents: Handlers of tested Tasks without a mock, by `Agent`.
        resources: Handlers by `Resource`.
    """

    def __init__(
        self,
        *,
        agents: Mapping[str, Any] | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> None:
        self._bindings: dict[str, Any] = {"agents": agents, "resources": resources}

    def test_state(
        self,
        *,
        definition: str,
        roleArn: str | None = None,  # noqa: N803
        input: str = "{}",
        inspectionLevel: str = "INFO",  # noqa: N803
        revealSecrets: bool = False,  # noqa: N803
        variables: str = "{}",
        stateName: str | None = None,  # noqa: N803
        mock: Mapping[str, Any] | None = None,
        context: str | None = None,
        stateConfiguration: Mapping[str, Any] | None = None,  # noqa: N803
    ) -> dict[str, Json]:
        """Test one state; see `asl.test_state`, whose errors are raised."""
        document = _read(definition)
        if mock is None and roleArn is None and _is_task(document, stateName):
            raise InvalidTest("RoleArn must be specified when testing a Task state")
        answer = test_state(
            document,
            _parsed(input, "the input", "InvalidExecutionInput"),
            state=stateName,
            mock=None if mock is None else _mock(mock),
            context=None if context is None else _parsed(context, "the context"),
            variables=_parsed(variables, "variables"),
            level=inspectionLevel,
            reveal_secrets=revealSecrets,
            configuration=stateConfiguration,
            role=roleArn,
            **self._bindings,
        ).to_json()
        if "output" in answer:
            answer["output"] = compact(answer["output"])
        if "inspectionData" in answer:
            answer["inspectionData"] = {
                name: value if name in _VALUES else compact(value)
                for name, value in answer["inspectionData"].items()
            }
        return answer

    def validate_state_machine_definition(
        self,
        *,
        definition: str,
        type: str = "STANDARD",
        severity: str = "ERROR",
        maxResults: int = 0,  # noqa: N803
    ) -> dict[str, Json]:
        """Check a definition.

        Args:
            definition: The definition as JSON text.
            type: One of `TYPES`.
            severity: The lowest severity to report, one of `SEVERITIES`.
            maxResults: Maximum number of diagnostics; 0 for the default.

        Raises:
            AslError: AWS does not accept a parameter.
        """
        for what, given, known in (("type", type, TYPES), ("severity", severity, SEVERITIES)):
            if given not in known:
                raise AslError(f"no {what} {given!r:.100}; there are {', '.join(known)}")
        if not isinstance(maxResults, int) or not 0 <= maxResults <= MAX_RESULTS:
            raise AslError(f"'maxResults' must be from 0 to {MAX_RESULTS}, got {maxResults!r:.100}")
        try:
            report = check(_read(definition), profile="aws", express=type == "EXPRESS")
        except InvalidDocument as refusal:
            report = unreadable(refusal.report)
        answer = aws_answer(report)
        told = [each for each in answer["diagnostics"] if severity in ("WARNING", each["severity"])]
        most = maxResults or MAX_RESULTS
        return {**answer, "diagnostics": told[:most], "truncated": len(told) > most}


def _read(definition: str) -> Document:
    """Read a text, which is never taken as the path of a file."""
    if type(definition) is not str:
        raise AslError(f"'definition' must be JSON text, got {definition!r:.100}")
    return load(definition.encode(errors="surrogatepass"), format="json")


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


def _mock(mock: Any) -> Mapping[str, Json]:
    """Return a mock with its result as a value instead of JSON text."""
    if not isinstance(mock, Mapping) or "result" not in mock:
        return mock
    return {**mock, "result": _parsed(mock["result"], "Mocked result")}


def _parsed(text: str, what: str, code: str = "ValidationException") -> Any:
    if type(text) is not str:
        raise AslError(f"{what} must be JSON text, got {text!r:.100}")
    try:
        return read_data(text)
    except ValueError:
        raise InvalidTest(f"{what} must be valid JSON", code) from None
