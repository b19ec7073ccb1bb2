"""What users do with executions, for the REST interface, the pages, schedules and webhooks."""

from __future__ import annotations

import os

from asl.core.errors import AslError
from asl.core.values import Json
from asl.engine.execution import execution_id
from asl.server.audit import record_action
from asl.server.documents import find_revision, read_text, registration_of
from asl.server.projects import Access, ServerProject
from asl.service.service import check_name
from asl.stores.executions import StoredExecution

__all__ = ["start_execution", "start_registered"]


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
    store = project.store
    found = registration_of(project, find_revision(project, reference))
    express = found.revision["type"] == "EXPRESS"
    chosen = name or os.urandom(16).hex()
    check_name(chosen)
    arn = execution_id(found.machine.arn, chosen, express)
    await store.astart(
        found.program(store.reader),
        data,
        name=arn,
        express=express,
        requestor=requestor,
        origin=found.origin(),
    )
    return store.get(arn)
