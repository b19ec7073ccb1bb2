"""Operations on versions and aliases of state machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asl.core.values import Json
from asl.executions.registrations import ALIAS, MACHINE, VERSION
from asl.service.arns import RequestScope, parse_arn
from asl.service.errors import ServiceError, invalid_arn, validation_error
from asl.service.pages import page_of
from asl.service.service import StatesService, find_machine
from asl.stores.resources import (
    Resource,
    delete_resource,
    find_resource,
    list_resources,
    put_resource,
)

__all__ = [
    "create_state_machine_alias",
    "delete_state_machine_alias",
    "delete_state_machine_version",
    "describe_state_machine_alias",
    "list_state_machine_aliases",
    "list_state_machine_versions",
    "publish",
    "publish_state_machine_version",
    "update_state_machine_alias",
]

MAX_VERSIONS: Final = 1000
MAX_ALIASES: Final = 100
"""Quotas of AWS for one state machine."""
_REVISION: Final = (
    *("definition", "document", "profile", "roleArn", "type", "revisionId"),
    *("loggingConfiguration", "tracingConfiguration", "encryptionConfiguration"),
)
"""Members of a state machine that a version preserves."""
INITIAL: Final = "INITIAL"
"""AWS's word for the revision of a state machine that was never updated."""


def publish(service: StatesService, machine: Resource, description: str | None) -> Resource:
    """Return the version of the current revision; it is published if it is not yet.

    Raises:
        ServiceError: ServiceQuotaExceededException.
    """
    session = service.store.session
    versions = list_resources(session, VERSION, machine.arn)
    latest = versions[-1] if versions else None
    if latest is not None and latest.body["revisionId"] == machine.body["revisionId"]:
        return latest
    if len(versions) >= MAX_VERSIONS:
        raise _quota(f"the state machine has {MAX_VERSIONS} versions")
    number = machine.body["versions"] + 1
    body = {member: machine.body[member] for member in _REVISION}
    body |= {"description": description, "creationDate": service.now()}
    version = Resource(f"{machine.arn}:{number}", VERSION, machine.arn, number, body)
    put_resource(session, version)
    put_resource(session, machine._replace(body={**machine.body, "versions": number}))
    return version


def _quota(reason: str) -> ServiceError:
    return ServiceError("ServiceQuotaExceededException", f"Service quota exceeded: {reason}")


# Versions


