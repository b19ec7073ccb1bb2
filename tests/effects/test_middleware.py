"""Middleware stands around each effect that is performed, and can change or refuse it."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.core.profile import DEFAULT

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


def test_effect_path_distinguishes_branches() -> None:
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


def test_middleware_does_not_run_for_recorded_answers(tmp_path: Path) -> None:
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


KINDS = {
    "agent": machine(Say=ECHO),
    "timer": machine(Say={"Type": "Wait", "Seconds": 1, "End": True}),
    "request": machine(Say={"Type": "Approval", "Prompt": "?", "End": True}),
    "child": machine(Say={"Type": "Workflow", "WorkflowId": "w", "End": True}),
}
"""A workflow of one state for each kind of effect."""
BINDINGS: dict[str, Any] = {"agents": AGENTS, "workflows": {"w": machine(Say=ECHO)}}


def around(kind: str, middleware: asl.Middleware) -> asl.Middleware:
    """Return middleware that does something around the first effect of a kind."""
    done = False

    async def first(effect: asl.Effect, proceed: asl.Proceed) -> Any:
        nonlocal done
        if effect.kind != kind or done:
            return await proceed(effect)
        done = True
        return await middleware(effect, proceed)

    return first


def raising(error: BaseException) -> asl.Middleware:
    async def raises(effect: asl.Effect, proceed: asl.Proceed) -> Any:
        raise error

    return raises


def returning(value: Any) -> asl.Middleware:
    async def returns(effect: asl.Effect, proceed: asl.Proceed) -> Any:
        return value

    return returns


async def stop_iteration(effect: asl.Effect, proceed: asl.Proceed) -> Any:
    raise StopIteration


async def proceed_with_text(effect: asl.Effect, proceed: asl.Proceed) -> Any:
    return await proceed("x")  # type: ignore[arg-type]


async def proceed_with_set(effect: asl.Effect, proceed: asl.Proceed) -> Any:
    return await proceed(replace(effect, payload={1}))


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
FAULTS = [
    (raising(ZeroDivisionError("no")), "ZeroDivisionError: no"),
    (raising(asl.AslError("no")), "AslError: no"),
    (raising(SystemExit(3)), "SystemExit: 3"),
    (raising(asyncio.CancelledError()), "CancelledError"),
    (raising(GeneratorExit()), "GeneratorExit"),
    (raising(BaseExceptionGroup("g", [ValueError("no")])), "ValueError: no"),
    (stop_iteration, "StopIteration"),
    (proceed_with_text, "TypeError: proceed() needs an asl.Effect, got str"),
    (proceed_with_set, "TypeError: the payload is not a JSON value: $: not a JSON value (set)"),
    (returning({1}), ""),
    (returning(CYCLE), ""),
    (returning(float("nan")), ""),
    (returning(10**5000), ""),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("middleware", "said"), FAULTS)
def test_fault_of_middleware_ends_the_run_and_is_not_recorded(
    kind: str, middleware: asl.Middleware, said: str, tmp_path: Path
) -> None:
    """The error names the middleware; the execution goes on when it is resumed."""
    with asl.Store(tmp_path / "runs.db", **BINDINGS) as store:
        with pytest.raises(asl.AslError, match="middleware '") as raised:
            store.run(KINDS[kind], 1, name="it", middleware=[around(kind, middleware)])
        assert f"the {kind} " in str(raised.value)
        assert "of state 'Say'" in str(raised.value)
        assert said in str(raised.value)
        result = store.resume("it")
        assert result.status == ("PAUSED" if kind == "request" else "SUCCEEDED")
        types = [each.type for each in result.events]
        assert types.count("TaskScheduled") == (kind == "agent")
        assert types.count("ApprovalRequested") == (kind == "request")


@pytest.mark.parametrize("kind", KINDS)
def test_keyboard_interrupt_in_middleware_ends_the_process(kind: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        asl.run(
            KINDS[kind], 1, clock="virtual", middleware=[raising(KeyboardInterrupt())], **BINDINGS
        )


@pytest.mark.parametrize("kind", KINDS)
def test_name_and_cause_of_a_refusal_are_texts(kind: str) -> None:
    refused = raising(asl.StateError(3, [object]))  # type: ignore[arg-type]
    result = asl.run(KINDS[kind], 1, clock="virtual", middleware=[refused], **BINDINGS)
    assert (result.error, result.cause) == ("3", "[<class 'object'>]")


@pytest.mark.parametrize("kind", ["agent", "child", "timer"])
def test_answer_of_middleware_is_as_large_as_allowed(kind: str) -> None:
    result = asl.run(
        KINDS[kind],
        1,
        clock="virtual",
        profile=DEFAULT.with_limits(max_payload=1000),
        middleware=[around(kind, returning("x" * 1000))],
        **BINDINGS,
    )
    assert result.error == "States.DataLimitExceeded"


async def repeat(effect: asl.Effect, proceed: asl.Proceed) -> Any:
    await proceed(effect)
    return await proceed(effect)


@pytest.mark.parametrize("kind", ["child", "request"])
def test_child_and_request_cannot_be_repeated(kind: str, tmp_path: Path) -> None:
    bindings = {**BINDINGS, "approvals": lambda request: "approve"}
    with asl.Store(tmp_path / "runs.db", **bindings) as store:
        with pytest.raises(asl.AslError, match=f"performs a {kind} only once"):
            store.run(KINDS[kind], 1, name="it", middleware=[repeat])
        result = store.resume("it")
        assert result.ok
        types = [each.type for each in result.events]
        assert types.count("ApprovalRequested") + types.count("WorkflowStarted") == 1


def test_call_of_an_agent_may_be_repeated(tmp_path: Path) -> None:
    calls: list[Any] = []
    with asl.Store(tmp_path / "runs.db", agents={"Echo": calls.append}) as store:
        result = store.run(KINDS["agent"], 1, middleware=[repeat])
    assert calls == [1, 1]
    assert [each.type for each in result.events].count("TaskSucceeded") == 1


def test_decision_of_a_request_is_not_replaced() -> None:
    decision = {"record": {"approval": "approve"}}
    with pytest.raises(asl.AslError, match="the decision differs from that of `proceed`"):
        asl.run(
            KINDS["request"],
            approvals=lambda request: "reject",
            middleware=[returning(decision)],
        )


async def keep_back(effect: asl.Effect, proceed: asl.Proceed) -> Any:
    """Answer when it is told to end."""
    try:
        return await proceed(effect)
    except asyncio.CancelledError:
        return "kept back"


async def fail_at_end(effect: asl.Effect, proceed: asl.Proceed) -> Any:
    """Fail when it is told to end."""
    try:
        return await proceed(effect)
    except asyncio.CancelledError:
        raise RuntimeError("closed") from None


async def go_on(effect: asl.Effect, proceed: asl.Proceed) -> Any:
    """Do as if nothing had been said."""
    while True:
        with suppress(asyncio.CancelledError):
            return await proceed(effect)


@pytest.mark.parametrize("middleware", [keep_back, fail_at_end, go_on])
@pytest.mark.parametrize("kind", ["timer", "agent"])
def test_middleware_that_catches_its_cancellation_ends_nevertheless(
    middleware: asl.Middleware, kind: str
) -> None:
    """By the limit of the document, and by the failure of another branch."""

    async def slow(parameters: Any) -> None:
        await asyncio.sleep(30)

    async def bad(parameters: Any) -> None:
        await asyncio.sleep(1)
        raise asl.StateError("Bad", "on purpose")

    after: list[Any] = []
    agents = {"Slow": slow, "Bad": bad, "After": after.append}
    wait = {"Type": "Wait", "Seconds": 30, "Next": "After"}
    first = wait if kind == "timer" else {"Type": "Task", "Agent": "Slow", "Next": "After"}
    branch = machine(First=first, After={"Type": "Task", "Agent": "After", "End": True})
    late = asl.run(
        {**branch, "TimeoutSeconds": 1}, agents=agents, clock="virtual", middleware=[middleware]
    )
    assert late.status == "TIMED_OUT"
    both = [branch, machine(Bad={"Type": "Task", "Agent": "Bad", "End": True})]
    fork = machine(Both={"Type": "Parallel", "Branches": both, "End": True})
    failed = asl.run(fork, agents=agents, clock="virtual", middleware=[middleware])
    assert (failed.error, after) == ("Bad", [])


def test_fault_of_middleware_around_a_tool_is_the_failure_of_the_tool() -> None:
    async def use(parameters: Any, call: asl.Call) -> Any:
        return await call.tools.call("find", {})

    result = asl.run(
        machine(Say=ECHO),
        agents={"Echo": use},
        tools={"find": lambda arguments: arguments},
        middleware=[around("tool", returning({1}))],
    )
    assert result.error == "Agent.ToolError"
    assert "middleware 'around.<locals>.first' around the tool 'find'" in str(result.cause)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (refuse, "'middleware' must be a list of async functions, got function"),
        ("x", "'middleware' must be a list of async functions, got str"),
        (
            [print],
            "'middleware' must be a list of async functions, got <built-in function print> in it",
        ),
    ],
)
def test_invalid_middleware_is_refused(given: Any, said: str) -> None:
    with pytest.raises(asl.AslError, match="middleware") as raised:
        asl.run(machine(Say=ECHO), agents=AGENTS, middleware=given)
    assert str(raised.value) == said
