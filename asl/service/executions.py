"""Operations on executions: start, describe, list, stop, redrive."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from math import ceil
from typing import Any, Final

from asl.core.errors import AslError
from asl.core.json_messages import parser_message
from asl.core.json_text import read_data
from asl.core.values import Json, compact, json_equal
from asl.engine.execution import execution_id
from asl.executions.errors import ExecutionBusy, ExecutionExists, ExecutionNotRedrivable
from asl.executions.registrations import MACHINE, VERSION, Registration, resolve_arn
from asl.service.arns import Arn, RequestScope, parse_arn
from asl.service.errors import ServiceError, validation_error
from asl.service.map_runs import find_child, list_child_executions
from asl.service.pages import next_token, page_size, token_position
from asl.service.service import (
    StatesService,
    check_name,
    find_execution,
    known_execution,
    missing_machine,
)
from asl.service.state_machines import describe_revision
from asl.stores.executions import ENDED, LARGEST_NUMBER, StoredExecution
from asl.stores.resources import find_resource, list_resources

__all__ = [
    "describe_execution",
    "describe_state_machine_for_execution",
    "list_executions",
    "redrive_execution",
    "start_execution",
    "start_sync_execution",
    "stop_execution",
]

EXPRESS: Final = "EXPRESS"
OPEN: Final = ("RUNNING", "PAUSED")
"""Statuses of a store that AWS calls RUNNING."""
BILLED_MEMORY: Final = 64
"""Megabytes of the smallest billed express execution."""
BILLED: Final = 0.1
"""Seconds by which express executions are billed."""
_LOOK: Final = 0.01
"""Seconds between the first two looks at a stopping execution; later ones are rarer."""
_STOPPED: Final = 10.0
"""Seconds to wait for a stopping execution."""


# Start


def _resolve(service: StatesService, arn: str) -> Registration:
    """Return what an ARN of a state machine names.

    Raises:
        ServiceError: StateMachineDoesNotExist or InvalidArn.
    """
    parse_arn(arn, MACHINE)
    found = resolve_arn(service.store.session, arn)
    if found is None:
        raise missing_machine(arn)
    return found


def _read_input(text: str) -> Json:
    """Return the value of the input of an execution.

    Raises:
        ServiceError: InvalidExecutionInput.
    """
    try:
        return read_data(text)
    except ValueError:
        found = parser_message(text) if text.strip() else None
        reason = "Invalid execution input." if found is None else found.text
    message = f"Invalid State Machine Execution Input: '{reason}'"
    raise ServiceError("InvalidExecutionInput", message)


async def start_execution(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Start an execution, which a runner of the store performs.

    Raises:
        ServiceError: The request is refused.
    """
    found = _resolve(service, request["stateMachineArn"])
    express = found.revision["type"] == EXPRESS
    name = request.get("name") or service.new_id()
    check_name(name)
    data = _read_input(request.get("input", "{}"))
    arn = _execution_arn(service, found, name, express)
    known = None if express else known_execution(service, arn)
    if known is not None:
        if known.status not in OPEN or not json_equal(service.store.input(arn), data):
            raise _already_exists(arn)
        return {"executionArn": arn, "startDate": known.started}
    program = found.program(service.store.reader)
    try:
        await service.store.astart(
            program,
            data,
            name=arn,
            express=express,
            origin=found.origin(request.get("traceHeader")),
        )
    except ExecutionExists:  # started at the same time
        raise _already_exists(arn) from None
    return {"executionArn": arn, "startDate": service.store.get(arn).started}


def _execution_arn(service: StatesService, found: Registration, name: str, express: bool) -> str:
    arn = execution_id(found.machine.arn, name, express)
    return f"{arn.rpartition(':')[0]}:{service.new_id()}" if express else arn


def _already_exists(arn: str) -> ServiceError:
    return ServiceError("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'")


