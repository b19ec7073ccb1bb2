"""Budgets that executions on Temporal share: pools, limits per hour and day, counts of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

import asl
from asl.core.values import Json
from asl.temporal import claims
from asl.temporal.budgets import client as budget_client
from asl.temporal.budgets import in_workflows
from asl.temporal.budgets import workflow as budget_workflow
from asl.temporal.budgets.client import BudgetClient
from asl.temporal.budgets.workflow import ExchangeMessage
from asl.temporal.store import TemporalStore
from asl.temporal.worker import WORKFLOWS
from tests.temporal.servers import find_binary, run

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The host and port of a development server."""
    options: Any = {
        "dev_server_existing_path": find_binary("temporal"),
        "dev_server_log_level": "error",
    }
    env = run(WorkflowEnvironment.start_local(**options))
    yield env.client.service_client.config.target_host
    run(env.shutdown())


@pytest.fixture
def store(server: str) -> Iterator[TemporalStore]:
    """An empty queue, whose waiting calls look again soon."""
    address = f"temporal://{server}/default?queue={uuid4().hex[:8]}"
    given: Any = {"workflows": {"child": spending(Pool="p")}, "pools": {"p": "1"}}
    with TemporalStore(address, **given) as opened:
        yield opened


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for less time than in production."""
    monkeypatch.setattr(in_workflows, "INTERVAL", 0.2)
    monkeypatch.setattr(budget_workflow, "SILENT", 0.0)
    monkeypatch.setattr(budget_client, "LOOK", 0.0)


def spending(**budget: Any) -> Any:
    """Return a document that calls an agent within a budget."""
    call = {"Type": "Task", "Agent": "pay", "End": True}
    return {"Budget": budget, "StartAt": "Pay", "States": {"Pay": call}}


def pay(data: Any) -> Any:
    """Cost what the input says."""
    return {"_cost": data}


def budget(store: TemporalStore) -> tuple[float, float]:
    """Return what is spent and reserved of the only budget."""
    (found,) = store.shared_budgets()
    return float(sum(found.spent.values())), float(found.reserved)


class Gate:
    """An agent that begins when it is called and ends when it may."""

    def __init__(self) -> None:
        self.calls = 0
        self.begun, self.may_end = Event(), Event()

    def __call__(self, data: Any) -> Any:
        self.calls += 1
        self.begun.set()
        assert self.may_end.wait(30)
        return {"_cost": data}


def wait(store: TemporalStore, *names: str) -> list[Any]:
    """Return the results of executions that other threads run."""

    async def results() -> None:
        handles = [store.client.raw.get_workflow_handle(name) for name in names]
        await asyncio.gather(*(each.result() for each in handles), return_exceptions=True)

    store.client.run(results())
    return [store.result(name) for name in names]


def test_a_call_waits_for_that_of_another_execution(store: TemporalStore) -> None:
    agent, document = Gate(), spending(Pool="p")
    with store.runner(agents={"pay": agent}):
        first, second = (store.start(document, 0.7).name for _ in range(2))
        assert agent.begun.wait(20)
        assert budget(store) != (0, 0)
        agent.may_end.set()
        results = wait(store, first, second)
    assert agent.calls == 2
    assert sorted(each.status for each in results) == ["FAILED", "SUCCEEDED"]
    assert budget(store) == (1.4, 0)


def test_a_limit_per_day_counts_all_executions(store: TemporalStore) -> None:
    bindings: Any = {"agents": {"pay": pay}}
    document = spending(MaxCostPerDay=1, MaxCostPerHour=5)
    ends = [store.run(document, 0.5, **bindings).status for _ in range(3)]
    assert ends == ["SUCCEEDED", "SUCCEEDED", "FAILED"]
    names = [each.name.partition(" ")[0] for each in store.shared_budgets()]
    assert names == ["MaxCostPerDay", "MaxCostPerHour"]


def test_children_and_started_executions_spend_from_the_pool(store: TemporalStore) -> None:
    document = {
        "Budget": {"Pool": "p"},
        "StartAt": "Child",
        "States": {
            "Child": {"Type": "Workflow", "WorkflowId": "child", "Next": "Start"},
            "Start": {
                "Type": "Task",
                "Resource": "arn:aws:states:::states:startExecution",
                "Parameters": {"StateMachineArn": "child", "Name": uuid4().hex, "Input": 0.3},
                "End": True,
            },
        },
    }
    with store.runner(agents={"pay": pay}):
        parent = store.start(document, 0.2).name
        started = document["States"]["Start"]["Parameters"]["Name"]
        results = wait(store, parent) + wait(store, started)
    assert [each.status for each in results] == ["SUCCEEDED"] * 2
    assert budget(store) == (0.5, 0)


def test_machines_of_an_execution_pass_the_budget_on(store: TemporalStore) -> None:
    document = {
        "Budget": {"Pool": "p"},
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "ItemProcessor": {
                    "StartAt": "Pay",
                    "States": {"Pay": {"Type": "Task", "Agent": "pay", "End": True}},
                },
                "End": True,
            }
        },
    }
    result = store.run(document, [0.1] * 20, agents={"pay": pay}, pools={"p": 9})
    assert result.ok
    assert budget(store) == (2, 0)


def test_a_cancelled_execution_releases_its_reservation(store: TemporalStore) -> None:
    agent = Gate()
    document = spending(Pool="p", MaxFromPool="0.6")
    with store.runner(agents={"pay": agent}):
        name = store.start(document, 0.5).name
        assert agent.begun.wait(20)
        store.cancel(name)
        (result,) = wait(store, name)
        agent.may_end.set()
    assert (result.status, budget(store)) == ("ABORTED", (0.6, 0))


def test_a_terminated_execution_loses_its_reservation(store: TemporalStore) -> None:
    agent = Gate()
    document = spending(Pool="p", MaxFromPool="0.6", ReleaseOnComplete=True)
    with store.runner(agents={"pay": agent}):
        name = store.start(document, 0.5).name
        assert agent.begun.wait(20)
        store.client.run(store.client.raw.get_workflow_handle(name).terminate())
        agent.may_end.set()
        (result,) = wait(store, store.start(spending(Pool="p"), 1).name)
    assert result.ok
    assert budget(store) == (1, 0)


def test_the_doctor_releases_the_reservation_of_a_terminated_execution(
    store: TemporalStore,
) -> None:
    agent = Gate()
    with store.runner(agents={"pay": agent}):
        name = store.start(spending(Pool="p", MaxFromPool="0.6"), 0.5).name
        assert agent.begun.wait(20)
        assert store.release_reservations() == []
        store.client.run(store.client.raw.get_workflow_handle(name).terminate())
        agent.may_end.set()
        assert store.release_reservations() == ["Pool p"]
    assert budget(store) == (0.6, 0)


@pytest.mark.parametrize("kept", [False, True], ids=["refused", "lost"])
def test_a_repeated_request_counts_once(
    store: TemporalStore, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Each request fails once, before or after the budget has received it."""
    failed = set[str]()
    exchange = BudgetClient.exchange

    async def fail_once(self: BudgetClient, name: str, message: ExchangeMessage) -> Json:
        key = f"{message['number']} {message['holds']}"
        first, found = key not in failed, None
        failed.add(key)
        if kept or not first:
            found = await exchange(self, name, message)
        if first:
            raise ApplicationError("the connection is lost")
        return found

    monkeypatch.setattr(BudgetClient, "exchange", fail_once)
    assert store.run(spending(Pool="p"), 0.5, agents={"pay": pay}).ok
    assert len(failed) == 6
    assert budget(store) == (0.5, 0)


