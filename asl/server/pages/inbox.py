"""The inbox: requests that wait for people, each with its context, and their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from asl.core.errors import AslError
from asl.core.values import Json
from asl.executions import Store
from asl.expr.times import parse_timestamp, seconds_of
from asl.server.access.authorization import access_of
from asl.server.access.principal import APPROVER, VIEWER, Principal
from asl.server.answers import give_answer
from asl.server.pages.forms import go_to, json_field, optional_field, posted_form
from asl.server.pages.rendering import is_fragment, render
from asl.server.problems import status_of
from asl.server.projects import Access
from asl.server.views import execution_key, request_id_of, request_key, short_name
from asl.states.approval_answers import ANYTHING, AnswerRefused, check_approver, normalize_name
from asl.states.approval_request import ApprovalRequest, request_digest
from asl.stores.requests import answer_of

__all__ = ["ROUTES"]

PAGE: Final = 50
"""Requests on a page."""
MOST_SCANNED: Final = 2_000
"""Open requests among which those of the user are looked for."""
MOST_ANSWERED: Final = 500
EDIT, KIND, ITEM = "edit:", "kind:", "item:"
"""Beginnings of the names of fields for an edited value, its kind, and a decision on an item."""


class WaitingRequest(NamedTuple):
    """A request with what the inbox shows about it.

    Attributes:
        view: The request as approvers see it.
        key: For paths.
        execution: Short name of the root execution.
        execution_key: The same for paths.
        workflow: Name of its workflow.
        refusal: Why the user may not answer; None if the user may.
        expires: Epoch seconds of the deadline, None without one.
    """

    view: dict[str, Json]
    key: str
    execution: str
    execution_key: str
    workflow: str
    refusal: str | None
    expires: float | None

    @property
    def title(self) -> str:
        """What the request asks, in a line."""
        return str(self.view.get("promptText") or self.view.get("state"))


def _waiting(store: Store, view: dict[str, Json], principal: Principal) -> WaitingRequest:
    request_id = str(view["requestId"])
    stored = store.get(store.root(store.execution_of(request_id)))
    expires = view.get("expiresAt")
    return WaitingRequest(
        view,
        request_key(request_id),
        short_name(stored),
        execution_key(stored),
        stored.workflow,
        _refusal(view, principal),
        seconds_of(parse_timestamp(expires)) if isinstance(expires, str) else None,
    )


def _refusal(view: Mapping[str, Json], principal: Principal) -> str | None:
    """Return why a user may not answer a request, None if the user may."""
    if not principal.may(APPROVER):
        return f"{principal.user!r} does not have the role {APPROVER!r}"
    try:
        check_approver(view.get("policy", {}), principal.user, principal.approval_roles)
    except AnswerRefused as refusal:
        return str(refusal)
    received = view.get("policy", {}).get("received", [])
    if any(_is_same(each["approver"], principal.user) for each in received):
        return "you have answered already; more approvals are needed"
    return None


def _is_same(name: str, other: str) -> bool:
    return normalize_name(name).casefold() == normalize_name(other).casefold()


def _page(
    access: Access, after: str | None, *, own: bool
) -> tuple[list[WaitingRequest], str | None]:
    """Return a page of open requests, the oldest first, and the position of the next page."""
    found: list[WaitingRequest] = []
    for _ in range(MOST_SCANNED // PAGE):
        views = access.store.pending(limit=PAGE, after=after)
        for view in views:
            waiting = _waiting(access.store, view, access.principal)
            after = str(view["requestId"])
            if not own or waiting.refusal is None:
                found.append(waiting)
                if len(found) == PAGE:
                    return found, after
        if len(views) < PAGE:
            return found, None
    return found, after


def show_inbox(request: Request) -> Response:
    """List the requests that wait for the user, or for anybody."""
    access = access_of(request, VIEWER)
    return _answer(request, access, None)


def show_request(request: Request) -> Response:
    """Show a request with the list."""
    access = access_of(request, VIEWER)
    return _answer(request, access, request.path_params["key"])


def _answer(
    request: Request,
    access: Access,
    key: str | None,
    *,
    status: int = 200,
    problem: str | None = None,
    given: Mapping[str, str] | None = None,
) -> Response:
    """Return the page of the inbox, with one request in full."""
    shown = request.query_params.get("show", "")
    own = shown != "all"
    position = request.query_params.get("after")
    after = None if not position else request_id_of(position)
    rows, following = _page(access, after, own=own)
    chosen_key = key or (rows[0].key if rows else None)
    values: dict[str, Any] = {
        "rows": rows,
        "own": own,
        "show": "all" if not own else "",
        "following": None if following is None else request_key(following),
        "is_first": not position,
        "key": key,
        "chosen_key": chosen_key,
        "problem": problem,
        "given": given or {},
        "done": _done(request),
        "now": access.store.clock.now(),
        "options": _common_options(rows),
    }
    if chosen_key is not None:
        values |= _context(access, chosen_key)
    template = "inbox_list.html" if is_fragment(request) else "inbox.html"
    return render(request, access, template, status, **values)


def _done(request: Request) -> str | None:
    done = request.query_params.get("done", "")
    if done == "answered":
        return "Your answer was recorded."
    if done == "approved":
        return "Your approval was recorded; more are needed."
    if done.isdecimal():
        return f"{int(done[:6])} answers were recorded."
    return None


def _common_options(rows: list[WaitingRequest]) -> list[str]:
    """Return the options of all requests of a page, for an answer to several of them."""
    options = (str(each) for row in rows for each in row.view["options"])
    return [*dict.fromkeys(each for each in options if each != ANYTHING)]


def _context(access: Access, key: str) -> dict[str, Any]:
    """Return what is shown of one request."""
    store = access.store
    found = store.reader.request(request_id_of(key))
    view = found.view
    decided = answer_of(store.session, found.id) if found.status == "answered" else None
    policy = view.get("policy", {})
    return {
        "chosen": _waiting(store, view, access.principal),
        "status": found.status,
        "record": None if decided is None else decided[1],
        "digest": request_digest(view),
        "received": policy.get("received", []),
        "policy": policy,
        "fields": [*_fields(found)],
        "choices": [each for each in view["options"] if each != ANYTHING],
        "any_text": ANYTHING in view["options"],
        "items": view.get("items"),
        "partial": bool(view.get("batch", {}).get("allowPartial")),
    }


class EditableField(NamedTuple):
    """A value that the approver may change.

    Attributes:
        name: Its name in the request.
        value: Its present value.
        kind: `text`, or `json` for values that are no texts.
    """

    name: str
    value: Json
    kind: str


def _fields(found: ApprovalRequest) -> Iterator[EditableField]:
    for name, value in found.body.get("editable", {}).get("fields", {}).items():
        yield EditableField(name, value, "text" if isinstance(value, str) else "json")


async def answer(request: Request) -> Response:
    """Answer a request by its form; a refused answer shows the form again."""
    async with posted_form(request, APPROVER) as (access, form):
        return await run_in_threadpool(_give, request, access, form)


def _give(request: Request, access: Access, form: FormData) -> Response:
    key = request.path_params["key"]
    try:
        found = access.store.reader.request(request_id_of(key))
        record = give_answer(access, found.id, _answer_in(form, found))
    except AslError as refusal:
        given = {name: each for name, each in form.items() if isinstance(each, str)}
        return _answer(
            request, access, key, status=status_of(refusal), problem=str(refusal), given=given
        )
    show = "&show=all" if request.query_params.get("show") == "all" else ""
    return go_to(request, f"inbox?done={'answered' if record is not None else 'approved'}{show}")


def _answer_in(form: FormData, found: ApprovalRequest) -> dict[str, Json]:
    """Return the answer in a form.

    Raises:
        AslError: An edited value is not JSON.
    """
    text = optional_field(form, "text")
    approval = optional_field(form, "approval")
    fields: dict[str, Json] = {}
    if "items" in found.body and approval is None:
        decisions = {
            name.removeprefix(ITEM): value
            for name, value in form.items()
            if name.startswith(ITEM) and value
        }
        fields["decisions"] = decisions
    else:
        fields["approval"] = text if approval is None and text is not None else approval
    comment, digest = optional_field(form, "comment"), optional_field(form, "digest")
    amounts = {name: optional_field(form, name) for name in ("MaxCost", "MaxTokens")}
    edited = _edits(form, found)
    more: dict[str, Json] = {"comment": comment, "digest": digest, "edited": edited or None}
    if "budget" in found.body:
        tokens = amounts["MaxTokens"]
        more["MaxCost"] = amounts["MaxCost"]
        more["MaxTokens"] = None if tokens is None else json_field(tokens, "MaxTokens")
    return {**fields, **{name: each for name, each in more.items() if each is not None}}


def _edits(form: FormData, found: ApprovalRequest) -> dict[str, Json]:
    """Return the fields that differ from the request.

    Raises:
        AslError: A value is not JSON.
    """
    edits: dict[str, Json] = {}
    for each in _fields(found):
        given = form.get(EDIT + each.name)
        if not isinstance(given, str):
            continue
        text = given.replace("\r\n", "\n")
        value = text if each.kind == "text" else json_field(text, each.name)
        if value != each.value:
            edits[each.name] = value
    return edits


async def answer_several(request: Request) -> Response:
    """Give several requests the same answer; each is accepted or refused by itself."""
    async with posted_form(request, APPROVER) as (access, form):
        return await run_in_threadpool(_give_several, request, access, form)


def _give_several(request: Request, access: Access, form: FormData) -> Response:
    keys = [each for each in form.getlist("request") if isinstance(each, str)][:MOST_ANSWERED]
    fields: dict[str, Json] = {
        name: value for name in ("approval", "comment") if (value := optional_field(form, name))
    }
    refused = []
    for key in keys:
        try:
            give_answer(access, request_id_of(key), fields)
        except AslError as refusal:
            refused.append((key, str(refusal)))
    if not keys or refused:
        return render(
            request,
            access,
            "inbox_refused.html",
            409 if refused else 400,
            refused=refused,
            accepted=len(keys) - len(refused),
        )
    return go_to(request, f"inbox?done={len(keys)}")


ROUTES: Final = (
    Route("/inbox", show_inbox),
    Route("/inbox", answer_several, methods=["POST"]),
    Route("/inbox/{key}", show_request),
    Route("/inbox/{key}", answer, methods=["POST"]),
)
"""The routes of the inbox."""
