"""Errors of a store on Temporal say what to do."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode

import asl
from asl.stores.errors import StoreError
from asl.temporal import claims, client
from asl.temporal.replays import replayed_execution
from tests.temporal.test_serve import until

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""

HISTORIES = Path(__file__).parent / "histories"
ASK: Any = {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "?", "End": True}}}


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (RPCStatusCode.UNAVAILABLE, "tcp connect error", "cannot reach Temporal at .*: start it"),
        (RPCStatusCode.INVALID_ARGUMENT, "exceeds size limit", "too large .* bucket"),
        (RPCStatusCode.PERMISSION_DENIED, "no", "refuses the request: no"),
    ],
)
def test_answers_of_the_server(
    address: str, status: RPCStatusCode, text: str, expected: str
) -> None:
    async def fail() -> None:
        raise RPCError(text, status, b"")

    with asl.open_store(address) as store, pytest.raises(StoreError, match=expected):
        store.client.run(fail())  # type: ignore[attr-defined]


def test_closing_waits_for_callbacks_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread in one when Python ends would abort the process."""
    entered, released = Event(), Event()

    def write() -> None:
        entered.set()
        released.wait()

    loop = asyncio.new_event_loop()
    monkeypatch.setattr(loop, "_write_to_self", write)
    library = Thread(target=loop.call_soon_threadsafe, args=(print,))
    library.start()
    entered.wait()
    assert client.calls_back()
    released.set()
    client.await_library()
    assert not client.calls_back()
    library.join()
    loop.close()


def test_a_history_of_another_interpreter() -> None:
    """It cannot be shown, and the message names the way out."""
    (path,) = HISTORIES.glob("retry-*.json.gz")
    text = gzip.decompress(path.read_bytes()).decode().replace('"asl.call"', '"asl.former"')
    history = WorkflowHistory.from_json("retry", text)
    with pytest.raises(StoreError, match="cannot replay the execution 'retry': start a worker"):
        asyncio.run(replayed_execution(history, DataConverter.default))


def test_a_worker_of_another_interpreter(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The execution is stuck, with the reason."""
    name = uuid4().hex
    with asl.open_store(address) as store:
        assert store.run(ASK, {}, name=name).status == "PAUSED"
        monkeypatch.setattr(claims, "MAX_EVENTS", 1)  # it would continue in a new run before
        (request,) = store.pending(name)
        store.answer(request["requestId"], "approve")
        with store.runner():
            (reason,) = until(lambda: store.stuck().get(name))
            assert reason.startswith("its workers fail to continue it: ")
            assert "version" in reason
            with pytest.raises(StoreError, match="cannot replay"):
                store.get(name)
