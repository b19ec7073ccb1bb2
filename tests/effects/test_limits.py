"""Limits and ends that foreign code cannot undo: whatever it makes of its cancellation."""

import asyncio
import sys
from typing import Any

import pytest

import asl
from asl.agents import Tool

Json = Any


def task(name: str = "A", **fields: Json) -> Json:
    """A workflow of one Task, whose agent has its name."""
    return {
        "StartAt": name,
        "States": {name: {"Type": "Task", "Agent": name, "End": True, **fields}},
    }


def caught(**fields: Json) -> Json:
    """A workflow of one Task that knows what to do when it is late."""
    document = task(Catch=[{"ErrorEquals": ["States.Timeout"], "Next": "Late"}], **fields)
    document["States"]["Late"] = {"Type": "Pass", "Result": "late", "End": True}
    return document


def parallel(*branches: Json) -> Json:
    """A workflow that runs others as branches."""
    both = {"Type": "Parallel", "Branches": list(branches), "End": True}
    return {"StartAt": "P", "States": {"P": both}}


async def answers(parameters: Json) -> Json:
    """Answer when it is told to end."""
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        return {"_tokens": 3, "answer": "kept back"}


async def breaks(parameters: Json) -> Json:
    """Fail while it cleans up."""
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        raise RuntimeError("closed") from None


async def names(parameters: Json) -> Json:
    """Fail by a name that a catcher could see."""
    try:
        await asyncio.sleep(30)
    finally:
        raise asl.StateError("Mine", "told at the end")


async def goes_on(parameters: Json) -> Json:
    """Do as if nothing had been said."""
    for _ in range(3):
        try:
            await asyncio.sleep(4)
        except asyncio.CancelledError:
            continue
    return "at last"


async def grouped(parameters: Json) -> Json:
    """Fail in a group while it cleans up."""
    async with asyncio.TaskGroup() as group:
        group.create_task(breaks(parameters))


stubborn = pytest.mark.parametrize("agent", [answers, breaks, names, goes_on, grouped])


@stubborn
@pytest.mark.parametrize("limit", ["TimeoutSeconds", "HeartbeatSeconds"])
def test_the_limit_of_a_state_holds(agent: Any, limit: str) -> None:
    """It is States.Timeout, for its catchers."""
    document = caught(**{limit: 1})
    result = asl.run(document, agents={"A": agent}, clock="virtual")
    assert (result.status, result.output) == ("SUCCEEDED", "late")


@stubborn
@pytest.mark.parametrize("place", ["alone", "in a fork", "in a child"])
def test_the_limit_of_a_document_holds(agent: Any, place: str) -> None:
    """Nothing catches it, and nothing comes after it."""
    child = {"Type": "Workflow", "WorkflowId": "w", "End": True}
    document = {
        "alone": caught(),
        "in a fork": parallel(caught(), task("B")),
        "in a child": {"StartAt": "W", "States": {"W": child}},
    }[place]
    result = asl.run(
        {**document, "TimeoutSeconds": 1},
        agents={"A": agent, "B": goes_on},
        clock="virtual",
        workflows={"w": caught()},
    )
    assert (result.status, result.output) == ("TIMED_OUT", None)


@stubborn
def test_a_branch_ends_with_its_sibling(agent: Any) -> None:
    """What follows in the branch is not run any more."""
    after: list[Json] = []

    async def fails(parameters: Json) -> Json:
        await asyncio.sleep(1)
        raise asl.StateError("Bad", "on purpose")

    branch = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Task", "Agent": "A", "Next": "B"},
            "B": {"Type": "Task", "Agent": "B", "End": True},
        },
    }
    for branches in ([task("F"), branch], [branch, task("F")]):
        result = asl.run(
            parallel(*branches),
            agents={"A": agent, "B": lambda parameters: after.append(parameters), "F": fails},
            clock="virtual",
        )
        assert (result.error, after) == ("Bad", [])


@stubborn
@pytest.mark.skipif(sys.version_info < (3, 13), reason="task groups leave cancellations counted")
def test_a_cancelled_run_is_cancelled(agent: Any) -> None:
    """Whatever the agent makes of it."""

    async def cancelled() -> None:
        run = asyncio.create_task(asl.arun(task(), agents={"A": agent}))
        await asyncio.sleep(0.01)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(cancelled())


def test_timeout_applies_to_agent_that_blocks_the_event_loop() -> None:
    """The timers could not ring while it did."""
    clock = asl.VirtualClock()

    async def holds_up(parameters: Json) -> Json:
        loop: Any = asyncio.get_running_loop()
        now = loop.time()
        loop.time = lambda: now + 2
        return "answered"

    document = caught(TimeoutSeconds=1)
    assert asl.run(document, agents={"A": holds_up}, clock=clock).output == "late"


def test_an_answer_at_the_instant_of_the_limit_is_as_the_timers_say() -> None:
    """An agent that waits exactly as long as it may does not answer in time."""

    async def agent(parameters: Json, call: asl.Call) -> Json:
        await call.sleep(parameters["for"])
        return "in time"

    document = caught(TimeoutSeconds=5)
    outputs = [
        asl.run(document, {"for": seconds}, agents={"A": agent}, clock="virtual").output
        for seconds in (4.999, 5, 5.001)
    ]
    assert outputs == ["in time", "late", "late"]


def test_the_limit_of_a_tool_holds() -> None:
    """Its policy says how long it may take."""

    async def agent(parameters: Json, call: asl.Call) -> Json:
        return await call.tools.call("t", {})

    rules = {"Allowed": ["t"], "Timeout": "1s"}
    tool = Tool("t", "a tool", answers, input={"type": "object"})
    result = asl.run(task(Tools=rules), agents={"A": agent}, tools={"t": tool}, clock="virtual")
    assert (result.error, result.cause) == ("Agent.ToolError", "tool 't': no answer within 1 s")


def test_a_task_group_that_failed_ends_nothing_else() -> None:
    """An agent that goes on after one of its groups has failed answers as any other."""

    async def agent(parameters: Json) -> Json:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
        except ExceptionGroup:
            return "instead"

    async def fails() -> None:
        raise ValueError

    result = asl.run(task(TimeoutSeconds=5), agents={"A": agent}, clock="virtual")
    assert result.output == "instead"
