"""Budgets: that nothing is ever spent beyond them, also at the same time and after a crash."""

from decimal import Decimal
from shutil import copytree
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asl
from asl.effects.clock import VirtualClock
from asl.effects.prices import Prices
from tests.deaths import Died, lived
from tests.examples import examples
from tests.sql import rows

Json = Any


def spending(amounts: list[tuple[int, float]]) -> Any:
    """An agent whose calls use so much, each after its delay."""
    left = iter(amounts)

    async def agent(parameters: Json, call: asl.Call) -> Json:
        cost, delay = next(left, (0, 0.0))
        if delay:
            await call.sleep(delay)
        if cost < 0:
            raise asl.StateError("Model.Busy", "again")
        return {"_cost": cost / 100, "_tokens": cost}

    return agent


calls = st.lists(
    st.tuples(st.integers(min_value=-5, max_value=40), st.sampled_from([0.0, 0.5, 1.0, 3.0])),
    min_size=1,
    max_size=30,
)


def parallel(limit: int, bound: int | None, branches: int, items: int, levels: int) -> Json:
    """A document that calls an agent at many places at the same time, with retries."""
    task: Json = {
        "Type": "Task",
        "Agent": "A",
        "Retry": [{"ErrorEquals": ["Model.Busy"], "MaxAttempts": 2, "IntervalSeconds": 1}],
        "End": True,
    }
    if bound is not None:
        task["Budget"] = {"MaxTokens": bound, "OnExceed": "Continue"}
    each = {
        "Type": "Map",
        "ItemsPath": "$",
        "ItemProcessor": {"StartAt": "T", "States": {"T": task}},
        "End": True,
    }
    if levels > 1:
        each["Budget"] = {"MaxTokens": 3 * limit}
    both = [
        {"StartAt": f"M{n}", "States": {f"M{n}": _renamed(each, f"T{n}")}} for n in range(branches)
    ]
    return {
        "StartAt": "P",
        "Budget": {"MaxTokens": limit, "MaxCost": limit / 100},
        "States": {"P": {"Type": "Parallel", "Branches": both, "End": True}},
    }


def _renamed(each: Json, name: str) -> Json:
    task = each["ItemProcessor"]["States"]["T"]
    return {**each, "ItemProcessor": {"StartAt": name, "States": {name: task}}}


@settings(max_examples=examples(50), deadline=None)
@given(calls, st.integers(1, 120), st.integers(1, 3), st.integers(1, 8), st.integers(1, 2))
def test_never_over_the_limit_and_one_call(
    amounts: list[tuple[int, float]], limit: int, branches: int, items: int, levels: int
) -> None:
    """Calls that keep to their bounds spend at most the limit and what one of them reserved."""
    document = parallel(limit, 40, branches, items, levels)
    agents = {"A": spending(amounts)}
    result = asl.run(document, list(range(items)), agents=agents, clock="virtual")
    assert result.usage["tokens"] <= limit + 40
    assert result.usage["cost"] <= (limit + 40) / 100 + 1e-9
    assert result.usage["tokens"] <= limit + result.usage["reserved"]["tokens"]
    if result.usage["tokens"] > limit:
        assert result.error == "States.BudgetExceeded"


@settings(max_examples=examples(30), deadline=None)
@given(calls, st.integers(1, 120), st.integers(1, 3), st.integers(1, 8))
def test_every_end_is_an_end(
    amounts: list[tuple[int, float]], limit: int, branches: int, items: int
) -> None:
    """Without any bound no call waits for ever, and what was spent is what the agent reported."""
    result = asl.run(
        parallel(limit, None, branches, items, 1),
        list(range(items)),
        agents={"A": spending(amounts)},
        clock="virtual",
    )
    assert result.status in ("SUCCEEDED", "FAILED")
    most = max([cost for cost, _ in amounts] + [0])
    assert result.usage["tokens"] <= limit + 16 * most


