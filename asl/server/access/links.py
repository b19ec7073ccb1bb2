"""Signed links with which a person answers one request, once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

from itsdangerous import BadData

from asl.core.errors import AslError
from asl.core.values import Json
from asl.executions import Store
from asl.executions.errors import RequestNotFound
from asl.expr.times import format_timestamp, parse_epoch
from asl.notifiers import Notify, bind_channels
from asl.server.access.principal import APPROVER, Principal
from asl.server.access.secret import SigningSecret, serializer_of
from asl.server.access.users import Users
from asl.states.approval_answers import ANYTHING
from asl.states.approval_request import request_digest
from asl.stores.resources import (
    Resource,
    delete_resource,
    find_resource,
    list_resources,
    put_resource,
)

__all__ = [
    "ApprovalLink",
    "LinkRefused",
    "LinkSigner",
    "link_notices",
    "link_principal",
    "mark_used",
    "open_request",
]

LIFE: Final = 7 * 24 * 3600
"""Seconds that a link is valid if its request ends later or never."""
USED: Final = "used-link"
"""Kind of the resources that name the links which were used."""
_PURPOSE: Final = "link"


class LinkRefused(AslError):
    """A link is not of this service, was used, or its request has ended or changed."""


class ApprovalLink(NamedTuple):
    """What a link is bound to.

    Attributes:
        id: Random name of the link.
        project: Name of the project.
        request: Id of the request, which names the execution.
        digest: Digest of the content of the request, its options included.
        created: When the request was made; a redrive makes it again.
        user: Name of the user to whom the link was sent; None if the user has to log in.
        until: Epoch seconds of the end.
    """

    id: str
    project: str
    request: str
    digest: str
    created: str
    user: str | None
    until: float


class LinkSigner:
    """Makes and checks the links of a service.

    Args:
        secret: Signs the links.
        url: URL of the service in links.
    """

    def __init__(self, secret: SigningSecret, url: str) -> None:
        self._secret = secret
        self._url = url.rstrip("/")

    def url_of(
        self, project: str, request: Mapping[str, Json], user: str | None, now: float
    ) -> str:
        """Return a new link.

        Args:
            project: Name of the project of the request.
            request: The request as approvers see it.
            user: Name of the user to whom the link is sent; None if the user has to log in.
            now: Epoch seconds.
        """
        until = now + LIFE
        if "expiresAt" in request:
            until = min(until, parse_epoch(str(request["expiresAt"])))
        link = ApprovalLink(
            secrets.token_urlsafe(12),
            project,
            str(request["requestId"]),
            request_digest(request),
            str(request["createdAt"]),
            user,
            until,
        )
        token = serializer_of(self._secret, _PURPOSE).dumps([*link])
        assert isinstance(token, str)
        return f"{self._url}/links/{token}"

    def read(self, token: str) -> ApprovalLink:
        """Return the link of a token.

        Raises:
            LinkRefused: It is not one of this service.
        """
        try:
            return ApprovalLink(*serializer_of(self._secret, _PURPOSE).loads(token))
        except (BadData, TypeError):  # TypeError: a link of another version
            raise LinkRefused(
                "this link is not one of this service: it is incomplete, or the secret of the "
                "service was changed since"
            ) from None


def open_request(store: Store, link: ApprovalLink) -> dict[str, Json]:
    """Return the request of a link that can still be used.

    Raises:
        LinkRefused: The link was used, or its request has ended or changed.
    """
    used = find_resource(store.session, f"{USED}:{link.id}")
    if used is not None:
        when, option = used.body["time"], used.body["option"]
        raise LinkRefused(f"this link was used already: {option!r} at {when}")
    if link.until <= store.clock.now():
        raise LinkRefused(f"this link ended at {format_timestamp(link.until)}")
    try:
        request = store.reader.request(link.request)
    except RequestNotFound:
        raise LinkRefused("the request of this link does not exist any more") from None
    view = request.view
    if request_digest(view) != link.digest or view["createdAt"] != link.created:
        raise LinkRefused("the request has changed since this link was sent")
    if request.status != "open":
        raise LinkRefused("the request of this link was decided already, or has ended")
    return view


def mark_used(store: Store, link: ApprovalLink, option: Json) -> None:
    """Record that a link was used."""
    session, now = store.session, store.clock.now()
    for each in list_resources(session, USED, ""):
        if each.number > now:
            break
        delete_resource(session, each.arn)
    body = {"time": format_timestamp(now), "option": option}
    put_resource(session, Resource(f"{USED}:{link.id}", USED, "", int(link.until) + 1, body))
    session.flush()


# Notices


def link_notices(
    notify: Notify | str | Sequence[Notify | str] | None,
    users: Users,
    signer: LinkSigner,
    project: str,
    now: Callable[[], float],
) -> list[Notify]:
    """Return channels that add links to notices, and those of the users themselves.

    A notice by a channel of all has a link for which the user has to log in; one by a channel of a
    user has a link of this user, with one for each option.

    Args:
        notify: The channels of all.
        users: The users, with their channels.
        signer: Makes the links.
        project: Name of the project.
        now: Returns epoch seconds.

    Raises:
        AslError: A channel is unknown, or its library is missing.
    """

    def linked(channel: Notify, user: str | None) -> Notify:
        def notice(kind: str, request: dict[str, Json], details: dict[str, Json]) -> object:
            if user is not None and not _is_addressed(users, user, request, details):
                return None
            link = signer.url_of(project, request, user, now())
            added: dict[str, Json] = {"link": link}
            if user is not None:
                added["actions"] = [
                    {"option": each, "link": f"{link}?{urlencode({'option': each})}"}
                    for each in request["options"]
                    if each != ANYTHING
                ]
            return channel(kind, request, {**details, **added})

        return notice

    found = [linked(channel, None) for channel in bind_channels(notify)]
    for name, user in users.entries().items():
        if user.projects is None or project in user.projects:
            found += [linked(channel, name) for channel in bind_channels(list(user.notify))]
    return found


def _is_addressed(
    users: Users, name: str, request: Mapping[str, Json], details: Mapping[str, Json]
) -> bool:
    """Return whether a user may decide a request, or an escalation names the user."""
    user = users.entries().get(name)
    if user is None or APPROVER not in user.roles:
        return False
    policy = request.get("policy", {})
    if policy.get("excludes") == name:
        return False
    named = details.get("notify")
    if name in (named if isinstance(named, list) else [named]):
        return True
    approvers = policy.get("approvers", {})
    by_role = not user.roles.isdisjoint(approvers.get("roles", ()))
    return name in approvers.get("users", ()) or by_role


def link_principal(users: Users, link: ApprovalLink) -> Principal | None:
    """Return the user to whom a link was sent; None if the user has to log in.

    Raises:
        LinkRefused: The user has no access any more.
    """
    if link.user is None:
        return None
    found = users.named(link.user, "link")
    if found is None:
        raise LinkRefused(f"{link.user!r}, to whom this link was sent, has no access any more")
    return found
