"""Agents that are Python functions."""

import asyncio
import gc
import threading
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.agents.function import function_agent, named_function

from .workflows import caught, for_each, retried, task

pytestmark = pytest.mark.quick


def plain(parameters: Any) -> Any:
    return {"got": parameters}


def with_call(parameters: Any, call: asl.Call) -> Any:
    return call.state_name


async def awaited(parameters: Any) -> Any:
    await asyncio.sleep(0)
    return {"got": parameters}


async def awaited_with_call(parameters: Any, call: asl.Call) -> Any:
    await call.sleep(1)
    return call.state_name


class Callable:
    def __call__(self, parameters: Any) -> Any:
        return {"got": parameters}


class Awaitable:
    async def __call__(self, parameters: Any) -> Any:
        return {"got": parameters}


def second_has_default(parameters: Any, model: str = "large") -> Any:
    return model


GOT = {"got": {"a": 1}}


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (plain, GOT),
        (awaited, GOT),
        (Callable(), GOT),
        (Awaitable(), GOT),
        (partial(plain), GOT),
        (with_call, "T"),
        (awaited_with_call, "T"),
        (partial(with_call), "T"),
        (second_has_default, "large"),
        (lambda parameters, call=None: call.attempt, 1),
        (len, 1),
        (f"{__name__}:plain", GOT),
    ],
)
@pytest.mark.parametrize("clock", ["wall", "virtual"])
def test_every_kind_of_function_is_an_agent(function: Any, output: Any, clock: str) -> None:
    """Plain and async functions, with and without the call, objects and partials can be bound."""
    if clock == "wall" and function is awaited_with_call:
        pytest.skip("it sleeps")
    result = asl.run(task(), {"a": 1}, agents={"A": function}, clock=clock)
    assert (result.status, result.output) == ("SUCCEEDED", output)