def test_budgets_and_executions_continue_in_new_runs(
    store: TemporalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_workflow, "MAX_EVENTS", 20)
    monkeypatch.setattr(claims, "MAX_EVENTS", 30)
    call = {"Type": "Task", "Agent": "pay", "ResultPath": None}
    calls = {f"S{number}": {**call, "Next": f"S{number + 1}"} for number in range(8)}
    document = {
        "Budget": {"Pool": "p", "MaxFromPool": 2},
        "StartAt": "S0",
        "States": {**calls, "S8": {"Type": "Succeed"}},
    }
    result = store.run(document, 0.25, agents={"pay": pay}, pools={"p": 3})
    assert result.ok
    assert budget(store) == (2, 0)
    runs = store.client.list_runs(result.name)
    assert len(runs) > 1
    replay(store.client.raw, result.name, runs)


def replay(client: Client, name: str, runs: list[str]) -> None:
    """Replay the histories of an execution."""

    async def scene() -> None:
        replayer = Replayer(
            workflows=list(WORKFLOWS), workflow_runner=UnsandboxedWorkflowRunner(), debug_mode=True
        )
        for each in runs:
            handle = client.get_workflow_handle(name, run_id=each)
            await replayer.replay_workflow(await handle.fetch_history())

    run(scene())


