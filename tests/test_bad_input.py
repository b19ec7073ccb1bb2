"""Bad input never hangs, and gives nothing but an AslError or a failed result.

What is known not to hold yet is marked with its reason; a mark that is no longer needed fails.
"""

import asyncio
import datetime
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.core.profile import DEFAULT

LOOKED_AT = 100
"""How many of the last events are looked at: those before them only make the data."""
SECONDS = 15
"""How long anything here may take on a slow machine; it should take a fraction of a second."""


class _TooLong(KeyboardInterrupt):
    """Passes through every `except Exception`, and through callbacks of event loops."""


@contextmanager
def in_time() -> Iterator[None]:
    """Fail the test when the block takes the processor for too long."""

    def stop(number: int, frame: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    except _TooLong:
        pytest.fail(f"took more than {SECONDS} seconds")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def one(**state: Any) -> dict[str, Any]:
    """A document of one state."""
    return {"StartAt": "S", "States": {"S": {"End": True, **state}}}


def end_of(document: Any, data: Any = None, **arguments: Any) -> asl.Result:
    """Run in time, on the virtual clock, and look at everything a result has."""
    with in_time():
        result = asl.run(document, {} if data is None else data, clock="virtual", **arguments)
        assert result.ok or result.error
        assert len(result.cause or "") < 5_000
        assert isinstance(result.to_json(), dict)
        assert [event.to_json() for event in result.events[-LOOKED_AT:]]
    return result


# Data that a loop of Pass states builds: 10,000 levels deep, or of 2**60 values

ITEM = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": 1, "End": True}}}
NESTED: dict[str, Any] = {"a.$": "$.a"}
for _ in range(50):
    NESTED = {"a": NESTED}
SHAPES: Mapping[str, tuple[dict[str, Any], int]] = {
    "deep-object": (NESTED, 200),
    "deep-array": ({"a.$": "States.Array(" * 10 + "$.a" + ")" * 10}, 1_000),
    "wide-array": ({"a.$": "States.Array($.a,$.a)"}, 60),
    "wide-object": ({"a": {"l.$": "$.a", "r.$": "$.a"}}, 60),
}


def grown(shape: str, use: dict[str, Any]) -> dict[str, Any]:
    """A document that builds data of a shape in `$.a`, then does something with it."""
    template, rounds = SHAPES[shape]
    grow = {"i.$": "States.MathAdd($.i, 1)", "items": [1, 2], **template}
    again = {"Variable": "$.i", "NumericLessThan": rounds, "Next": "Grow"}
    states: dict[str, Any] = {
        "Begin": {"Type": "Pass", "Result": {"i": 0, "a": 1}, "Next": "Grow"},
        "Grow": {"Type": "Pass", "Parameters": grow, "Next": "More"},
        "More": {"Type": "Choice", "Choices": [again], "Default": "Use"},
        "Use": use,
    }
    if use["Type"] not in ("Choice", "Fail", "Succeed"):
        states["Use"] = {**use, "Next": "Done"}
    if use["Type"] not in ("Fail", "Succeed"):
        states["Done"] = {"Type": "Pass", "Result": "done", "End": True}
    return {"StartAt": "Begin", "States": states}


def choice(**rule: Any) -> dict[str, Any]:
    return {
        "Type": "Choice",
        "Choices": [{"Variable": "$.a", "Next": "Done", **rule}],
        "Default": "Done",
    }


def computed(text: str) -> dict[str, Any]:
    return {"Type": "Pass", "Parameters": {"x.$": text}}


def mapped(**fields: Any) -> dict[str, Any]:
    return {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": ITEM, **fields}


USES: Mapping[str, dict[str, Any]] = {
    "nothing": {"Type": "Pass"},
    "compare a string": choice(StringEquals="x"),
    "compare with itself": choice(StringEqualsPath="$.a"),
    "compare numbers": choice(NumericLessThanPath="$.a"),
    "test its type": choice(IsTimestamp=True),
    "test a member": choice(Variable="$.a.b.c", IsPresent=True),
    "match no rule": {key: it for key, it in choice(IsNull=True).items() if key != "Default"},
    "JsonToString": computed("States.JsonToString($.a)"),
    "Format": computed("States.Format('{}', $.a)"),
    "Hash": computed("States.Hash($.a, 'SHA-256')"),
    "TokenCount": computed("States.TokenCount($.a)"),
    "Truncate": computed("States.Truncate($.a, 5)"),
    "ArrayContains": computed("States.ArrayContains(States.Array($.a), States.Array($.a))"),
    "ArrayUnique": computed("States.ArrayUnique(States.Array($.a, $.a))"),
    "ArrayPartition": computed("States.ArrayPartition(States.Array($.a, $.a), 1)"),
    "JsonMerge": computed("States.JsonMerge($, $, false)"),
    "Merge": computed("States.Merge($, $)"),
    "MathAdd": computed("States.MathAdd($.a, 1)"),
    "Base64Encode": computed("States.Base64Encode($.a)"),
    "look for a member": computed("$.a.missing"),
    "look beside it": computed("$.missing"),
    "walk over it": {"Type": "Pass", "InputPath": "$..*"},
    "filter it": {"Type": "Pass", "InputPath": "$..[?(@.l == @.r)]"},
    "put into it": {"Type": "Pass", "Result": 1, "ResultPath": "$.a.b.c"},
    "keep it in a variable": {"Type": "Pass", "Assign": {"v.$": "$.a"}},
    "Map over it": mapped(ItemsPath="$.a"),
    "Map over a number": mapped(ItemsPath="$.i"),
    "select it for items": mapped(ItemSelector={"x.$": "$.a"}),
    "branch with it": {"Type": "Parallel", "Branches": [ITEM]},
    "give it to a function": {"Type": "Task", "Agent": "F"},
    "give it to a coroutine": {"Type": "Task", "Agent": "C"},
    "have it echoed": {"Type": "Task", "Agent": "E"},
    "fail with it": {"Type": "Fail", "CausePath": "$.a"},
    "fail with its text": {"Type": "Fail", "CausePath": "States.JsonToString($.a)"},
}
SHOWING: Mapping[str, dict[str, Any]] = {
    "wait for it": {"Type": "Wait", "SecondsPath": "$.a"},
    "wait until it": {"Type": "Wait", "TimestampPath": "$.a"},
    "time out by it": {"Type": "Task", "Agent": "F", "TimeoutSecondsPath": "$.a"},
    "beat by it": {"Type": "Task", "Agent": "F", "HeartbeatSecondsPath": "$.a"},
    "run as many": mapped(MaxConcurrencyPath="$.a"),
    "tolerate as many": mapped(ToleratedFailureCountPath="$.a"),
    "tolerate as much": mapped(ToleratedFailurePercentagePath="$.a"),
}


async def _one(parameters: Any) -> Any:
    return 1


AGENTS: Mapping[str, Any] = {
    "F": lambda parameters: 1,
    "C": _one,
    "E": {"echo": True},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("use", USES)
def test_monstrous_data_ends_in_a_named_error_or_a_bounded_result(shape: str, use: str) -> None:
    """Whatever a state does with it; events and result can be looked at."""
    end_of(grown(shape, USES[use]), agents=AGENTS)


@pytest.mark.parametrize(
    ("shape", "use"),
    [pytest.param(shape, use, id=f"{use}-{shape}") for use in SHOWING for shape in SHAPES],
)
def test_monstrous_data_is_no_number(shape: str, use: str) -> None:
    """Where a number is wanted, the cause does not show the whole value."""
    result = end_of(grown(shape, SHOWING[use]), agents=AGENTS)
    assert result.error == "States.Runtime"


@pytest.mark.parametrize("shape", SHAPES)
def test_every_event_of_monstrous_data_can_be_looked_at(shape: str) -> None:
    """Also those by which it has become what it is."""
    result = end_of(grown(shape, USES["nothing"]), agents=AGENTS)
    with in_time():
        assert [event.to_json() for event in result.events]


def test_data_too_deep_for_an_agent_is_not_the_agents_fault() -> None:
    """It was never asked; the cause says so."""
    result = end_of(grown("deep-array", USES["give it to a function"]), agents=AGENTS)
    assert result.error == "States.Runtime"
    assert "nested deeper than 200 levels" in (result.cause or "")


def test_cause_names_data_too_deep_for_an_agent() -> None:
    """It was never asked, so it has returned nothing."""
    result = end_of(grown("deep-array", USES["give it to a function"]), agents=AGENTS)
    assert "returned" not in (result.cause or "")


@pytest.mark.parametrize(
    "shape",
    [pytest.param(each, id=each) for each in SHAPES],
)
def test_a_monstrous_output_is_an_error(shape: str) -> None:
    """Nobody could print, keep or send it."""
    result = end_of(grown(shape, {"Type": "Succeed"}))
    assert result.error in ("States.DataLimitExceeded", "States.Runtime")
    assert len(repr(result)) < 5_000


def asl_run(document: Any, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own that may not take more than 2 GB."""
    path = folder / "document.asl.json"
    path.write_text(json.dumps(document))
    program = (
        "import resource, runpy\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "runpy.run_module('asl', run_name='__main__', alter_sys=True)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program, "run", str(path), "--virtual-time", *flags],
        capture_output=True,
        text=True,
        timeout=4 * SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    ("shape", "whole", "flags"),
    [
        pytest.param("deep-object", False, [], id="deep"),
        pytest.param("wide-array", False, [], id="wide"),
        pytest.param("deep-object", False, ["--json"], id="deep-json"),
        pytest.param("wide-array", False, ["--json"], id="wide-json"),
        pytest.param("deep-object", True, [], id="deep-output"),
        pytest.param("deep-object", True, ["--json"], id="deep-output-json"),
        pytest.param("wide-array", True, [], id="wide-output"),
        pytest.param("wide-array", True, ["--json"], id="wide-output-json"),
        pytest.param("deep-object", False, ["--events"], id="deep-events"),
        pytest.param("deep-object", False, ["--trace"], id="deep-trace"),
        pytest.param("wide-array", False, ["--events"], id="wide-events"),
        pytest.param("wide-array", False, ["--trace"], id="wide-trace"),
    ],
)
def test_the_command_bears_monstrous_data(
    shape: str, whole: bool, flags: list[str], tmp_path: Path
) -> None:
    """It prints a result or an error, never a traceback."""
    document = grown(shape, {"Type": "Succeed" if whole else "Pass"})
    done = asl_run(document, tmp_path, *flags)
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.returncode in (0, 1)


def test_a_process_gets_no_request_without_end() -> None:
    """The request is a line of JSON; its text would have more bytes than there are atoms."""
    from asl.agents.process import ProcessAgent

    use = {"Type": "Task", "Agent": "P"}
    result = end_of(grown("wide-array", use), agents={"P": ProcessAgent(["cat"])})
    assert not result.ok


def test_a_scripts_pattern_bears_monstrous_data() -> None:
    """It is refused before any row of the table is compared."""
    table = {"table": [{"when": {"a": [[1, 2], [3]]}, "then": {"return": 1}}]}
    result = end_of(grown("wide-array", {"Type": "Task", "Agent": "T"}), agents={"T": table})
    assert result.error == "States.DataLimitExceeded"


# Loops

GROWTHS = {
    "text": ("States.Format('{}{}', $.a, $.a)", "ab"),
    "number": ("States.MathMultiply($.a, $.a)", 3),
    "base64": ("States.Base64Encode($.a)", "ab" * 1_000),
}


@pytest.mark.parametrize(
    "growth",
    [*GROWTHS, pytest.param("array", id="array")],
)
def test_what_grows_in_a_loop_is_bounded(growth: str) -> None:
    """By an error of the function that makes it grow."""
    text, start = {**GROWTHS, "array": ("States.ArrayConcat($.a, $.a)", [1])}[growth]
    again = {"Variable": "$.i", "NumericLessThan": 22, "Next": "A"}
    document = {
        "StartAt": "A",
        "States": {
            "A": {
                "Type": "Pass",
                "Parameters": {"a.$": text, "i.$": "States.MathAdd($.i, 1)"},
                "Next": "B",
            },
            "B": {"Type": "Choice", "Choices": [again], "Default": "C"},
            "C": {"Type": "Pass", "Result": "done", "End": True},
        },
    }
    profile = DEFAULT.with_limits(max_payload=1_000)
    result = end_of(document, {"a": start, "i": 0}, profile=profile)
    assert result.error in ("States.DataLimitExceeded", "States.IntrinsicFailure")


def test_an_endless_loop_ends() -> None:
    """At the bound of transitions."""
    document = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "A"}}}
    profile = DEFAULT.with_limits(max_transitions=20_000)
    result = end_of(document, profile=profile)
    assert result.error == "States.Runtime"
    assert "20000 transitions" in (result.cause or "")


def test_an_endless_loop_of_tasks_ends() -> None:
    """At the bound of transitions, and the cause can be told."""
    document = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "E", "Next": "A"}}}
    profile = DEFAULT.with_limits(max_transitions=500)
    result = end_of(document, agents=AGENTS, profile=profile)
    assert result.error == "States.Runtime"
    assert "500 transitions" in (result.cause or "")


@pytest.mark.parametrize("rounds", [200])
def test_centuries_pass_on_the_virtual_clock(rounds: int) -> None:
    """However many retries with growing delays there are."""
    retry = {"ErrorEquals": ["States.ALL"], "MaxAttempts": rounds}
    result = end_of(one(Type="Task", Agent="R", Retry=[retry]), agents={"R": {"raise": {}}})
    assert result.error == "States.TaskFailed"


# Numbers at the edge

HUGE = 10**400


@pytest.mark.parametrize(
    ("document", "value", "profile"),
    [
        pytest.param(one(Type="Wait", SecondsPath="$.v"), 1e300, "default", id="wait-float"),
        pytest.param(one(Type="Wait", SecondsPath="$.v"), 10**12, "default", id="wait-long"),
        pytest.param(one(Type="Wait", SecondsPath="$.v"), -1, "default", id="wait-negative"),
        pytest.param(one(Type="Wait", SecondsPath="$.v"), HUGE, "default", id="wait"),
        pytest.param(
            one(Type="Task", Agent="F", TimeoutSecondsPath="$.v"), HUGE, "default", id="timeout"
        ),
        pytest.param(
            one(**mapped(ItemsPath="$.items", MaxConcurrencyPath="$.v")),
            "9" * 5_000,
            "aws",
            id="concurrency-text",
        ),
        pytest.param(one(**computed("States.MathAdd($.v, 1)")), HUGE, "default", id="add"),
        pytest.param(
            one(**computed("States.ArrayGetItem($.items, $.v)")), HUGE, "default", id="item"
        ),
        pytest.param(one(**computed("States.ArrayRange(0, $.v, 1)")), 10**9, "default", id="range"),
        pytest.param(
            one(**computed("States.StringToJson($.v)")), "[" * 100_000, "default", id="deep-text"
        ),
        pytest.param(
            one(**computed("States.StringToJson($.v)")), "9" * 5_000, "default", id="long-number"
        ),
    ],
)
def test_a_number_beyond_reason_fails_the_state(document: Any, value: Any, profile: str) -> None:
    """With a named error."""
    data = {"v": value, "items": [1]}
    result = end_of(document, data, profile=profile, agents=AGENTS)
    assert (result.error or "").startswith("States.")


def test_a_relative_time_beyond_reason_is_bounded() -> None:
    """The check refuses it, or the comparison is false."""
    rule = {"Variable": "$.t", "TimestampLessThan": f"+1{'0' * 300}s", "Next": "Done"}
    document = {
        "StartAt": "C",
        "States": {
            "C": {"Type": "Choice", "Choices": [rule], "Default": "Done"},
            "Done": {"Type": "Succeed"},
        },
    }
    with suppress(asl.InvalidDocument):
        end_of(document, {"t": "2026-01-01T00:00:00Z"})


def test_a_cost_beyond_reason_stays_json() -> None:
    """Usage can be written down whatever an agent reports."""
    result = end_of(one(Type="Task", Agent="A"), agents={"A": {"return": {"_cost": HUGE}}})
    json.dumps(result.to_json(), allow_nan=False)


# Input that is not JSON

CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE
DEEP: Any = 0
for _ in range(10_000):
    DEEP = [DEEP]
NOT_JSON = {
    "date": ({"x": [datetime.date(2026, 1, 1)]}, "$['x'][0]"),
    "tuple": ((1, 2), "$"),
    "set": ({"x": {1}}, "$['x']"),
    "bytes": ({"x": b"1"}, "$['x']"),
    "decimal": ({"x": Decimal(1)}, "$['x']"),
    "not-a-number": ({"x": float("nan")}, "$['x']"),
    "infinity": ([float("inf")], "$[0]"),
    "surrogate": ({"x": "\ud800"}, "$['x']"),
    "key": ({1: 2}, "$[1]"),
    "long-integer": ([10**5_000], "$[0]"),
    "object": (object(), "$"),
    "cycle": (CYCLE, "$['again']"),
    "deep": (DEEP, "$[0]"),
}


@pytest.mark.parametrize(
    ("value", "place"),
    [pytest.param(*NOT_JSON[each], id=each) for each in NOT_JSON],
)
def test_input_that_is_not_json_is_refused_with_the_place(value: Any, place: str) -> None:
    """Before anything runs."""
    with in_time(), pytest.raises(asl.NotJson) as refusal:
        asl.run(one(Type="Pass"), value)
    assert refusal.value.place.startswith(place)


# Agents

TASK = one(Type="Task", Agent="A")
TIMED = one(Type="Task", Agent="A", TimeoutSeconds=10)


BUDGETED = {**TASK, "Budget": {"MaxTokens": 100}}
BESIDE = one(
    Type="Parallel",
    Branches=[
        {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "A", "End": True}}},
        {"StartAt": "B", "States": {"B": {"Type": "Task", "Agent": "B", "End": True}}},
    ],
)


class Own(BaseException):
    """An exception of foreign code that is no Exception."""


class Wordless(Exception):
    """An exception that has no text."""

    def __str__(self) -> str:
        raise ValueError("no words")


def plain(answer: Any) -> Any:
    def agent(parameters: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return agent


def coroutine(answer: Any) -> Any:
    async def agent(parameters: Any) -> Any:
        return plain(answer)(parameters)

    return agent


@pytest.mark.parametrize(
    "document",
    [TASK, TIMED, BUDGETED, BESIDE],
    ids=["untimed", "timed", "budgeted", "beside"],
)
@pytest.mark.parametrize("make", [plain, coroutine])
@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        TimeoutError("slow"),
        RecursionError("deep"),
        MemoryError(),
        StopIteration(4),
        asl.AslError("misused"),
        asl.NotJson("$", "set", "not a JSON value"),
        asl.StateError(None),
        ExceptionGroup("both", [ValueError("one"), KeyError("two")]),
        pytest.param(Wordless(), id="wordless"),
        pytest.param(asyncio.CancelledError(), id="cancelled"),
        StopAsyncIteration(),
        GeneratorExit("closed"),
        SystemExit(1),
        Own(),
        BaseExceptionGroup("one", [GeneratorExit()]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_an_agent_raises_fails_the_state(document: Any, make: Any, error: Any) -> None:
    """Plain function or coroutine, with a time limit, a budget, a branch beside it, or nothing."""
    result = end_of(document, agents={"A": make(error), "B": coroutine("fine")})
    assert result.error == "States.TaskFailed"

    async def beside_others() -> asl.Result:
        return await asl.arun(document, {}, agents={"A": make(error), "B": coroutine("fine")})

    with in_time():
        assert asyncio.run(beside_others()).error == "States.TaskFailed"


class Mute(Exception):
    """An exception whose text ends the process."""

    def __str__(self) -> str:
        raise SystemExit(3)


def deep_group() -> BaseException:
    """Return a group in a group, deeper than Python calls functions."""
    error: BaseException = ValueError("inside")
    for _ in range(2_000):
        error = BaseExceptionGroup("g", [error, error])
    return error


RAISED: Mapping[str, Any] = {
    "Exception": lambda: ValueError("no"),
    "StopIteration": lambda: StopIteration(4),
    "StopAsyncIteration": StopAsyncIteration,
    "GeneratorExit": lambda: GeneratorExit("closed"),
    "SystemExit": lambda: SystemExit(1),
    "CancelledError": asyncio.CancelledError,
    "MemoryError": MemoryError,
    "RecursionError": lambda: RecursionError("deep"),
    "BaseException": Own,
    "wordless": Wordless,
    "mute": Mute,
    "group": lambda: BaseExceptionGroup("g", [SystemExit(1), GeneratorExit()]),
    "deep group": deep_group,
    "AslError": lambda: asl.AslError("misused"),
}
"""What foreign code may raise; KeyboardInterrupt is the user's and flies."""
CALL = {"StartAt": "I", "States": {"I": {"Type": "Task", "Agent": "A", "End": True}}}
SLOW = {"StartAt": "W", "States": {"W": {"Type": "Task", "Agent": "Slow", "End": True}}}
RESOURCE = "arn:aws:states:::aws-sdk:sqs:sendMessage"
DISTRIBUTED = {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}
FOLLOWS = {"Read": {"Keys": ["k"], "InjectAt": "$.m"}}
CONTEXTS: Mapping[str, dict[str, Any]] = {
    "agent": one(Type="Task", Agent="A"),
    "resource": one(Type="Task", Resource=RESOURCE),
    "tool": one(Type="Task", Agent="T"),
    "memory": {"Memory": {"Backend": "custom"}, **one(Type="Task", Agent="F", Memory=FOLLOWS)},
    "Map": one(Type="Map", ItemsPath="$.items", ItemProcessor=CALL),
    "Parallel": one(Type="Parallel", Branches=[SLOW, CALL]),
    "distributed Map": one(
        Type="Map", ItemsPath="$.items", ItemProcessor={"ProcessorConfig": DISTRIBUTED, **CALL}
    ),
    "child": one(Type="Workflow", WorkflowId="kid", Input={}),
}
NAMES = {
    "tool": "Agent.ToolError",
    "memory": "States.MemoryNotConfigured",
    "distributed Map": "States.ExceedToleratedFailureThreshold",
}
"""The error of a state, where it is not States.TaskFailed."""


class Foreign:
    """A memory whose methods raise."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def get(self, *arguments: Any) -> Any:
        raise self.error

    entries = change = get


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", RAISED)
def test_what_foreign_code_raises_fails_the_state_around_it(context: str, name: str) -> None:
    """Wherever it is raised: a catcher sees it, siblings are cancelled, nothing hangs."""
    ended: list[str] = []
    error = RAISED[name]()

    async def slow(parameters: Any) -> Any:
        try:
            await asyncio.sleep(10**6)
        finally:
            ended.append("sibling")

    async def uses_tool(parameters: Any, call: asl.Call) -> Any:
        return await call.tools.call("t", {})

    given: dict[str, Any] = {
        "agents": {"A": coroutine(error), "T": uses_tool, "F": plain(1), "Slow": slow},
        "resources": {RESOURCE: coroutine(error)},
        "tools": {"t": coroutine(error)},
        "memory": Foreign(error),
        "workflows": {"kid": CALL},
    }
    document = json.loads(json.dumps(CONTEXTS[context]))
    state = document["States"]["S"]
    wanted = NAMES.get(context, "States.TaskFailed")
    result = end_of(document, {"items": [1, 2, 3]}, **given)
    assert result.error == wanted
    assert ended == ["sibling"] * (context == "Parallel")
    del state["End"]
    state |= {"Next": "Done", "Catch": [{"ErrorEquals": [wanted], "Next": "Caught"}]}
    document["States"] |= {"Caught": {"Type": "Pass", "Result": "caught", "End": True}}
    document["States"] |= {"Done": {"Type": "Succeed"}}
    assert end_of(document, {"items": [1, 2, 3]}, **given).output == "caught"


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_keyboard_interrupt_flies_from_foreign_code(context: str) -> None:
    """No catcher sees it."""
    document = json.loads(json.dumps(CONTEXTS[context]))

    async def uses_tool(parameters: Any, call: asl.Call) -> Any:
        return await call.tools.call("t", {})

    async def fine(parameters: Any) -> Any:
        await asyncio.sleep(1)

    interrupt = coroutine(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        end_of(
            document,
            {"items": [1, 2, 3]},
            agents={"A": interrupt, "T": uses_tool, "F": plain(1), "Slow": fine},
            resources={RESOURCE: interrupt},
            tools={"t": interrupt},
            memory=Foreign(KeyboardInterrupt()),
            workflows={"kid": CALL},
        )


@pytest.mark.parametrize("name", RAISED)
def test_what_a_listener_raises_flies(name: str) -> None:
    """It is no part of the workflow: the caller gets it as it is."""
    error = RAISED[name]()

    def listener(event: asl.Event) -> None:
        raise error

    with pytest.raises(BaseException) as caught:  # noqa: PT011 - it is looked at below
        asl.run(TASK, {}, agents={"A": plain(1)}, listener=listener, clock="virtual")
    assert error in (caught.value, caught.value.__cause__)


@pytest.mark.parametrize("name", RAISED)
def test_what_middleware_raises_is_its_fault(name: str) -> None:
    """An AslError names the middleware; no catcher of the workflow sees it."""
    error = RAISED[name]()

    async def around(effect: asl.Effect, proceed: Any) -> Any:
        raise error

    with pytest.raises(asl.AslError, match="around"):
        asl.run(TASK, {}, agents={"A": plain(1)}, middleware=[around], clock="virtual")


@pytest.mark.parametrize("error", [GeneratorExit(), SystemExit(), StopIteration(), Own()])
@pytest.mark.parametrize("make", [plain, coroutine])
def test_what_a_tool_a_hook_or_a_judge_raises_fails_the_state(make: Any, error: Any) -> None:
    """It ends neither the run nor its event loop."""

    async def uses_tool(parameters: Any, call: asl.Call) -> Any:
        return await call.tools.call("t", {})

    agents = {"A": uses_tool, "H": make(error), "J": make(error)}
    judged = one(Type="Task", Agent="A", Guardrails={"Input": {"Validator": "J"}})
    hooked = one(Type="Task", Agent="A", Tools={"Hooks": {"Before": {"Agent": "H"}}})
    assert end_of(TASK, agents=agents, tools={"t": make(error)}).error == "Agent.ToolError"
    assert end_of(hooked, agents=agents, tools={"t": make(1)}).error == "States.Permissions"
    assert end_of(judged, agents=agents, tools={"t": make(1)}).error == "States.TaskFailed"


def test_a_closed_execution_calls_nothing_more() -> None:
    """GeneratorExit of the coroutine itself is no failure that a catcher sees."""
    called: list[Any] = []

    async def waits(parameters: Any) -> Any:
        await asyncio.sleep(60)

    caught = [{"ErrorEquals": ["States.ALL"], "Next": "S2"}]
    document = one(Type="Task", Agent="A", Catch=caught)
    document["States"]["S2"] = {"Type": "Task", "Agent": "B", "End": True}

    async def start_and_close() -> None:
        execution = asl.arun(document, {}, agents={"A": waits, "B": called.append})
        execution.send(None)
        execution.close()

    asyncio.run(start_and_close())
    assert not called


@pytest.mark.parametrize("make", [plain, coroutine])
@pytest.mark.parametrize("each", NOT_JSON)
def test_what_an_agent_returns_is_json_or_fails_the_state(make: Any, each: str) -> None:
    """The cause names the place."""
    value, place = NOT_JSON[each]
    result = end_of(TASK, agents={"A": make(value)})
    assert result.error == "States.TaskFailed"
    assert place in (result.cause or "")


@pytest.mark.parametrize(
    "error", [pytest.param(5, id="number"), pytest.param("\ud800", id="surrogate")]
)
def test_the_name_of_an_error_is_text(error: Any) -> None:
    """Whatever the agent has put there."""
    result = end_of(TASK, agents={"A": plain(asl.StateError(error, error))})
    assert isinstance(result.error, str)
    result.error.encode()


def test_an_agent_cannot_change_what_others_see() -> None:
    """Neither through its parameters nor through what it has returned."""
    kept: list[Any] = []

    def agent(parameters: Any) -> Any:
        parameters["x"]["y"] = "spoilt"
        answer = {"mine": [1]}
        kept.append(answer)
        return answer

    def spoiler(parameters: Any) -> Any:
        kept[0]["mine"].append("spoilt")
        return None

    document = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Task", "Agent": "A", "ResultPath": "$.r", "Next": "B"},
            "B": {"Type": "Task", "Agent": "B", "ResultPath": None, "End": True},
        },
    }
    data = {"x": {"y": 1}}
    result = end_of(document, data, agents={"A": agent, "B": spoiler})
    assert result.output == {"x": {"y": 1}, "r": {"mine": [1]}}
    assert data == {"x": {"y": 1}}


def test_an_agent_that_never_answers_times_out() -> None:
    """A coroutine on the virtual clock and a plain function on the real one."""

    async def asleep(parameters: Any) -> Any:
        await asyncio.sleep(10**9)

    assert end_of(TIMED, agents={"A": asleep}).error == "States.Timeout"
    assert end_of(TIMED, agents={"A": {"hang": True}}).error == "States.Timeout"

    def busy(parameters: Any) -> Any:
        while True:
            pass

    with in_time():
        result = asl.run(one(Type="Task", Agent="A", TimeoutSeconds=1), agents={"A": busy})
    assert result.error == "States.Timeout"


def test_an_agent_that_waits_for_nothing_is_noticed() -> None:
    """On the virtual clock nothing would ever happen again."""

    async def agent(parameters: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    with in_time(), pytest.raises(asl.AslError, match="nothing can happen any more"):
        asl.run(TASK, agents={"A": agent}, clock="virtual")


# Arguments


@pytest.mark.parametrize(
    "arguments",
    [
        {"agents": {1: 2}},
        {"agents": {"A": 2}},
        {"agents": {"A": "no module"}},
        pytest.param({"agents": ["A"]}, id="agents-list"),
        pytest.param({"agents": {"A": "..:f"}}, id="relative-module"),
        pytest.param({"clock": 5}, id="clock"),
        pytest.param({"profile": []}, id="profile"),
        pytest.param({"name": 5}, id="name"),
        pytest.param({"name": "\ud800"}, id="name-surrogate"),
    ],
    ids=str,
)
def test_arguments_of_the_wrong_kind_are_misuse(arguments: Any) -> None:
    """An AslError says so."""
    document = one(**computed("States.UUID()"))
    with in_time(), pytest.raises(asl.AslError):
        asl.run(document, **arguments)


# Texts that would be looked through again and again

QUOTES = "\\'" * 100_000
"""Quotes that are escaped: none of them closes the one before them."""
UNCLOSED: Mapping[str, dict[str, Any]] = {
    "query": {
        **one(Type="Pass", Output="{% '" + QUOTES[:60_000] + " %}"),
        "QueryLanguage": "JSONata",
    },
    "path of an intrinsic": one(Type="Pass", Parameters={"a.$": f"States.Array($['{QUOTES})"}),
    "insertion": one(Type="Approval", Prompt="{{ '" + QUOTES, Options=["a"]),
}


@pytest.mark.parametrize("name", UNCLOSED)
def test_a_quote_that_is_never_closed_is_found_in_time(name: str) -> None:
    """The end is looked for once, not at each quote behind it."""
    with in_time():
        assert not asl.check(UNCLOSED[name]).ok


def test_a_text_that_is_no_json_is_found_in_time() -> None:
    """AWS reads single quotes as double ones; they are looked for once."""
    asked = one(Type="Pass", Output="{% $parse($states.input) %}")
    result = end_of({**asked, "QueryLanguage": "JSONata"}, "'" + QUOTES[:160_000], profile="aws")
    assert result.error == "States.QueryEvaluationError"


def test_a_word_without_a_colon_is_no_url_and_found_so_in_time() -> None:
    """What an agent gives a tool is looked through for hosts."""
    from asl.effects.tools.argument_scan import URL

    with in_time():
        assert URL.findall("a" * 500_000 + " 1http://x/y") == ["http://x/y"]
