"""A moto server behind the projects, and servers of `asl serve` before it."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from asl.cli.main import cli
from tests.aws.conftest import endpoint, moto_url
from tests.memories.conftest import free_port

__all__ = ["ACCOUNT", "endpoint", "moto_url", "serve_by_command", "serve_in_process"]

ACCOUNT = "123456789012"
"""The account of moto."""
READY = re.compile(r"AWS_ENDPOINT_URL_SFN=(\S+)")
PATIENCE = 30
"""Seconds until a server must answer."""


@contextmanager
def serve_by_command(folder: Path, words: list[str]) -> Iterator[str]:
    """Start `asl serve` as a process in a folder; yields its URL."""
    with subprocess.Popen(
        [sys.executable, "-m", "asl", "serve", "--port", "0", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        said: list[str] = []
        try:
            url = None
            for line in process.stdout:
                said.append(line)
                if found := READY.search(line):
                    url = found[1]
                    break
            assert url, "".join(said)
            drain = threading.Thread(target=said.extend, args=(process.stdout,), daemon=True)
            drain.start()
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)
            print("".join(said))


@contextmanager
def serve_in_process(folder: Path, words: list[str]) -> Iterator[str]:
    """Run the command `asl serve` in a thread of this process, in a folder; yields its URL."""
    from asl.server import serving
    from asl.service import server as service

    ready, stop = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def run_server(application: Any, listener: Any, ready_call: Any, on_stop: Any) -> None:
        server = service._server(application)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started and thread.is_alive():
            thread.join(0.005)
        ready.set()
        stop.wait()
        server.should_exit = True
        thread.join()

    def run() -> None:
        try:
            code = cli.main(["serve", *words], prog_name="asl", standalone_mode=False)
            assert code in (0, None), code
        except BaseException as failure:
            failures.append(failure)
        finally:
            ready.set()

    port = free_port()
    words = ["--port", str(port), *words]
    thread = threading.Thread(target=run)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(serving, "run_server", run_server)
        thread.start()
        try:
            assert ready.wait(PATIENCE)
            assert not failures, failures
            yield f"http://127.0.0.1:{port}"
        finally:
            stop.set()
            thread.join(PATIENCE)
