"""How many events of a history a step of an execution costs, as in the table of docs/temporal.md.

`python -m tests.temporal.event_counts` measures each on a development server: the events of an
execution with several such steps, less those of an execution with fewer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from temporalio.testing import WorkflowEnvironment

import asl
from asl.core.values import Json
from asl.engine.memory import ProcessMemory
from asl.executions.handle import Handle
from asl.executions.store import Store
from tests.temporal.servers import Server, find_binary, run

INNER: Final[Json] = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
CALL: Final[Json] = {"Type": "Task", "Agent": "A"}
ARN: Final = "arn:aws:states:us-east-1:123456789012:stateMachine:Inner"
START: Final = "arn:aws:states:::states:startExecution"
QUEUE: Final = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"


def _each(mode: str, count: int) -> Json:
    processor: Json = {"StartAt": "A", "States": {"A": {**CALL, "End": True}}}
    if mode == "DISTRIBUTED":
        processor["ProcessorConfig"] = {"Mode": mode, "ExecutionType": "STANDARD"}
    items = [*range(count)]
    return {"Type": "Map", "Items": items, "QueryLanguage": "JSONata", "ItemProcessor": processor}


STEPS: Final[Mapping[str, tuple[Json, Json]]] = {
    "state without effects": ({"Type": "Pass"}, None),
    "call": (CALL, None),
    "call with a memory": (
        {"Type": "Pass", "Memory": {"Write": {"Key": "k", "Value": 1}}},
        None,
    ),
    "checkpoint in a storage": (
        {"Type": "Checkpoint", "Name": "n", "Storage": "elsewhere"},
        None,
    ),
    "Wait": ({"Type": "Wait", "Seconds": 2}, None),
    "approval": ({"Type": "Approval", "Prompt": "ok?"}, None),
    "token": (
        {"Type": "Task", "Resource": QUEUE, "Parameters": {"t.$": "$$.Task.Token"}},
        None,
    ),
    "10 calls of a Map": (_each("INLINE", 11), _each("INLINE", 1)),
    "300 items of a distributed Map": (_each("DISTRIBUTED", 300), {"Type": "Pass"}),
    "execution without waiting": (
        {"Type": "Task", "Resource": START, "Parameters": {"StateMachineArn": ARN}},
        None,
    ),
    "execution with waiting": ({"Type": "Workflow", "WorkflowId": ARN}, None),
    "long Wait": ({"Type": "Wait", "Seconds": 61}, {"Type": "Pass"}),
}
"""A state whose events are counted, less those of the other one, by the name of the step."""


def document(state: Json, count: int) -> Json:
    """Return a document with a state several times, each of which keeps its input."""
    names = [f"S{each}" for each in range(count)]
    states: Json = {"End": {"Type": "Succeed"}}
    keeps = {"Output": "{% $states.input %}"} if "QueryLanguage" in state else {"ResultPath": None}
    if state["Type"] in ("Wait",):
        keeps = {}
    for name, following in zip(names, [*names[1:], "End"], strict=True):
        states[name] = {**state, **keeps, "Next": following}
    return {"StartAt": [*names, "End"][0], "States": states}


def count_events(store: Store, step: str, seconds: float = 30.0) -> int:
    """Return the events that a step costs; the two executions run at the same time.

    Args:
        store: A store with a worker.
        step: Name of the step.
        seconds: Time in which they end.
    """
    state, other = STEPS[step]
    fewer = document(state, 1) if other is None else document(other, 1)
    more = document(state, 2) if other is None else document(state, 1)
    handles = [store.start(each, {}, name=uuid4().hex) for each in (more, fewer)]
    counts = [_events(store, each, time.monotonic() + seconds) for each in handles]
    return counts[0] - counts[1]


def _events(store: Store, handle: Handle, end: float) -> int:
    """Return the events of an execution, whose requests and tokens are answered."""
    while store.client.describe(handle.name).close_time is None:  # type: ignore[attr-defined]
        assert time.monotonic() < end, "it has not ended"
        _answer(store, handle)
        time.sleep(0.02)
    assert handle.result(1).ok, handle.result(1)
    server = Server(store.client.raw)  # type: ignore[attr-defined]
    runs = store.client.run(server.runs(handle.name))  # type: ignore[attr-defined]
    return sum(each.events for each in runs)


def _answer(store: Store, handle: Handle) -> None:
    for request in handle.pending():
        store.answer(request["requestId"], "approve", by="ann")
    for callback in store.result(handle.name).pending_callbacks:
        store.tokens.send_task_success(callback["taskToken"], "1")


@contextmanager
def worker(address: str) -> Iterator[Store]:
    """Run a worker with all that the steps need."""
    with (
        asl.open_store(
            address,
            agents={"A": lambda data: 1},
            resources={"arn:aws:states:::sqs:*": lambda data: None},
            memory={"memory": ProcessMemory()},
            checkpoints={"elsewhere": {}},
            workflows={ARN: INNER},
        ) as store,
        store.runner(),
    ):
        yield store


def main() -> None:
    """Measure all steps."""
    options: Any = {"dev_server_existing_path": find_binary("temporal")}
    env = run(WorkflowEnvironment.start_local(**options, dev_server_log_level="error"))
    target = env.client.service_client.config.target_host
    show: Callable[..., None] = print
    with worker(f"temporal://{target}/default?queue=counts") as store:
        for step in STEPS:
            show(f"{step:34} {count_events(store, step, 300.0)}", flush=True)
    run(env.shutdown())


if __name__ == "__main__":
    main()