LIMITED = st.sampled_from(
    [
        {"MaxTokens": 1},
        {"MaxCost": 0.01},
        {"MaxTokens": 1, "MaxCost": 0.01},
        {"MaxCostPerHour": 0.01},
        {"MaxCostPerDay": 0.01, "MaxTokens": 3},
        {"Pool": "p"},
        {"Pool": "p", "MaxFromPool": 0.02, "ReleaseOnComplete": True},
        {"MaxCost": 0.02, "MaxCostPerHour": 0.01, "Pool": "p"},
    ]
)
"""Budgets, for every hundredth of money and every token that there is."""


def times(budget: Json, limit: int) -> Json:
    """Return a budget with *limit* times as much."""
    return {
        field: amount * limit if isinstance(amount, int | float) and amount is not True else amount
        for field, amount in budget.items()
    }


def everywhere(budget: Json, branches: int, children: int) -> Json:
    """A document that calls an agent in branches, iterations, retries and started workflows."""
    one = parallel(1, 40, branches, 0, 1)["States"]["P"]
    for branch in one["Branches"]:
        for each in branch["States"].values():
            for state in each["ItemProcessor"]["States"].values():
                state["Budget"] |= {"MaxCost": 0.4}
    start = {"Type": "Workflow", "WorkflowId": "inner", "End": True}
    one["Branches"] += [
        {"StartAt": f"W{n}", "States": {f"W{n}": dict(start)}} for n in range(children)
    ]
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": "Z"}]
    for branch in one["Branches"]:
        (state,) = branch["States"].values()
        name = f"Z{branch['StartAt']}"
        state["Catch"] = [{**catch[0], "Next": name}]
        branch["States"][name] = {"Type": "Succeed"}
    return {"StartAt": "P", "Budget": budget, "States": {"P": one}}


@settings(max_examples=examples(50, 10_000))
@given(calls, LIMITED, st.integers(1, 120), st.integers(0, 2), st.integers(0, 2), st.integers(1, 5))
def test_never_over_whatever_runs_at_once(
    amounts: list[tuple[int, float]],
    budget: Json,
    limit: int,
    branches: int,
    children: int,
    items: int,
) -> None:
    """Branches, iterations, retries and started workflows together keep to what is printed.

    What they catch makes no difference, and neither do two executions after each other.
    """
    document = everywhere(times(budget, limit), branches, children or 1)
    inner = everywhere({"MaxTokens": 10**6}, 1, 0)
    given: Json = {
        "agents": {"A": spending(amounts)},
        "workflows": {"inner": inner},
        "pools": {"p": limit / 100},
        "clock": VirtualClock(),
    }
    one, other = (asl.run(document, list(range(items)), **given) for _ in range(2))
    both = one.usage["cost"] + other.usage["cost"]
    for name, most in times(budget, limit).items():
        for result in (one, other):
            reserved = result.usage["reserved"]
            if name == "MaxTokens":
                assert result.usage["tokens"] <= most + reserved["tokens"] <= most + max(most, 40)
            elif name in ("MaxCost", "MaxFromPool"):
                assert result.usage["cost"] <= most + 0.4 + 1e-9
        if name in ("MaxCostPerHour", "MaxCostPerDay", "Pool"):
            assert both <= (limit / 100 if name == "Pool" else most) + 0.8 + 1e-9


def test_the_first_call_of_unknown_size_is_made_alone() -> None:
    """As soon as its usage is known, as many are made as fit."""
    under_way = most = 0

    async def agent(parameters: Json, call: asl.Call) -> Json:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await call.sleep(1)
        under_way -= 1
        return {"_tokens": 1}

    document = {
        "StartAt": "M",
        "Budget": {"MaxTokens": 1000},
        "States": {
            "M": {
                "Type": "Map",
                "ItemProcessor": {
                    "StartAt": "T",
                    "States": {"T": {"Type": "Task", "Agent": "A", "End": True}},
                },
                "End": True,
            }
        },
    }
    result = asl.run(document, [0] * 100, agents={"A": agent}, clock="virtual")
    assert result.usage["tokens"] == 100
    assert (most, result.elapsed) == (99, 2)


# Executions that survive -------------------------------------------------------------------------

