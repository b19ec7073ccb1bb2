"""Limits under concurrency: no level is ever exceeded by more than one call."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asl
from asl.effects.clock import VirtualClock
from asl.engine.usage import request_tokens, requests_usage
from asl.stores.pools import StoreBudgets
from tests.sql import rows

Json = Any

NONSENSE: list[Json] = [-5, -0.5, "8", "many", 1e300, 10**400, [8], True, None, {"x": 1}]
"""Reports of tokens or costs that are no usage."""
SIZES = {"A": 8, "B": 3, "Zero": 0}
"""Tokens that each call of an agent uses."""
TOOLS = {"search": 5, "fetch": 7}
"""The same of each tool."""


class World:
    """Agents and tools that count what they use, outside of the accounting under test."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.used: Counter[str] = Counter()
        """Tokens by level: an execution, a visit of a state, or `all`."""
        self.largest: Counter[str] = Counter()
        """The largest usage of one call with the calls within it, by level."""
        self.calls: Counter[int] = Counter()
        """Tokens of the calls of agents that use a tool, with those of the tool."""
        self.reported = self.reported_cost = 0
        """Tokens reported, and the cost of as many."""

    def spend(self, call: asl.Call, tokens: int, number: int | None = None) -> None:
        """Count tokens in each level around a call, which may be one of `calls` or within it."""
        whole = tokens
        if number is not None:
            self.calls[number] += tokens
            whole = self.calls[number]
        for level in ("all", *levels(call.idempotency_key)):
            self.used[level] += tokens
            self.largest[level] = max(self.largest[level], whole)

    def report(self, tokens: int) -> Json:
        """Return the answer of a call that reports its usage."""
        self.reported += tokens
        self.reported_cost += tokens
        return {"_tokens": tokens, "_cost": tokens / 1000}

    def misreport(self, tokens: int) -> Json:
        """Return an answer of which at least one part is no usage."""
        wrong, kind = self.random.choice(NONSENSE), self.random.randrange(6)
        if kind == 0:
            return {"_tokens": wrong}
        if kind == 1:
            return {"_usage": wrong}
        if kind == 2:
            return {"_usage": {"input": wrong, "output": tokens}, "model": "m"}
        if kind == 3:
            self.reported += tokens
            return {"_tokens": tokens, "_cost": wrong}
        if kind == 4:
            self.reported_cost += tokens
            return {"_tokens": wrong, "_cost": tokens / 1000}
        known, unknown = request_tokens(tokens, 0), request_tokens(wrong, -tokens)
        self.reported += tokens
        self.reported_cost += tokens
        return {**requests_usage([known, unknown, unknown]), "model": "m"}

    def agent(self, size: int) -> Any:
        """Return an agent whose calls use as much and take no time, or some."""

        async def answer(parameters: Json, call: asl.Call) -> Json:
            await call.sleep(self.random.choice((0, 0, 1, 1, 4)))
            self.spend(call, size)
            return self.report(size)

        return answer

    async def hostile(self, parameters: Json, call: asl.Call) -> Json:
        """Use tokens, and report nonsense."""
        await call.sleep(self.random.choice((0, 1)))
        self.spend(call, 8)
        return self.misreport(8)

    async def broken(self, parameters: Json, call: asl.Call) -> Json:
        """Fail, with or without usage."""
        await call.sleep(self.random.choice((0, 1)))
        error = asl.StateError("Model.Broken", "no")
        if self.random.random() < 0.5:
            self.spend(call, 4)
            error.usage = self.random.choice((self.report, self.misreport))(4)
        raise error

    def user(self, size: int) -> Any:
        """Return an agent that uses tools some times, one after the other or at once."""

        async def answer(parameters: Json, call: asl.Call) -> Json:
            random, number = self.random, len(self.calls)
            count, width = random.randint(0, 3), random.choice((1, 3))
            self.calls[number] = 0
            for first in range(0, count, width):
                calls = [
                    call.tools.call(random.choice(list(TOOLS)), {"of": number})
                    for _ in range(min(width, count - first))
                ]
                for done in await asyncio.gather(*calls, return_exceptions=True):
                    assert not isinstance(done, BaseException) or isinstance(done, asl.StateError)
            self.spend(call, size, number)
            return self.report(size)

        return answer

    def tool(self, size: int) -> Any:
        """Return a tool whose calls use as much."""

        async def answer(parameters: Json, call: asl.Call) -> Json:
            await call.sleep(self.random.choice((0, 1)))
            self.spend(call, size, parameters["of"])
            return self.report(size)

        return answer


