"""What users do with executions, for the REST interface, the pages, schedules and webhooks."""

from __future__ import annotations

import os

from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.values import Json
from asl.engine.execution import execution_id
from asl.executions import Store
from asl.executions.registrations import Registration
from asl.server.audit import record_action
from asl.server.documents import find_document, find_revision, read_text, registration_of
from asl.server.projects import Access, ServerProject
from asl.server.views import find_execution
from asl.service.operations import perform
from asl.service.service import check_name
from asl.states.effects import ABSENT
from asl.stores.executions import StoredExecution

__all__ = [
    "arn_of",
    "cancel_execution",
    "delete_document",
    "delete_execution",
    "fork_execution",
    "redrive_execution",
    "resume_execution",
    "start_execution",
    "start_registered",
    "start_registration",
]


async def start_execution(
    access: Access, *, document: str | None, text: str | None, data: Json, name: str | None
) -> StoredExecution:
    """Start an execution of a published document, or of a text.

    Args:
        access: The project, and who starts it.
        document: Reference of a published document; None for a text.
        text: Text of a document; None for a published one.
        data: The input.
        name: Name of the execution; random by default.

    Raises:
        AslError: Neither or both of document and text are given.
        NotFound: There is no such document.
        ExecutionExists: The name belongs to an execution with another document or input.
        InvalidDocument: The text has errors.
    """
    project, user = access.project, access.principal.user
    if (document is None) == (text is None):
        raise AslError("give either 'document' or 'text'")
    if document is not None:
        stored = await start_registered(project, document, data, name=name, requestor=user)
    else:
        loaded = read_text(text or "")
        handle = await project.store.astart(loaded, data, name=name, requestor=user)
        stored = project.store.get(handle.name)
    record_action(access, "execution.start", stored.name, {"workflow": stored.workflow})
    return stored


async def start_registered(
    project: ServerProject, reference: str, data: Json, *, name: str | None, requestor: str | None
) -> StoredExecution:
    """Start an execution of a published document.

    Args:
        project: The project.
        reference: `NAME`, `NAME:VERSION` or a hash.
        data: The input.
        name: Name of the execution; random by default.
        requestor: Name of the user who starts it.

    Raises:
        NotFound: There is no such document.
        ServiceError: The name is not allowed.
        ExecutionExists: The name belongs to an execution with another document or input.
    """
    found = registration_of(project, find_revision(project, reference))
    return await start_registration(project.store, found, data, name=name, requestor=requestor)


def arn_of(found: Registration, name: str) -> str:
    """Return the ARN of an execution of a registered document."""
    return execution_id(found.machine.arn, name, found.revision["type"] == "EXPRESS")


async def start_registration(
    store: Store, found: Registration, data: Json, *, name: str | None, requestor: str | None
) -> StoredExecution:
    """Start an execution of a registered document that was looked up.

    Args:
        store: The store.
        found: The revision.
        data: The input.
        name: Name of the execution; random by default.
        requestor: Name of the user who starts it.

    Raises:
        ServiceError: The name is not allowed.
        ExecutionExists: The name belongs to an execution with another document or input.
    """
    chosen = name or os.urandom(16).hex()
    check_name(chosen)
    arn = arn_of(found, chosen)
    await store.astart(
        found.program(store.reader),
        data,
        name=arn,
        express=found.revision["type"] == "EXPRESS",
        requestor=requestor,
        origin=found.origin(),
    )
    return store.get(arn)


def cancel_execution(access: Access, key: str, reason: str | None) -> StoredExecution:
    """Stop an execution; its status becomes `ABORTED` within a second.

    Args:
        access: The project, and who stops it.
        key: The execution.
        reason: Why, for its history and the audit log.

    Raises:
        ExecutionNotFound: There is no such execution.
        AslError: It has ended, or another execution started it.
    """
    stored = find_execution(access.store, key)
    access.store.cancel(stored.name, reason)
    record_action(access, "execution.cancel", stored.name, reason=reason)
    return access.store.get(stored.name)


def redrive_execution(
    access: Access, key: str, reason: str | None, document: Document | None = None
) -> StoredExecution:
    """Continue a failed execution from the states that failed; a runner performs it.

    Args:
        access: The project, and who continues it.
        key: The execution.
        reason: Why, for the audit log.
        document: A corrected document; by default the same.

    Raises:
        ExecutionNotFound: There is no such execution.
        ExecutionNotRedrivable: It cannot be redriven.
        InvalidDocument: The document has errors.
    """
    stored = find_execution(access.store, key)
    access.store.request_redrive(stored.name, document=document)
    details: dict[str, Json] = {"corrected": document is not None}
    record_action(access, "execution.redrive", stored.name, details, reason=reason)
    return access.store.get(stored.name)


def resume_execution(
    access: Access, key: str, checkpoint: str, reason: str | None
) -> StoredExecution:
    """Continue an ended execution from one of its checkpoints; a runner performs it.

    Raises:
        ExecutionNotFound: There is no such execution.
        CheckpointRefused: It cannot continue from the checkpoint.
    """
    stored = find_execution(access.store, key)
    access.store.request_resume(stored.name, checkpoint)
    details: dict[str, Json] = {"fromCheckpoint": checkpoint}
    record_action(access, "execution.resume", stored.name, details, reason=reason)
    return access.store.get(stored.name)


def fork_execution(
    access: Access,
    key: str,
    at: str,
    reason: str | None,
    *,
    data: Json = ABSENT,
    name: str | None = None,
) -> StoredExecution:
    """Start a copy of an execution at one of its states; the other one stays as it is.

    Args:
        access: The project, and who starts it.
        key: The other execution.
        at: `STATE` for its latest visit, `STATE#2` for the second one.
        reason: Why, for the audit log.
        data: Input of the state; by default the original one.
        name: Name of the new execution; random by default.

    Raises:
        ExecutionNotFound: There is no such execution.
        ExecutionExists: The name is taken.
        AslError: There is no such visit.
    """
    stored = find_execution(access.store, key)
    handle = access.store.fork(stored.name, at, input=data, new_name=name)
    details: dict[str, Json] = {"at": at, "new": handle.name}
    record_action(access, "execution.fork", stored.name, details, reason=reason)
    return access.store.get(handle.name)


def delete_execution(access: Access, key: str, reason: str | None) -> None:
    """Delete an ended execution with its history.

    Raises:
        ExecutionNotFound: There is no such execution.
        AslError: It has not ended.
    """
    stored = find_execution(access.store, key)
    access.store.delete(stored.name)
    record_action(access, "execution.delete", stored.name, reason=reason)


async def delete_document(access: Access, name: str, reason: str | None) -> None:
    """Delete a document with its versions; its executions continue.

    Raises:
        NotFound: There is no such document.
    """
    project = access.project
    request = {"stateMachineArn": find_document(project, name).arn}
    await perform(project.service, "DeleteStateMachine", request, project.scope)
    record_action(access, "document.delete", name, reason=reason)
