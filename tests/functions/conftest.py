"""Functions of small projects."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.core.values import Json
from asl.engine.result import Result
from asl.functions import LocalFunctions
from asl.sources.lambda_function import LambdaFunction

ARN = "arn:aws:lambda:us-east-1:111111111111:function:"
Start = Callable[..., LocalFunctions]


def task(name: str) -> dict[str, Any]:
    """Return a document with a single Task that calls a function by its ARN."""
    return {"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": ARN + name, "End": True}}}


def invocation(name: str) -> dict[str, Any]:
    """Return a document with a single Task that calls a function by `lambda:invoke`."""
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": name, "Payload.$": "$"},
        "OutputPath": "$.Payload",
        "End": True,
    }
    return {"StartAt": "A", "States": {"A": state}}


def run(functions: LocalFunctions, event: Json = None, document: Any = None) -> Result:
    """Run a document, by default with one Task for the function `F`."""
    document = document or task("F")
    return asl.run(document, {} if event is None else event, resources=functions.resources)


def cause_of(result: Result) -> Any:
    """Return the cause of a failure, which is JSON text."""
    assert result.cause is not None
    return json.loads(result.cause)


@pytest.fixture
def lines() -> list[str]:
    """The log of all functions of a test."""
    return []


@pytest.fixture
def start(tmp_path: Path, lines: list[str]) -> Iterator[Start]:
    """Return the function `F` with this code, in a file `app`."""
    started: list[LocalFunctions] = []

    def start_function(code: str, *, ending: str = "py", **settings: Any) -> LocalFunctions:
        (tmp_path / f"app.{ending}").write_text(code, encoding="utf-8")
        options = {
            name: settings.pop(name) for name in ("commands", "watch", "limit") if name in settings
        }
        runtime = "python3.11" if ending == "py" else "nodejs20.x"
        fields = {"runtime": runtime, "handler": "app.handler", "code": str(tmp_path), **settings}
        functions = LocalFunctions(
            [LambdaFunction("F", "F", (f"{ARN}F",), **fields)],
            log=lambda name, line: lines.append(f"{name}: {line}"),
            **options,
        )
        started.append(functions)
        return functions

    yield start_function
    for each in started:
        each.close()