def levels(key: str) -> Iterator[str]:
    """Yield the execution and the visits of states around a call, by its idempotency key."""
    execution, _, path = key.partition("/")
    yield execution
    for found in re.finditer(r"/?([^/@]+)@\d+", path):
        yield f"{execution}/{path[: found.end()]}"


class Documents:
    """Random documents, with the limits of their states."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.limits: dict[str, int] = {}
        """Tokens by the name of the state."""

    def machine(self, depth: int, children: bool) -> Json:
        """Return a machine with one state, which may have a Catch."""
        random, name = self.random, f"S{len(self.limits)}"
        self.limits[name] = 10**9
        kinds = ["Task", *(["Map", "Parallel"] if depth else []), *(["Workflow"] * children)]
        kind = random.choice(kinds)
        state: Json = {"Type": kind, "End": True}
        if kind == "Task":
            state |= {"Agent": random.choice("AAABBUUVHX"), "Parameters": {}}
        elif kind == "Workflow":
            state["WorkflowId"] = "child"
        elif kind == "Map":
            inner = self.machine(depth - 1, children)
            state |= {"ItemsPath": "$$.Execution.Input", "ItemProcessor": inner}
        else:
            branches = [self.machine(depth - 1, children) for _ in range(random.randint(2, 4))]
            state["Branches"] = branches
        if kind != "Workflow" and random.random() < 0.4:
            self.limits[name] = limit = random.randint(1, 40)
            state["Budget"] = {"MaxTokens": limit}
        if kind == "Task" and random.random() < 0.5:  # of others, what is in them is visited anew
            state["Retry"] = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 2}]
        states = {name: state}
        if random.random() < 0.6:
            state["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": f"{name}Z"}]
            states[f"{name}Z"] = {"Type": "Succeed"}
        return {"StartAt": name, "States": states}

    def workflow(self, depth: int, children: bool) -> Json:
        """Return a document with a budget."""
        random, budget = self.random, {}
        if random.random() < 0.8:
            budget["MaxTokens"] = random.randint(1, 60)
        if random.random() < 0.4:
            budget["MaxCost"] = random.randint(1, 60) / 1000
        if random.random() < 0.3:
            budget["Pool"] = "p"
            if random.random() < 0.4:
                budget |= {"MaxFromPool": random.randint(1, 60) / 1000, "ReleaseOnComplete": True}
        if random.random() < 0.2:
            budget["Fallback"] = {"When": "TokensAt50Percent", "Agent": "B"}
        document = self.machine(depth, children)
        return {**document, "Budget": budget} if budget else document


def most(budget: Json) -> Iterator[int]:
    """Yield what each limit of a workflow allows, in tokens."""
    if "MaxTokens" in budget:
        yield budget["MaxTokens"]
    for name in ("MaxCost", "MaxFromPool"):
        if name in budget:
            yield round(budget[name] * 1000)


POOL = 30


@pytest.mark.parametrize("count", [40, pytest.param(10_000, marks=pytest.mark.full)])
def test_no_level_is_exceeded_by_more_than_one_call(count: int) -> None:
    """Reported usage is what agents have told, and limits hold for what they have used."""
    reached = 0

    @settings(max_examples=count, deadline=None, database=None, derandomize=True)
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        nonlocal reached
        random = Random(seed)
        documents, world = Documents(random), World(random)
        document, child = documents.workflow(3, True), documents.workflow(1, False)
        result = asl.run(
            document,
            [1] * random.randint(1, 5),
            agents={
                **{name: world.agent(size) for name, size in SIZES.items()},
                "U": world.user(2),
                "V": world.user(6),
                "H": world.hostile,
                "X": world.broken,
            },
            tools={name: world.tool(size) for name, size in TOOLS.items()},
            workflows={"child": child},
            pools={"p": POOL / 1000},
            prices={"m": 0.001},
            clock=VirtualClock(),
        )
        used, largest = world.used, world.largest
        if "Budget" in document:
            assert result.usage["tokens"] == world.reported
            assert round(result.usage["cost"] * 1000) == world.reported_cost
        for limit in most(document.get("Budget", {})):
            reached += used["all"] >= limit
            assert used["all"] <= limit + largest["all"], ("workflow", limit)
        if "Pool" in document.get("Budget", {}):
            assert used["all"] <= POOL + largest["all"]
        for level, spent in used.items():
            if ":execution:child:" in level and "/" not in level:
                for limit in most(child.get("Budget", {})):
                    assert spent <= limit + largest[level], (level, limit)
            state = re.search(r"/([^/@]+)@\d+$", level)
            if state is not None:
                assert spent <= documents.limits[state[1]] + largest[level], level

    check()
    assert reached


def test_reaching_a_limit_exactly_stops_further_calls() -> None:
    """Of calls of 0.20 under a limit of 1.00 five are made."""
    calls = 0

    async def agent(parameters: Json, call: asl.Call) -> Json:
        nonlocal calls
        calls += 1
        await call.sleep(1)
        return {"_cost": 0.2}

    document = {
        "StartAt": "M",
        "Budget": {"MaxCost": "$1.00"},
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
    result = asl.run(document, [0] * 9, agents={"A": agent}, clock="virtual")
    assert (calls, result.error, result.usage["cost"]) == (5, "States.BudgetExceeded", 1.0)


def test_a_reservation_left_by_a_dead_process_is_replaced_at_recovery(tmp_path: Path) -> None:
    """Nothing of a pool stays reserved, and the doctor reports what would."""
    document = {
        "StartAt": "A",
        "Budget": {"Pool": "p"},
        "States": {"A": {"Type": "Task", "Agent": "X", "End": True}},
    }
    given: Json = {"agents": {"X": lambda parameters: {"_cost": 0.2}}, "pools": {"p": 5}}
    with asl.open_store(tmp_path / "s.db", **given) as store:
        store.run(document, {}, name="one")

        def leave(kept: Json) -> Json:
            (execution,) = rows(store, "SELECT workflow FROM execution")
            entry = f"arn:aws:states:us-east-1:111111111111:execution:{execution[0]}"
            held = ["1", 0.0, "0.5", None, True, False, None]
            return {**kept, "open": {f"{entry}:{name}:/A@0": held for name in ("one", "two")}}

        StoreBudgets(store.session).change("Pool p", leave)
        (fault,) = store.faults()
        assert fault.startswith("Pool p: a reservation is left of one, which has ended")
        store.run(document, {}, name="two")
        ((body,),) = rows(store, "SELECT body FROM budget WHERE name = 'Pool p'")
        kept = store.session.values.unpack(body)
        assert kept["open"] == {}
        assert kept["spent"] == {"0": "1.4"}  # what is known of each call that was cut off


def test_the_doctor_releases_what_ended_executions_hold(tmp_path: Path) -> None:
    """A pool counts what was spent; who uses it next waits for nobody."""
    document = {
        "StartAt": "A",
        "Budget": {"Pool": "p", "MaxFromPool": 3, "ReleaseOnComplete": True},
        "States": {"A": {"Type": "Task", "Agent": "X", "End": True}},
    }
    given: Json = {"agents": {"X": lambda parameters: {"_cost": 0.2}}, "pools": {"p": 4}}
    with asl.open_store(tmp_path / "s.db", **given) as store:
        store.run(document, {}, name="one")
        (execution,) = rows(store, "SELECT workflow FROM execution")
        entry = f"arn:aws:states:us-east-1:111111111111:execution:{execution[0]}:one"

        def leave(kept: Json) -> Json:
            return {"spent": {}, "open": {entry: ["3", 1e12, "0", True, None, "0"]}}

        StoreBudgets(store.session).change("Pool p", leave)
        assert len(list(store.faults())) == 1
        assert store.release_reservations() == ["Pool p"]
        assert store.release_reservations() == []
        assert list(store.faults()) == []
        StoreBudgets(store.session).change("Pool p", leave)
        result = store.run(document, {}, name="two")
        ((body,),) = rows(store, "SELECT body FROM budget WHERE name = 'Pool p'")
        assert store.session.values.unpack(body) == {"spent": {"0": "0.4"}, "open": {}}
    assert result.status == "SUCCEEDED"
