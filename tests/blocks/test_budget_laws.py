"""Ten thousand executions at random: what agents really spend is never more than their budgets."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from shutil import copyfile
from typing import Any

import pytest

import asl
from asl.effects.clock import VirtualClock
from asl.effects.journaled.results import FAIL_POINTS

Json = Any

MOST = 8
"""Tokens that one call uses at most, whatever becomes of it; a token costs a tenth of a cent."""
ONE_CALL = MOST + 1
"""What is set aside for one: those, and its prompt."""
CENT = Decimal("0.001")
FAILURES = ("Model.Busy", "Model.Broken")


class World:
    """Agents that keep a tally of what they spend, also where nobody hears of it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.spent = self.told = 0
        """Tokens that were spent, and those of which a report was taken."""

    async def agent(self, parameters: Json, call: asl.Call) -> Json:
        """Spend some tokens, then answer, fail, hang or take long."""
        random = self.random
        tokens = random.choice((0, 1, random.randint(1, MOST), MOST))
        self.spent += tokens
        await call.sleep(random.choice((0, 0, 0.5, 1, 4, 9)))
        report = {"_tokens": tokens, "_cost": float(tokens * CENT)}
        if random.random() < 0.2:
            error = asl.StateError(random.choice(FAILURES), "no")
            error.usage = report
            self.told += tokens
            raise error
        self.told += tokens
        return {**report, "of": parameters} if isinstance(parameters, int) else report


def documents(random: Random) -> Json:
    """Return a document of Tasks, Maps and Parallels in each other, with budgets at any level."""
    names: Iterator[int] = iter(range(1000))

    def task() -> Json:
        state: Json = {
            "Type": "Task",
            "Agent": random.choice("AB"),
            "Budget": {"MaxTokens": 10 * MOST, "Category": random.choice("xyz")},
            # What one call may use, so that no less is set aside for it.
            "Model": {"Preferred": "m"},
            "Generation": {"MaxTokens": MOST},
            "Parameters": {},
            "End": True,
        }
        if random.random() < 0.5:
            state["Budget"]["MaxTokens"] = random.randint(1, 40)
        if random.random() < 0.4:
            state["TimeoutSeconds"] = random.choice((1, 3, 5))
        if random.random() < 0.5:
            state["Retry"] = [
                {"ErrorEquals": ["States.ALL"], "MaxAttempts": 2, "IntervalSeconds": 1}
            ]
        return state

    def machine(depth: int) -> Json:
        name = f"S{next(names)}"
        kind = random.choice(("Task", "Map", "Parallel") if depth else ("Task",))
        if kind == "Task":
            state = task()
        elif kind == "Map":
            state = {
                "Type": "Map",
                "ItemsPath": "$$.Execution.Input",
                "ItemSelector": {},
                "ItemProcessor": machine(depth - 1),
                "MaxConcurrency": random.choice((0, 0, 2)),
                "End": True,
            }
        else:
            branches = [machine(depth - 1) for _ in range(random.randint(2, 4))]
            state = {"Type": "Parallel", "Branches": branches, "End": True}
        if kind != "Task" and random.random() < 0.4:
            state["Budget"] = {"MaxTokens": random.randint(1, 80)}
        states = {name: state}
        if random.random() < 0.6:
            after = f"S{next(names)}"
            state["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": after}]
            states[after] = task() if random.random() < 0.5 else {"Type": "Succeed"}
        return {"StartAt": name, "States": states}

    document = machine(3)
    tokens, money = random.randint(1, 150), random.randint(1, 150)
    budget: Json = {}
    if random.random() < 0.8:
        budget["MaxTokens"] = tokens
    if random.random() < 0.6:
        budget["MaxCost"] = float(money * CENT)
    if random.random() < 0.3:
        budget |= {"Pool": "p"} | (
            {"MaxFromPool": float(money * CENT), "ReleaseOnComplete": True}
            if random.random() < 0.5
            else {}
        )
    if random.random() < 0.2:
        budget["MaxCostPerHour"] = float(money * CENT)
    if random.random() < 0.3:
        budget["Fallback"] = {
            "Cascade": [
                {"When": "TokensAt30Percent", "Agent": "B"},
                {"When": "TokensAt60Percent", "UseModel": "tiny"},
            ]
        }
    return {**document, "Budget": budget}


