"""Recorded histories of earlier versions of the package.

`python -m tests.temporal.histories` replays them; with `record` it first records new ones, which
replace those of the same names. A change that makes one fail stops executions that run while
workers are replaced: give such workers another version (`--build`), and record again.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from asl.core.errors import StateError
from asl.core.values import Json
from asl.temporal import claims
from asl.temporal.worker import WORKFLOWS
from tests.temporal.servers import Server, development

FOLDER: Final = Path(__file__).with_name("histories")


def again(value: int) -> int:
    """Fail for odd numbers."""
    if value % 2:
        raise StateError("Odd", "no")
    return value


def _task(agent: str, **fields: Any) -> Json:
    return {"Type": "Task", "Agent": agent, "End": True, **fields}


def _one(state: Json, name: str = "Do") -> Json:
    return {"StartAt": name, "States": {name: state}}


RETRY: Final = [{"ErrorEquals": ["Odd"], "IntervalSeconds": 1, "MaxAttempts": 1}]
CATCH: Final = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Caught"}]
EACH: Final = {"Type": "Map", "ItemsPath": "$.items", "End": True}
DISTRIBUTED: Final = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
WAIT: Final = {"Type": "Wait", "Seconds": 2, "End": True}
DOCUMENTS: Final[Mapping[str, tuple[Json, Json]]] = {
    "retry": (
        {
            "StartAt": "Try",
            "States": {
                "Try": _task("again", InputPath="$.items[1]", Retry=RETRY, Catch=CATCH),
                "Caught": {"Type": "Pass", "End": True},
            },
        },
        {"items": [0, 1]},
    ),
    "map": (_one({**EACH, "ItemProcessor": _one(_task("same"), "Each")}), {"items": [1, 2, 3]}),
    "parallel": (
        _one(
            {
                "Type": "Parallel",
                "Branches": [_one(WAIT, "Wait"), _one(_task("same"), "Call")],
                "End": True,
            },
        ),
        {"a": 1},
    ),
    "slices": (
        _one({**EACH, "ItemProcessor": {**DISTRIBUTED, **_one(_task("same"), "Each")}}),
        {"items": list(range(25))},
    ),
    "reminders": (
        _one(
            {
                "Type": "Approval",
                "Prompt": "?",
                "Timeout": "3s",
                "Notifications": {"Channels": [{"Type": "mail", "OnlyAfter": "1s"}]},
                "End": True,
            }
        ),
        {},
    ),
    "loop": (
        {
            "StartAt": "Call",
            "States": {
                "Call": _task("same", ResultPath="$.last") | {"Next": "Count"},
                "Count": {
                    "Type": "Pass",
                    "Parameters": {"left.$": "States.MathAdd($.left, -1)"},
                    "Next": "Last",
                },
                "Last": {
                    "Type": "Choice",
                    "Choices": [{"Variable": "$.left", "NumericGreaterThan": 0, "Next": "Call"}],
                    "Default": "End",
                },
                "End": {"Type": "Succeed"},
            },
        },
        {"left": 20},
    ),
}
"""Documents and inputs by name."""
for _state in DOCUMENTS["loop"][0]["States"].values():
    if "Next" in _state:
        _state.pop("End", None)


async def record() -> None:
    """Record the histories of executions, of their slices and of all runs."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json.gz"):
        old.unlink()
    async with development({"again": again, "same": lambda value: value}) as server:
        for name, (document, data) in DOCUMENTS.items():
            handle = await server.start(document, data, name)
            await asyncio.gather(handle.result(), return_exceptions=True)
        async for name, history in _histories(server):
            text = history.to_json().encode()
            (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text, mtime=0))


async def _histories(server: Server) -> AsyncIterator[tuple[str, WorkflowHistory]]:
    count = 0
    async with asyncio.timeout(30):
        while count < len(DOCUMENTS) + 1:  # lists are late
            count = len([each async for each in server.client.list_workflows("")])
    async for each in server.client.list_workflows(""):
        handle = server.client.get_workflow_handle(each.id, run_id=each.run_id)
        yield f"{each.id.replace('/', '_')}-{each.run_id[-4:]}", await handle.fetch_history()


async def replay() -> None:
    """Replay the recorded histories."""
    replayer = Replayer(
        workflows=list(WORKFLOWS),
        workflow_runner=UnsandboxedWorkflowRunner(),
        debug_mode=True,
    )
    found = sorted(FOLDER.glob("*.json.gz"))
    assert found, f"no histories in {FOLDER}"
    for path in found:
        text = gzip.decompress(path.read_bytes()).decode()
        await replayer.replay_workflow(WorkflowHistory.from_json(path.name.split("-")[0], text))
        print(path.name)


if __name__ == "__main__":
    claims.MAX_EVENTS = 60  # the length of a run is a decision of the workflow
    if sys.argv[1:] == ["record"]:
        asyncio.run(record())
    asyncio.run(replay())
    sys.stdout.flush()
    os._exit(0)  # Python 3.11 may abort while the client's threads end
