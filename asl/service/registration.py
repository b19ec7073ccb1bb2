"""Registration of documents as state machines, with the texts that they were written as."""

from __future__ import annotations

from typing import Any, Final

from asl.core.document import Document
from asl.core.values import Json, compact
from asl.executions.registrations import MACHINE
from asl.service.arns import RequestScope
from asl.service.operations import perform
from asl.service.service import StatesService
from asl.stores.resources import Resource, find_resource, put_resource

__all__ = ["register_document", "source_of"]

ROLE: Final = "role/local"
"""The role of state machines that were registered without one."""


async def register_document(
    service: StatesService,
    scope: RequestScope,
    name: str,
    document: Document,
    *,
    express: bool = False,
) -> Resource:
    """Create a state machine, or replace its definition, and return it.

    Args:
        service: The registry, with the rules that the document passes.
        scope: Account and region of its ARN.
        name: Its name.
        document: Its document.
        express: Whether it is an express workflow.

    Raises:
        ServiceError: The name or the definition is refused.
    """
    session, arn = service.store.session, f"{scope.prefix}:{MACHINE}:{name}"
    definition = compact(document.composed_value)
    if find_resource(session, arn) is None:
        request: dict[str, Json] = {
            "name": name,
            "definition": definition,
            "roleArn": f"arn:aws:iam::{scope.account}:{ROLE}",
            "type": "EXPRESS" if express else "STANDARD",
        }
        await perform(service, "CreateStateMachine", request, scope)
    else:
        update: dict[str, Json] = {"stateMachineArn": arn, "definition": definition}
        await perform(service, "UpdateStateMachine", update, scope)
    machine = find_resource(session, arn)
    assert machine is not None
    source = source_of(document, machine.body["document"])
    if machine.body.get("source") != source:
        machine = machine._replace(body={**machine.body, "source": source})
        put_resource(session, machine)
        session.flush()
    return machine


def source_of(document: Document, compiled: str) -> dict[str, Any] | None:
    """Return the text of a document for its registration; None if it is a part of a template.

    Args:
        document: The document.
        compiled: Hash of the compiled document that the text belongs to.
    """
    if document.resource is not None:
        return None
    return {
        "text": document.source.text,
        "file": document.source.name,
        "dialect": document.dialect,
        "document": compiled,
    }