async def start_sync_execution(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Run an express execution and return its result.

    Raises:
        ServiceError: The request is refused.
    """
    found = _resolve(service, request["stateMachineArn"])
    if found.revision["type"] != EXPRESS:
        raise _wrong_type()
    name = request.get("name") or service.new_id()
    check_name(name)
    data = _read_input(request.get("input", "{}"))
    arn = _execution_arn(service, found, name, True)
    result = await service.store.arun(
        found.program(service.store.reader),
        data,
        name=arn,
        express=True,
        origin=found.origin(request.get("traceHeader")),
        **service.bindings,
    )
    stored = service.store.get(arn)
    ended = stored.ended or stored.started
    answer: dict[str, Json] = {
        "executionArn": arn,
        "stateMachineArn": found.machine.arn,
        "name": name,
        "startDate": stored.started,
        "stopDate": ended,
        "status": "FAILED" if stored.status == "ABORTED" else stored.status,
        "billingDetails": {
            "billedMemoryUsedInMB": BILLED_MEMORY,
            "billedDurationInMilliseconds": _billed(ended - stored.started),
        },
    }
    if stored.trace_header is not None:
        answer["traceHeader"] = stored.trace_header
    if request.get("includedData") == "METADATA_ONLY":
        return answer
    answer |= {"input": compact(data), "inputDetails": {"included": True}}
    if result.ok:
        answer |= {"output": compact(result.value), "outputDetails": {"included": True}}
    return answer | _failure(stored)


def _billed(seconds: float) -> int:
    return max(1, ceil(seconds / BILLED)) * 100


def _wrong_type() -> ServiceError:
    return ServiceError(
        "StateMachineTypeNotSupported",
        "This operation is not supported by this type of state machine",
    )


# Describe


def _status(stored: StoredExecution) -> str:
    return "RUNNING" if stored.status in OPEN else stored.status


def _failure(stored: StoredExecution) -> dict[str, Json]:
    found = {"error": stored.error, "cause": stored.cause}
    return {name: value for name, value in found.items() if value is not None}


def _named(stored: StoredExecution) -> dict[str, Json]:
    """Return the ARNs of version and alias of an execution."""
    found: dict[str, Json] = {"stateMachineArn": stored.workflow_id}
    if stored.version is not None:
        found["stateMachineVersionArn"] = f"{stored.workflow_id}:{stored.version}"
    if stored.alias is not None:
        found["stateMachineAliasArn"] = f"{stored.workflow_id}:{stored.alias}"
    return found


def _summary(stored: StoredExecution) -> dict[str, Json]:
    """Return what lists and descriptions have of an execution."""
    found: dict[str, Json] = {
        "executionArn": stored.name,
        "name": Arn(*parse_arn(stored.name, "execution")).rest,
        "status": _status(stored),
        "startDate": stored.started,
        "redriveCount": stored.redrives,
        **_named(stored),
    }
    if stored.ended is not None:
        found["stopDate"] = stored.ended
    if stored.redriven is not None:
        found["redriveDate"] = stored.redriven
    return found


async def describe_execution(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return an execution; of a child of a Map Run what its parent knows of it, without data."""
    child = find_child(service, request["executionArn"])
    if child is not None:
        is_failed = child["status"] in ("FAILED", "TIMED_OUT", "ABORTED")
        redrive = "REDRIVABLE_BY_MAP_RUN" if is_failed else "NOT_REDRIVABLE"
        return {**child, "redriveStatus": redrive}
    stored = find_execution(service, request["executionArn"])
    answer = {**_summary(stored), **_redrive_status(stored)}
    if stored.trace_header is not None:
        answer["traceHeader"] = stored.trace_header
    if request.get("includedData") == "METADATA_ONLY":
        return answer
    answer |= {
        "input": compact(service.store.input(stored.name)),
        "inputDetails": {"included": True},
    }
    if stored.status == "SUCCEEDED":
        output = service.store.output(stored.name)
        answer |= {"output": compact(output), "outputDetails": {"included": True}}
    return answer | _failure(stored)


def _redrive_status(stored: StoredExecution) -> dict[str, Json]:
    status = _status(stored)
    if status in ("FAILED", "TIMED_OUT", "ABORTED"):
        return {"redriveStatus": "REDRIVABLE"}
    return {
        "redriveStatus": "NOT_REDRIVABLE",
        "redriveStatusReason": f"Execution is {status} and cannot be redriven",
    }


async def describe_state_machine_for_execution(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return the revision of a state machine that an execution runs."""
    stored = find_execution(service, request["executionArn"])
    assert stored.workflow_id is not None
    session = service.store.session
    machine = find_resource(session, stored.workflow_id)
    versions = list_resources(session, VERSION, stored.workflow_id)
    bodies = [each.body for each in (*([machine] if machine else []), *versions)]
    same = [body for body in bodies if body["document"] == stored.document]
    program = service.store.program(stored.name)
    base: dict[str, Any] = {
        "definition": compact(program.document),
        "type": EXPRESS if stored.express else "STANDARD",
        "loggingConfiguration": {"level": "OFF", "includeExecutionData": False},
        "tracingConfiguration": {"enabled": False},
        "encryptionConfiguration": {"type": "AWS_OWNED_KEY"},
        "revisionId": None,
        "creationDate": stored.started,
        "updateDate": stored.started,
    }
    body = {**base, **(bodies[0] if bodies else {}), "definition": base["definition"]}
    body |= same[0] if same else {"revisionId": None}
    body |= {"roleArn": stored.role, "name": stored.workflow}
    answer = describe_revision(body, request.get("includedData") == "METADATA_ONLY")
    for member in ("type", "creationDate"):
        del answer[member]
    return {**answer, "stateMachineArn": stored.workflow_id, "updateDate": body["updateDate"]}


# List


async def list_executions(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return a page of the executions of a state machine, newest first.

    Raises:
        ServiceError: The request is refused.
    """
    if ("stateMachineArn" in request) == ("mapRunArn" in request):
        raise validation_error("Must specify exactly one of stateMachineArn and mapRunArn")
    if "mapRunArn" in request:
        return await list_child_executions(service, request)
    text = request["stateMachineArn"]
    arn, before = parse_arn(text, MACHINE), token_position(request)
    session = service.store.session
    machine, named = find_resource(session, arn.base), find_resource(session, text)
    if machine is None or named is None:
        raise missing_machine(text)
    if machine.body["type"] == EXPRESS:
        raise _wrong_type()
    size = page_size(request)
    found: list[StoredExecution] = []
    status = request.get("statusFilter")
    statuses = (*OPEN, *ENDED) if status is None else OPEN if status == "RUNNING" else (status,)
    last = LARGEST_NUMBER if before is None else before
    while len(found) <= size:
        page = service.store.executions_of(arn.base, statuses, last, size + 1)
        found += [each for each in page if _is_listed(each, arn.rest, request)]
        if len(page) <= size:
            break
        last = page[-1].number
    token = next_token(request, found[size - 1].number) if len(found) > size else None
    return {"executions": [_summary(each) for each in found[:size]], "nextToken": token}


def _is_listed(stored: StoredExecution, qualifier: str | None, request: Mapping[str, Any]) -> bool:
    """Return whether an execution meets the further filters of a list."""
    if qualifier is not None and qualifier not in (stored.version, stored.alias):
        return False
    wanted = request.get("redriveFilter")
    if stored.express or stored.status == "DAMAGED":
        return False
    return wanted is None or (wanted == "REDRIVEN") == (stored.redrives > 0)


# Stop and redrive


async def stop_execution(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Abort an execution."""
    stored = find_execution(service, request["executionArn"])
    if stored.status not in ENDED:
        try:
            service.store.cancel(stored.name, request.get("cause"), error=request.get("error"))
        except AslError:
            if service.store.get(stored.name).status not in ENDED:
                raise
        waited, look = 0.0, _LOOK
        while waited < _STOPPED and service.store.get(stored.name).status not in ENDED:
            await asyncio.sleep(look)
            waited, look = waited + look, 1.2 * look
    return {"stopDate": service.store.get(stored.name).ended or service.now()}


async def redrive_execution(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Continue a failed execution from its failed states; a runner performs it.

    Raises:
        ServiceError: The request is refused.
    """
    stored = find_execution(service, request["executionArn"])
    try:
        service.store.request_redrive(stored.name)
    except (ExecutionBusy, ExecutionNotRedrivable):
        why = f"Execution is {_status(stored)} and cannot be redriven"
        message = f"Execution is not redrivable: '{stored.name}': {why}"
        raise ServiceError("ExecutionNotRedrivable", message) from None
    return {"redriveDate": service.store.get(stored.name).redriven or service.now()}
