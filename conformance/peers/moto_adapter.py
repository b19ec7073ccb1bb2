"""moto's interpreter of Step Functions behind the protocol of the suite.

`python -m conformance.peers.moto_adapter` reads requests from standard input. Tasks are answered
by the scripts of the case in place of Lambda and the other services; waiting takes no time.
"""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

import boto3
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.moto_api._internal.models import moto_api_backend
from moto.stepfunctions.parser.api import HistoryEventType, TaskFailedEventDetails
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import (
    CustomErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import (
    StatesErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
    StatesErrorNameType,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service,
    state_task_service_factory,
)
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import (
    WaitFunction,
)
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.utils import TMP_THREADS

from asl.conformance.local import serve
from asl.core.values import Json, compact
from conformance.peers.scripts import TaskFailed, TaskScripts

__all__ = ["MotoInterpreter", "main"]

ROLE = "arn:aws:iam::123456789012:role/suite"
REGION = "us-east-1"
TIME_LIMIT = 10
"""Seconds that a case may take."""


class MotoInterpreter:
    """Runs cases one after the other, in moto within this process."""

    def __init__(self) -> None:
        self.scripts = TaskScripts({})
        self.services = ExitStack()

    def __enter__(self) -> "MotoInterpreter":
        settings: Any = {"stepfunctions": {"execute_state_machine": True}}
        enter = self.services.enter_context
        enter(mock_aws(config=settings))
        enter(patch.object(lambda_eval_utils, "execute_lambda_function_integration", self._invoke))
        enter(patch.object(time, "sleep"))
        enter(patch.object(WaitFunction, "_wait_interval"))
        assert state_task_service_factory  # imports the services
        for service in _subclasses(state_task_service.StateTaskService):
            if "_eval_service_task" in vars(service):
                enter(patch.object(service, "_eval_service_task", self._for_service()))
        self.machines = boto3.client("stepfunctions", region_name=REGION)
        self.objects = boto3.client("s3", region_name=REGION)
        return self

    def __exit__(self, *_: object) -> None:
        self.services.close()

    def observe(self, request: Mapping[str, Json]) -> dict[str, Json]:
        """Answer one request of the protocol, without the `id`."""
        self.scripts = TaskScripts(request)
        TMP_THREADS.clear()
        moto_api_backend.reset()
        for bucket, objects in request.get("buckets", {}).items():
            self.objects.create_bucket(Bucket=bucket)
            for key, text in objects.items():
                self.objects.put_object(Bucket=bucket, Key=key, Body=text.encode())
        try:
            machine = self.machines.create_state_machine(
                name="machine", definition=compact(request["document"]), roleArn=ROLE
            )
        except ClientError as error:
            return {"valid": False, "diagnostics": [_refusal(error)]}
        if set(request["observe"]) <= {"diagnostics", "valid"}:
            return {"valid": True, "diagnostics": []}
        execution = self.machines.start_execution(
            stateMachineArn=machine["stateMachineArn"],
            name=request.get("name", "case"),
            input=compact(request["input"]),
        )["executionArn"]
        thread = TMP_THREADS[0]  # that of the execution; states add others
        thread.join(TIME_LIMIT)
        if thread.is_alive():  # it cannot be stopped: the suite starts another process
            sys.exit(f"still running after {TIME_LIMIT} seconds")
        return _facts(self.machines.describe_execution(executionArn=execution))

    def _invoke(self, env: Any, parameters: Any, region: str, state_credentials: Any) -> None:
        payload = json.loads(parameters["Payload"])
        value = self._call(env, parameters["FunctionName"], payload)
        env.stack.append({"StatusCode": 200, "Payload": value})

    def _for_service(self) -> Callable[..., None]:
        def evaluate(task: Any, env: Any, normalised_parameters: Any, **_: Any) -> None:
            parameters = _plain(normalised_parameters)
            env.stack.append(self._call(env, task.resource.resource_arn, parameters))

        return evaluate

    def _call(self, env: Any, resource: str, payload: Json) -> Json:
        state = env.states.context_object.context_object_data["State"]["Name"]
        try:
            return json.loads(compact(self.scripts.answer(state, resource, payload)))
        except TaskFailed as failure:
            details = TaskFailedEventDetails(error=failure.error, cause=failure.cause)
            raise FailureEventException(
                FailureEvent(
                    env=env,
                    error_name=_error_name(failure.error),
                    event_type=HistoryEventType.TaskFailed,
                    event_details=EventDetails(taskFailedEventDetails=details),  # type: ignore[typeddict-item]
                )
            ) from failure


def _refusal(error: ClientError) -> Json:
    return {
        "code": "InvalidDefinition",
        "severity": "error",
        "message": error.response["Error"]["Message"],
        "pointer": "",
    }


def _facts(described: Mapping[str, Any]) -> dict[str, Json]:
    facts: dict[str, Json] = {"status": described["status"]}
    if "output" in described:
        facts["output"] = _output(described["output"])
    for name in ("error", "cause"):
        if described.get(name):
            facts[name] = described[name]
    return facts


def _error_name(name: str) -> CustomErrorName | StatesErrorName:
    try:
        return StatesErrorName(StatesErrorNameType.from_name(name))
    except ValueError:
        return CustomErrorName(name)


def _output(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:  # moto does not encode an output that is a text
        return text


def _subclasses(parent: type[Any]) -> Iterator[type[Any]]:
    for child in parent.__subclasses__():
        yield child
        yield from _subclasses(child)


def _plain(value: Any) -> Json:
    """Return parameters as JSON: moto has encoded payloads already."""
    if isinstance(value, bytes):
        return json.loads(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def main() -> None:
    """Answer the requests of standard input."""
    logging.disable()
    with MotoInterpreter() as interpreter:
        serve(sys.stdin, sys.stdout, partial(_observe, interpreter))


def _observe(interpreter: MotoInterpreter, request: Mapping[str, Json]) -> dict[str, Json]:
    try:
        return interpreter.observe(request)
    except Exception as error:  # whatever the interpreter raises is a failure of this case
        return {"crash": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()
