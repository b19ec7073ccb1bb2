"""Agents of every kind use tools, and by nobody else than the broker."""

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.agents import McpServer, ProcessAgent, Tool

from .workflows import answer, task, told, use

pytestmark = pytest.mark.quick

Json = Any
MCP = [sys.executable, "-S", str(Path(__file__).parents[1] / "agents" / "lean_mcp.py"), "things"]
TOOLS = {"echo": {"echo": True}, "other": {"return": 2}}


def test_a_plain_function_gets_the_answer() -> None:
    """It waits in its thread, and virtual time goes on meanwhile."""

    def agent(parameters: Json, call: asl.Call) -> Json:
        return [call.tools.names(), call.tools.call("slow", {"a": 1}), call.tools.call("slow")]

    tools = {"slow": {"return": 1, "delay": 3600}}
    result = asl.run(task(), agents={"A": agent}, tools=tools, clock="virtual")
    assert result.output == [["slow"], 1, 1]
    assert 7200 <= result.elapsed < 7260


def test_an_async_function_awaits_it() -> None:
    """The same names, awaited."""

    async def agent(parameters: Json, call: asl.Call) -> Json:
        return [await call.tools.names(), await call.tools.call("echo", {"a": 1})]

    result = asl.run(task({"Denied": ["other"]}), agents={"A": agent}, tools=TOOLS)
    assert result.output == [["echo"], {"a": 1}]


def test_a_program_uses_tools(tmp_path: Path) -> None:
    """A line asks for a tool, a line answers, and a refusal is an answer, too."""
    (tmp_path / "p.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    said = []\n"
        "    for tool in ('echo', 'other'):\n"
        "        print(json.dumps({'tool': tool, 'arguments': {'x': tool}}), flush=True)\n"
        "        said.append(json.loads(sys.stdin.readline()))\n"
        "    print(json.dumps({'return': said}), flush=True)\n"
    )
    program = ProcessAgent([sys.executable, str(tmp_path / "p.py")])
    result = asl.run(task({"Allowed": ["echo"]}), agents={"A": program}, tools=TOOLS)
    assert result.output == [
        {"return": {"x": "echo"}},
        {"error": "States.Permissions", "cause": "tool 'other' is not allowed"},
    ]
    assert told(result) == [
        ("ToolCalled", "echo", None),
        ("ToolRefused", "other", "States.Permissions"),
    ]


def test_without_tools_there_are_none() -> None:
    """A run without tools says so, in the calling thread."""
    threads = []

    def agent(parameters: Json, call: asl.Call) -> Json:
        threads.append(threading.current_thread())
        assert call.tools.names() == []
        return call.tools.call("search")

    result = asl.run(task(), agents={"A": agent})
    assert (result.error, result.cause) == ("Agent.ToolError", "there is no tool 'search'")
    assert threads == [threading.main_thread()]


def test_a_server_is_named_by_the_binding() -> None:
    """Its tools are NAME/TOOL; a policy may mean them by either name."""

    def agent(parameters: Json, call: asl.Call) -> Json:
        return [call.tools.names(), call.tools.call("things/add", {"a": 1, "b": 2})]

    def run(policy: Json) -> asl.Result:
        return asl.run(task(policy), agents={"A": agent}, tools={"things": McpServer(MCP)})

    assert run({"Allowed": ["things/*"], "Denied": ["broken"]}).output == [
        ["things/add", "things/steps"],
        3,
    ]
    refused = run({"Denied": ["add"]})
    assert refused.error == "States.Permissions"


@pytest.mark.parametrize(
    ("tool", "name", "part"),
    [
        (lambda arguments: 1 / 0, "Agent.ToolError", "ZeroDivisionError"),
        (lambda arguments: {1, 2}, "Agent.ToolError", "no JSON"),
        (lambda arguments: float("nan"), "Agent.ToolError", "no JSON"),
        (lambda arguments: sys.exit(3), "Agent.ToolError", "SystemExit"),
        ({"raise": {"Error": "X", "Cause": "y"}}, "Agent.ToolError", "X: y"),
        (ProcessAgent(["false"]), "Agent.ToolError", "exit code 1"),
        (ProcessAgent(["echo", "hello"]), "Agent.ToolError", "no JSON object"),
        (ProcessAgent(["/no/such/program"]), "Agent.ToolError", "cannot start"),
    ],
)
def test_a_tool_that_fails_has_failed(tool: Any, name: str, part: str) -> None:
    """Whatever goes wrong in it has one name, and stands in the history."""
    result = use(tool)
    assert result.error == name
    assert part in (result.cause or "")
    assert told(result) == [("ToolCalled", "tool", name)]


def test_a_huge_answer_is_none() -> None:
    """More than any answer may have, and more than this one may."""
    result = use(lambda arguments: "x" * (65 * 1024 * 1024))
    assert result.error == "Agent.ToolError"
    policy = {"Validation": {"tool": {"Output": {"MaxSize": "1K"}}}}
    result = use(lambda arguments: "x" * 2000, policy=policy)
    assert (result.error, told(result)[0][0]) == ("Agent.ToolError", "ToolCalled")