CHAIN = {
    "StartAt": "A",
    "Budget": {"MaxTokens": 100, "Alerts": [{"At": "50%"}], "OnExceed": "PauseAndNotify"},
    "States": {
        "A": {"Type": "Task", "Agent": "X", "Budget": {"Category": "c"}, "Next": "B"},
        "B": {"Type": "Task", "Agent": "X", "Next": "C"},
        "C": {"Type": "Task", "Agent": "X", "End": True},
    },
}


def test_a_pause_survives_and_an_answer_lifts_the_limit(tmp_path: Any) -> None:
    """The execution waits in the store; a decision sets a new limit, which survives too."""
    agents = {"X": lambda parameters: {"_tokens": 60}}
    with asl.open_store(tmp_path / "s.db", agents=agents, clock="virtual") as store:
        paused = store.run(CHAIN, {}, name="e")
        assert paused.status == "PAUSED"
        (request,) = store.pending()
        assert (request["type"], request["state"]) == ("budget", "C")
    with asl.open_store(tmp_path / "s.db", agents=agents, clock="virtual") as store:
        assert store.resume("e").status == "PAUSED"
        (request,) = store.pending()
        with pytest.raises(asl.AnswerRefused, match="MaxTokens"):
            store.answer(request["requestId"], "approve", MaxTokens="many")
        store.answer(request["requestId"], "approve", MaxTokens=150)
        result = store.resume("e")
        assert result.ok
        assert result.usage["tokens"] == 180
        assert result.usage["byCategory"] == {
            "c": {"cost": 0, "tokens": 60},
            "uncategorized": {"cost": 0, "tokens": 120},
        }
        kinds = [event.type for event in store.result("e").events]
        assert kinds.count("BudgetAlert") == 1
        assert kinds.count("BudgetExceeded") == 2


@pytest.mark.parametrize("point", ["effect.ready", "effect.done"])
@pytest.mark.parametrize("count", range(1, 7))
def test_usage_survives_a_crash(tmp_path: Any, point: str, count: int) -> None:
    """Wherever the process dies, the limits of workflow, Map and visit hold afterwards."""
    document = {
        "StartAt": "M",
        "Budget": {"MaxTokens": 1000, "Alerts": [{"At": 10}]},
        "States": {
            "M": {
                "Type": "Map",
                "MaxConcurrency": 1,
                "Budget": {"MaxTokens": 200},
                "ItemProcessor": {
                    "StartAt": "T",
                    "States": {
                        "T": {
                            "Type": "Task",
                            "Agent": "X",
                            "Budget": {"MaxTokens": 100},
                            "ResultSelector": {"x.$": "$.x"},
                            "Retry": [{"ErrorEquals": ["States.ParameterPathFailure"]}],
                            "End": True,
                        }
                    },
                },
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Z"}],
                "Next": "Z",
            },
            "Z": {"Type": "Succeed"},
        },
    }

    calls: list[str] = []

    def agent(parameters: Json, call: asl.Call) -> Json:
        calls.append(call.idempotency_key)
        return {"_tokens": 45} if call.attempt == 1 else {"_tokens": 45, "x": 1}

    agents = {"X": agent}
    store = asl.open_store(tmp_path / "s.db", agents=agents, clock="virtual")
    lived(store, lambda: store.run(document, [1, 2, 3], name="e"), count, point)
    with asl.open_store(tmp_path / "s.db", agents=agents, clock="virtual") as store:
        again = store.run(document, [1, 2, 3], name="e")
        assert again.output["Error"] == "States.BudgetExceeded"
        assert "MaxTokens of 'M' is 200" in again.output["Cause"]
        assert again.usage["byCategory"]["uncategorized"]["tokens"] == again.usage["tokens"]
        reported = again.usage["tokens"] // 45
        assumed = again.usage["assumed"]["tokens"]
        assert assumed in (0, 55, 100)  # what the visit of the call that was cut off could spend
        assert 45 * (len(calls) - reported) <= assumed
        assert 200 < 45 * reported + assumed <= 300
        assert store.result("e").usage == again.usage


