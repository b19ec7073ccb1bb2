"""Documents of one Task, and runs of them."""

from typing import Any

import asl
from asl.aws import Integrations

Json = Any


def task(resource: str, parameters: Json, **fields: Json) -> Json:
    """Return a document of one Task."""
    state = {"Type": "Task", "Resource": f"arn:aws:states:::{resource}", "End": True}
    if ".sync" in resource:  # a job that never ends fails the test
        state["TimeoutSeconds"] = 1000
    return {"StartAt": "Call", "States": {"Call": {**state, "Parameters": parameters, **fields}}}


def output(aws: Integrations, resource: str, parameters: Json, **fields: Json) -> Json:
    """Return the output of a Task that succeeds."""
    result = asl.run(task(resource, parameters, **fields), aws=aws, clock="virtual")
    result.raise_for_status()
    return result.output


def failure(aws: Integrations, resource: str, parameters: Json, **fields: Json) -> tuple[str, str]:
    """Return error and cause of a Task that fails."""
    result = asl.run(task(resource, parameters, **fields), aws=aws, clock="virtual")
    assert result.status == "FAILED", result.output
    return str(result.error), str(result.cause)
