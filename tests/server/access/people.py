"""Users, stores and clients for the tests of access."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.testclient import TestClient

import asl
import asl.server
from asl.server.access.users import User, Users, hash_of
from asl.stores.audit import AuditEntry, list_entries

ANN, BOB, EVE, VIC = (f"asl_{name}-{'x' * 40}" for name in ("ann", "bob", "eve", "vic"))
"""Tokens."""
PEOPLE = {
    "ann": User(hash_of(ANN), frozenset({"operator", "approver", "manager"})),
    "bob": User(hash_of(BOB), frozenset({"approver"})),
    "eve": User(hash_of(EVE), frozenset({"operator", "approver"}), frozenset({"other"})),
    "vic": User(hash_of(VIC), frozenset({"viewer"})),
}
ASK = {
    "StartAt": "Ask",
    "States": {"Ask": {"Type": "Approval", "Prompt": "Ship it?", "ResultPath": "$", "End": True}},
}


class Clock(asl.VirtualClock):
    """A clock that a test sets."""

    passed = 0.0

    def now(self) -> float:
        return super().now() + self.passed


def asking(**fields: Any) -> dict[str, Any]:
    return {"StartAt": "Ask", "States": {"Ask": {**ASK["States"]["Ask"], **fields}}}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@contextmanager
def served(store: Any, **options: Any) -> Iterator[TestClient]:
    """Yield a client from elsewhere, without credentials."""
    application = asl.server.app(store, **{"users": Users(PEOPLE), "concurrency": 0, **options})
    with TestClient(
        application,
        base_url="https://flow.example",
        client=("192.0.2.7", 50000),
        follow_redirects=False,
    ) as client:
        yield client


def log_in(client: TestClient, token: str = ANN, **fields: str) -> Any:
    return client.post("/login", data={"token": token, **fields})


def csrf_of(client: TestClient) -> str:
    """Return the token that the forms of the session of a client repeat."""
    found = re.search(r'name="csrf" value="([^"]+)"', client.get("/ui/executions").text)
    assert found is not None
    return found[1]


def actions(store: asl.Store) -> list[tuple[str, str, str]]:
    """Return user, method and action of the audit log, the oldest first."""
    entries: list[AuditEntry] = list_entries(store.session)
    return [(each.user, each.method, each.action) for each in reversed(entries)]
