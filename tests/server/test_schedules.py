"""Schedules by REST."""

import json
from typing import Any

import pytest

pytest.importorskip("fastapi")

import asl
from tests.server.service import client, publish, until

PASS = json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
DAILY = {"document": "Daily", "expression": "0 12 * * *", "timezone": "Europe/Berlin"}


def test_schedules_by_rest() -> None:
    """They are put, listed, paused, resumed and deleted; every change is in the audit log."""
    with client() as api:
        publish(api, PASS, "Daily")
        made = api.put("/api/v1/schedules/noon", json=DAILY).json()
        assert (made["name"], made["document"], made["overlap"]) == ("noon", "Daily", "skip")
        assert made["next"] == api.get("/api/v1/schedules/noon/next").json()["times"][0]
        assert len(api.get("/api/v1/schedules/noon/next?count=3").json()["times"]) == 3
        assert api.post("/api/v1/schedules/noon/pause", json={"reason": "hot"}).json()["paused"]
        assert api.get("/api/v1/schedules/noon").json()["next"] is None
        assert not api.post("/api/v1/schedules/noon/resume").json()["paused"]
        pinned = {**DAILY, "document": "Daily:1", "input": None, "overlap": "queue"}
        assert api.put("/api/v1/schedules/noon", json=pinned).json()["document"] == "Daily:1"
        (listed,) = api.get("/api/v1/schedules").json()["schedules"]
        assert listed["overlap"] == "queue"
        assert api.delete("/api/v1/schedules/noon").status_code == 204
        actions = [each["action"] for each in api.get("/api/v1/audit").json()["entries"]]
        assert actions[:5] == [
            f"schedule.{it}" for it in ("delete", "put", "resume", "pause", "put")
        ]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"document": "None"}, 404),
        ({"expression": "often"}, 400),
        ({"timezone": "Mars/Olympus"}, 400),
        ({"catchUp": "some"}, 422),
        ({"start": "2026-01-01T00:00:00"}, 422),
        ({"end": "2020-01-01T00:00:00Z"}, 400),
        ({"more": 1}, 422),
    ],
)
def test_wrong_schedules(change: dict[str, Any], status: int) -> None:
    """Each is refused, and nothing is stored."""
    with client() as api:
        publish(api, PASS, "Daily")
        assert api.put("/api/v1/schedules/noon", json={**DAILY, **change}).status_code == status
        assert api.get("/api/v1/schedules").json() == {"schedules": []}
        assert api.get("/api/v1/schedules/noon").status_code == 404


def test_the_service_starts_what_is_due() -> None:
    """A schedule that was due when the service was down is made up for."""
    store = asl.Store("memory:")
    with client(store) as api:
        publish(api, PASS, "Daily")
        body = {"document": "Daily", "expression": "rate(1 second)"}
        api.put("/api/v1/schedules/often", json=body)
        until(lambda: api.get("/api/v1/schedules/often").json()["latest"])
        (first, *_) = api.get("/api/v1/executions?status=SUCCEEDED").json()["executions"]
        assert first["name"].rpartition(":")[2].startswith("often-")
