"""The pages: what they show, to whom, and that nothing in them is markup of a workflow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

import asl
from asl.server import app

HELLO = {"StartAt": "Hi", "States": {"Hi": {"Type": "Pass", "End": True}}}


@pytest.fixture
def store() -> Iterator[asl.Store]:
    with asl.open_store("memory:") as opened:
        yield opened


def client(store: asl.Store) -> TestClient:
    return TestClient(
        app(store, local=True), base_url="http://localhost:8083", client=("127.0.0.1", 5)
    )


def test_root_leads_to_the_executions(store: asl.Store) -> None:
    store.run(HELLO, name="first")
    answer = client(store).get("/")
    assert str(answer.url) == "http://localhost:8083/ui/executions"
    assert "first" in answer.text


def test_pages_allow_files_of_this_server_only(store: asl.Store) -> None:
    answer = client(store).get("/ui/executions")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "unsafe" not in policy
    assert "style=" not in answer.text
    assert "<style" not in answer.text


def test_unknown_page_is_an_error_page(store: asl.Store) -> None:
    answer = client(store).get("/ui/nothing")
    assert answer.status_code == 404
    assert "Not Found" in answer.text


def test_page_without_credentials_offers_to_log_in(store: asl.Store) -> None:
    answer = TestClient(app(store)).get("/ui/executions")
    assert answer.status_code == 401
    assert 'href="/ui/login?next=/ui/executions"' in answer.text