HOURLY = {
    "StartAt": "A",
    "Budget": {"MaxCostPerHour": 1},
    "States": {"A": {"Type": "Task", "Agent": "X", "End": True}},
}
TAKING = {
    "StartAt": "A",
    "Budget": {"Pool": "p", "MaxFromPool": 1, "ReleaseOnComplete": True},
    "States": {
        "A": {"Type": "Task", "Agent": "X", "Next": "B"},
        "B": {"Type": "Task", "Agent": "X", "End": True},
    },
}


def test_an_hours_money_is_counted_in_the_store(tmp_path: Any) -> None:
    """Executions of several processes share it, and only those of one store."""
    agents = {"X": lambda parameters: {"_cost": 0.6}}
    for status in ("SUCCEEDED", "FAILED", "FAILED"):
        with asl.open_store(tmp_path / "s.db", agents=agents) as store:
            result = store.run(HOURLY, {})
            assert result.status == status
    assert result.usage["cost"] == 0
    with asl.open_store(tmp_path / "other.db", agents=agents) as store:
        assert store.run(HOURLY, {}).ok


@pytest.mark.parametrize("point", ["effect.ready", "effect.done"])
@pytest.mark.parametrize("count", [1, 2])
def test_what_is_taken_of_a_pool_is_taken_once(tmp_path: Any, point: str, count: int) -> None:
    """An execution that goes on after a crash has what it had taken, and gives back the rest."""
    given: Json = {"agents": {"X": lambda parameters: {"_cost": 0.2}}, "pools": {"p": 1.5}}
    store = asl.open_store(tmp_path / "s.db", **given)
    assert lived(store, lambda: store.run(TAKING, {}, name="e"), count, point) is None
    with asl.open_store(tmp_path / "s.db", **given) as store:
        assert store.run(TAKING, {}, name="other").ok  # 0.5 are there
        assert store.run(TAKING, {}, name="e").ok  # it has 1, and gives back 0.6
        assert store.run(TAKING, {}, name="third").ok
        assert store.run(TAKING, {}, name="fourth").error == "States.BudgetExceeded"


@pytest.mark.parametrize(
    "budget", [{"Pool": "p"}, {"Pool": "p", "MaxFromPool": "1", "ReleaseOnComplete": True}]
)
def test_what_is_stopped_holds_nothing_of_a_pool(tmp_path: Any, budget: Json) -> None:
    """Neither for the call under way when its process died, nor for itself; what is spent stays
    spent, and that call counts as what was known of it."""
    document = {**TAKING, "Budget": budget}
    died = tmp_path / "died"
    calls: list[int] = []

    def agent(parameters: Json) -> Json:
        calls.append(1)
        if len(calls) == 2:  # what a process leaves that dies here
            copytree(tmp_path, died)
        return {"_cost": 0.2}

    given: Json = {"agents": {"X": agent}, "pools": {"p": 1.5}, "clock": "virtual"}
    with asl.open_store(tmp_path / "s.db", **given) as store:
        store.run(document, {}, name="e")
    with asl.open_store(died / "s.db", **given) as store:
        assert read_tab(store)[1] == len({"MaxFromPool", "Pool"} & {*budget})  # its part, its call
        store.cancel("e")
        spent, held = read_tab(store)
        assert (spent, held) == (0.4, 0)
        assert store.run(document, {}, name="other").ok
        other = store.get("other")
        assert other.ended == other.started  # it waited for nobody


def read_tab(store: Any) -> tuple[float, int]:
    """Return what is spent of the only pool, and how many hold some of it."""
    ((body,),) = rows(store, "SELECT body FROM budget")
    tab = store.session.values.unpack(body)
    return sum(map(float, tab["spent"].values())), len(tab["open"])


def test_a_process_has_one_hour() -> None:
    """Executions in real time share it without a store, those in virtual time do not."""
    agents = {"X": lambda parameters: {"_cost": 0.6}}
    document = {**HOURLY, "Comment": "of its own"}
    named = asl.load(document, name="test_a_process_has_one_hour")
    states = [asl.run(named, agents=agents).status for _ in range(3)]
    assert states == ["SUCCEEDED", "FAILED", "FAILED"]
    assert all(asl.run(named, agents=agents, clock="virtual").ok for _ in range(3))