class Holder:
    """A workflow as a budget sees it.

    Args:
        budgets: The budgets of the queue.
        name: Its name.
    """

    def __init__(self, budgets: BudgetClient, name: str) -> None:
        self._budgets = budgets
        self._name = name

    async def hold(self, number: int) -> Json:
        """Return the budget, when it is this one's turn."""
        return await self._exchange(number, {}, holds=True)

    async def leave(self, number: int, **change: Any) -> None:
        """Change the budget, and leave it to others."""
        await self._exchange(number, change, holds=False)

    async def _exchange(self, number: int, change: Any, *, holds: bool) -> Json:
        message = ExchangeMessage(
            holder=self._name,
            workflow=self._name,
            number=number,
            recorded=0,
            change=change,
            holds=holds,
            ended=[],
            now=0.0,
        )
        return await self._budgets.exchange("b", message)


def test_a_worker_that_dies_in_its_turn_repeats_its_changes_once(
    store: TemporalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_workflow, "SILENT", 60.0)  # neither has a workflow
    one, two = Holder(store._budgets, "one"), Holder(store._budgets, "two")

    async def scene() -> None:
        assert await one.hold(0) == {}
        await one.leave(1, spent={"0": "1"}, open={"a": ["3"]})
        await one.hold(2)
        await one.leave(3, spent={"0": "2"}, open={"a": None})
        await two.leave(0, spent={"0": "0.5"})
        # A worker has sent all of this, and its workflow has recorded nothing from 1 on.
        assert await one.hold(1) == {"spent": {"0": "0.5"}, "open": {}}
        await one.leave(2, spent={"0": "1"}, open={"b": ["3"]})
        assert await two.hold(1) == {"spent": {"0": "1.5"}, "open": {"b": ["3"]}}

    store.client.run(scene())


def test_a_holder_that_does_not_come_back_loses_its_turn(
    store: TemporalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_workflow, "TURN", timedelta(seconds=0.3))
    monkeypatch.setattr(budget_workflow, "SILENT", 60.0)  # neither has a workflow

    one, two = Holder(store._budgets, "one"), Holder(store._budgets, "two")

    async def scene() -> None:
        await one.hold(0)
        await two.hold(0)
        await one.leave(1, spent={"0": "1"})
        await two.leave(1, spent={"0": "2"})
        assert await one.hold(2) == {"spent": {"0": "3"}}

    store.client.run(scene())


def test_calls_of_all_workers_count_for_rate_limits(store: TemporalStore) -> None:
    def use(data: Any, call: asl.Call) -> Any:
        return call.tools.call("search", {})

    state = {"Type": "Task", "Agent": "use", "End": True, "Tools": {"Allowed": ["search"]}}
    limits = {"search": {"MaxPerHour": 2}}
    document = {
        "DefaultTools": {"RateLimits": limits},
        "StartAt": "Use",
        "States": {"Use": state},
    }
    bindings: Any = {"agents": {"use": use}, "tools": {"search": lambda arguments: 1}}
    ends = [store.run(document, {}, **bindings) for _ in range(3)]  # each on a worker of its own
    assert [each.status for each in ends] == ["SUCCEEDED", "SUCCEEDED", "FAILED"]
    assert ends[-1].error == "States.RateLimitExceeded"
    assert store.shared_budgets() == []


def test_a_call_with_a_shared_budget_costs_four_events(store: TemporalStore) -> None:
    """A busy machine may take more workflow tasks, of three events each."""

    def count(**budget: Any) -> int:
        result = store.run(spending(**budget), 0.1, agents={"pay": pay})
        handle = store.client.raw.get_workflow_handle(result.name)
        kinds = [each.event_type for each in store.client.run(handle.fetch_history()).events]
        return len([each for each in kinds if "WORKFLOW_TASK" not in EventType.Name(each)])

    assert count(MaxCostPerDay=1) - count(MaxCost=1) == 4 + 4
