"""Routes of executions: start, list, describe, cancel, redrive, resume, fork, delete."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from anyio import to_thread
from fastapi import APIRouter, Query

from asl.core.errors import AslError
from asl.core.values import Json
from asl.runs.feedback import give_feedback
from asl.server.actions import (
    cancel_execution,
    delete_execution,
    fork_execution,
    redrive_execution,
    resume_execution,
    start_execution,
)
from asl.server.api.access import Operator, Viewer
from asl.server.api.documents import optional_document
from asl.server.api.models import (
    ExecutionDetail,
    ExecutionPage,
    ExecutionSummary,
    Feedback,
    FeedbackAnswer,
    ForkRequest,
    NewExecution,
    Reason,
    RedriveRequest,
    ResumeRequest,
    reason_of,
)
from asl.server.api.requests import listed_request
from asl.server.audit import record_action
from asl.server.views import execution_key, find_execution, format_time
from asl.states.effects import ABSENT
from asl.stores.executions import ExecutionFilter, StoredExecution

__all__ = ["router"]

router = APIRouter(tags=["executions"])
_SHOWN = 100
"""Number of children and requests in the description of an execution."""
Status = Literal["RUNNING", "PAUSED", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]


@router.post("/executions", status_code=201)
async def start(body: NewExecution, access: Operator) -> ExecutionSummary:
    """Start an execution of a published document or of a text; a runner performs it.

    The same name, document and input again return the same execution.
    """
    stored = await start_execution(
        access, document=body.document, text=body.text, data=body.input, name=body.name
    )
    return summary(stored)


@router.get("/executions")
def list_page(
    access: Viewer,
    status: Status | None = None,
    workflow: str | None = None,
    text: Annotated[str | None, Query(max_length=200)] = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: Annotated[str | None, Query(pattern=r"^\d{1,19}$")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> ExecutionPage:
    """List root executions, the newest first.

    `text` is a part of the name, the workflow, the error or the cause.
    """
    wanted = ExecutionFilter(
        status,
        workflow,
        text,
        None if since is None else since.timestamp(),
        None if until is None else until.timestamp(),
    )
    position = None if before is None else int(before)
    rows, following = access.store.search(wanted, before=position, limit=limit)
    found = [summary(each) for each in rows]
    return ExecutionPage(executions=found, next=None if following is None else str(following))


@router.get("/executions/{key}")
def describe(key: str, access: Viewer) -> ExecutionDetail:
    """Show an execution with its data, requests and children."""
    store, stored = access.store, find_execution(access.store, key)
    result = store.result(stored.name, with_history=False)
    children = store.descendants(stored.name)[:_SHOWN]
    pending = store.pending(stored.name, limit=_SHOWN)
    return ExecutionDetail.model_validate({
        **summary(stored).model_dump(),
        "arn": result.id,
        "input": store.input(stored.name),
        "output": result.output,
        "redrives": stored.redrives,
        "usage": result.usage,
        "needs": store.needs(stored.name),
        "pending": [listed_request(store, each) for each in pending],
        "tokens": store.pending_callbacks(stored.name, limit=_SHOWN),
        "checkpoints": [each.to_json() for each in store.checkpoints(stored.name)],
        "children": [summary(each) for each in children],
    })  # fmt: skip


@router.post("/executions/{key}/cancel", status_code=202)
def cancel(key: str, access: Operator, body: Reason | None = None) -> ExecutionSummary:
    """Stop an execution; its status becomes `ABORTED` within a second."""
    return summary(cancel_execution(access, key, reason_of(body)))


@router.post("/executions/{key}/redrive", status_code=202)
def redrive(key: str, access: Operator, body: RedriveRequest | None = None) -> ExecutionSummary:
    """Continue a failed execution from the states that failed; a runner performs it."""
    corrected = None if body is None else optional_document(access.project, body)
    return summary(redrive_execution(access, key, reason_of(body), corrected))


@router.post("/executions/{key}/resume", status_code=202)
def resume(key: str, access: Operator, body: ResumeRequest) -> ExecutionSummary:
    """Continue an ended execution from one of its checkpoints; a runner performs it."""
    return summary(resume_execution(access, key, body.from_checkpoint, body.reason))


@router.post("/executions/{key}/fork", status_code=201)
def fork(key: str, access: Operator, body: ForkRequest) -> ExecutionSummary:
    """Start a copy of an execution at one of its states; the other one stays as it is."""
    data = body.input if "input" in body.model_fields_set else ABSENT
    return summary(fork_execution(access, key, body.at, body.reason, data=data, name=body.name))


@router.delete("/executions/{key}", status_code=204)
def delete(key: str, access: Operator, reason: str | None = None) -> None:
    """Delete an ended execution with its history."""
    delete_execution(access, key, reason)


@router.get("/executions/{key}/feedback")
def list_feedback(key: str, access: Viewer) -> Feedback:
    """List the questions of an execution to its user."""
    name = find_execution(access.store, key).name
    return Feedback(requests=access.store.result(name).feedback)


@router.post("/executions/{key}/feedback", status_code=201)
async def give(key: str, body: FeedbackAnswer, access: Viewer) -> dict[str, Json]:
    """Answer a feedback request; the answer is stored in the memory of the service.

    \f
    Raises:
        AslError: The service has no memory.
    """
    name = find_execution(access.store, key).name
    memory = access.project.bindings.get("memory")
    if memory is None:
        raise AslError("the service has no memory: start it with --memory")
    record = await to_thread.run_sync(
        lambda: give_feedback(
            access.store.result(name),
            body.feedback_id,
            body.answer,
            memory=memory,
            by=access.principal.user,
        )
    )
    record_action(access, "feedback.give", name, {"feedbackId": body.feedback_id})
    return record


def summary(stored: StoredExecution) -> ExecutionSummary:
    """Return the listed form of an execution."""
    return ExecutionSummary.model_validate({
        "id": execution_key(stored),
        "name": stored.name,
        "workflow": stored.workflow,
        "document": stored.document,
        "version": stored.version,
        "status": stored.status,
        "started": format_time(stored.started),
        "ended": format_time(stored.ended),
        "requestor": stored.requestor,
        "error": stored.error,
        "cause": stored.cause,
    })  # fmt: skip
