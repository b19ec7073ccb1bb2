"""A service in the test's process, with a client that waits until something holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from starlette.testclient import TestClient

import asl
import asl.server

SHIP = json.dumps({
    "StartAt": "Ask",
    "States": {
        "Ask": {"Type": "Approval", "Prompt": "Ship it?", "Options": ["ship", "hold"],
                "Next": "Write"},
        "Write": {"Type": "Task", "Agent": "Writer", "End": True},
    },
})  # fmt: skip
"""A document that asks a person, then an agent."""


@contextmanager
def client(store: asl.Store | None = None, **options: Any) -> Iterator[TestClient]:
    """Yield a client of a service; requests of this machine need no credentials."""
    opened = store or asl.Store("memory:", agents={"Writer": lambda data: {"text": "done"}})
    application = asl.server.app(opened, **{"local": True, **options})
    with (
        opened,
        TestClient(
            application, base_url="http://localhost:8083", client=("127.0.0.1", 50000)
        ) as found,
    ):
        yield found


def until(holds: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Return the first true value of a function."""
    end = monotonic() + seconds
    while not (found := holds()):
        assert monotonic() < end, "it did not happen"
        sleep(0.01)
    return found


def publish(api: TestClient, text: str = SHIP, name: str = "Ship") -> dict[str, Any]:
    """Publish a document and return its summary."""
    answer = api.post("/api/v1/documents", json={"text": text, "name": name})
    assert answer.status_code == 201, answer.text
    return answer.json()


def start(api: TestClient, document: str = "Ship", **body: Any) -> str:
    """Start an execution and return its key."""
    answer = api.post("/api/v1/executions", json={"document": document, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def described(api: TestClient, key: str) -> dict[str, Any]:
    """Return the description of an execution."""
    return api.get(f"/api/v1/executions/{key}").json()


def wait_for(api: TestClient, key: str, status: str) -> dict[str, Any]:
    """Return the description of an execution when it has a status."""
    return until(lambda: (found := described(api, key))["status"] == status and found)