@pytest.mark.parametrize("wrong", ["much", -1, None, [1], Decimal("NaN")])
def test_a_pool_is_filled_with_money(wrong: Json) -> None:
    """Anything else is a misuse."""
    with pytest.raises(asl.AslError, match="pool 'p'"):
        asl.run(TAKING, pools={"p": wrong}, agents={"X": {"return": 1}})


# Prices ------------------------------------------------------------------------------------------


def test_prices_are_one_number_or_two() -> None:
    """A price is for one token; the own table is all that is known without another."""
    prices = Prices({"a": "0.001", "b": {"input": 1, "output": "2.5"}})
    assert prices["a"] == (Decimal("0.001"), Decimal("0.001"))
    assert prices["b"].output == Decimal("2.5")
    assert list(prices) == ["a", "b"]
    assert prices.get("no-such-model-anywhere") is None


@pytest.mark.parametrize("wrong", ["dear", -1, {"input": 1}, {"input": 1, "output": "NaN"}, None])
def test_a_wrong_price_is_refused(wrong: Json) -> None:
    """What is no price is a misuse, not a price of 0."""
    with pytest.raises(asl.AslError, match="price of 'm'"):
        Prices({"m": wrong})


def test_public_prices() -> None:
    """With the package genai-prices installed, models that it knows need no table."""
    pytest.importorskip("genai_prices")
    price = Prices()["openai:gpt-4o"]
    assert 0 < price.input < price.output < 1


def test_what_is_assumed_of_a_child_is_known_whoever_finds_its_end(tmp_path: Any) -> None:
    """Also where the process died between the end of the child and the answer of its state."""
    child = {
        "StartAt": "A",
        "States": {
            "A": {
                "Type": "Task",
                "Agent": "X",
                "TimeoutSeconds": 5,
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "B"}],
                "End": True,
            },
            "B": {"Type": "Succeed"},
        },
    }
    parent = {
        "StartAt": "W",
        "Budget": {"MaxCost": 1.6},
        "States": {
            "W": {"Type": "Workflow", "WorkflowId": "c", "Next": "Z"},
            "Z": {
                "Type": "Pass",
                "Parameters": {"left.$": "States.RemainingBudget()"},
                "End": True,
            },
        },
    }

    async def agent(parameters: Json, call: asl.Call) -> Json:
        await call.sleep(100)

    given: Json = {"agents": {"X": agent}, "workflows": {"c": child}, "clock": "virtual"}
    store = asl.open_store(tmp_path / "s.db", **given)

    def reached(name: str) -> None:
        if name == "end.put":
            store.session.on_fail_point = lambda name: None
            store.session.flush()
            raise Died

    store.session.on_fail_point = reached
    with pytest.raises(Died):
        store.run(parent, {}, name="e")
    store.session.crash()
    store.close()
    with asl.open_store(tmp_path / "s.db", **given) as store:
        result = store.run(parent, {}, name="e")
        assert (result.output, result.usage["assumed"]["cost"]) == ({"left": 1.5}, 0.1)


@pytest.mark.parametrize("answer", [{"_tokens": float("nan")}, {"_cost": float("inf")}, object()])
def test_an_answer_that_cannot_be_read_counts_as_what_was_set_aside(answer: Any) -> None:
    """Whatever it may have said of its usage."""
    document = {
        "StartAt": "A",
        "Budget": {"MaxTokens": 32, "MaxCost": 1.6},
        "States": {"A": {"Type": "Task", "Agent": "X", "End": True}},
    }
    result = asl.run(document, {}, agents={"X": lambda parameters: answer})
    assert (result.error, result.usage["assumed"]) == (
        "States.TaskFailed",
        {"cost": 0.1, "tokens": 2},
    )


@pytest.mark.parametrize("budget", [{"MaxTokens": 10**400}, {"MaxCost": "9" * 400}])
def test_a_limit_beyond_all_measure_is_none(budget: Json) -> None:
    """What is reported stays numbers."""
    document = {
        "StartAt": "A",
        "Budget": budget,
        "States": {"A": {"Type": "Task", "Agent": "X", "End": True}},
    }
    result = asl.run(document, agents={"X": lambda parameters: {"_tokens": 3, "_cost": 1}})
    assert result.ok
    assert all(each < 10**17 for each in result.usage["reserved"].values())


