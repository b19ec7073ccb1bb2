"""Metrics, probes and logs of the service and of workers."""

import io
import json
import logging
import re
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")

from starlette.testclient import TestClient

import asl
import asl.server
from asl.effects.clock import VirtualClock
from asl.executions.schedules import Schedule, save_schedule
from asl.server.access.principal import Principal
from asl.server.local import local_access
from asl.server.local import publish as publish_locally
from asl.server.metrics import MOST_WORKFLOWS, ProcessMetrics
from asl.server.monitoring import serve_monitoring
from asl.telemetry.log_lines import log, log_context, log_outcome, write_logs
from tests.server.service import client, publish, start, until, wait_for

PASS = json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+)\})? (\S+)')


def samples(text: str) -> dict[str, float]:
    """Return the values of the text format by name and labels; each line has its form."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match, line
            found[f"{match[1]}{{{match[2] or ''}}}"] = float(match[3])
    return found


def test_metrics_of_a_service() -> None:
    """Open and ended executions, requests of people, and requests by HTTP."""
    with client() as api:
        publish(api)
        publish(api, PASS, "Pass")
        for _ in range(2):
            wait_for(api, start(api, "Pass"), "SUCCEEDED")
        wait_for(api, start(api), "PAUSED")
        api.get("/api/v1/executions/none")
        found = samples(until(lambda: api.get("/metrics").text))
        labels = 'project="default",workflow="Pass"'
        assert found[f'asl_executions_ended_total{{{labels},status="SUCCEEDED"}}'] == 2
        assert found[f'asl_execution_duration_seconds_bucket{{{labels},le="+Inf"}}'] == 2
        labels = 'project="default",workflow="Ship",status="PAUSED"'
        assert found[f"asl_executions_open{{{labels}}}"] == 1
        assert found['asl_requests_open{project="default"}'] == 1
        assert found['asl_workers{project="default"}'] == 1
        assert found['asl_http_requests_total{face="api",method="GET",status="404"}'] == 1
        assert found['asl_http_requests_total{face="api",method="POST",status="201"}'] == 5


def test_metrics_need_a_user_and_show_what_the_user_may_see() -> None:
    """Probes need none, and show nothing."""

    class Header:
        def identify(self, request: Any) -> Principal | None:
            user = request.headers.get("x-user")
            return user and Principal(user, frozenset({"viewer"}), "test", frozenset({"one"}))

    stores = {"one": asl.Store("memory:"), "two": asl.Store("memory:")}
    service = asl.server.app(stores, authenticators=[Header()])
    with TestClient(service) as api:
        assert api.get("/metrics").status_code == 401
        shown = api.get("/metrics", headers={"x-user": "ann"}).text
        assert 'project="one"' in shown
        assert 'project="two"' not in shown
        for path in ("/healthz", "/readyz"):
            assert (api.get(path).status_code, api.get(path).text) == (200, "ok\n")


def test_readiness_ends_with_the_runner_and_the_store() -> None:
    """A service that stops, or whose store cannot be read, gets no more requests."""
    store = asl.Store("memory:")
    service = asl.server.app(store, local=True)
    with TestClient(service) as api:
        assert api.get("/readyz").status_code == 200
        service.stop()
        assert api.get("/readyz").status_code == 503
        assert api.get("/healthz").status_code == 200
    store.close()
    with TestClient(asl.server.app(store, concurrency=0), raise_server_exceptions=False) as api:
        assert (api.get("/readyz").status_code, api.get("/readyz").text) == (503, "not ready\n")


def test_delays_of_a_store() -> None:
    """What no runner has taken, and schedules that nobody has started."""
    clock = VirtualClock()
    with asl.Store("memory:", clock=clock) as store:
        store.start(json.loads(PASS), {}, name="one")
        publish_locally(local_access(store), asl.load(json.loads(PASS)))
        schedule = Schedule(
            name="often",
            machine="arn:aws:states:us-east-1:111111111111:stateMachine:workflow",
            expression="rate(1 minute)",
        )
        save_schedule(store.session, schedule, clock.now())
        clock.elapsed += 90
        found = samples(ProcessMetrics().text({"p": store}))
        assert found['asl_queue_delay_seconds{project="p"}'] == 90
        assert found['asl_schedule_lag_seconds{project="p"}'] == 30
        assert found['asl_schedules{project="p"}'] == 1


def test_the_number_of_labels_is_bounded() -> None:
    """Further workflows share one; names are escaped."""
    metrics = ProcessMetrics()
    for number in range(MOST_WORKFLOWS + 5):
        result = asl.run(asl.load(json.loads(PASS), name=f'w"{number}.json'))
        metrics.count_outcome("p", result)
    found = samples(metrics.text({}))
    ended = {key: value for key, value in found.items() if key.startswith("asl_executions_ended")}
    assert len(ended) == MOST_WORKFLOWS + 1
    assert ended['asl_executions_ended_total{project="p",workflow="other",status="SUCCEEDED"}'] == 5
    assert r'workflow="w\"7"' in metrics.text({})


def test_monitoring_of_a_worker() -> None:
    """Without users."""
    with asl.Store("memory:") as store:
        metrics = ProcessMetrics()
        with serve_monitoring({"default": store}, metrics, list, "127.0.0.1", 0) as url:
            with urllib.request.urlopen(f"{url}/metrics") as answer:
                assert "asl_workers" in answer.read().decode()
            with urllib.request.urlopen(f"{url}/readyz") as answer:
                assert answer.status == 200


# Logs --------------------------------------------------------------------------------------------


@pytest.fixture
def lines(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Write logs into memory, and return a function that reads them."""
    root, own = logging.getLogger(), logging.getLogger("asl")
    before, level = root.handlers, own.level
    stream = io.StringIO()
    write_logs(request.param, stream)
    yield lambda: stream.getvalue().splitlines()
    root.handlers = before
    own.setLevel(level)


