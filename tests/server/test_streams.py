"""Streams of events: live, resumed, of many watchers, and of slow ones."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")

import asl
from asl.server import streams
from asl.server.streams import EventHub
from tests.server.service import client, publish, start, wait_for

LOOP = {
    "StartAt": "Items",
    "States": {
        "Items": {
            "Type": "Map",
            "ItemsPath": "$",
            "ItemProcessor": {
                "StartAt": "One",
                "States": {"One": {"Type": "Task", "Agent": "One", "End": True}},
            },
            "End": True,
        }
    },
}


def parsed(texts: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream."""
    for line in texts:
        if line.startswith("data: {"):
            yield json.loads(line[6:])


async def collect(events: AsyncIterator[bytes]) -> list[dict[str, Any]]:
    text = b"".join([part async for part in events]).decode()
    return [*parsed(iter(text.splitlines()))]


def opened() -> asl.Store:
    async def one(data: Any) -> Any:
        await asyncio.sleep(0)
        return data

    return asl.Store("memory:", agents={"One": one})


def test_a_stream_has_the_whole_history() -> None:
    """In order, with the ids of the history; from any event on."""
    with client(opened()) as api:
        publish(api, json.dumps(LOOP), "Loop")
        key = start(api, "Loop", input=[*range(20)])
        with api.stream("GET", f"/api/v1/executions/{key}/stream") as live:
            ids = [each.get("id") for each in parsed(live.iter_lines())]
        history = api.get(f"/api/v1/executions/{key}/events?limit=5000").json()["events"]
        assert ids == [*(each["id"] for each in history), None]
        resumed = {"Last-Event-ID": "30"}
        with api.stream("GET", f"/api/v1/executions/{key}/stream", headers=resumed) as rest:
            assert [each.get("id") for each in parsed(rest.iter_lines())] == ids[30:]
        wrong = api.get(f"/api/v1/executions/{key}/stream", headers={"Last-Event-ID": "x"})
        assert wrong.status_code == 400


@pytest.mark.parametrize("kept", [3, 10, 2000])
def test_watchers_share_one_reader(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sees every event once, in order, also if few are kept in memory."""
    monkeypatch.setattr(streams, "KEPT", kept)
    monkeypatch.setattr(streams, "POLL", 0.001)

    async def scenario() -> None:
        with opened() as store:
            hub = EventHub(store)
            async with store.runner():
                handle = await store.astart(LOOP, [*range(30)])
                early = [asyncio.create_task(collect(hub.watch(handle.name))) for _ in range(5)]
                slow = asyncio.create_task(slowly(hub.watch(handle.name)))
                found = await asyncio.gather(*early)
                expected = [each.id for each in store.events(handle.name)]
                for events in found:
                    assert [each["id"] for each in events] == expected
                assert await slow == expected
                assert await collect(hub.watch(handle.name, expected[-1])) == []
                late = await collect(hub.watch(handle.name, 7))
                assert [each["id"] for each in late] == expected[7:]
            assert hub._topics == {}

    asyncio.run(scenario())


async def slowly(events: AsyncIterator[bytes]) -> list[int]:
    """Return the ids of a watcher that yields the processor often between two reads."""
    ids: list[int] = []
    async for part in events:
        ids += [each["id"] for each in parsed(iter(part.decode().splitlines()))]
        for _ in range(50):
            await asyncio.sleep(0)
    return ids


def test_tokens_of_a_model_come_live() -> None:
    """Chunks are streamed before the answer is complete, and have no id then."""
    go_on: list[asyncio.Event] = []

    async def write(data: Any, call: asl.Call) -> str:
        go_on.append(asyncio.Event())
        call.report_chunk("Hel")
        await go_on[0].wait()
        call.report_chunk("lo")
        return "Hello"

    document = {
        "StartAt": "Say",
        "States": {
            "Say": {"Type": "Task", "Agent": "Writer", "Streaming": {"Enabled": True}, "End": True}
        },
    }

    async def scenario() -> list[tuple[int, str]]:
        with asl.Store("memory:", agents={"Writer": write}) as store:
            hub, seen = EventHub(store), []
            async with store.runner():
                handle = await store.astart(document)
                async for part in hub.watch(handle.name):
                    for each in parsed(iter(part.decode().splitlines())):
                        if each["type"] == "StreamChunk":
                            seen.append((each["id"], each["details"]["chunk"]))
                            go_on[0].set()
            return seen

    first, second = asyncio.run(asyncio.wait_for(scenario(), 20))
    assert (first, second[1]) == ((0, "Hel"), "lo")


def test_silence_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream without events sends comments, so that proxies keep it open."""

    async def scenario() -> bytes:
        document = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 60, "End": True}}}
        with asl.Store("memory:") as store:
            handle = await store.astart(document)
            async for part in EventHub(store).watch(handle.name, 10_000, 0.001):
                return part
        return b""

    assert asyncio.run(scenario()).startswith(b":")


def test_a_stream_of_an_aborted_execution_ends() -> None:
    """Watchers are not left waiting."""
    with client() as api:
        publish(api)
        key = start(api)
        wait_for(api, key, "PAUSED")
        api.post(f"/api/v1/executions/{key}/cancel")
        with api.stream("GET", f"/api/v1/executions/{key}/stream") as live:
            last = [each.get("type") for each in parsed(live.iter_lines())][-2:]
        assert last == ["ExecutionAborted", None]