def test_hanging_function_is_abandoned() -> None:
    """A thread that nobody waits for any more is told, and the run ends."""
    release = threading.Event()
    result = use(lambda arguments: release.wait(60), policy={"Timeout": "50ms"})
    release.set()
    assert result.error == "Agent.ToolError"
    assert "no answer within 0.05 s" in (result.cause or "")


def test_a_server_starts_while_virtual_time_stands_still() -> None:
    """Who waits for its list of tools waits for something real."""
    uses = {"use": [{"tool": "s/add", "arguments": {"a": 1, "b": 2}}]}
    for agent, output in ((uses, [3]), ({"offered": True}, ["s/add", "s/broken", "s/steps"])):
        tools = {"s": McpServer(MCP)}
        result = asl.run(task(), agents={"A": agent}, tools=tools, clock="virtual")
        assert (sorted(result.output or []), result.elapsed) == (output, 0.0), result.cause


def test_server_that_hangs_at_its_start_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a tool call is that of its server's start, too."""
    monkeypatch.setattr("asl.agents.mcp_connection.GRACE", 0.05)
    server = McpServer([sys.executable, "-c", "import time; time.sleep(60)"], timeout=30)
    document = task({"Timeout": "300ms"})
    result = asl.run(document, agents={"A": {"use": [{"tool": "s/t"}]}}, tools={"s": server})
    assert (result.error, result.cause) == (
        "Agent.ToolError", "tool 's/t': no answer within 0.3 s",
    )  # fmt: skip
    assert told(result) == [("ToolRefused", "s/t", "Agent.ToolError")]


def test_a_hung_tool_of_a_function_ends_with_its_state() -> None:
    """The thread that waits for the tool is told as well."""
    ended = threading.Event()

    def agent(parameters: Json, call: asl.Call) -> Json:
        try:
            return call.tools.call("hung")
        finally:
            ended.set()

    result = asl.run(
        task(TimeoutSeconds=5),
        agents={"A": agent},
        tools={"hung": {"hang": True}},
        clock="virtual",
    )
    assert result.error == "States.Timeout"
    assert ended.wait(10)


def test_a_tool_learns_of_its_call() -> None:
    """Its key is its own: the same for the same question, another one for the next."""
    keys = []

    def tool(arguments: Json, call: asl.Call) -> Json:
        keys.append(call.idempotency_key)
        return [call.state_name, call.attempt]

    def run() -> asl.Result:
        calls = [{"tool": "t", "arguments": {"a": each}} for each in (1, 1, 2)]
        return asl.run(task(), agents={"A": {"use": calls}}, tools={"t": tool}, name="one")

    assert run().output == [["T", 1]] * 3
    assert len(set(keys)) == 3
    first, keys[:] = list(keys), []
    run()
    assert keys == first


def test_what_a_tool_gets_is_its_own() -> None:
    """Neither side can change what the other has."""
    given = {"list": [1]}

    def tool(arguments: Json) -> Json:
        arguments["list"].append(2)
        return arguments["list"]

    def agent(parameters: Json, call: asl.Call) -> Json:
        return [call.tools.call("t", given), given]

    result = asl.run(task(), agents={"A": agent}, tools={"t": tool})
    assert result.output == [[1, 2], {"list": [1]}]


@pytest.mark.parametrize(
    ("tools", "part"),
    [
        ({"x": 5}, "'x' is bound to int"),
        ([1], "a mapping from names to tools"),
        ({"x": {"agent": {"return": 1}, "inptu": {}}}, "not 'inptu'"),
        ({"x": Tool("y", "d", {"return": 1})}, "a tool has one name"),
    ],
)
def test_what_is_no_tool_is_refused(tools: Any, part: str) -> None:
    """Before anything runs."""
    with pytest.raises(asl.AslError, match=part):
        asl.run(task(), agents={"A": {"return": 1}}, tools=tools)


def test_of_many_calls_the_history_tells_names_only() -> None:
    """Somebody who asks endlessly does not fill the history with arguments."""

    async def agent(parameters: Json, call: asl.Call) -> Json:
        for number in range(300):
            await call.tools.call("echo", {"number": number})
        return None

    result = asl.run(task(), agents={"A": agent}, tools=TOOLS)
    events = [event.details for event in result.events if event.type == "ToolCalled"]
    assert len(events) == 300
    assert sum("arguments" in each for each in events) == 200


def test_answer_of_a_tool_is_its_result() -> None:
    """An endpoint, a program and a function answer alike."""
    assert answer(use(lambda arguments: {"a": arguments}, {"b": 1})) == {"a": {"b": 1}}


