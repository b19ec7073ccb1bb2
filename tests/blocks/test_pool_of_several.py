"""Several executions at the same time on one pool: it is exceeded by one call at most."""

import asyncio
from random import Random
from typing import Any

import pytest

from asl.bindings import bind
from asl.documents import program_of
from asl.engine.execution import Identity
from asl.hosts.clock import VirtualClock
from asl.hosts.run import execute
from tests.blocks.test_budget_concurrency import POOL, SIZES, Documents, World

PARTS = ("MaxFromPool", "ReleaseOnComplete")


def workflows(random: Random) -> tuple[Any, Any]:
    """Return a random document that spends from the pool, and its child."""
    documents = Documents(random)
    document, child = documents.workflow(2, True), documents.workflow(1, False)
    budget = {**document.get("Budget", {}), "Pool": "p"}
    for name in PARTS:
        budget.pop(name, None)
    for name in (*PARTS, "Pool"):
        child.get("Budget", {}).pop(name, None)
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
        program = program_of(document, None, False)
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
    assert clock.budgets.kept["Pool p"]["open"] == {}  # type: ignore[attr-defined]
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
