"""Registered webhooks, as rows of the store."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from asl.agents.secrets import PLACEHOLDER, looked_up
from asl.core.errors import AslError
from asl.core.values import Json
from asl.server.audit import record_action
from asl.server.documents import reference_arn
from asl.server.problems import NotFound
from asl.server.projects import Access
from asl.server.webhooks.signatures import DELIVERY_HEADERS, SCHEMES, SECRET_HEADER, Scheme
from asl.stores.resources import (
    Resource,
    delete_resource,
    find_resource,
    list_resources,
    put_resource,
)
from asl.stores.session import Session

__all__ = [
    "CONTENT_TYPES",
    "LARGEST_BODY",
    "Webhook",
    "delete_webhook",
    "find_webhook",
    "list_webhooks",
    "put_webhook",
]

KIND: Final = "webhook"
LARGEST_BODY: Final = 1024 * 1024
"""The largest allowed number of bytes of a body."""
USUAL_BODY: Final = 256 * 1024
"""Bytes of a body without another bound: those of an input."""
CONTENT_TYPES: Final = (
    "application/json",
    "application/x-www-form-urlencoded",
    "text/plain",
)
"""The types that can become an input; the first one includes `application/NAME+json`."""
MOST: Final = 10
"""Number of secrets or headers of a webhook."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,80}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook: who may call it, and what it starts.

    Attributes:
        name: Its name, in the path `/hooks/NAME`.
        machine: ARN of the state machine, or of one of its versions.
        scheme: How requests are signed.
        secrets: References to the secrets: `${env:NAME}` or `${file:PATH}`.
        header: Header of the scheme `header`.
        delivery_header: Header with the id of a delivery.
        headers: Headers that the input has; without any the input is the body.
        content_types: Allowed types of bodies.
        max_bytes: Largest body.
        created: Time of its registration in epoch seconds.
        user: Who registered it.
    """

    name: str
    machine: str
    scheme: Scheme
    secrets: tuple[str, ...]
    header: str = SECRET_HEADER
    delivery_header: str
    headers: tuple[str, ...] = ()
    content_types: tuple[str, ...] = CONTENT_TYPES[:1]
    max_bytes: int = USUAL_BODY
    created: float = 0.0
    user: str | None = None

    @property
    def document(self) -> str:
        """The reference of the document: `NAME` or `NAME:VERSION`."""
        return self.machine.split(":stateMachine:", 1)[-1]

    def read_secrets(self) -> list[str]:
        """Return the secrets that can be read.

        Raises:
            AslError: There is none.
        """
        found, failure = list[str](), None
        for each in self.secrets:
            try:
                found.append(looked_up(each, Path("/")))
            except AslError as error:  # the other one may be there while secrets are replaced
                failure = error
        if not found:
            raise AslError(f"the webhook {self.name!r} has no secret: {failure}")
        return found


def put_webhook(
    access: Access,
    name: str,
    document: str,
    scheme: Scheme,
    secrets: tuple[str, ...],
    *,
    header: str | None = None,
    delivery_header: str | None = None,
    headers: tuple[str, ...] = (),
    content_types: tuple[str, ...] = (),
    max_bytes: int = USUAL_BODY,
) -> Webhook:
    """Register a webhook, or replace the one of its name.

    Args:
        access: The project and the user.
        name: Its name, in the path `/hooks/NAME`.
        document: `NAME` or `NAME:VERSION` of a published document.
        scheme: How requests are signed.
        secrets: References to the secrets: `${env:NAME}` or `${file:PATH}` with an absolute path.
        header: Header of the scheme `header`.
        delivery_header: Header with the id of a delivery; None for that of the scheme.
        headers: Headers that the input has; without any the input is the body.
        content_types: Allowed types of bodies; JSON by default.
        max_bytes: Largest body.

    Raises:
        NotFound: There is no such document.
        AslError: A part of it is wrong.
    """
    if scheme not in SCHEMES:
        raise AslError(f"the scheme is one of {', '.join(SCHEMES)}")
    made = Webhook(
        name=name,
        machine=reference_arn(access.project, document),
        scheme=scheme,
        secrets=secrets,
        header=header or SECRET_HEADER,
        delivery_header=delivery_header or DELIVERY_HEADERS[scheme],
        headers=headers,
        content_types=content_types or CONTENT_TYPES[:1],
        max_bytes=max_bytes,
        created=access.store.clock.now(),
        user=access.principal.user,
    )
    _check(made)
    session = access.store.session
    put_resource(session, Resource(_key(name), KIND, "", 0, asdict(made)))
    session.flush()
    details: dict[str, Json] = {"document": made.document, "scheme": scheme}
    record_action(access, "webhook.put", name, details)
    return made


def _check(hook: Webhook) -> None:
    """Raise AslError for a wrong webhook."""
    if not _NAME.fullmatch(hook.name):
        raise AslError(
            f"{hook.name[:80]!r} cannot be the name of a webhook: it has 1 to 40 letters, digits, "
            "'.', '_' and '-', and begins with a letter or digit"
        )
    if not 1 <= len(hook.secrets) <= MOST:
        raise AslError(f"a webhook has 1 to {MOST} secrets")
    for each in hook.secrets:
        found = PLACEHOLDER.fullmatch(each)
        is_path = found is not None and found[1] == "file" and found[2].startswith("/")
        if not is_path and (found is None or found[1] != "env" or not found[2]):
            raise AslError(
                "a secret is a reference, ${env:NAME} or ${file:/PATH}: it is not stored"
            )
    names = (hook.header, hook.delivery_header, *hook.headers)
    if len(hook.headers) > MOST or not all(map(_HEADER.fullmatch, names)):
        raise AslError(f"a webhook names up to {MOST} headers of letters, digits and '-'")
    if hook.scheme == "header" and hook.header.lower() in map(str.lower, hook.headers):
        raise AslError(f"the header {hook.header} holds the secret: the input cannot have it")
    if not set(hook.content_types) <= set(CONTENT_TYPES):
        raise AslError(f"the types of bodies are {', '.join(CONTENT_TYPES)}")
    if not 1 <= hook.max_bytes <= LARGEST_BODY:
        raise AslError(f"a body has at most 1 to {LARGEST_BODY} bytes")


def find_webhook(session: Session, name: str) -> Webhook:
    """Return a webhook.

    Raises:
        NotFound: There is none of this name.
        StoreDamaged: Its row is damaged.
    """
    row = find_resource(session, _key(name))
    if row is None:
        raise NotFound(f"there is no webhook {name[:80]!r}")
    return _read(session, row)


def list_webhooks(session: Session) -> list[Webhook]:
    """Return all webhooks by name.

    Raises:
        StoreDamaged: A row is damaged.
    """
    return [_read(session, each) for each in list_resources(session, KIND, "")]


def delete_webhook(access: Access, name: str, *, reason: str | None = None) -> None:
    """Delete a webhook; its executions stay.

    Raises:
        NotFound: There is none of this name.
    """
    session = access.store.session
    delete_resource(session, _key(find_webhook(session, name).name))
    session.flush()
    record_action(access, "webhook.delete", name, reason=reason)


def _key(name: str) -> str:
    return f"{KIND}:{name}"


def _read(session: Session, row: Resource) -> Webhook:
    with session.damage_reports(f"the resource {row.arn!r}"):
        body = dict(row.body)
        for name in ("secrets", "headers", "content_types"):
            body[name] = tuple(body[name])
        return Webhook(**body)