async def publish_state_machine_version(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Publish the current revision as a version; again, the same version.

    Raises:
        ServiceError: The request is refused.
    """
    machine = find_machine(service, request["stateMachineArn"])
    current, wanted = machine.body["revisionId"] or INITIAL, request.get("revisionId")
    if wanted is not None and wanted != current:
        raise ServiceError(
            "ConflictException",
            f"Failed to publish the State Machine version for revision {wanted}. The current "
            f"State Machine revision is {current}.",
        )
    version = publish(service, machine, request.get("description"))
    return {
        "stateMachineVersionArn": version.arn,
        "creationDate": version.body["creationDate"],
    }


async def list_state_machine_versions(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return a page of the versions of a state machine, newest first."""
    machine = find_machine(service, request["stateMachineArn"])
    versions = list_resources(service.store.session, VERSION, machine.arn)[::-1]
    page, token = page_of(request, versions)
    listed: list[Json] = [
        {"stateMachineVersionArn": each.arn, "creationDate": each.body["creationDate"]}
        for each in page
    ]
    return {"stateMachineVersions": listed, "nextToken": token}


async def delete_state_machine_version(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Delete a version that no alias refers to.

    Raises:
        ServiceError: The request is refused.
    """
    text = request["stateMachineVersionArn"]
    arn = parse_arn(text, MACHINE)
    if arn.rest is None or not arn.rest.isdecimal():
        raise validation_error(f"Invalid State Machine Version Arn: '{text}'")
    session = service.store.session
    users = [
        each.body["name"]
        for each in list_resources(session, ALIAS, arn.base)
        if text in _routed(each.body["routingConfiguration"])
    ]
    if users:
        raise ServiceError(
            "ConflictException",
            "Version to be deleted must not be referenced by an alias. Current list of aliases "
            f"referencing this version: [{', '.join(users)}]",
        )
    delete_resource(session, text)
    return {}


# Aliases


def _routed(routes: list[Mapping[str, Any]]) -> list[str]:
    return [route["stateMachineVersionArn"] for route in routes]


def _check_routes(service: StatesService, routes: list[Mapping[str, Any]]) -> str:
    """Check a routing configuration and return the ARN of its state machine.

    Raises:
        ServiceError: ValidationException or ResourceNotFound.
    """
    reason = "INVALID_ROUTING_CONFIGURATION"
    routed = _routed(routes)
    wrong = [text for text in routed if not _is_version(text)]
    if wrong:
        raise validation_error(
            "Routing configuration must contain state machine version ARNs. "
            f"Received: [{', '.join(wrong)}]",
            reason,
        )
    if sum(route["weight"] for route in routes) != 100:
        raise validation_error("Sum of routing configuration weights must be 100", reason)
    machines = {text.rpartition(":")[0] for text in routed}
    if len(set(routed)) < len(routed) or len(machines) > 1:
        raise validation_error(
            "Routing configuration must contain different versions of one state machine", reason
        )
    for text in routed:
        found = find_resource(service.store.session, text)
        if found is None or found.kind != VERSION:
            raise _not_found(text)
    return machines.pop()


def _is_version(text: str) -> bool:
    arn = parse_arn(text, MACHINE)
    return arn.rest is not None and arn.rest.isdecimal()


def _not_found(arn: str) -> ServiceError:
    return ServiceError("ResourceNotFound", f"Resource not found: '{arn}'")


def _alias(service: StatesService, text: str) -> Resource:
    """Return the alias of an ARN.

    Raises:
        ServiceError: ResourceNotFound or InvalidArn.
    """
    _check_alias(text)
    found = find_resource(service.store.session, text)
    if found is None or found.kind != ALIAS:
        raise _not_found(text)
    return found


def _check_alias(text: str) -> None:
    arn = parse_arn(text, MACHINE)
    if arn.rest is None or arn.rest.isdecimal():
        raise invalid_arn(f"Invalid alias ARN: {text}")


async def create_state_machine_alias(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Create an alias; the same request again returns the same alias.

    Raises:
        ServiceError: The request is refused.
    """
    session, routes = service.store.session, request["routingConfiguration"]
    machine = _check_routes(service, routes)
    name, description = request["name"], request.get("description")
    arn = f"{machine}:{name}"
    known = find_resource(session, arn)
    if known is not None:
        same = {"description": description, "routingConfiguration": routes}
        if any(known.body[member] != value for member, value in same.items()):
            raise ServiceError(
                "ConflictException",
                "Failed to create alias because an alias with the same name and a different "
                "routing configuration already exists.",
            )
        return {"stateMachineAliasArn": arn, "creationDate": known.body["creationDate"]}
    siblings = list_resources(session, ALIAS, machine)
    if len(siblings) >= MAX_ALIASES:
        raise _quota(f"the state machine has {MAX_ALIASES} aliases")
    now = service.now()
    body = {
        "name": name,
        "description": description,
        "routingConfiguration": routes,
        "creationDate": now,
        "updateDate": now,
    }
    number = 1 + max((each.number for each in siblings), default=0)
    put_resource(session, Resource(arn, ALIAS, machine, number, body))
    return {"stateMachineAliasArn": arn, "creationDate": now}


async def describe_state_machine_alias(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return an alias."""
    alias = _alias(service, request["stateMachineAliasArn"])
    found = {name: value for name, value in alias.body.items() if value is not None}
    return {"stateMachineAliasArn": alias.arn, **found}


async def update_state_machine_alias(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Change the description or the routes of an alias.

    Raises:
        ServiceError: The request is refused.
    """
    alias = _alias(service, request["stateMachineAliasArn"])
    members = ("description", "routingConfiguration")
    changes = {member: request[member] for member in members if member in request}
    if not changes:
        raise validation_error(
            "Either the description or the routingConfiguration must be specified",
            "MISSING_REQUIRED_PARAMETER",
        )
    routes = changes.get("routingConfiguration")
    if routes is not None and _check_routes(service, routes) != alias.owner:
        raise validation_error(
            "Routing configuration must contain versions of the state machine of the alias",
            "INVALID_ROUTING_CONFIGURATION",
        )
    now = service.now()
    body = {**alias.body, **changes, "updateDate": now}
    put_resource(service.store.session, alias._replace(body=body))
    return {"updateDate": now}


async def list_state_machine_aliases(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return a page of the aliases of a state machine, or of those that route to a version.

    Raises:
        ServiceError: The request is refused.
    """
    text = request["stateMachineArn"]
    arn = parse_arn(text, MACHINE)
    machine = find_machine(service, arn.base)
    aliases = list_resources(service.store.session, ALIAS, machine.arn)
    if arn.rest is not None:
        if find_resource(service.store.session, text) is None:
            raise _not_found(text)
        aliases = [each for each in aliases if text in _routed(each.body["routingConfiguration"])]
    page, token = page_of(request, aliases)
    listed: list[Json] = [
        {"stateMachineAliasArn": each.arn, "creationDate": each.body["creationDate"]}
        for each in page
    ]
    return {"stateMachineAliases": listed, "nextToken": token}


async def delete_state_machine_alias(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Delete an alias, if there is one."""
    text = request["stateMachineAliasArn"]
    _check_alias(text)
    delete_resource(service.store.session, text)
    return {}
