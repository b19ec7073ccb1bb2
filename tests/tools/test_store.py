"""Tools in executions that survive their process."""

from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import asl
from asl.executions import Store
from tests.deaths import Died

from .workflows import told

Json = Any
TASK = {"Type": "Task", "Agent": "A", "ResultPath": "$.r"}


def opened(folder: Path, **bindings: Any) -> Store:
    return Store(folder / "runs.db", clock="virtual", synchronous="OFF", **bindings)


def test_events_of_tools_occur_once(tmp_path: Path) -> None:
    """By the process that goes on, too; and their rates hold over both."""
    document = {
        "StartAt": "One",
        "DefaultTools": {"RateLimits": {"search": {"MaxPerDay": 2}}},
        "States": {
            "One": {**TASK, "Next": "Ask"},
            "Ask": {"Type": "Approval", "Prompt": "On?", "ResultPath": "$.a", "Next": "Two"},
            "Two": {**TASK, "Next": "Three"},
            "Three": {**TASK, "End": True},
        },
    }
    bindings: Any = {
        "agents": {"A": {"use": [{"tool": "search"}]}},
        "tools": {"search": {"return": {"_tokens": 5}}},
    }
    with opened(tmp_path, **bindings) as store:
        assert store.run(document, {}, name="e").status == "PAUSED"
    with opened(tmp_path, **bindings) as store:
        (request,) = store.pending()
        store.answer(request["requestId"], "approve", by="ann")
        result = store.resume("e")
        events = told(result)
    assert result.error == "States.RateLimitExceeded"
    assert result.visited == ["One", "Ask", "Two", "Three"]
    assert result.usage["tokens"] == 10
    assert events == [
        ("ToolCalled", "search", None),
        ("ToolCalled", "search", None),
        ("ToolRefused", "search", "States.RateLimitExceeded"),
    ]


def test_requests_hold_over_both(tmp_path: Path) -> None:
    """What reached the network before a pause counts after it."""
    document = {
        "StartAt": "One",
        "DefaultTools": {"Network": {"AllowedDomains": ["*"], "MaxRequestsPerMinute": 1}},
        "States": {
            "One": {**TASK, "Next": "Ask"},
            "Ask": {"Type": "Approval", "Prompt": "On?", "ResultPath": "$.a", "Next": "Two"},
            "Two": {**TASK, "End": True},
        },
    }
    calls = [{"tool": "fetch", "arguments": {"url": "https://example.org"}}]
    bindings: Any = {"agents": {"A": {"use": calls}}, "tools": {"fetch": {"return": 1}}}
    with opened(tmp_path, **bindings) as store:
        assert store.run(document, {}, name="e").status == "PAUSED"
    with opened(tmp_path, **bindings) as store:
        (request,) = store.pending()
        store.answer(request["requestId"], "approve", by="ann")
        result = store.resume("e")
        assert (result.error, result.visited[-1]) == ("States.RateLimitExceeded", "Two")


def test_an_agent_that_died_asks_its_tools_again(tmp_path: Path) -> None:
    """With the same keys; what came of it before was never told."""
    keys: list[str] = []

    def tool(arguments: Json, call: asl.Call) -> Json:
        keys.append(call.idempotency_key)
        return {"_cost": 1}

    async def agent(parameters: Json, call: asl.Call) -> Json:
        await call.tools.call("t", {"n": 1})
        if len(keys) == 1:
            raise Died
        return await call.tools.call("t", {"n": 2})

    document = {
        "StartAt": "One",
        "Budget": {"MaxCost": 5},
        "States": {"One": {**TASK, "Budget": {"MaxCost": 2}, "End": True}},
    }
    bindings: Any = {"agents": {"A": agent}, "tools": {"t": tool}}
    with opened(tmp_path, **bindings) as store, pytest.raises(Died):
        store.run(document, {}, name="e")
    with opened(tmp_path, **bindings) as store:
        result = store.resume("e")
        events = told(result)
    assert keys[0] == keys[1] != keys[2]
    assert events == [("ToolCalled", "t", None)] * 2
    # Both calls, and the answer of the agent, which says the same again.
    assert (result.usage["cost"], result.error) == (3, "States.BudgetExceeded")


