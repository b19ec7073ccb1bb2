"""Servers of the tests' own, each a process on loopback with a port and a folder of its own."""

import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from asl.engine.memory import ProcessMemory
from asl.memories import bind_memory
from asl.memories.sqlite import SqliteMemory

PATIENCE = 60
"""Seconds until a server must be there."""
TABLES = count()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def server(command: list[str], ready: str, folder: Path) -> Iterator[None]:
    """Run a server from the line in which it says that it is ready until the block ends."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said: list[str] = []
    is_ready = threading.Event()

    def listen(lines: Any) -> None:
        for line in lines:
            said.append(line)
            if ready in line:
                is_ready.set()

    listener = threading.Thread(target=listen, args=(process.stdout,), daemon=True)
    listener.start()
    try:
        assert is_ready.wait(PATIENCE), "".join(said)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)
        listener.join(PATIENCE)
        process.stdout.close()


@pytest.fixture(scope="session")
def redis_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Redis server with the password `geheim`."""
    binary = shutil.which("redis-server") or shutil.which("valkey-server")
    if binary is None:
        pytest.skip("no redis-server is installed here; .ci/run installs it where it can")
    folder, port = tmp_path_factory.mktemp("redis"), free_port()
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    command += ["--save", "", "--requirepass", "geheim"]
    with server(command, "Ready to accept connections", folder):
        yield port


@pytest.fixture
def redis_url(redis_port: int) -> str:
    """The URL of an empty database."""
    from redis import Redis

    url = f"redis://:geheim@127.0.0.1:{redis_port}/0"
    with Redis.from_url(url) as client:
        client.flushall()
    return url


@pytest.fixture(scope="session")
def dynamodb_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that speaks as DynamoDB does.

    All sessions share what botocore has read of the service: to read it takes half a second.
    """
    from botocore import loaders

    folder, port = tmp_path_factory.mktemp("dynamodb"), free_port()
    command = [sys.executable, str(Path(__file__).with_name("dynamodb_server.py")), str(port)]
    with server(command, "Running on", folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr(loaders, "create_loader", cache(loaders.create_loader))
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def dynamodb_url(dynamodb_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty table."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sehr-geheim")
    url = f"dynamodb://memory{next(TABLES)}?region=eu-central-1&endpoint={dynamodb_endpoint}"
    memory: Any = bind_memory(url)["dynamodb"]
    memory.client.create_table(
        TableName=memory.table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("namespace", "key")
        ],
        KeySchema=[
            {"AttributeName": "namespace", "KeyType": "HASH"},
            {"AttributeName": "key", "KeyType": "RANGE"},
        ],
    )
    return url


@pytest.fixture(params=["process", "file", "redis", "dynamodb"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An empty memory of each kind."""
    if request.param == "process":
        return ProcessMemory()
    if request.param == "file":
        return SqliteMemory(tmp_path / "m.db")
    return bind_memory(request.getfixturevalue(f"{request.param}_url"))[request.param]