def test_a_function_with_other_arguments_is_refused() -> None:
    """A function that cannot be called with parameters is misuse, found when it is bound."""
    with pytest.raises(asl.AslError, match=r"takes \(parameters\) or \(parameters, call\)"):
        function_agent(lambda: None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plain", "not of the form 'module:function'"),
        ("no_such_module_here:f", "there is no module"),
        (f"{__name__}:plian", r"did you mean 'plain'\?"),
        (f"{__name__}:GOT", "is no function but dict"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(name: str, message: str) -> None:
    """`module:function` says what is missing: the colon, the module, the function."""
    with pytest.raises(asl.AslError, match=message):
        named_function(name)


def test_a_module_that_ends_the_program_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even with exit code 0, which would look like a run that went well."""
    (tmp_path / "ends_the_program.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(asl.AslError, match=r"SystemExit: 0 \(.*ends_the_program.py:2\); put"):
        named_function("ends_the_program:f")


class Odd(Exception):
    """An error of the user's own."""


def raises(error: BaseException) -> Any:
    def agent(parameters: Any) -> Any:
        raise error

    async def awaited_agent(parameters: Any) -> Any:
        raise error

    return agent, awaited_agent


@pytest.mark.parametrize(
    ("error", "name", "cause"),
    [
        (ValueError("no such row"), "States.TaskFailed", "ValueError: no such row"),
        (Odd(), "States.TaskFailed", "Odd"),
        (KeyError("x"), "States.TaskFailed", "KeyError: 'x'"),
        (StopIteration("end"), "States.TaskFailed", "StopIteration: end"),
        (TimeoutError("socket"), "States.TaskFailed", "TimeoutError: socket"),
        (SystemExit(3), "States.TaskFailed", "SystemExit: 3"),
        (asl.StateError("Quota.Exceeded", "tomorrow"), "Quota.Exceeded", "tomorrow"),
        (asl.StateError(None, "why"), "States.TaskFailed", "why"),
        (asl.StateError("", "why"), "States.TaskFailed", "why"),
        (asl.InvalidDocument.__mro__[1]("misuse"), "States.TaskFailed", "AslError: misuse"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_what_a_function_raises_is_an_error_of_the_state(
    error: BaseException, name: str, cause: str, kind: str
) -> None:
    """An exception becomes a named error that Catch sees, with its type and text as the cause."""
    agent = raises(error)[kind == "async"]
    result = asl.run(caught(name), agents={"A": agent})
    assert result.status == "SUCCEEDED"
    assert result.output["Error"] == name
    assert cause.removesuffix(": end") in result.output["Cause"]


def test_retry_sees_what_a_function_raises() -> None:
    """A function that fails twice and then answers succeeds with two retries."""
    calls = []

    def flaky(parameters: Any, call: asl.Call) -> Any:
        calls.append((call.attempt, call.idempotency_key))
        if call.attempt < 3:
            raise asl.StateError("Flaky", "again")
        return "done"

    result = asl.run(retried("Flaky"), agents={"A": flaky}, clock="virtual")
    assert result.output == "done"
    assert [attempt for attempt, _ in calls] == [1, 2, 3]
    assert len({key for _, key in calls}) == 1


def cyclic() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


NO_JSON = [
    (1, 2),
    {1, 2},
    float("nan"),
    float("inf"),
    b"bytes",
    object(),
    {1: "number as key"},
    {"deep": [{"inside": (1,)}]},
    "\ud800",
    cyclic(),
    __import__("datetime").datetime(2030, 1, 1),
    __import__("decimal").Decimal("1.5"),
]


@pytest.mark.parametrize("value", NO_JSON, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_what_is_no_json_is_an_error_of_the_state(value: Any, kind: str) -> None:
    """A result without a JSON form fails the Task, and the cause names place and type."""

    def agent(parameters: Any) -> Any:
        return value

    async def awaited_agent(parameters: Any) -> Any:
        return value

    chosen = awaited_agent if kind == "async" else agent
    result = asl.run(caught("States.TaskFailed"), agents={"A": chosen})
    assert result.status == "SUCCEEDED"
    assert result.output["Error"] == "States.TaskFailed"
    assert "A returned no JSON: $" in result.output["Cause"]


@pytest.mark.parametrize("shape", [lambda answer: answer, lambda answer: {"in": [answer]}])
def test_returned_coroutine_is_named_in_the_cause(shape: Any) -> None:
    """A plain function cannot await, so what it passes on says where it could be."""
    answer = awaited(1)
    result = asl.run(task(), agents={"A": lambda parameters: shape(answer)})
    answer.close()
    assert (result.error, result.status) == ("States.TaskFailed", "FAILED")
    assert result.cause is not None
    assert "await it first, in an async function (coroutine)" in result.cause


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_function_may_change_what_it_gets(kind: str) -> None:
    """Neither the state's input nor the result of an agent changes behind the workflow's back."""
    kept: list[Any] = []

    def agent(parameters: Any) -> Any:
        parameters["items"].append("mine")
        parameters["new"] = True
        kept.append({"answer": []})
        return kept[-1]

    async def awaited_agent(parameters: Any) -> Any:
        return agent(parameters)

    workflow = task(ResultPath="$.result", Next="Again")
    workflow["States"]["Again"] = task(ResultPath="$.again")["States"]["T"]
    data = {"items": [1]}
    chosen = awaited_agent if kind == "async" else agent
    result = asl.run(workflow, data, agents={"A": chosen})
    kept[0]["answer"].append("too late")
    assert data == {"items": [1]}
    assert result.output == {"items": [1], "result": {"answer": []}, "again": {"answer": []}}


async def _reports(parameters: Any) -> Any:
    return {"_tokens": 7, "_cost": 0.5, "text": "done"}


async def _changes(parameters: Any) -> Any:
    parameters["list"].append(parameters.pop("n"))
    return parameters


async def _fails(parameters: Any) -> Any:
    raise asl.StateError("Custom.Name", "because")


async def _breaks(parameters: Any) -> Any:
    raise ValueError("no such thing")


async def _leaves(parameters: Any) -> Any:
    raise SystemExit(3)


async def _gives_up(parameters: Any) -> Any:
    raise asyncio.CancelledError


async def _answers_nonsense(parameters: Any) -> Any:
    return {"a": {1, 2}}


async def _answers_too_much(parameters: Any) -> Any:
    return "x" * 300_000


@pytest.mark.parametrize(
    "function",
    [_reports, _changes, _fails, _breaks, _leaves, _gives_up, _answers_nonsense, _answers_too_much],
)
def test_an_agent_that_nothing_stands_before_is_as_any_other(function: Any) -> None:
    """Whether it takes the call, so that the host stands in between, makes no difference."""

    async def indirect(parameters: Any, call: asl.Call) -> Any:
        return await function(parameters)

    async def outcomes() -> list[asl.Result]:
        data = {"n": 1, "list": [0]}
        document = caught("States.ALL", ResultPath="$.r")
        clock = asl.WallClock()
        clock.now = lambda: 1.7e9  # type: ignore[method-assign]
        return [
            await asl.arun(document, data, name="n", clock=clock, agents={"A": agent})
            for agent in (function, indirect)
        ]

    one, other = asyncio.run(outcomes())
    assert one.to_json() == other.to_json()
    assert one.events == other.events
    assert one.usage["tokens"] == (7 if function is _reports else 0)


def test_a_function_that_was_looked_at_can_still_be_forgotten() -> None:
    """What is known of functions does not keep them."""

    def made() -> Any:
        def agent(parameters: dict[str, Any]) -> Any:
            return parameters

        asl.run(task(), {}, agents={"A": agent})
        return weakref.ref(agent)

    known = made()
    gc.collect()
    assert known() is None


def test_the_call_says_what_an_agent_may_know() -> None:
    """State, execution, attempt, deadline and key are those of the call under way."""
    seen: dict[str, Any] = {}

    async def agent(parameters: Any, call: asl.Call) -> Any:
        seen.update(
            state=call.state_name,
            execution=call.execution_id,
            attempt=call.attempt,
            key=call.idempotency_key,
            left=call.deadline - asl.VirtualClock().now() if call.deadline else None,
            cancelled=call.cancelled,
        )

    asl.run(task(TimeoutSeconds=30), agents={"A": agent}, clock="virtual", name="pr-17")
    assert seen["state"] == "T"
    assert seen["execution"].endswith(":pr-17")
    assert seen["key"].startswith(seen["execution"])
    assert (seen["attempt"], seen["left"], seen["cancelled"]) == (1, 30, False)


def test_keys_differ_by_visit_and_item() -> None:
    """Every item of a Map has an idempotency key of its own."""
    keys: set[str] = set()

    async def agent(parameters: Any, call: asl.Call) -> None:
        keys.add(call.idempotency_key)

    asl.run(for_each(50), list(range(50)), agents={"A": agent}, clock="virtual")
    assert len(keys) == 50


@pytest.mark.parametrize(("beats", "ends"), [(True, "SUCCEEDED"), (False, "FAILED")])
def test_a_heartbeat_keeps_a_call_alive(beats: bool, ends: str) -> None:
    """A call longer than HeartbeatSeconds goes on only with signs of life."""

    async def agent(parameters: Any, call: asl.Call) -> str:
        for step in range(5):
            await call.sleep(2)
            if beats:
                call.report_progress(step * 20, "working") if step % 2 else call.heartbeat()
        return "done"

    workflow = task(HeartbeatSeconds=3, TimeoutSeconds=60)
    result = asl.run(workflow, agents={"A": agent}, clock="virtual")
    assert result.status == ends
    if not beats:
        assert (result.error, result.elapsed) == ("States.Timeout", 3)


def test_a_last_heartbeat_may_come_with_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    """A sign of life that is heard only after the call has ended does no harm."""

    async def agent(parameters: Any, call: asl.Call) -> str:
        await call.sleep(1)
        call.heartbeat()
        return "done"

    workflow = task(HeartbeatSeconds=3, TimeoutSeconds=60)
    workflow["States"]["T"] |= {"Next": "Nap"}
    del workflow["States"]["T"]["End"]
    workflow["States"]["Nap"] = {"Type": "Wait", "Seconds": 1, "End": True}
    assert asl.run(workflow, agents={"A": agent}, clock="virtual").output == "done"
    assert not caplog.records


def test_a_cancelled_call_says_so() -> None:
    """After its timeout `call.cancelled` is True, for an agent that went on nevertheless."""
    calls: list[asl.Call] = []

    async def agent(parameters: Any, call: asl.Call) -> None:
        calls.append(call)
        await call.sleep(100)

    workflow = caught("States.Timeout", TimeoutSeconds=5)
    result = asl.run(workflow, agents={"A": agent}, clock="virtual")
    assert result.output["Error"] == "States.Timeout"
    assert calls[0].cancelled


def test_a_thousand_async_calls_run_at_once() -> None:
    """Without a limit on the Map every item's call is under way at the same time."""
    running = most = 0

    async def agent(parameters: Any, call: asl.Call) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await call.sleep(10)
        running -= 1
        return parameters

    items = list(range(1000))
    result = asl.run(for_each(1000), items, agents={"A": agent}, clock="virtual")
    assert result.output == items
    assert most == 1000
    assert result.elapsed == 10


def test_a_thousand_plain_calls_share_a_bounded_number_of_threads() -> None:
    """Plain functions run in threads, never more than 64 of an execution at once."""
    lock = threading.Lock()
    running = most = 0

    def agent(parameters: Any) -> Any:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
        return parameters

    items = list(range(1000))
    assert asl.run(for_each(1000), items, agents={"A": agent}).output == items
    assert 1 <= most <= 64


class Stop(BaseException):
    """What a library of its own raises."""


async def _busy() -> None:
    raise asl.StateError("Model.Busy", "later")


async def _broken() -> None:
    raise ValueError("no such thing")


async def _stopped() -> None:
    raise Stop("enough")


async def _together(*works: Any) -> None:
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(work())


@pytest.mark.parametrize(
    ("works", "error", "cause"),
    [
        ([_busy], "Model.Busy", "later"),
        ([lambda: _together(_busy)], "Model.Busy", "later"),
        ([_broken], "States.TaskFailed", "ValueError: no such thing"),
        ([_stopped], "States.TaskFailed", "Stop: enough"),
        (
            [_broken, _busy],
            "States.TaskFailed",
            "ExceptionGroup: unhandled errors in a TaskGroup: ValueError: no such thing; "
            "StateError: Model.Busy: later",
        ),
    ],
)
def test_a_group_of_exceptions_says_what_is_in_it(works: list[Any], error: str, cause: str) -> None:
    """One that holds a single exception is that exception."""

    async def agent(parameters: Any) -> Any:
        await _together(*works)

    result = asl.run(task(), agents={"A": agent})
    assert (result.error, result.cause) == (error, cause)


def test_whatever_a_function_raises_is_its_failure() -> None:
    """Also what is no Exception, in a thread or out of it; only Ctrl-C ends the run."""

    def plain(parameters: Any) -> Any:
        raise Stop("enough")

    async def awaited(parameters: Any) -> Any:
        raise BaseExceptionGroup("all", [SystemExit(3), Stop("enough")])

    def interrupted(parameters: Any) -> Any:
        raise KeyboardInterrupt

    causes = [
        asl.run(task(**limit), agents={"A": agent}).cause
        for agent in (plain, awaited)
        for limit in ({}, {"TimeoutSeconds": 60})
    ]
    assert (
        causes
        == ["Stop: enough"] * 2 + ["BaseExceptionGroup: all: SystemExit: 3; Stop: enough"] * 2
    )
    with pytest.raises(KeyboardInterrupt):
        asl.run(task(), agents={"A": interrupted})


def test_a_plain_function_cannot_sleep_on_the_clock_of_the_execution() -> None:
    """It is told so, instead of waiting not at all."""

    def agent(parameters: Any, call: asl.Call) -> Any:
        call.sleep(1)

    assert "make the function async" in str(asl.run(task(), agents={"A": agent}).cause)
