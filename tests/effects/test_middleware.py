"""Middleware stands around each effect that is performed, and can change or refuse it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import asl

ECHO = {"Type": "Task", "Agent": "Echo", "End": True}
AGENTS = {"Echo": lambda parameters: parameters}


def machine(**states: Any) -> dict[str, Any]:
    return {"StartAt": next(iter(states)), "States": states}


class Log:
    """Middleware that remembers what it has seen."""

    def __init__(self) -> None:
        self.seen: list[asl.Effect] = []

    async def __call__(self, effect: asl.Effect, proceed: asl.Proceed) -> Any:
        self.seen.append(effect)
        return await proceed(effect)

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(each.kind, each.name) for each in self.seen]


async def twice(effect: asl.Effect, proceed: asl.Proceed) -> Any:
    """Change what is asked and what is answered."""
    return [await proceed(replace(effect, payload=[effect.payload]))]


async def refuse(effect: asl.Effect, proceed: asl.Proceed) -> Any:
    raise asl.StateError("Policy.Refused", effect.name)


def test_every_kind_of_effect_is_seen() -> None:
    log = Log()

    async def use(parameters: Any, call: asl.Call) -> Any:
        return await call.tools.call("find", {"q": parameters})

    document = machine(
        Call={**ECHO, "End": False, "Next": "Use"},
        Use={"Type": "Task", "Agent": "User", "Next": "Aws"},
        Aws={"Type": "Task", "Resource": "arn:aws:lambda:::function:f", "Next": "Pause"},
        Pause={"Type": "Wait", "Seconds": 5, "Next": "Ask"},
        Ask={"Type": "Approval", "Prompt": "?", "ResultPath": None, "Next": "Child"},
        Child={"Type": "Workflow", "WorkflowId": "other", "End": True},
    )
    del document["States"]["Call"]["End"]
    result = asl.run(
        document,
        1,
        clock="virtual",
        agents={**AGENTS, "User": use},
        tools={"find": lambda arguments: arguments},
        resources={"arn:aws:lambda:::function:f": lambda payload: payload},
        approvals=lambda request: "approve",
        workflows={"other": machine(Inner=ECHO)},
        middleware=[log],
    )
    assert result.ok, result.cause
    assert log.kinds == [
        ("agent", "Echo"),
        ("agent", "User"),
        ("tool", "find"),
        ("resource", "arn:aws:lambda:::function:f"),
        ("timer", ""),
        ("request", "approval"),
        ("child", "other"),
        ("agent", "Echo"),
    ]
    assert log.seen[0].payload == 1
    assert (log.seen[4].state, log.seen[4].attempt, log.seen[4].path) == ("Pause", 1, ())
    assert log.seen[7].execution_id != log.seen[0].execution_id


def test_branches_are_told_apart() -> None:
    log = Log()
    document = machine(
        Each={"Type": "Map", "ItemProcessor": machine(Say=ECHO), "End": True},
    )
    assert asl.run(document, [7, 8], agents=AGENTS, middleware=[log]).output == [7, 8]
    assert [each.path for each in log.seen] == [("Each", 0), ("Each", 1)]
    assert len({each.key for each in log.seen}) == 2


def test_payloads_and_answers_may_be_changed_outermost_first() -> None:
    log = Log()
    result = asl.run(machine(Say=ECHO), 1, agents=AGENTS, middleware=[twice, log, twice])
    assert result.output == [[[[1]]]]
    assert log.seen[0].payload == [1]


def test_a_refusal_is_caught_and_retried_as_any_failure() -> None:
    log = Log()
    retry = [{"ErrorEquals": ["Policy.Refused"], "IntervalSeconds": 1, "MaxAttempts": 2}]
    catch = [{"ErrorEquals": ["Policy.Refused"], "Next": "Else"}]
    document = machine(
        Say={**ECHO, "Retry": retry, "Catch": catch},
        Else={"Type": "Pass", "Parameters": {"why.$": "$.Cause"}, "End": True},
    )

    async def refuse_agents(effect: asl.Effect, proceed: asl.Proceed) -> Any:
        return await (refuse if effect.kind == "agent" else log)(effect, proceed)

    result = asl.run(document, 1, agents=AGENTS, clock="virtual", middleware=[refuse_agents])
    assert result.output == {"why": "Echo"}
    assert log.kinds == [("timer", ""), ("timer", "")]


def test_a_refused_tool_is_an_error_of_its_caller() -> None:
    async def use(parameters: Any, call: asl.Call) -> Any:
        try:
            await call.tools.call("find", {})
        except asl.StateError as error:
            return [error.name, error.cause]

    async def no_tools(effect: asl.Effect, proceed: asl.Proceed) -> Any:
        return await (refuse if effect.kind == "tool" else Log())(effect, proceed)

    found = asl.run(
        machine(Say=ECHO), agents={"Echo": use}, tools={"find": print}, middleware=[no_tools]
    )
    assert found.output == ["Agent.ToolError", "tool 'find': Policy.Refused: find"]


def test_a_recorded_answer_is_not_asked_for_again(tmp_path: Path) -> None:
    log = Log()
    document = machine(
        Say={"Type": "Task", "Agent": "Echo", "Next": "Ask"},
        Ask={"Type": "Approval", "Prompt": "?", "End": True},
    )
    with asl.Store(tmp_path / "runs.db", agents=AGENTS, middleware=[log]) as store:
        paused = store.run(document, 1, name="it")
        store.answer(paused.pending[0]["requestId"], "approve", by="ann")
        assert store.resume("it").ok
    assert log.kinds == [("agent", "Echo"), ("request", "approval")]


def test_its_own_fault_ends_the_run() -> None:
    async def broken(effect: asl.Effect, proceed: asl.Proceed) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asl.run(machine(Say=ECHO), agents=AGENTS, middleware=[broken])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (refuse, "middleware is a list of async functions, not function"),
        ("x", "middleware is a list of async functions, not str"),
        ([print], "middleware is awaited: <built-in function print> is no async function"),
    ],
)
def test_what_is_no_middleware_is_refused(given: Any, said: str) -> None:
    with pytest.raises(asl.AslError, match="middleware") as raised:
        asl.run(machine(Say=ECHO), agents=AGENTS, middleware=given)
    assert str(raised.value) == said
