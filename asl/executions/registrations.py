"""Registered state machines: the revision, version or alias that an ARN names."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from asl.executions.execution_reader import ExecutionReader
from asl.program import Program
from asl.stores.executions import ExecutionOrigin
from asl.stores.resources import Resource, find_resource
from asl.stores.session import Session

__all__ = ["ALIAS", "MACHINE", "VERSION", "Registration", "registered_program", "resolve_arn"]

MACHINE: Final = "stateMachine"
VERSION: Final = "stateMachineVersion"
ALIAS: Final = "stateMachineAlias"
"""Kinds of resources."""


class Registration(NamedTuple):
    """What an ARN of a state machine names.

    Attributes:
        machine: The state machine.
        revision: Members of the revision to run: `definition`, `document` (the hash of the compiled
            one), `profile`, `roleArn`, `type`, ...
        version: Number of the version, None for the current revision.
        alias: Name of the alias, None without one.
    """

    machine: Resource
    revision: Mapping[str, Any]
    version: str | None = None
    alias: str | None = None

    def origin(self, trace_header: str | None = None) -> ExecutionOrigin:
        """Return the origin of an execution of it."""
        role = self.revision["roleArn"]
        return ExecutionOrigin(self.machine.arn, role, self.version, self.alias, trace_header)

    def program(self, reader: ExecutionReader) -> Program:
        """Return its program, named like the state machine."""
        name = self.machine.body["name"]
        return reader.stored_program(self.revision["document"], self.revision["profile"], name)


def resolve_arn(session: Session, arn: str) -> Registration | None:
    """Return what an ARN of a state machine, a version or an alias names; None for nothing.

    An alias chooses one of its versions by their weights.
    """
    found = find_resource(session, arn)
    if found is None:
        return None
    if found.kind == MACHINE:
        return Registration(found, found.body)
    machine = find_resource(session, found.owner)
    if machine is None:
        return None
    if found.kind == VERSION:
        return Registration(machine, found.body, arn.rpartition(":")[2])
    routes = found.body["routingConfiguration"]
    weights = [route["weight"] for route in routes]
    (route,) = random.choices(routes, weights)
    version = find_resource(session, route["stateMachineVersionArn"])
    if version is None:
        return None
    return Registration(machine, version.body, version.arn.rpartition(":")[2], found.body["name"])


def registered_program(reader: ExecutionReader, arn: str) -> Program | None:
    """Return the program that an ARN names, None for an unknown one."""
    found = resolve_arn(reader.session, arn)
    return None if found is None else found.program(reader)
