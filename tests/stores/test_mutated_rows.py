"""Stored content that somebody has changed, with right checksums and hashes.

Continuing such an execution ends with a result or names the damage, and never with another error.
"""

import asyncio
import copy
import json
import random
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import asl
from asl.core.values import compact, encode
from asl.executions import Store

Line = dict[str, Any]

DOCUMENT = {
    "QueryLanguage": "JSONata",
    "StartAt": "Plan",
    "Budget": {"MaxCost": 5},
    "States": {
        "Plan": {
            "Type": "Task",
            "Agent": "Plan",
            "Assign": {"plan": "{% $states.result %}"},
            "Next": "Each",
        },
        "Each": {
            "Type": "Map",
            "Items": [1, 2, 3],
            "ItemProcessor": {
                "StartAt": "Work",
                "States": {
                    "Work": {"Type": "Task", "Agent": "Work", "Next": "Rest"},
                    "Rest": {"Type": "Wait", "Seconds": 600, "Next": "More"},
                    "More": {"Type": "Task", "Agent": "More", "End": True},
                },
            },
            "Next": "Save",
        },
        "Save": {"Type": "Checkpoint", "Name": "saved", "Next": "Ask"},
        "Ask": {"Type": "Approval", "Prompt": "Go?", "Next": "Last"},
        "Last": {
            "Type": "Task",
            "Agent": "Last",
            "Retry": [{"ErrorEquals": ["Model.Busy"], "MaxAttempts": 1}],
            "End": True,
        },
    },
}
VALUES: list[Any] = [None, True, -1, 7, 1e300, "x", "", [], {}, [[]], {"json": 1}, ["call", 1]]


def plan(_: Any) -> Any:
    return {"text": "x", "_tokens": 3, "_cost": 0.01}


def interrupted(_: Any) -> Any:
    raise KeyboardInterrupt


def failed(_: Any) -> Any:
    raise asl.StateError("Model.Bad", "no")


AGENTS: dict[str, Any] = {"Plan": plan, "Work": plan, "More": plan, "Last": plan}


def opened(path: Path, **agents: Any) -> Store:
    return Store(path, synchronous="OFF", clock=asl.VirtualClock(), agents={**AGENTS, **agents})


def export(store: Store) -> Line:
    (found,) = store.export()
    line: Line = json.loads(compact(found))
    return line


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Line]:
    """Exported executions: interrupted in a Map, paused at an approval, answered, failed."""
    folder, made = tmp_path_factory.mktemp("lines"), {}
    with (
        pytest.raises(KeyboardInterrupt),
        opened(folder / "interrupted.db", More=interrupted) as store,
    ):
        store.run(DOCUMENT, {}, name="it")
    with opened(folder / "interrupted.db") as store:
        made["interrupted"] = export(store)
    with opened(folder / "paused.db", Last=failed) as store:
        store.run(DOCUMENT, {}, name="it")
        made["paused"] = export(store)
        store.answer(store.pending()[0]["requestId"], "approve", by="ann")
        made["answered"] = export(store)
        assert not store.resume("it").ok
        made["failed"] = export(store)
    return made


def mutated(value: Any, draw: random.Random) -> Any:
    """Return JSON with another value, or none, at one place."""
    value = copy.deepcopy(value)
    places = [*_places(value)]
    if not places:
        return draw.choice(VALUES)
    holder, key = draw.choice(places)
    if draw.random() < 0.2:
        del holder[key]
    else:
        holder[key] = draw.choice(VALUES)
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    members = value.items() if type(value) is dict else enumerate(value)
    for key, member in [*members]:
        yield value, key
        if type(member) in (dict, list):
            yield from _places(member)


def _mutated_body(body: bytes, draw: random.Random) -> bytes:
    value = mutated(json.loads(body[9:]), draw)
    text = encode(value)
    return b"=%08x%s" % (crc32(text), text)


def mutated_line(line: Line, draw: random.Random) -> Line:
    """Return an archive with one changed step or value, and the hashes that it needs."""
    line = copy.deepcopy(line)
    line.pop("sha256")
    rows = line["executions"][0]
    values = [
        (row, column)
        for table in ("execution", "request", "checkpoint")
        for row in rows[table]
        for column in ("bound", "usage", "body", "received", "answer")
        if type(row.get(column)) is dict and b64decode(row[column]["base64"])[:1] == b"="
    ]
    if values and draw.random() < 0.3:
        row, column = draw.choice(values)
        body = _mutated_body(b64decode(row[column]["base64"]), draw)
        row[column] = {"base64": b64encode(body).decode()}
    else:
        step = draw.choice(rows["step"])
        body = encode(mutated(json.loads(b64decode(step[1]["base64"])), draw))
        step[1] = {"base64": b64encode(body).decode()}
        chain = b64decode(rows["execution"][0]["chain"]["base64"])
        for step in rows["step"]:
            chain = sha256(chain + b64decode(step[1]["base64"])).digest()
            step[0] = {"base64": b64encode(chain).decode()}
    return {**line, "sha256": sha256(compact(line).encode()).hexdigest()}


def continue_by_runner(store: Store) -> None:
    reported: dict[str, Any] = {}

    async def drained() -> None:
        async with store.runner(report=reported.__setitem__) as runner:
            await runner.drain()

    with asyncio.Runner(loop_factory=store.clock.new_event_loop) as loop:
        loop.run(drained())
    assert "internal error" not in str(reported.get("it"))


def continue_here(store: Store, name: str) -> None:
    try:
        if name == "failed":
            store.redrive("it")
        else:
            store.resume("it")
    except asl.AslError:
        pass


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", ["interrupted", "paused", "answered", "failed"])
def test_continuing_mutated_content(
    name: str, seed: int, lines: dict[str, Line], tmp_path: Path
) -> None:
    draw = random.Random(f"{name} {seed}")
    line = mutated_line(lines[name], draw)
    with opened(tmp_path / "runs.db") as store:
        try:
            store.import_execution(line)
        except asl.StoreError:
            return
        if seed % 2 and name != "failed":
            continue_by_runner(store)
        else:
            continue_here(store, name)
