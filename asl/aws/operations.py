"""One operation of a service, performed in a thread through its client."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from asl.aws.clients import Clients
from asl.aws.errors import ErrorForm, service_error, unreachable
from asl.aws.names import service_name
from asl.aws.shapes import (
    ResponseForm,
    WrongParameter,
    body_text,
    json_value,
    legacy_form,
    request_value,
)
from asl.core.values import Json, compact
from asl.effects.service_agent import uuid_of
from asl.engine.agent import Agent, Call
from asl.engine.exception_mapping import map_exceptions
from asl.states.errors import RaisedError

__all__ = ["Operation", "Reply", "foreign_errors", "wrong_parameters"]


class Reply(NamedTuple):
    """The response of a service."""

    fields: dict[str, Json]
    metadata: dict[str, Json]
    """`SdkHttpMetadata` and `SdkResponseMetadata`."""


class Operation(Agent):
    """One operation of a service as a plain function, which the runtime calls in a thread.

    Args:
        clients: The clients of the run.
        service: botocore's name of the service.
        name: The operation, with a small or a capital first letter.
        errors: Returns the names in errors for the id of the service.
    """

    blocking = reaches_network = True

    def __init__(
        self, clients: Clients, service: str, name: str, errors: Callable[[str], ErrorForm]
    ) -> None:
        self.clients = clients
        self.service = service
        self.name = name
        self.errors = errors

    def answer(self, payload: Json, call: Call | None) -> Reply:
        """Send one request.

        Raises:
            RaisedError: The service refuses it, does not answer, or answers too much.
        """
        from botocore import xform_name
        from botocore.exceptions import BotoCoreError, ClientError

        assert call is not None
        with foreign_errors(self.errors(service_name(self.service)).unreachable):
            client = self.clients.of_task(call).client(self.service)
        model = client.meta.service_model
        operation = self._model(model)
        errors = self.errors(str(model.service_id))
        with foreign_errors(errors.unreachable):
            request = self._request(operation, payload, call)
            try:
                response = getattr(client, xform_name(operation.name))(**request)
                return _reply(operation, response, legacy_form(errors.legacy))
            except ClientError as error:
                raise service_error(error.response, model, errors) from None
            except BotoCoreError as error:
                raise unreachable(errors.unreachable, str(error)) from None

    def _model(self, model: Any) -> Any:
        """Return the operation, whose name may differ from that of the action in case."""
        for name in model.operation_names:
            if name.lower() == self.name.lower():
                return model.operation_model(name)
        raise RaisedError(
            "States.Runtime",
            f"the installed botocore has no operation {self.name!r} of {self.service!r}: "
            "upgrade boto3",
        )

    def _request(self, operation: Any, payload: Json, call: Call) -> dict[str, Any]:
        shape = operation.input_shape
        if shape is None:
            return {}
        try:
            request: dict[str, Any] = request_value(shape, payload or {}, "Parameters")
        except WrongParameter as wrong:
            raise wrong_parameters(payload, str(wrong)) from None
        for name, member in shape.members.items():
            if name not in request and member.metadata.get("idempotencyToken"):
                request[name] = uuid_of(call, name)  # a repeated call after a crash has no effect
            if name not in request and member.serialization.get("location") == "uri":
                raise wrong_parameters(payload, f'The field "{name}" is required but was missing')
        return request


def wrong_parameters(payload: Json, reason: str) -> RaisedError:
    """Return the error of parameters that cannot be sent (AWS, recorded)."""
    return RaisedError(
        "States.Runtime",
        f"The Parameters '{compact(payload)}' could not be used to start the Task: [{reason}]",
    )


def foreign_errors(name: str) -> AbstractContextManager[None]:
    """Return a context in which exceptions of libraries fail the task with the error *name*."""
    return map_exceptions(
        lambda text: unreachable(name, text), lambda error: not isinstance(error, Exception)
    )


def _reply(operation: Any, response: dict[str, Any], form: ResponseForm) -> Reply:
    about = response.pop("ResponseMetadata", {})
    found = {
        name: body_text(each.read()) if hasattr(each, "read") else each
        for name, each in response.items()
    }
    shape = operation.output_shape
    fields = {} if shape is None else json_value(shape, found, form)
    return Reply(fields, _metadata(about))


_HEADERS: Final = {"x-amzn-requestid": "x-amzn-RequestId"}
"""Names of headers that botocore has in small letters."""


def _metadata(about: dict[str, Any]) -> dict[str, Json]:
    """Return the metadata of a response as version 1 of the SDK has it (AWS, recorded)."""
    headers = {
        _HEADERS.get(name, name if name.startswith("x-") else name.title()): str(value)
        for name, value in about.get("HTTPHeaders", {}).items()
    }
    return {
        "SdkHttpMetadata": {
            "AllHttpHeaders": {name: [value] for name, value in headers.items()},
            "HttpHeaders": headers,
            "HttpStatusCode": about.get("HTTPStatusCode"),
        },
        "SdkResponseMetadata": {"RequestId": about.get("RequestId")},
    }
