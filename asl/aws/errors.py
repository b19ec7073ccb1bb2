"""Errors of services under the names that Step Functions gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from asl.aws.names import exception_name, service_name
from asl.core.values import Json
from asl.states.errors import RaisedError

__all__ = ["ErrorForm", "modern_errors", "service_error", "unreachable"]


class ErrorForm(NamedTuple):
    """The names of a service in its errors."""

    prefix: str
    """Before the dot: `DynamoDB`."""
    service: str
    """The service in the cause: `AmazonDynamoDBv2`."""
    base: str
    """The exception for errors without a model: `AmazonDynamoDBException`."""
    legacy: bool = False
    """Whether the errors are those of version 1 of AWS's SDK for Java."""

    @property
    def unreachable(self) -> str:
        """The error of a request without an answer."""
        return f"{self.prefix}.SdkClientException"


def modern_errors(service_id: str, prefix: str | None = None) -> ErrorForm:
    """Return the names of version 2 of the SDK.

    Args:
        service_id: The id of the service in botocore's model: `DynamoDB`.
        prefix: The text before the dot; None for the name of the service.
    """
    name = service_name(service_id)
    return ErrorForm(prefix or name, name, f"{name}Exception")


def service_error(response: Mapping[str, Any], model: Any, form: ErrorForm) -> RaisedError:
    """Return the error of a refused request (AWS, recorded).

    Args:
        response: The response that botocore has parsed: `Error` and `ResponseMetadata`.
        model: botocore's model of the service.
        form: The names of the service.
    """
    error: Mapping[str, Json] = response.get("Error", {})
    about: Mapping[str, Json] = response.get("ResponseMetadata", {})
    code = str(error.get("Code"))
    # A service that once spoke another protocol names its error in both.
    shape = model.shape_for_error_code(code) or model.shape_for_error_code(
        error.get("QueryErrorCode")
    )
    name = form.base if shape is None else exception_name(shape.name, legacy=form.legacy)
    status, request = about.get("HTTPStatusCode"), about.get("RequestId")
    if form.legacy:
        details = (
            f"Service: {form.service}; Status Code: {status}; Error Code: {code}; "
            f"Request ID: {request}; Proxy: null"
        )
    else:
        host = f", Extended Request ID: {about['HostId']}" if about.get("HostId") else ""
        details = f"Service: {form.service}, Status Code: {status}, Request ID: {request}{host}"
    return RaisedError(f"{form.prefix}.{name}", f"{error.get('Message', 'null')} ({details})")


def unreachable(name: str, reason: str) -> RaisedError:
    """Return the error of a request without an answer (AWS, recorded).

    Args:
        name: The name of the error.
        reason: What the library reports.
    """
    return RaisedError(name, f"Unable to execute HTTP request: {reason}")