def test_tools_end_with_the_call_also_for_whom_has_not_asked_for_them() -> None:
    """Who keeps the call beyond its end reaches no tool, while the run goes on and after it."""
    kept: list[asl.Call] = []
    used: list[Any] = []
    said: list[Any] = []

    def first(parameters: Any, call: asl.Call) -> Any:
        kept.append(call)

    def second(parameters: Any) -> Any:
        late()

    def late() -> None:
        with pytest.raises(asl.StateError) as raised:
            kept[0].tools.call("note", {})
        said.append((raised.value.name, raised.value.cause))

    document = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Task", "Agent": "First", "Next": "B"},
            "B": {"Type": "Task", "Agent": "Second", "End": True},
        },
    }
    agents = {"First": first, "Second": second}
    result = asl.run(document, agents=agents, tools={"note": lambda given: used.append(given)})
    assert result.status == "SUCCEEDED", result.cause
    late()
    assert not used
    assert said == [("Agent.ToolError", "tool 'note': the call of the agent has ended")] * 2


def test_agents_in_threads_leave_room_for_their_tools() -> None:
    """However many functions wait for one, each in a thread of its own."""
    agents = 65
    met = threading.Barrier(64)

    def agent(number: Json, call: asl.Call) -> Json:
        if number < 64:
            met.wait()
        return call.tools.call("t", {"n": number})

    tool = Tool("t", "a tool", lambda arguments: arguments["n"], input={"type": "object"})
    each = {"Type": "Task", "Agent": "A", "TimeoutSeconds": 60, "End": True}
    machine = {"StartAt": "T", "States": {"T": each}}
    document = {
        "StartAt": "M",
        "DefaultTools": {"Allowed": ["t"]},
        "States": {"M": {"Type": "Map", "ItemProcessor": machine, "End": True}},
    }
    result = asl.run(document, list(range(agents)), agents={"A": agent}, tools={"t": tool})
    assert result.output == list(range(agents))


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (False, "it says so"),
        (None, "null"),
        ("no", "string"),
        ("true", "string"),
        (1, "number"),
        ([], "array"),
        ({"valid": False}, "it says so"),
        ({"valid": "false"}, "'valid' of true or false"),
        ({"valid": None}, "'valid' of true or false"),
        ({"blocked": True}, "it says so"),
        ({"blocked": 1}, "'blocked' of true or false"),
        ({"valid": True, "blocked": True}, "it says so"),
        ({}, "an object that has 'valid'"),
        ({"reason": "fine"}, "an object that has 'valid'"),
        ({"Valid": False}, "'valid' and 'blocked' in small letters"),
        ({"valid": True, "Blocked": True}, "'valid' and 'blocked' in small letters"),
        ({"valid ": False, "blocked": False}, "'valid' and 'blocked' in small letters"),
        ({"allowed": True}, "an object that has 'valid'"),
    ],
)
def test_before_hook_blocks_unless_it_clearly_allows(answer: Json, part: str) -> None:
    """Whatever else it answers, the tool is not called."""
    called: list[Json] = []
    policy = {"Hooks": {"Before": {"Agent": "Guard"}}}
    result = asl.run(
        task(policy),
        agents={"A": {"use": [{"tool": "tool"}]}, "Guard": lambda parameters: answer},
        tools={"tool": called.append},
    )
    assert (result.error, called) == ("States.Permissions", [])
    assert part in result.cause


def test_failed_before_hook_is_recorded_as_refused() -> None:
    """The tool is not called, and the history has the error of the hook in the cause."""

    def guard(parameters: Json) -> Json:
        raise asl.StateError("Guard.Broken", "no rules")

    called: list[Json] = []
    result = asl.run(
        task({"Hooks": {"Before": {"Agent": "Guard"}}}),
        agents={"A": {"use": [{"tool": "tool"}]}, "Guard": guard},
        tools={"tool": called.append},
    )
    assert (result.error, called) == ("States.Permissions", [])
    assert told(result) == [("ToolRefused", "tool", "States.Permissions")]
    refused = next(event for event in result.events if event.type == "ToolRefused")
    assert "no rules" in refused.details["cause"]


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        (None, True),
        ({}, True),
        ({"logged": False}, True),
        ({"valid": True}, True),
        (True, True),
        (False, False),
        ({"valid": False}, False),
        ({"blocked": True}, False),
        ({"valid": "no"}, False),
        ({"Valid": True}, False),
    ],
)
def test_after_hook_keeps_back_what_it_rejects(answer: Json, passes: bool) -> None:
    """A hook may only watch; a verdict of it counts, and an unclear one rejects."""
    policy = {"Hooks": {"After": {"Agent": "Guard"}}}
    result = asl.run(
        task(policy),
        agents={"A": {"use": [{"tool": "tool"}]}, "Guard": lambda parameters: answer},
        tools={"tool": lambda arguments: "secret"},
    )
    assert result.error == (None if passes else "Agent.ToolError")


@pytest.mark.parametrize("answer", [True, {"valid": True}, {"blocked": False}])
def test_before_hook_allows_a_call(answer: Json) -> None:
    called: list[Json] = []
    policy = {"Hooks": {"Before": {"Agent": "Guard"}}}
    result = asl.run(
        task(policy),
        agents={"A": {"use": [{"tool": "tool"}]}, "Guard": lambda parameters: answer},
        tools={"tool": called.append},
    )
    assert result.ok
    assert len(called) == 1