def limits(budget: Json) -> Iterator[int]:
    """Yield what each limit of a workflow allows, in tokens."""
    if "MaxTokens" in budget:
        yield budget["MaxTokens"]
    for name in ("MaxCost", "MaxFromPool", "MaxCostPerHour"):
        if name in budget:
            yield int(Decimal(str(budget[name])) / CENT)
    if "Pool" in budget:
        yield POOL


POOL = 60
"""What there is in the pool, in tokens."""


@pytest.mark.parametrize("seed", [0, 1, pytest.param(None, marks=pytest.mark.full)])
def test_never_over(seed: int | None) -> None:
    """Whatever runs at once, fails, hangs, is cut off, tried again and caught.

    The tally of the agents, which know what they have spent, stays within every limit and what was
    set aside for one call; what is reported is what they have told, to the last digit.
    """
    seeds = range(10_000) if seed is None else range(25 * seed, 25 * seed + 25)
    reached = cut_off = 0
    for each in seeds:
        random = Random(each)
        document, world = documents(random), World(random)
        result = asl.run(
            document,
            [1] * random.randint(1, 6),
            agents={"A": world.agent, "B": world.agent},
            pools={"p": str(POOL * CENT)},
            prices={"m": str(CENT)},
            clock=VirtualClock(),
        )
        usage = result.usage
        reported = result.execution.usage
        assert reported.tokens == world.told, each
        assert reported.cost == reported.tokens * CENT, each
        parts = result.execution.ledger.attribution.by_category.values()
        assert sum((cost for cost, _ in parts), Decimal(0)) == reported.cost, each
        assert sum(tokens for _, tokens in parts) == reported.tokens, each
        states = result.execution.by_state.values()
        assert sum((cost for cost, _ in states), Decimal(0)) == reported.cost, each
        assert world.spent <= reported.tokens + usage["assumed"]["tokens"], each
        for most in limits(document["Budget"]):
            reached += world.spent >= most
            assert world.spent <= most + ONE_CALL, (each, document["Budget"], usage)
        cut_off += world.spent > world.told
    assert reached
    assert cut_off


@pytest.mark.parametrize("seed", [2, pytest.param(None, marks=pytest.mark.full)])
def test_never_over_whenever_processes_die(tmp_path: Path, seed: int | None) -> None:
    """The same of executions in a store whose processes die up to three times, anywhere.

    What a call under way has spent nobody reports: it counts as what it may have spent.
    """
    deaths = 0
    for each in range(1_000) if seed is None else range(20 * seed, 20 * seed + 20):
        random = Random(each)
        document, world = documents(random), World(random)
        items, disk = [1] * random.randint(1, 6), tmp_path / str(each)
        disk.mkdir()
        for _ in range(random.randint(1, 3)):
            died = killed(disk, document, items, world)
            if died is not None:
                disk, deaths = died, deaths + 1
        with store_of(disk, world) as store:
            result = store.run(document, items, name="e")
        for most in limits(document["Budget"]):
            assert world.spent <= most + ONE_CALL, (each, document["Budget"], result.usage)
    assert deaths


def store_of(disk: Path, world: World) -> Any:
    """Open the store that the processes have one after the other."""
    return asl.open_store(
        disk / "s.db",
        agents={"A": world.agent, "B": world.agent},
        pools={"p": str(POOL * CENT)},
        prices={"m": str(CENT)},
        clock=VirtualClock(),
        synchronous="OFF",
    )


def killed(disk: Path, document: Json, items: Json, world: World) -> Path | None:
    """Run the execution in a process that dies at some instant; return the disk as it is then.

    None where it comes to its end before. What the run does after that instant never happens.
    """
    left = world.random.randint(1, 40)
    found: tuple[Path, int] | None = None

    def reached(name: str) -> None:
        nonlocal left, found
        left -= name in FAIL_POINTS
        if left <= 0 and found is None:
            found = disk / "next", world.spent
            found[0].mkdir()
            for part in ("s.db", "s.db-wal"):
                if (disk / part).exists():
                    copyfile(disk / part, found[0] / part)

    with store_of(disk, world) as store:
        store.session.on_fail_point = reached
        store.run(document, items, name="e")
    if found is None:
        return None
    there, world.spent = found
    return there
