"""The state of the service that its operations share: a store, its clock and checked names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from asl.checks.aws import unreadable
from asl.core.diagnostics import InvalidDocument, Report
from asl.core.document import Document
from asl.core.lazy import lazy_pattern
from asl.core.profile import Profile
from asl.core.render.formats import aws_answer
from asl.core.values import Json
from asl.documents.checking import check
from asl.documents.compiling import compile
from asl.documents.loading import load
from asl.engine.execution import ARN, REGION
from asl.executions import ExecutionNotFound, Store
from asl.executions.registrations import MACHINE
from asl.program import Program
from asl.service.activity_polls import ActivityPolls
from asl.service.arns import parse_arn
from asl.service.errors import ServiceError
from asl.service.history_pages import HistoryPages
from asl.stores.executions import StoredExecution
from asl.stores.resources import Resource, find_resource

__all__ = [
    "ACCOUNT",
    "REGION",
    "StatesService",
    "check_name",
    "check_role",
    "find_execution",
    "find_machine",
    "invalid_definition",
    "known_execution",
    "missing_machine",
    "read_definition",
]

ACCOUNT: Final = ARN.rpartition(":")[2]
"""Account of requests that name none: that of templates and of runs without a service."""

_NAME = lazy_pattern(r"[^\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f\ufffe\uffff]+")
_ROLE = lazy_pattern(r"arn:aws[a-z-]*:iam::\d{12}:role/.+")


class StatesService:
    """Step Functions on a store.

    Args:
        store: The store of executions and registered resources.
        profile: Profile of registered definitions.
        tokens: Bindings that runs of single states use: `agents` and `resources`.
    """

    def __init__(
        self,
        store: Store,
        profile: str | Profile = "aws",
        bindings: Mapping[str, Any] | None = None,
    ) -> None:
        self.store = store
        self.profile = profile
        self.bindings = bindings or {}
        self.polls = ActivityPolls()
        self.histories = HistoryPages()

    def now(self) -> float:
        """Return the time of the store's clock in epoch seconds."""
        return self.store.clock.now()

    def new_id(self) -> str:
        """Return a new random id in the form of a UUID."""
        digits = os.urandom(16).hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def compile(self, definition: str, *, express: bool) -> Program:
        """Check and compile a definition.

        Raises:
            ServiceError: InvalidDefinition, with all diagnostics.
        """
        document = read_definition(definition)
        report = check(document, profile=self.profile, express=express)
        if not report.ok:
            raise invalid_definition(report)
        return compile(document, profile=self.profile)


def read_definition(definition: str) -> Document:
    """Return the document of a definition, which is JSON text.

    Raises:
        ServiceError: InvalidDefinition.
    """
    try:
        return load(definition.encode(errors="surrogatepass"), format="json")
    except InvalidDocument as refusal:
        raise invalid_definition(unreadable(refusal.report)) from None


def invalid_definition(report: Report) -> ServiceError:
    """Return the refusal of a definition with these diagnostics."""
    found = aws_answer(report)["diagnostics"]
    faults = [_fault(each) for each in found if each["severity"] == "ERROR"]
    own = [f"{each.code}: {each.message} at {each.pointer or '/'}" for each in report.errors]
    listed = ", ".join(faults or own)  # AWS has no words for faults of states of ours
    return ServiceError("InvalidDefinition", f"Invalid State Machine Definition: '{listed}'")


def _fault(diagnostic: Mapping[str, Json]) -> str:
    text = f"{diagnostic['code']}: {diagnostic['message']}"
    return f"{text} at {diagnostic['location']}" if "location" in diagnostic else text


def check_name(name: str) -> None:
    """Check the name of a state machine, an activity or an execution.

    Raises:
        ServiceError: InvalidName.
    """
    if not _NAME.fullmatch(name):
        raise ServiceError("InvalidName", f"Invalid Name: '{name}'")


def check_role(arn: str) -> None:
    """Check the ARN of a role.

    Raises:
        ServiceError: InvalidArn.
    """
    if not _ROLE.fullmatch(arn):
        raise ServiceError("InvalidArn", f"Invalid Role Arn: '{arn}'")


def known_execution(service: StatesService, arn: str) -> StoredExecution | None:
    """Return the execution of an ARN, None without one."""
    try:
        return service.store.get(arn)
    except ExecutionNotFound:
        return None


def find_execution(service: StatesService, text: str, *kinds: str) -> StoredExecution:
    """Return the execution of an ARN.

    Raises:
        ServiceError: ExecutionDoesNotExist or InvalidArn.
    """
    parse_arn(text, *(kinds or ("execution",)))
    found = known_execution(service, text)
    if found is None or found.workflow_id is None:
        raise ServiceError("ExecutionDoesNotExist", f"Execution Does Not Exist: '{text}'")
    return found


def missing_machine(arn: str) -> ServiceError:
    """Return the refusal of an unknown state machine."""
    return ServiceError("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{arn}'")


def find_machine(service: StatesService, arn: str) -> Resource:
    """Return the state machine of an ARN without version or alias.

    Raises:
        ServiceError: StateMachineDoesNotExist or InvalidArn.
    """
    parse_arn(arn, MACHINE)
    found = find_resource(service.store.session, arn)
    if found is None or found.kind != MACHINE:
        raise missing_machine(arn)
    return found