def test_branch_cancelled_during_an_approval_cancels_no_other() -> None:
    """The others go on when there is a decision."""

    async def approvals(request: Json, call: asl.Call) -> Json:
        await call.sleep(2)
        return {"approval": "approve", "approver": "me"}

    async def agent(parameters: Json) -> Json:
        return {"_cost": 2.0}

    async def fails(parameters: Json, call: asl.Call) -> Json:
        await call.sleep(1)
        raise asl.StateError("Bad", "on purpose")

    def branch(*names: str) -> Json:
        agents = {name: name[0] for name in names}
        states = {
            name: {"Type": "Task", "Agent": agent, "End": True} for name, agent in agents.items()
        }
        return {"StartAt": names[0], "States": states}

    inner = {
        "StartAt": "Inner",
        "States": {
            "Inner": {
                "Type": "Parallel",
                "Branches": [branch("A3"), branch("F")],
                "Catch": [{"ErrorEquals": ["Bad"], "Next": "Caught"}],
                "End": True,
            },
            "Caught": {"Type": "Pass", "Result": "caught", "End": True},
        },
    }
    document = {
        "Budget": {"MaxCost": 1, "OnExceed": "PauseAndNotify"},
        "StartAt": "A1",
        "States": {
            "A1": {"Type": "Task", "Agent": "A", "Next": "Both"},
            "Both": {"Type": "Parallel", "Branches": [branch("A2"), inner], "End": True},
        },
    }
    agents = {"A": agent, "F": fails}
    result = asl.run(document, agents=agents, approvals=approvals, clock="virtual")
    assert result.output == [{"_cost": 2.0}, "caught"]


@pytest.mark.parametrize("level", ["workflow", "state"])
@pytest.mark.parametrize("report", [{}, {"model": "unheard-of"}])
def test_unknown_price_under_max_cost_stops(level: str, report: Json) -> None:
    """Tokens without a cost, a model or a price fail the call, and no further one is made."""
    calls = 0

    def agent(parameters: Json) -> Json:
        nonlocal calls
        calls += 1
        return {"_tokens": 10**9, **report}

    state: Json = {
        "Type": "Task",
        "Agent": "X",
        "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 3}],
        "End": True,
    }
    document: Json = {"StartAt": "A", "States": {"A": state}}
    (document if level == "workflow" else state)["Budget"] = {"MaxCost": "$1.00"}
    result = asl.run(document, agents={"X": agent}, clock="virtual")
    assert (result.error, calls) == ("States.BudgetExceeded", 1)
    assert result.usage["tokens"] == 10**9


def test_unknown_price_without_max_cost_is_no_failure() -> None:
    """Where money is not limited, tokens need no price."""
    document: Json = {
        "StartAt": "A",
        "Budget": {"MaxTokens": 10},
        "States": {"A": {"Type": "Task", "Agent": "X", "End": True}},
    }
    assert asl.run(document, agents={"X": lambda parameters: {"_tokens": 9}}).ok


@pytest.mark.parametrize("die_at", [8, 10])
def test_what_is_assumed_of_a_call_is_said_after_a_recovery(tmp_path: Any, die_at: int) -> None:
    """Amounts "may be" spent as long as a part of them is assumed."""
    state = {
        "Type": "Task",
        "Agent": "X",
        "TimeoutSeconds": 5,
        "Budget": {"MaxTokens": 50},
        "Retry": [{"ErrorEquals": ["States.Timeout"], "MaxAttempts": 3}],
        "End": True,
    }
    document = {"StartAt": "A", "States": {"A": state}}

    async def agent(parameters: Json, call: asl.Call) -> Json:
        await call.sleep(100)

    given: Json = {"agents": {"X": agent}, "clock": "virtual"}
    first = asl.open_store(tmp_path / "s.db", **given)
    lived(first, lambda: first.run(document, {}, name="e"), die_at)
    with asl.open_store(tmp_path / "s.db", **given) as store:
        result = store.resume("e")
    assert result.cause == "state 'A': MaxTokens of 'A' is 50, and 50 may be spent"
