"""Operations on state machines: create, update, describe, list, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asl.core.values import Json
from asl.documents.checking import variable_references
from asl.executions.registrations import ALIAS, MACHINE, VERSION
from asl.service.arns import Arn, RequestScope, parse_arn
from asl.service.configurations import encryption_of, logging_of, tracing_of
from asl.service.errors import ServiceError, validation_error
from asl.service.pages import page_of
from asl.service.service import (
    StatesService,
    check_name,
    check_role,
    find_machine,
    missing_machine,
)
from asl.service.tags import check_tags, tags_of
from asl.service.versions import publish
from asl.stores.resources import (
    Resource,
    delete_resource,
    find_resource,
    list_resources,
    put_resource,
)

__all__ = [
    "create_state_machine",
    "delete_state_machine",
    "describe_revision",
    "describe_state_machine",
    "list_state_machines",
    "update_state_machine",
]

STANDARD: Final = "STANDARD"
_REVISED: Final = ("definition", "roleArn", "loggingConfiguration", "tracingConfiguration")
_SAME: Final = ("definition", "type", "loggingConfiguration", "tracingConfiguration")
"""Members by which a repeated creation is recognized."""


async def create_state_machine(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Register a state machine; the same request again returns the same state machine.

    Raises:
        ServiceError: The request is refused.
    """
    session, name = service.store.session, request["name"]
    check_name(name)
    if "versionDescription" in request and not request.get("publish"):
        raise validation_error("Version description can only be set when publish is true")
    check_role(request["roleArn"])
    kind = request.get("type", STANDARD)
    revision = {
        "definition": request["definition"],
        "roleArn": request["roleArn"],
        "type": kind,
        "loggingConfiguration": logging_of(request),
        "tracingConfiguration": tracing_of(request),
        "encryptionConfiguration": encryption_of(request),
    }
    arn = f"{scope.prefix}:{MACHINE}:{name}"
    known = find_resource(session, arn)
    if known is not None:
        if any(known.body[member] != revision[member] for member in _SAME):
            raise ServiceError(
                "StateMachineAlreadyExists", f"State Machine Already Exists: '{arn}'"
            )
        return _created(service, known, request)
    tags = tags_of(request)
    check_tags(tags)
    program = service.compile(request["definition"], express=kind == "EXPRESS")
    now = service.now()
    body = {
        **revision,
        "document": service.store.reader.put_program(program),
        "profile": program.profile.name,
        "name": name,
        "creationDate": now,
        "updateDate": now,
        "revisionId": None,
        "tags": tags,
        "versions": 0,
    }
    siblings = list_resources(session, MACHINE, scope.prefix)
    number = 1 + max((each.number for each in siblings), default=0)
    machine = Resource(arn, MACHINE, scope.prefix, number, body)
    put_resource(session, machine)
    return _created(service, machine, request)


def _created(
    service: StatesService, machine: Resource, request: Mapping[str, Any]
) -> dict[str, Json]:
    answer: dict[str, Json] = {
        "stateMachineArn": machine.arn,
        "creationDate": machine.body["creationDate"],
    }
    if request.get("publish"):
        version = publish(service, machine, request.get("versionDescription"))
        answer["stateMachineVersionArn"] = version.arn
    return answer


async def update_state_machine(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Change the current revision of a state machine.

    Raises:
        ServiceError: The request is refused.
    """
    machine = find_machine(service, request["stateMachineArn"])
    if not any(member in request for member in (*_REVISED, "encryptionConfiguration")):
        raise ServiceError(
            "MissingRequiredParameter",
            "Either the definition, the role ARN, the LoggingConfiguration, or the "
            "TracingConfiguration must be specified",
        )
    if "versionDescription" in request and not request.get("publish"):
        raise validation_error("Version description can only be set when publish is true")
    changes = _changes(request)
    body, now = machine.body, service.now()
    if any(body[member] != value for member, value in changes.items()):
        if "definition" in changes:
            express = body["type"] == "EXPRESS"
            program = service.compile(changes["definition"], express=express)
            changes["document"] = service.store.reader.put_program(program)
            changes["profile"] = program.profile.name
        changes["revisionId"] = service.new_id()
    machine = machine._replace(body={**body, **changes, "updateDate": now})
    put_resource(service.store.session, machine)
    answer: dict[str, Json] = {"updateDate": now}
    if machine.body["revisionId"] is not None:
        answer["revisionId"] = machine.body["revisionId"]
    if request.get("publish"):
        version = publish(service, machine, request.get("versionDescription"))
        answer["stateMachineVersionArn"] = version.arn
    return answer


def _changes(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a revision that a request sets."""
    changes: dict[str, Any] = {}
    for member in ("definition", "roleArn"):
        if member in request:
            changes[member] = request[member]
    if "roleArn" in changes:
        check_role(changes["roleArn"])
    for member, read in (
        ("loggingConfiguration", logging_of),
        ("tracingConfiguration", tracing_of),
        ("encryptionConfiguration", encryption_of),
    ):
        if member in request:
            changes[member] = read(request)
    return changes


async def describe_state_machine(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return a state machine, or one of its versions.

    Raises:
        ServiceError: The request is refused.
    """
    text = request["stateMachineArn"]
    arn = parse_arn(text, MACHINE)
    session = service.store.session
    found = find_resource(session, text)
    if found is None or found.kind == ALIAS:
        raise missing_machine(text)
    machine = find_resource(session, arn.base)
    assert machine is not None
    if found.kind == VERSION:
        body = {**machine.body, **found.body, "name": machine.body["name"]}
        answer = describe_revision(body, _only_metadata(request))
        answer["creationDate"] = found.body["creationDate"]
        if found.body.get("description") is not None:
            answer["description"] = found.body["description"]
    else:
        answer = describe_revision(machine.body, _only_metadata(request))
    return {**answer, "stateMachineArn": text, "status": "ACTIVE"}


def _only_metadata(request: Mapping[str, Any]) -> bool:
    return request.get("includedData") == "METADATA_ONLY"


def describe_revision(body: Mapping[str, Any], only_metadata: bool) -> dict[str, Json]:
    """Return the description of a revision of a state machine."""
    members = (
        *("name", "definition", "roleArn", "type", "creationDate"),
        *("loggingConfiguration", "tracingConfiguration", "encryptionConfiguration"),
    )
    found: dict[str, Json] = {member: body[member] for member in members}
    if body["revisionId"] is not None:
        found["revisionId"] = body["revisionId"]
    references = variable_references(body["definition"].encode(errors="surrogatepass"))
    if references:
        found["variableReferences"] = references
    if only_metadata:
        del found["definition"]
    return found


async def list_state_machines(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return a page of the state machines, by name."""
    machines = list_resources(service.store.session, MACHINE, scope.prefix)
    page, token = page_of(request, sorted(machines))
    members = ("name", "type", "creationDate")
    listed: list[Json] = [
        {"stateMachineArn": each.arn, **{member: each.body[member] for member in members}}
        for each in page
    ]
    return {"stateMachines": listed, "nextToken": token}


async def delete_state_machine(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Delete a state machine with its versions and aliases; its executions continue.

    Raises:
        ServiceError: The request is refused.
    """
    text = request["stateMachineArn"]
    arn: Arn = parse_arn(text, MACHINE)
    if arn.rest is not None:
        raise validation_error(f"API does not support qualified ARNs: {text}")
    session = service.store.session
    for kind in (VERSION, ALIAS):
        for each in list_resources(session, kind, arn.base):
            delete_resource(session, each.arn)
    delete_resource(session, arn.base)
    return {}
