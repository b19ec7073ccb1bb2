"""Concurrent executions on one pool: one call at most exceeds it."""

import asyncio
from random import Random
from typing import Any

import pytest

import asl
from asl.bindings import bind
from asl.documents.compiling import resolve_program
from asl.effects.clock import VirtualClock
from asl.effects.run import execute
from asl.engine.execution import Identity
from tests.blocks.test_budget_concurrency import POOL, SIZES, Documents, World


def workflows(random: Random) -> tuple[Any, Any]:
    """Return a random document that spends from the pool, and its child."""
    documents = Documents(random)
    document, child = documents.workflow(2, True), documents.workflow(1, False)
    budget = {**document.get("Budget", {}), "Pool": "p"}
    if "MaxFromPool" in budget and random.random() < 0.5:
        budget["ReleaseOnComplete"] = False
    return {**document, "Budget": budget}, child


def run_several(random: Random) -> tuple[World, VirtualClock]:
    """Run some documents on one event loop; the world counts what they use."""
    world, clock = World(random), VirtualClock()
    documents = [workflows(random) for _ in range(random.randint(2, 4))]
    bindings: Any = {
        "agents": {
            **{name: world.agent(size) for name, size in SIZES.items()},
            "U": world.user(2),
            "V": world.user(6),
            "H": world.hostile,
            "X": world.broken,
        },
        "tools": {"search": world.tool(15), "fetch": world.tool(17)},
        "pools": {"p": POOL / 1000},
    }

    async def run(number: int, document: Any, child: Any) -> None:
        program = resolve_program(document, None, False)
        bound = bind({**bindings, "workflows": {"child": child}}, program)
        await execute(
            program,
            [1] * random.randint(1, 5),
            bound.find,
            clock,
            Identity(f"e{number}"),
            foreign=True,
            in_event_loop=True,
            services=bound.services,
        )

    async def main() -> None:
        await asyncio.gather(*(run(number, *each) for number, each in enumerate(documents)))

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        runner.run(main())
    for kept in clock.budgets.budgets.values():  # type: ignore[attr-defined]
        assert kept["open"] == {}
    return world, clock


@pytest.mark.parametrize("count", [10, pytest.param(3_000, marks=pytest.mark.full)])
def test_pool_of_several_executions(count: int) -> None:
    """Of calls whose size is unknown, tools among them, one at a time is under way in all."""
    reached = 0
    for seed in range(60, 60 + count):
        world, clock = run_several(Random(seed))
        reached += world.used["all"] >= POOL
        assert world.used["all"] <= POOL + world.largest["all"], seed
        assert clock.elapsed < 60, seed
    assert reached


AGENT = {"Type": "Task", "Agent": "A", "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Z"}]}
Z = {"Type": "Succeed"}
WHOLE = {"Pool": "p", "MaxFromPool": 1, "ReleaseOnComplete": True}


def with_budget(budget: Any, first: Any) -> Any:
    """Return a document of one state that goes on at Z."""
    return {"StartAt": "S", "Budget": budget, "States": {"S": {**first, "Next": "Z"}, "Z": Z}}


@pytest.mark.parametrize(
    ("parent", "child"), [(WHOLE, {"Pool": "p"}), ({"Pool": "p"}, WHOLE), (WHOLE, WHOLE)]
)
def test_part_of_a_pool_within_a_family(parent: Any, child: Any) -> None:
    """What an execution holds is there for those that it starts, and counts once."""
    clock = VirtualClock()
    result = asl.run(
        with_budget(parent, {"Type": "Workflow", "WorkflowId": "child"}),
        {},
        agents={"A": lambda parameters: {"_cost": 0.3}},
        workflows={"child": with_budget(child, AGENT)},
        pools={"p": 1},
        clock=clock,
    )
    assert (result.ok, result.usage["cost"], clock.elapsed) == (True, 0.3, 0)
    kept = clock.budgets.budgets["Pool p"]  # type: ignore[attr-defined]
    assert kept["open"] == {}
    assert float(kept["spent"]["0"]) == 0.3


@pytest.mark.parametrize("release", [True, False])
def test_call_beside_a_child_that_holds_the_whole_pool(release: bool) -> None:
    """It waits for what the child gives back; where that is nothing, it fails at once."""
    clock = VirtualClock()

    async def agent(parameters: Any, call: asl.Call) -> Any:
        await call.sleep(5)
        return {"_cost": 0.3}

    child = {"Type": "Workflow", "WorkflowId": "child", "End": True}
    late = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 1, "Next": "T"}}}
    late["States"]["T"] = {"Type": "Task", "Agent": "A", "End": True}
    branches = [{"StartAt": "C", "States": {"C": child}}, late]
    result = asl.run(
        with_budget({"Pool": "p"}, {"Type": "Parallel", "Branches": branches}),
        {},
        agents={"A": agent},
        workflows={"child": with_budget({**WHOLE, "ReleaseOnComplete": release}, AGENT)},
        pools={"p": 1},
        clock=clock,
    )
    assert result.error == (None if release else "States.BudgetExceeded")
    assert clock.elapsed < 12


def run_beside_one_another(documents: list[Any], agents: Any, pool: float) -> list[str | None]:
    """Run documents on one event loop; return their errors."""
    clock = VirtualClock()
    errors: list[str | None] = [None] * len(documents)

    async def run(number: int, document: Any) -> None:
        program = resolve_program(document, None, False)
        bound = bind({"agents": agents, "pools": {"p": pool}}, program)
        result = await execute(
            program,
            {},
            bound.find,
            clock,
            Identity(f"e{number}"),
            in_event_loop=True,
            services=bound.services,
        )
        errors[number] = result.error

    async def main() -> None:
        await asyncio.gather(*(run(number, each) for number, each in enumerate(documents)))

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        runner.run(main())
    assert clock.elapsed < 60
    return errors


def spender(cost: float, used: list[float]) -> Any:
    """Return an agent whose calls take a second and cost the same."""

    async def agent(parameters: Any, call: asl.Call) -> Any:
        await call.sleep(1)
        used.append(cost)
        return {"_cost": cost}

    return agent


def test_parts_of_a_pool_are_exceeded_by_one_call_together() -> None:
    """Three executions hold a third each, and every call needs more than that."""
    used: list[float] = []
    document = with_budget({"Pool": "p", "MaxFromPool": 0.3}, AGENT)
    run_beside_one_another([document] * 3, {"A": spender(0.7, used)}, 0.9)
    assert sum(used) <= 0.9 + 0.7


@pytest.mark.parametrize("release", [True, False])
def test_executions_with_parts_do_not_wait_for_one_another(release: bool) -> None:
    """A call beside them has cost more than there was, so that not both can use their part."""
    used: list[float] = []
    late = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 5, "Next": "T"}}}
    late["States"]["T"] = {"Type": "Task", "Agent": "A", "End": True}
    late["Budget"] = {"Pool": "p", "MaxFromPool": 0.4, "ReleaseOnComplete": release}
    large = {"StartAt": "B", "Budget": {"Pool": "p"}, "States": {}}
    large["States"]["B"] = {"Type": "Task", "Agent": "B", "End": True}
    agents = {"A": spender(0.2, used), "B": spender(0.6, used)}
    errors = run_beside_one_another([late, late, large], agents, 1)
    assert errors.count(None) == (3 if release else 1)
