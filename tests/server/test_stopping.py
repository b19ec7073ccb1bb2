"""`asl serve` stops: running calls end, streams are closed, and the exit code is 0."""

import json
import signal
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

import asl
from tests.cli.test_serve import server_process

AGENT = """
import asyncio
from pathlib import Path

async def work(data, call):
    log = Path(__file__).with_name("calls.log")
    with log.open("a") as file:
        file.write(f"begins {call.state_name}\\n")
    await asyncio.sleep(1)
    with log.open("a") as file:
        file.write(f"ends {call.state_name}\\n")
    return data
"""
DOCUMENT = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Agent": "W", "Next": "B"},
        "B": {"Type": "Task", "Agent": "W", "End": True},
    },
}


def test_a_server_stops_after_its_calls(tmp_path: Path) -> None:
    """The next server continues the execution; no call is made twice."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "two.asl.json").write_text(json.dumps(DOCUMENT))
    words = ("two.asl.json", "--store", "runs.db", "--agent", "W=agent:work")
    with server_process(tmp_path, *words) as (process, url):
        started = send(url, "POST", "/api/v1/executions", {"document": "two", "name": "one"})
        with closing(HTTPConnection(url.removeprefix("http://"))) as stream:
            stream.request("GET", f"/api/v1/executions/{started['id']}/stream")
            answer = stream.getresponse()
            while not (tmp_path / "calls.log").exists():
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            text = answer.read().decode()
        assert "event: TaskStateEntered" in text
        assert "event: end" not in text
        assert process.wait(20) == 0
    assert (tmp_path / "calls.log").read_text().splitlines() == ["begins A", "ends A"]
    with asl.Store(tmp_path / "runs.db") as store:
        (stored,) = store.executions()
        assert stored.status == "PAUSED"
    with server_process(tmp_path, *words) as (_, url):
        while send(url, "GET", f"/api/v1/executions/{started['id']}")["status"] != "SUCCEEDED":
            time.sleep(0.05)
    calls = (tmp_path / "calls.log").read_text().splitlines()
    assert calls == ["begins A", "ends A", "begins B", "ends B"]


def send(url: str, method: str, path: str, body: Any = None) -> Any:
    with closing(HTTPConnection(url.removeprefix("http://"))) as connection:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())
