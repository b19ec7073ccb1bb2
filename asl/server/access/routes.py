"""Pages of the whole service: login, logout and approval links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from asl.core.errors import AslError
from asl.core.printable import printable
from asl.core.values import Json, compact
from asl.server.access.authentication import NO_ACCESS
from asl.server.access.control import AccessControl
from asl.server.access.cross_site import SAFE_METHODS, check_csrf, check_same_site
from asl.server.access.html import render_page
from asl.server.access.links import (
    ApprovalLink,
    LinkRefused,
    link_principal,
    mark_used,
    open_request,
)
from asl.server.access.oidc import OidcClient
from asl.server.access.principal import APPROVER, Forbidden, Principal, Unauthorized
from asl.server.access.sessions import ROOT
from asl.server.answers import give_answer
from asl.server.audit import record_action
from asl.server.problems import NotFound, status_of
from asl.server.projects import Access, ServerProject
from asl.states.approval_answers import ANYTHING, AnswerRefused

__all__ = ["access_pages"]

LARGEST_FORM: Final = 64 * 1024
"""Bytes of the largest form."""
SHOWN: Final = 100_000
"""Characters of the longest value on a page."""


def access_pages(control: AccessControl, projects: Mapping[str, ServerProject]) -> Starlette:
    """Return the pages for login, logout and links.

    Args:
        control: The access control of the service.
        projects: The projects by name.
    """
    pages = _AccessPages(control, projects)
    return Starlette(
        routes=[
            Route("/", pages.show_projects),
            Route("/ui/login", pages.lead_to_login),
            Route("/ui/logout", pages.log_out, methods=["POST"]),
            Route("/login", pages.show_login),
            Route("/login", pages.log_in, methods=["POST"]),
            Route("/login/oidc", pages.ask_provider),
            Route("/login/oidc/callback", pages.return_from_provider),
            Route("/logout", pages.log_out, methods=["POST"]),
            Route("/links/{token}", pages.show_link),
            Route("/links/{token}", pages.use_link, methods=["POST"]),
        ],
        exception_handlers={AslError: _answer_error, HTTPException: _answer_http},
    )


def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AslError)
    return _message(status_of(error), "This did not work", str(error))


def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _message(error.status_code, "This did not work", str(error.detail))


def _message(status: int, title: str, message: str, advice: str = "", **link: str) -> Response:
    shown = {"link": "", "word": "", **link}
    return render_page(
        "message.html", status, title=title, message=printable(message), advice=advice, **shown
    )


class _AccessPages:
    """The handlers of the pages."""

    def __init__(self, control: AccessControl, projects: Mapping[str, ServerProject]) -> None:
        self._control = control
        self._projects = projects
        oidc = control.settings.oidc
        self._provider = None if oidc is None else OidcClient(oidc, control.secret)

    async def show_projects(self, request: Request) -> Response:
        """List the projects of the user."""
        try:
            principal = self._control.identify(request)
        except Unauthorized:
            return RedirectResponse(f"{root_of(request)}/login", 303)
        allowed = principal.projects
        names = [each for each in self._projects if allowed is None or each in allowed]
        return render_page("projects.html", root=root_of(request), projects=names)

    # Login

    async def lead_to_login(self, request: Request) -> Response:
        """Lead from the pages of a project to the login of the service, and back."""
        pages = quote(str(request.scope.get("root_path", "")).rstrip("/") + "/ui/")
        following = next_path(request, request.query_params.get("next") or pages)
        return RedirectResponse(f"{root_of(request)}/login?next={quote(following, safe='')}", 303)

    async def show_login(self, request: Request) -> Response:
        """Show the form of the login, or continue with a session that is there already."""
        following = next_path(request, request.query_params.get("next"))
        if request.headers.get("sec-fetch-site") == "cross-site":
            # A browser sends the cookie of the session only to requests that start at this site.
            return render_page("continue.html", next=_here(request))
        try:
            self._control.identify(request)
        except AslError:
            return self._login_page(request, following)
        return RedirectResponse(following, 303)

    def _login_page(
        self, request: Request, following: str, problem: str = "", status: int = 200
    ) -> Response:
        settings = self._control.settings
        return render_page(
            "login.html",
            status,
            root=root_of(request),
            next=following,
            problem=problem,
            provider="" if settings.oidc is None else settings.oidc.issuer,
            has_tokens=bool(settings.users),
            advice=NO_ACCESS,
        )

    async def log_in(self, request: Request) -> Response:
        """Begin a session for the user of a token."""
        control, form = self._control, await read_form(request)
        check_same_site(request)
        address = control.address_of(request)
        control.attempts.check(address)
        following = next_path(request, form.get("next"))
        token = form.get("token")
        found = control.users.by_token(token.strip()) if isinstance(token, str) else None
        if found is None:
            control.attempts.add(address)
            self._record(Principal("", frozenset(), "none"), "login.refused", address)
            return self._login_page(request, following, "The token is unknown.", 401)
        response = RedirectResponse(following, 303)
        control.sessions.begin(request, response, found)
        self._record(found, "login", address)
        return response

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        control, form = self._control, await read_form(request)
        principal = control.identify(request)
        check_csrf(request, form, principal)
        response = _message(
            200, "Logged out", "Your session has ended.", link=f"{root_of(request)}/login",
            word="Log in",
        )  # fmt: skip
        control.sessions.end(request)
        control.sessions.clear(request, response)
        self._record(principal, "logout", control.address_of(request))
        return response

    async def ask_provider(self, request: Request) -> Response:
        """Send the browser to the identity provider."""
        following = next_path(request, request.query_params.get("next"))
        url = f"{self._control.url_of(request)}/login/oidc/callback"
        is_secure = self._control.is_secure(request)
        return await self._oidc().begin(url, following, is_secure=is_secure)

    async def return_from_provider(self, request: Request) -> Response:
        """Begin a session for the user whom the identity provider has authenticated."""
        control = self._control
        url = f"{control.url_of(request)}/login/oidc/callback"
        address = control.address_of(request)
        control.attempts.check(address)
        try:
            login = await self._oidc().finish(request, url)
            known = control.users.named(login.user, "oidc")
            roles = login.roles | (known.roles if known is not None else frozenset())
            if not roles:
                raise Forbidden(f"{login.user!r} has no role in this service")
        except (Unauthorized, Forbidden) as refusal:
            control.attempts.add(address)
            none = Principal("", frozenset(), "oidc")
            self._record(none, "login.refused", address, reason=str(refusal))
            raise
        projects = None if known is None else known.projects
        principal = Principal(login.user, roles, "oidc", projects)
        given = Principal(login.user, login.roles, "oidc")
        # A page, no redirection: a chain that starts at the provider has no cookies of this site.
        response = render_page("continue.html", next=next_path(request, login.following))
        control.sessions.begin(request, response, given)
        self._oidc().clear(response)
        self._record(principal, "login", address)
        return response

    def _oidc(self) -> OidcClient:
        if self._provider is None:
            raise NotFound("this service has no identity provider")
        return self._provider

    def _record(
        self, principal: Principal, action: str, address: str, *, reason: str | None = None
    ) -> None:
        """Record a login in the first project that the user may see."""
        allowed = principal.projects
        names = [each for each in self._projects if allowed is None or each in allowed]
        if names:
            access = Access(self._projects[names[0]], principal)
            record_action(access, action, "service", {"address": address}, reason=reason)

    # Links

    async def show_link(self, request: Request) -> Response:
        """Show the request of a link; this decides nothing."""
        return await run_in_threadpool(self._show_link, request)

    def _show_link(self, request: Request) -> Response:
        found = self._opened(request)
        if isinstance(found, Response):
            return found
        link, access, view = found
        return _request_page(link, access, view, chosen=request.query_params.get("option"))

    async def use_link(self, request: Request) -> Response:
        """Answer the request of a link."""
        form = await read_form(request)
        return await run_in_threadpool(self._use_link, request, form)

    def _use_link(self, request: Request, form: FormData) -> Response:
        check_same_site(request)
        found = self._opened(request)
        if isinstance(found, Response):
            return found
        link, access, view = found
        if link.user is None:
            check_csrf(request, form, access.principal)
        option, comment = form.get("option"), form.get("comment") or None
        given: dict[str, Json] = {"approval": option, "comment": comment, "digest": link.digest}
        try:
            record = give_answer(access, link.request, given)
        except AnswerRefused as refusal:
            return _request_page(
                link, access, view, chosen=option, comment=comment or "", problem=str(refusal),
                status=status_of(refusal),
            )  # fmt: skip
        mark_used(access.store, link, option)
        if record is None:
            return _message(200, "Your answer is recorded", "More approvals are needed.")
        return _message(200, "Decided", f"The decision is {compact(record['approval'])}.")

    def _opened(self, request: Request) -> Response | tuple[ApprovalLink, Access, dict[str, Json]]:
        """Return the link of a request with who uses it and what it asks; or the login page.

        Raises:
            LinkRefused: The link cannot be used.
            Forbidden: The user may not use it.
        """
        control, address = self._control, self._control.address_of(request)
        control.attempts.check(address)
        try:
            link = control.links(request).read(request.path_params["token"])
        except LinkRefused:
            control.attempts.add(address)
            raise
        project = self._projects.get(link.project)
        if project is None:
            raise LinkRefused("the project of this link does not exist any more")
        principal = link_principal(control.users, link)
        if principal is None:
            try:
                principal = control.identify(request)
            except Unauthorized:
                here = quote(_here(request), safe="")
                return RedirectResponse(f"{root_of(request)}/login?next={here}", 303)
        principal.require_project(project.name)
        principal.require(APPROVER)
        access = Access(project, principal)
        try:
            return link, access, open_request(project.store, link)
        except LinkRefused as refusal:
            if request.method not in SAFE_METHODS:
                record_action(access, "link.refused", link.request, reason=str(refusal))
            raise


def _request_page(
    link: ApprovalLink,
    access: Access,
    view: Mapping[str, Any],
    *,
    chosen: object = None,
    comment: object = "",
    problem: str = "",
    status: int = 200,
) -> Response:
    """Return the page of a request with its options."""
    store = access.store
    stored = store.get(store.root(store.execution_of(link.request)))
    titles = {"prompt": "Request", "items": "Items", "input": "Input"}
    values = [(title, _shown(view[key])) for key, title in titles.items() if key in view]
    texts = _texts(view["prompt"])
    if texts is not None:
        values = [each for each in values if each[0] != titles["prompt"]]
    if "editable" in view:
        values.append(("Editable values", _shown(view["editable"]["fields"])))
    return render_page(
        "request.html",
        status,
        request={"expiresAt": view.get("expiresAt", "")},
        prompt=printable(view["promptText"] or compact(view["prompt"]), lines=True),
        texts=texts or [],
        workflow=printable(stored.workflow),
        execution=printable(stored.name),
        user=access.principal.user,
        csrf=access.principal.csrf if link.user is None else "",
        reason_required=view.get("policy", {}).get("requireReason", False),
        is_free=ANYTHING in view["options"],
        options=[(each, printable(each)) for each in view["options"] if each != ANYTHING],
        chosen=chosen,
        comment=comment,
        problem=printable(problem),
        values=[each for each in values if each[1]],
    )


def _texts(prompt: Json) -> list[str] | None:
    """Return the texts of a prompt, without its title; None for a prompt with other values."""
    if not isinstance(prompt, dict) or not all(isinstance(each, str) for each in prompt.values()):
        return None
    shown = [str(text) for name, text in prompt.items() if name not in ("Title", "Description")]
    return [printable(text[:SHOWN], lines=True) for text in shown]


def _shown(value: Json) -> str:
    """Return a value as indented JSON, shortened; a text as it is."""
    if isinstance(value, str):
        return ""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return printable(text[:SHOWN], lines=True)


async def read_form(request: Request) -> FormData:
    """Return the fields of a form, which has no files.

    Raises:
        HTTPException: The body is too large, or no form.
    """
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:12]) > LARGEST_FORM:
        raise HTTPException(413, f"a form has at most {LARGEST_FORM} bytes")
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "the body must be a form")
    return await request.form()


def root_of(request: Request) -> str:
    """Return the path below which the service is mounted."""
    return quote(str(request.scope[ROOT]).rstrip("/"))


def _here(request: Request) -> str:
    """Return path and query of a request."""
    query = request.url.query
    return request.url.path + (f"?{query}" if query else "")


def next_path(request: Request, given: object) -> str:
    """Return the path after a login: the given one if it is of this server."""
    default = f"{root_of(request)}/"
    if not isinstance(given, str) or not given.startswith("/") or len(given) > 2000:
        return default
    if given.startswith(("//", "/\\")) or any(each <= " " or each == "\\" for each in given):
        return default
    return given
