"""One server of moto for all tests of a process, with empty services for each test."""

import json
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from boto3.session import Session

import asl.aws
from asl.aws import Integrations
from tests.memories.conftest import free_port, server

REGION = "us-east-1"
CONFIG = {
    "batch": {"use_docker": False},
    "lambda": {"use_docker": False},
    "stepfunctions": {"execute_state_machine": True},
}


@pytest.fixture(scope="session")
def moto_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running server."""
    port = free_port()
    command = [sys.executable, str(Path(__file__).with_name("moto_server.py")), str(port)]
    with server(command, "Running on", tmp_path_factory.mktemp("moto")):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def endpoint(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a server without any data; there are no credentials in the environment."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    _post(f"{moto_url}/moto-api/reset", {})
    _post(f"{moto_url}/moto-api/config", CONFIG)
    return moto_url


def _post(url: str, body: Any) -> None:
    data = json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30).close()


@pytest.fixture
def moto_api(endpoint: str) -> Callable[[str, Any], None]:
    """Send a request to moto's own API."""
    return lambda path, body: _post(f"{endpoint}/moto-api/{path}", body)


@pytest.fixture
def aws(endpoint: str) -> Integrations:
    """The binding for the server."""
    return asl.aws.integrations(endpoint_url=endpoint, region=REGION)


@pytest.fixture
def client(endpoint: str) -> Callable[[str], Any]:
    """Return a client of a service at the server."""
    session = Session("test", "test", region_name=REGION)
    return lambda service: session.client(service, endpoint_url=endpoint)
