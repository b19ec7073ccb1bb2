"""Routes of requests and answers, and of task tokens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from asl.core.errors import AslError
from asl.core.values import Json, compact
from asl.executions import Store
from asl.server.answers import give_answer
from asl.server.api.access import Approver, Operator, Viewer
from asl.server.api.models import (
    AnswerBatch,
    AnswerRequest,
    AnswerResult,
    RequestModel,
    RequestPage,
    TokenAnswer,
    TokenPage,
)
from asl.server.audit import record_action
from asl.server.projects import Access
from asl.server.views import execution_key, find_execution, request_id_of, request_key

__all__ = ["router"]

router = APIRouter(tags=["requests"])
Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("/requests")
def list_page(
    access: Viewer, execution: str | None = None, after: str | None = None, limit: Limit = 50
) -> RequestPage:
    """List the open requests, the oldest first; of one execution and its children, or of all."""
    store = access.store
    name = None if execution is None else find_execution(store, execution).name
    position = None if after is None else request_id_of(after)
    found = store.pending(name, limit=limit + 1, after=position)
    page = [listed_request(store, each) for each in found[:limit]]
    return RequestPage(requests=page, next=page[-1].id if len(found) > limit else None)


@router.get("/requests/{key}")
def describe(key: str, access: Viewer) -> RequestModel:
    """Show a request, open or closed."""
    return listed_request(access.store, access.store.request(request_id_of(key)))


@router.post("/requests/{key}/answer")
def answer(key: str, body: AnswerRequest, access: Approver) -> AnswerResult:
    """Answer a request; a runner continues the execution."""
    return AnswerResult(id=key, record=give_answer(access, request_id_of(key), _fields(body)))


@router.post("/answers")
def answer_batch(body: AnswerBatch, access: Approver) -> list[AnswerResult]:
    """Answer several requests alike; each is accepted or refused by itself."""
    return [_attempt(access, key, _fields(body.answer)) for key in body.ids]


def _attempt(access: Access, key: str, fields: dict[str, Json]) -> AnswerResult:
    try:
        return AnswerResult(id=key, record=give_answer(access, request_id_of(key), fields))
    except AslError as refusal:
        return AnswerResult(id=key, record=None, problem=str(refusal))


def _fields(body: AnswerRequest) -> dict[str, Json]:
    """Return the fields of an answer as `Store.answer` takes them."""
    given: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    more = given.pop("more", {})
    return {**more, **{name: value for name, value in given.items() if value is not None}}


@router.get("/tokens")
def list_tokens(
    access: Operator, execution: str | None = None, after: str | None = None, limit: Limit = 50
) -> TokenPage:
    """List the tasks that wait for the answer to their token, the oldest first."""
    name = None if execution is None else find_execution(access.store, execution).name
    found = access.store.pending_callbacks(name, limit=limit + 1, after=after)
    following = str(found[limit - 1]["taskToken"]) if len(found) > limit else None
    return TokenPage(tokens=found[:limit], next=following)


@router.post("/tokens/answer", status_code=204)
def answer_token(body: TokenAnswer, access: Operator) -> None:
    """Answer a task token with an output, an error or a heartbeat.

    \f
    Raises:
        AslError: Not exactly one kind of answer is given.
    """
    tokens = access.store.tokens
    failed = body.error is not None or body.cause is not None
    if ("output" in body.model_fields_set) + failed + body.heartbeat != 1:
        raise AslError("give one of 'output', 'error' with 'cause', and 'heartbeat'")
    if body.heartbeat:
        tokens.send_task_heartbeat(body.token)
        return
    name = access.store.execution_of(body.token)
    if failed:
        tokens.send_task_failure(body.token, body.error, body.cause)
    else:
        tokens.send_task_success(body.token, compact(body.output))
    record_action(access, "token.answer", name, {"failed": failed})


def listed_request(store: Store, request: dict[str, Json]) -> RequestModel:
    """Return a request as the interface shows it."""
    request_id = str(request["requestId"])
    stored = store.get(store.root(store.execution_of(request_id)))
    return RequestModel.model_validate({
        **request,
        "id": request_key(request_id),
        "execution": stored.name,
        "executionId": execution_key(stored),
    })  # fmt: skip