@pytest.mark.parametrize("lines", ["json"], indirect=True)
def test_requests_and_outcomes_are_logged(lines: Any) -> None:
    """A line has the id of its request, its user and what was done; credentials are in none."""
    with client() as api:
        publish(api, PASS, "Pass")
        headers = {"x-request-id": "from-proxy-1"}
        body = {"document": "Pass", "input": {"password": "hunter2"}}
        answer = api.post("/api/v1/executions?x=secret", json=body, headers=headers)
        assert answer.headers["x-request-id"] == "from-proxy-1"
        wait_for(api, answer.json()["id"], "SUCCEEDED")
        assert api.get("/me", headers={"x-request-id": "a b"}).headers["x-request-id"] != "a b"
        api.get("/links/one-use-token")
        api.get("/healthz")
    found = [json.loads(line) for line in lines()]
    (request,) = (each for each in found if each.get("request") == "from-proxy-1")
    expected = {"face": "api", "method": "POST", "status": 201, "action": "execution.start"}
    assert expected.items() <= request.items()
    assert request["user"]
    (ended,) = (each for each in found if each["logger"] == "asl.executions")
    assert (ended["execution"], ended["status"]) == (request["target"], "SUCCEEDED")
    text = "\n".join(lines())
    assert "hunter2" not in text
    assert "secret" not in text
    assert "one-use-token" not in text
    assert "/links/..." in text
    assert "/healthz" not in text


@pytest.mark.parametrize("lines", ["json", "text"], indirect=True)
def test_a_line_for_each_event(lines: Any) -> None:
    """Texts from outside cannot forge a line."""
    with log_context({"request": "r"}):
        log("asl.test", "event", name="a\nlevel=error\x1b[31m", number=1)
    log_outcome("default", "one", "no agent 'X'")
    logging.getLogger("other").info("not written")
    logging.getLogger("other").warning("written\nin one line")
    assert len(lines()) == 3
    if lines()[0].startswith("{"):
        assert [json.loads(each)["level"] for each in lines()] == ["info", "info", "warning"]
        assert json.loads(lines()[0])["name"] == "a\nlevel=error\x1b[31m"
    else:
        assert "request=r" in lines()[0]
        assert "\x1b" not in lines()[0]