@pytest.mark.parametrize(
    ("default", "error", "cause"),
    [
        ({"Denied": ["delete"]}, "States.Permissions", "tool 'delete' is denied"),
        (
            {"Hooks": {"Before": {"Agent": "A"}}},
            "States.Permissions",
            "tool 'delete' is not allowed",
        ),
        ({"Denied": ["other"]}, None, None),
    ],
)
def test_an_execution_that_was_left_keeps_its_rights(
    tmp_path: Path, default: Json, error: str | None, cause: str | None
) -> None:
    """Though it goes on alone; a hook that cannot be asked any more denies everything."""
    starts = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution",
        "Parameters": {"StateMachineArn": "child", "Name": "kid", "Input": {}},
        "End": True,
    }
    child = {
        "StartAt": "Ask",
        "States": {
            "Ask": {"Type": "Approval", "Prompt": "On?", "ResultPath": "$.a", "Next": "One"},
            "One": {**TASK, "End": True},
        },
    }
    bindings: Any = {
        "agents": {"A": {"use": [{"tool": "delete"}]}},
        "tools": {"delete": {"return": "gone"}},
        "workflows": {"child": child},
    }
    with opened(tmp_path, **bindings) as store:
        document = {"StartAt": "S", "DefaultTools": default, "States": {"S": starts}}
        assert store.run(document, {}, name="e").ok
    with opened(tmp_path, **bindings) as store:
        (request,) = store.pending()
        store.answer(request["requestId"], "approve", by="ann")
        result = store.resume("kid")
        assert (result.error, result.cause) == (error, cause)
        assert not list(store.faults())


SEARCHES: Any = {
    "agents": {"A": {"use": [{"tool": "search"}]}},
    "tools": {"search": {"return": 1}},
}


def limited(limit: Json) -> Json:
    return {
        "StartAt": "One",
        "DefaultTools": {"RateLimits": {"search": limit}},
        "States": {"One": {**TASK, "End": True}},
    }


def test_executions_of_a_workflow_count_together(tmp_path: Path) -> None:
    """Also those of other processes; an execution of another workflow does not."""
    program = asl.compile(asl.load(limited({"MaxPerDay": 2}), name="w"))
    other = asl.compile(asl.load(limited({"MaxPerDay": 2}), name="v"))
    with opened(tmp_path, **SEARCHES) as store:
        assert store.run(program, {}, name="a").ok
    with opened(tmp_path, **SEARCHES) as store:
        assert store.run(program, {}, name="b").ok
        assert store.run(program, {}, name="c").error == "States.RateLimitExceeded"
        assert store.run(other, {}, name="d").ok


def test_a_window_passes_between_executions(tmp_path: Path) -> None:
    """What was called longer ago counts no more."""
    clock = asl.VirtualClock()
    with Store(tmp_path / "runs.db", clock=clock, synchronous="OFF", **SEARCHES) as store:
        document = limited({"MaxPerMinute": 1, "OnExceed": "wait"})
        began = clock.now()
        assert store.run(document, {}, name="a").ok
        assert store.run(document, {}, name="b").ok
        assert clock.now() - began == 60


def test_a_call_that_died_is_no_longer_under_way(tmp_path: Path) -> None:
    """Once its execution goes on; to others it counts until then."""
    died = tmp_path / "died"

    def tool(arguments: Json) -> Json:
        if not died.exists():  # what a process leaves that dies here
            copytree(tmp_path, died)
        return 1

    program = asl.compile(asl.load(limited({"MaxConcurrent": 1}), name="w"))
    bindings = {**SEARCHES, "tools": {"search": tool}}
    with opened(tmp_path, **bindings) as store:
        assert store.run(program, {}, name="a").ok
    with opened(died, **bindings) as store:
        assert store.run(program, {}, name="b").error == "States.RateLimitExceeded"
        assert store.resume("a").ok
        assert store.run(program, {}, name="c").ok


def test_runs_on_one_clock_count_together() -> None:
    """Without a store the clock is what they share: real time, or a virtual one."""
    clock = asl.VirtualClock()
    first = asl.run(limited({"MaxPerHour": 1}), clock=clock, **SEARCHES)
    second = asl.run(limited({"MaxPerHour": 1}), clock=clock, **SEARCHES)
    third = asl.run(limited({"MaxPerHour": 1}), clock="virtual", **SEARCHES)
    assert (first.ok, second.error, third.ok) == (True, "States.RateLimitExceeded", True)
