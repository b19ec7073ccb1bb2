"""Registered state machines that states start: workflows ask workers, these the registry."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TypedDict

from temporalio.client import Client

from asl.compiler import compile_workflow
from asl.core.values import Json
from asl.documents.loading import resolve_profile
from asl.effects.child_execution import StartRequest
from asl.engine.agent import Call
from asl.executions.execution_reader import ExecutionReader
from asl.executions.registrations import resolve_arn
from asl.program import Program
from asl.stores.executions import UNREGISTERED, ExecutionOrigin
from asl.stores.session import ThreadSessions
from asl.temporal.payloads import pack, unpack
from asl.temporal.registry.connection import RegistryConnection
from asl.temporal.registry.copies import RegistryCopy

__all__ = ["FoundMachine", "MachineFinder", "RegisteredMachines"]


class FoundMachine(TypedDict):
    """A registered state machine, version or alias."""

    name: str
    document: str
    """Its packed document."""
    profile: str
    role: str | None


class MachineFinder:
    """Finds registered state machines, in a worker.

    Args:
        client: The client.
        queue: Task queue of the executions.
    """

    def __init__(self, client: Client, queue: str) -> None:
        self._registry = RegistryConnection(client, queue)
        self._copy = RegistryCopy()
        self._reader = ExecutionReader(ThreadSessions(self._copy), lambda: 0.0)
        self._version = -1

    async def find(self, arn: str) -> FoundMachine | None:
        """Return what an ARN names; None for nothing.

        Raises:
            StoreError: The registry does not answer.
        """
        changes = await self._registry.changes(self._version)
        self._copy.apply(changes)
        self._version = changes["version"]
        found = resolve_arn(self._reader.session, arn)
        if found is None:
            return None
        program = found.program(self._reader)
        return FoundMachine(
            name=program.name,
            document=pack(program.document),
            profile=program.profile.name,
            role=found.revision["roleArn"],
        )


class RegisteredMachines:
    """The state machines that the states of a workflow start.

    Args:
        find: Asks a worker for what an ARN names.
    """

    def __init__(self, find: Callable[[str], Awaitable[str]]) -> None:
        self._find = find
        self._visits: dict[tuple[str, str], Program | None] = {}
        """Programs by the visit of a state and the ARN: as it was when the visit began."""
        self._programs: dict[str, Program] = {}
        self._roles: dict[str, str | None] = {}
        """Roles by the ARN of the state machine."""

    async def program(self, arn: str, call: Call) -> Program | None:
        """Return the program that an ARN names; None for nothing.

        Raises:
            StateError: The registry cannot be reached.
            Suspension: The next run of the workflow looks for it.
        """
        visit = call.at.visit_key, arn
        if visit not in self._visits:
            self._visits[visit] = self._read(arn, await self._find(arn))
        return self._visits[visit]

    def _read(self, arn: str, text: str) -> Program | None:
        found: FoundMachine | None = json.loads(text)
        if found is None:
            return None
        if text not in self._programs:
            document: Json = unpack(found["document"])
            profile = resolve_profile(found["profile"])
            self._programs[text] = compile_workflow(document, profile, found["name"])
        self._roles[":".join(arn.split(":")[:7])] = found["role"]
        return self._programs[text]

    def origin(self, request: StartRequest) -> ExecutionOrigin:
        """Return the registered state machine of an execution to start."""
        if request.workflow_id not in self._roles:
            return UNREGISTERED
        return ExecutionOrigin(request.workflow_id, self._roles[request.workflow_id])
