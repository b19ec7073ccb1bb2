"""Executions of Workflow states in a store."""

from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store
from tests.deaths import instants, lived
from tests.stores.conftest import Place

ASKS = {
    "StartAt": "Pay",
    "States": {
        "Pay": {"Type": "Task", "Agent": "Bank", "ResultPath": "$.paid", "Next": "Ask"},
        "Ask": {"Type": "Approval", "Prompt": "Ship?", "ResultPath": "$.r", "Next": "Ship"},
        "Ship": {"Type": "Task", "Agent": "Depot", "ResultPath": "$.shipped", "End": True},
    },
}


def starting(workflow: str = "orders", **fields: Any) -> dict[str, Any]:
    """A workflow that starts another one after a task of its own."""
    child = {"Type": "Workflow", "WorkflowId": workflow, "ResultPath": "$.child", **fields}
    return {
        "StartAt": "First",
        "States": {
            "First": {"Type": "Task", "Agent": "Bank", "ResultPath": "$.first", "Next": "Child"},
            "Child": {"Next": "Last", **child},
            "Last": {"Type": "Task", "Agent": "Depot", "ResultPath": "$.last", "End": True},
        },
    }


class World:
    """Agents that count what they have done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def agents(self) -> dict[str, Any]:
        return {"Bank": self.bank, "Depot": self.depot}

    def bank(self, data: Any, call: asl.Call) -> Any:
        self.done.append(call.idempotency_key)
        return {"_tokens": 1}

    depot = bank


@pytest.fixture
def world() -> World:
    return World()


def opened(place: Place, world: World, clock: Any = "virtual", **bindings: Any) -> Store:
    given = {"agents": world.agents(), "workflows": {"orders": ASKS}, **bindings}
    return Store(place, clock=clock, synchronous="OFF", **given)


def test_a_child_that_waits_is_gone_on_with_by_another_process(place: Place, world: World) -> None:
    """Its request is answered like any other; nothing that was done is done again."""
    with opened(place, world) as store:
        result = store.run(starting(), {}, name="it")
        assert result.status == "PAUSED"
        (request,) = result.pending
        assert store.pending() == store.pending("it") == store.result("it").pending == [request]
        (child,) = store.descendants("it")
        assert (child.status, child.workflow) == ("PAUSED", "orders")
        assert request["requestId"].startswith(f"{store.result(child.name).id}:/Ask")
        assert store.due() == []
    with opened(place, world) as store:
        assert store.resume("it").pending == [request]
        store.answer(request["requestId"], "approve")
        assert store.due() == ["it"]
        result = store.resume(child.name)
        assert result.status == "SUCCEEDED"
        assert result.name == "it"
        assert result.output["child"]["r"]["approval"] == "approve"
        assert result.usage["tokens"] == 4
        assert result.usage["byState"]["Child"]["tokens"] == 2
        assert [each.status for each in store.descendants("it")] == ["SUCCEEDED"]
        assert store.result(child.name).visited == ["Pay", "Ask", "Ship"]
        assert [each.name for each in store.executions()] == ["it"]
        assert list(store.faults()) == []
    assert len(world.done) == len(set(world.done)) == 4


def test_a_child_keeps_its_document(place: Place, world: World) -> None:
    """Where it has begun, it goes on with what it began with, whatever is registered later."""
    with opened(place, world) as store:
        (request,) = store.run(starting(), {}, name="it").pending
    other = {"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "Other"}}}
    with opened(place, world, workflows={"orders": other}) as store:
        assert store.resume("it").status == "PAUSED"
        store.answer(request["requestId"], "approve")
        assert store.resume("it").ok


def test_a_child_that_was_not_started_needs_its_workflow(place: Place, world: World) -> None:
    """The error is that of the state."""
    with opened(place, world, workflows=None) as store:
        assert store.run(starting(), {}, name="it").error == "States.WorkflowNotFound"


def test_the_timeout_of_the_state_goes_on_while_the_child_waits(place: Place, world: World) -> None:
    """It is due like any other, and ends the child."""
    clock = asl.VirtualClock()
    document = starting(Timeout="1h", Catch=[{"ErrorEquals": ["States.Timeout"], "Next": "Last"}])
    with opened(place, world, clock) as store:
        (request,) = store.run(document, {}, name="it").pending
        clock.elapsed += 3599
        assert store.due() == []
        clock.elapsed += 1
        assert store.due() == ["it"]
        with pytest.raises(asl.AnswerRefused, match="too late"):
            store.answer(request["requestId"], "approve")
        result = store.resume("it")
        assert result.visited == ["First", "Child", "Last"]
        assert [each.status for each in store.descendants("it")] == ["TIMED_OUT"]
        assert store.pending() == []


def test_the_time_of_the_parent_goes_on_while_the_child_waits(place: Place, world: World) -> None:
    """It is due, and ends both."""
    clock = asl.VirtualClock()
    with opened(place, world, clock) as store:
        store.run({**starting(), "TimeoutSeconds": 60}, {}, name="it")
        clock.elapsed += 61
        assert store.due() == ["it"]
        assert store.resume("it").status == "TIMED_OUT"
        assert [each.status for each in store.descendants("it")] == ["ABORTED"]
        assert store.pending() == []


def test_stopping_the_parent_stops_the_child(place: Place, world: World) -> None:
    """And not the other way round."""
    with opened(place, world) as store:
        (request,) = store.run(starting(), {}, name="it").pending
        (child,) = store.descendants("it")
        with pytest.raises(asl.AslError, match="a part of 'it'"):
            store.cancel(child.name)
        store.cancel("it")
        assert [each.status for each in store.descendants("it")] == ["ABORTED"]
        assert store.pending() == []
        with pytest.raises(asl.AnswerRefused, match="closed"):
            store.answer(request["requestId"], "approve")


def test_children_of_children_and_in_maps(place: Place, world: World) -> None:
    """Each is kept, is answered by itself, and goes on with the whole."""
    each = {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "ItemsPath": "$.items",
                "ItemProcessor": {
                    "StartAt": "One",
                    "States": {"One": {"Type": "Workflow", "WorkflowId": "orders", "End": True}},
                },
                "End": True,
            }
        },
    }
    workflows = {"orders": ASKS, "each": each}
    data = {"items": [{"n": 1}, {"n": 2}, {"n": 3}]}
    with opened(place, world, workflows=workflows) as store:
        requests = store.run(starting("each"), data, name="it").pending
        assert [each["input"]["n"] for each in requests] == [1, 2, 3]
        assert len(store.descendants("it")) == 4
    for request in reversed(requests):
        with opened(place, world, workflows=workflows) as store:
            store.answer(request["requestId"], "approve")
            result = store.resume("it")
    assert result.ok
    assert [one["n"] for one in result.output["child"]] == [1, 2, 3]
    assert result.usage["tokens"] == 2 + 3 * 2
    assert len(world.done) == len(set(world.done)) == 8


def test_a_name_that_is_taken_is_not_taken_over(tmp_path: Path, world: World) -> None:
    """An execution of somebody else is not a child."""
    with opened(tmp_path / "runs.db", world) as store:
        store.run(starting(), {}, name="it")
        (child,) = store.descendants("it")
    (tmp_path / "other").mkdir()
    with opened(tmp_path / "other" / "runs.db", world) as store:
        store.run(ASKS, {}, name=child.name)
        with pytest.raises(asl.ExecutionExists, match=child.name):
            store.run(starting(), {}, name="it")


DECIDED = {**ASKS, "States": {**ASKS["States"], "Ask": {"Type": "Pass", "Next": "Ship"}}}


@pytest.mark.parametrize("die_at", instants(range(1, 60), 3))
def test_it_goes_on_where_it_was(die_at: int, place: Place, world: World) -> None:
    """Wherever it dies, no answer that was kept is asked for again, in the child neither."""

    def run(die_at: int | None) -> Any:
        store = opened(place, world, workflows={"orders": DECIDED})
        return lived(store, lambda: store.run(starting(), {}, name="it"), die_at)

    result = run(die_at) or run(None)
    assert result.status == "SUCCEEDED"
    assert result.usage["tokens"] == 4
    assert len(world.done) - len(set(world.done)) <= 1
    with opened(place, world) as store:
        assert store.result("it").visited == ["First", "Child", "Last"]
        (child,) = store.descendants("it")
        assert child.status == "SUCCEEDED"
        assert store.result(child.name).visited == ["Pay", "Ask", "Ship"]
        assert [event.type for event in store.result("it").events].count("WorkflowStarted") == 1


@pytest.mark.parametrize("timeout", [None, "1h"])
def test_a_redrive_goes_on_in_the_child(place: Place, world: World, timeout: Any) -> None:
    """What had succeeded in it is not done again, and it is not started a second time."""
    limits = {} if timeout is None else {"Timeout": timeout}
    clock, broken = asl.VirtualClock(), ["yes"]

    def depot(data: Any, call: asl.Call) -> Any:
        if broken:
            raise asl.StateError("Depot.Closed", "on holiday")
        return world.bank(data, call)

    agents = {"Bank": world.bank, "Depot": depot}
    workflows = {"orders": DECIDED}
    with opened(place, world, clock, agents=agents, workflows=workflows) as store:
        result = store.run(starting(**limits), {}, name="it")
        assert (result.status, result.error) == ("FAILED", "Depot.Closed")
        (child,) = store.descendants("it")
        assert child.status == "FAILED"
        broken.clear()
        clock.elapsed += 60
        result = store.redrive(child.name if timeout else "it")
        assert result.status == "SUCCEEDED"
        assert len(world.done) == len(set(world.done)) == 4
        (child,) = store.descendants("it")
        assert (child.status, child.redrives) == ("SUCCEEDED", 1)
        assert store.result(child.name).visited == ["Pay", "Ask", "Ship"]
        assert result.usage["tokens"] == 4
        assert list(store.faults()) == []


def test_a_redrive_goes_on_with_a_child_that_was_cut_off(place: Place, world: World) -> None:
    """One that waited when a branch beside it failed asks again, and nothing before it is lost."""
    document = {
        "StartAt": "Both",
        "States": {
            "Both": {
                "Type": "Parallel",
                "Branches": [
                    {"StartAt": "One", "States": {"One": {
                        "Type": "Workflow", "WorkflowId": "orders", "End": True}}},
                    {"StartAt": "Nap", "States": {
                        "Nap": {"Type": "Wait", "Seconds": 60, "Next": "Two"},
                        "Two": {"Type": "Task", "Agent": "Flaky", "End": True}}},
                ],
                "End": True,
            }
        },
    }  # fmt: skip
    broken = ["yes"]

    def flaky(data: Any) -> Any:
        if broken:
            raise asl.StateError("Flaky", "no")
        return 1

    agents = {**world.agents(), "Flaky": flaky}
    with opened(place, world, agents=agents) as store:
        assert store.run(document, {}, name="it").error == "Flaky"
        assert [each.status for each in store.descendants("it")] == ["ABORTED"]
        assert store.pending() == []
        broken.clear()
        result = store.redrive("it")
        assert result.status == "PAUSED"
        (request,) = result.pending
        store.answer(request["requestId"], "approve")
        assert store.resume("it").status == "SUCCEEDED"
        assert len(store.descendants("it")) == 1
    assert len(world.done) == len(set(world.done)) == 2


def beside_a_failure(then: dict[str, Any]) -> dict[str, Any]:
    """A workflow that is started again and again, and cut off by the branch beside it."""
    return {
        "Budget": {"MaxTokens": 2},
        "StartAt": "Both",
        "States": {
            "Both": {
                "Type": "Parallel",
                "Branches": [
                    {"StartAt": "One", "States": {"One": {
                        "Type": "Workflow", "WorkflowId": "orders", "End": True}}},
                    {"StartAt": "Nap", "States": {
                        "Nap": {"Type": "Wait", "Seconds": 60, "Next": "No"},
                        "No": {"Type": "Fail", "Error": "Boom"}}},
                ],
                "Catch": [{"ErrorEquals": ["Boom"], "Next": "Again", "ResultPath": "$.e"}],
                "End": True,
            },
            "Again": then,
        },
    }  # fmt: skip


LONG = {
    "StartAt": "Pay",
    "States": {
        "Pay": {"Type": "Task", "Agent": "Bank", "ResultPath": "$.paid", "Next": "Nap"},
        "Nap": {"Type": "Wait", "Seconds": 3600, "End": True},
    },
}


@pytest.mark.parametrize("child", [LONG, ASKS], ids=["works", "waits"])
def test_what_a_child_has_spent_that_is_cut_off_counts(
    child: Any, place: Place, world: World
) -> None:
    """The budget of the parent ends them, however many processes take part."""
    ask = {"Type": "Approval", "Prompt": "Again?", "ResultPath": "$.r", "Next": "Both"}
    spent = []
    with opened(place, world, workflows={"orders": child}) as store:
        result = store.run(beside_a_failure(ask), {}, name="it")
    while result.status == "PAUSED":
        spent.append(result.usage["tokens"])
        (request,) = result.pending
        with opened(place, world, workflows={"orders": child}) as store:
            store.answer(request["requestId"], "approve")
            result = store.resume("it")
    assert (result.error, spent, len(world.done)) == ("States.BudgetExceeded", [1, 2], 2)
    assert result.usage["byState"] == {"One": {"cost": 0.0, "tokens": 2}}


def test_what_a_child_has_spent_that_waits_counts_once(place: Place, world: World) -> None:
    """It counts when it pauses; the rest does at its end, whoever goes on with it."""
    with opened(place, world) as store:
        (request,) = store.run(starting(), {}, name="it").pending
        assert store.result("it").usage["byState"]["Child"]["tokens"] == 1
        assert store.resume("it").usage["tokens"] == 2
        store.answer(request["requestId"], "approve")
    with opened(place, world) as store:
        assert store.resume("it").usage["byState"]["Child"]["tokens"] == 2
        store.run(starting(), {}, name="other")
        store.cancel("other")
        assert store.result("other").usage["tokens"] == 2
