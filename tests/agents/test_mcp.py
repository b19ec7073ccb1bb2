"""MCP servers as agents and as tools: a real one, and a lean one that may misbehave."""

import asyncio
import gc
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import asl
from asl.agents.file import InvalidAgents, load_bindings
from asl.agents.mcp import McpServer, _Session, fingerprint
from asl.agents.model import ModelAgent
from asl.engine.agent import open_agent
from tests.examples import sampled

from . import lean_mcp
from .servers import Exchange, serving
from .workflows import for_each, retried, task

HERE = Path(__file__).parent
REAL = [sys.executable, str(HERE / "mcp_server.py")]
PATIENCE = 60
LEAN = [sys.executable, "-S", str(HERE / "lean_mcp.py")]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes that a test starts; none of them outlives it."""
    found: list[subprocess.Popen[bytes]] = []

    class Started(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            found.append(self)

    monkeypatch.setattr(subprocess, "Popen", Started)
    yield found
    assert all(each.returncode is not None for each in found)


def calls(*states: tuple[str, Any]) -> dict[str, Any]:
    """Return a workflow that calls agents one after another and keeps what each comes to."""
    machine: dict[str, Any] = {"StartAt": "0", "States": {}}
    for index, (agent, parameters) in enumerate(states):
        machine["States"][str(index)] = {
            "Type": "Task",
            "Agent": agent,
            "Parameters": parameters,
            "ResultPath": f"$.r{index}",
            "Catch": [
                {
                    "ErrorEquals": [name],
                    "ResultPath": f"$.r{index}",
                    "Next": str(index + 1),
                }
                for name in ("States.DataLimitExceeded", "States.ALL")  # which is not all
            ],
            "Next": str(index + 1),
        }
    machine["States"][str(len(states))] = {"Type": "Succeed"}
    return machine


def outcomes(server: McpServer, *uses: tuple[str, Any]) -> list[Any]:
    """Return what uses of tools come to, in one run."""
    agents = {name: server.tool(name) for name, _ in uses}
    result = asl.run(calls(*uses), agents=agents)
    assert result.status == "SUCCEEDED"
    return [result.output[f"r{index}"] for index in range(len(uses))]


def test_tools_of_a_real_server_are_agents(started: list[Any]) -> None:
    """Parameters are the arguments; the structure is the result, else the text."""
    found = outcomes(
        McpServer(REAL), ("add", {"a": 1, "b": 2}), ("steps", {}), ("broken", {}), ("add", {"a": 1})
    )
    assert found[:2] == [3, {"state": "done"}]
    assert [each["Error"] for each in found[2:]] == ["Agent.ToolError"] * 2
    assert "broken: Error executing tool" in found[2]["Cause"]
    assert len(started) == 1


@contextmanager
def listening() -> Iterator[str]:
    """Run the real server over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [*REAL, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(3000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def test_a_real_server_is_reached_over_http() -> None:
    """The same by URL."""
    with listening() as url:
        found = outcomes(McpServer(url=url), ("add", {"a": 1, "b": 2}), ("broken", {}))
    assert found[0] == 3
    assert found[1]["Error"] == "Agent.ToolError"


def test_a_server_is_started_once_in_a_run(started: list[Any], tmp_path: Path) -> None:
    """It serves all calls, several at a time, and sees little of this process."""
    os.environ["ASL_TEST_LEAK"] = "x"
    try:
        server = McpServer(LEAN, folder=str(tmp_path), environment={"OWN": "1"})
        agents = {"A": server.tool("look")}
        result = asl.run(for_each(20), [{"n": n} for n in range(20)], agents=agents)
    finally:
        del os.environ["ASL_TEST_LEAK"]
    assert [each["n"] for each in result.output] == list(range(20))
    assert len(started) == len({each["pid"] for each in result.output}) == 1
    assert Path(result.output[0]["folder"]).samefile(tmp_path)
    assert "OWN" in result.output[0]["environment"]
    assert "PATH" in result.output[0]["environment"]
    assert "ASL_TEST_LEAK" not in result.output[0]["environment"]


def test_a_server_is_no_agent_itself(started: list[Any]) -> None:
    """It says what to bind instead, and is not even started."""
    result = asl.run(task(), {}, agents={"A": McpServer(["files"])})
    assert (result.status, result.error) == ("FAILED", "States.TaskFailed")
    assert result.cause == "files is a server: bind one of its tools, server.tool(NAME)"
    assert started == []


def test_what_a_tool_answers(started: list[Any]) -> None:
    """Several texts are lines; a failure and a tool that is not there are errors."""
    two, fail, nope, wrong = outcomes(
        McpServer(LEAN), ("two", {}), ("fail", {}), ("nope", {}), ("look", [1])
    )
    assert two == "one\ntwo"
    assert fail == {"Error": "Agent.ToolError", "Cause": "fail: not with nothing"}
    assert nope["Error"] == "Agent.ToolError"
    assert nope["Cause"].endswith("there is no tool 'nope'")
    assert wrong["Error"] == "Agent.InvalidInput"


FAULTS = [
    (["/no/such/program"], "Agent.NetworkError", "cannot start '/no/such/program'"),
    (["sh", "-c", "echo no licence >&2; exit 3"], "Agent.NetworkError", "no licence"),
    ([*LEAN, "silent"], "States.Timeout", "no answer within 0.5 s"),
    ([*LEAN, "hang"], "States.Timeout", "no answer within 0.5 s"),
    ([*LEAN, "nonsense"], "States.Timeout", "it wrote '{nonsense', which is not a message"),
    ([*LEAN, "odd"], "Agent.ParseError", "the answer is not valid: 1 validation error"),
    ([*LEAN, "endless"], "Agent.ToolError", "there is no tool 'look'"),
    ([*LEAN, "vast"], "States.DataLimitExceeded", "its tools take more than 2097152 bytes"),
    ([*LEAN, "pattern"], "Agent.ParseError", "does not match '^(a+)+$'"),
    ([*LEAN, "circle"], "Agent.ParseError", "nested deeper than"),
    ([*LEAN, "no schema"], "Agent.ParseError", "output schema: no JSON Schema"),
    ([*LEAN, "wordy"], "Agent.ToolError", "xxx"),
]


@pytest.mark.parametrize(("command", "name", "cause"), FAULTS)
def test_what_a_server_does_wrong_is_an_error(
    command: list[str],
    name: str,
    cause: str,
    started: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name says what it is, the cause what the server said."""
    monkeypatch.setattr("asl.agents.mcp_connection.GRACE", 0.05)
    limit = re.search(r"within ([\d.]+) s", cause)
    heard = 3 if name == "States.Timeout" else 60  # what a server says first, it says within that
    server = McpServer(command, timeout=float(limit[1]) if limit else heard)
    result = asl.run(task(), {}, agents={"A": server.tool("look")})
    assert result.error == name
    assert cause in (result.cause or "")
    assert len(result.cause or "") < 2500


def test_the_values_of_an_answer_are_bounded() -> None:
    """An answer of half a million parts is refused before the library builds them."""
    result = asl.run(task(), {}, agents={"A": McpServer([*LEAN, "parts"]).tool("look")})
    assert result.error == "States.DataLimitExceeded"
    assert result.cause.endswith("an answer of more than 100000 values")


def test_a_line_that_is_no_message_is_passed_over(started: list[Any]) -> None:
    """Some servers greet on standard output."""
    (seen,) = outcomes(McpServer([*LEAN, "garbage"]), ("look", {"n": 1}))
    assert seen["n"] == 1


def test_a_server_that_dies_is_started_again(started: list[Any]) -> None:
    """The call that it died in fails with what it said last; the next one finds a new server."""
    died, seen = outcomes(McpServer(LEAN), ("die", {}), ("look", {}))
    assert died["Error"] == "Agent.NetworkError"
    assert "gone with nothing" in died["Cause"]
    assert seen["pid"] == started[1].pid
    again = asl.run(
        retried("Agent.NetworkError"),
        {},
        agents={"A": McpServer(LEAN).tool("die")},
        clock="virtual",
    )
    assert (again.error, len(started)) == ("Agent.NetworkError", 5)


def test_a_timeout_of_the_state_ends_the_call(started: list[Any]) -> None:
    """And the server with the run."""
    agents = {"A": McpServer([*LEAN, "hang"]).tool("look")}
    result = asl.run(task(TimeoutSeconds=1), {}, agents=agents)
    assert result.cause == "state 'T': no answer within 1 s"


def test_a_stubborn_server_is_killed(started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """It may end by itself when its input does, for a moment; then it is killed."""
    monkeypatch.setattr("asl.agents.mcp_connection.GRACE", 0.05)
    asl.run(task(), {}, agents={"A": McpServer([*LEAN, "stubborn"]).tool("look")})
    assert started[0].returncode == -signal.SIGKILL
    asl.run(task(), {}, agents={"A": McpServer(LEAN).tool("look")})
    assert started[1].returncode in (0, -signal.SIGKILL)


@pytest.mark.filterwarnings("ignore")  # of libraries whose tasks are cancelled one by one
@pytest.mark.parametrize("turns", sampled([0, 1, 3, 8, 21, 55, 144, 1000], 3))
@pytest.mark.parametrize("everything", [False, True])
def test_no_server_outlives_a_run_that_is_cut_short(
    turns: int, everything: bool, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever turn of the event loop a cancellation comes in, its own or one of all tasks."""
    monkeypatch.setattr("asl.agents.mcp_connection.GRACE", 0.05)

    async def cut_short() -> None:
        agents = {"A": McpServer([*LEAN, "hang"]).tool("look")}
        running = asyncio.create_task(asl.arun(for_each(2), [{}, {}], agents=agents))
        for _ in range(turns):
            await asyncio.sleep(0.0001 if turns > 50 else 0)
        cancelled = asyncio.all_tasks() - {asyncio.current_task()} if everything else {running}
        for each in cancelled:
            each.cancel()
        async with asyncio.timeout(20):
            with pytest.raises(asyncio.CancelledError):
                await running
        if not everything:
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(cut_short())
    gc.collect()


def test_a_server_tells_its_tools_to_a_model(started: list[Any]) -> None:
    """All of them, or one; the model's calls go to the server."""
    infos: list[AgentInfo] = []

    def ask(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        infos.append(info)
        first = len(messages) == 1
        return ModelResponse([ToolCallPart("two", {}) if first else TextPart(str(messages[-1]))])

    server = McpServer(LEAN)
    for tools, names in (
        ([server], ["die", "fail", "look", "two"]),
        ([server.tool("two")], ["two"]),
    ):
        agent = ModelAgent(FunctionModel(ask), tools=tools)
        result = asl.run(task(), {"prompt": "p"}, agents={"A": agent})
        assert "one\\ntwo" in result.output["response"]
        assert sorted(each.name for each in infos[-1].function_tools) == names
    assert [each.description for each in infos[-1].function_tools] == ["A tool."]


def test_tools_may_be_pinned(started: list[Any]) -> None:
    """A description that has changed, or a tool that is not listed, is refused."""
    good = fingerprint("look", "Looks.", lean_mcp.ANYTHING, None)
    for described, error in (("Looks.", None), ("Looks and sends.", "States.Permissions")):
        server = McpServer(LEAN, environment={"DESCRIBED": described}, pins={"look": good})
        seen, two = outcomes(server, ("look", {}), ("two", {}))
        assert seen.get("Error") == error
        assert two["Error"] == "States.Permissions"
        assert "is not pinned: its fingerprint is sha256:" in two["Cause"]


def test_a_tool_that_changes_within_a_run_is_refused(started: list[Any]) -> None:
    """A server that comes back with another description is not believed, pinned or not."""
    server = McpServer(LEAN, environment={"DESCRIBED": "Looks as {pid}."})
    first, gone, again, two = outcomes(server, ("look", {}), ("die", {}), ("look", {}), ("two", {}))
    assert "pid" in first
    assert gone["Error"] == "Agent.NetworkError"
    assert again["Error"] == "States.Permissions"
    assert "another one than it was before in this run" in again["Cause"]
    assert two == "one\ntwo"


def test_a_secret_of_a_server_is_not_shown(
    started: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in results, nor in errors, nor in what a model is told of its tools."""
    monkeypatch.setenv("MCP_KEY", "s3cr3t")
    spec = {
        "agents": {name: {"server": "lean", "tool": name} for name in ("look", "fail", "die")},
        "servers": {"lean": {"command": LEAN, "environment": {"THE_KEY": "${env:MCP_KEY}"}}},
    }
    (tmp_path / "agents.json").write_text(json.dumps(spec))
    bound = load_bindings(tmp_path / "agents.json")
    result = asl.run(calls(("look", {}), ("fail", {}), ("die", {})), agents=bound.agents)
    assert result.output["r0"]["key"] == "***"
    assert result.output["r1"]["Cause"] == "fail: not with ***"
    assert "gone with ***" in result.output["r2"]["Cause"]
    told: list[Any] = []

    def ask(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told.extend(info.function_tools)
        return ModelResponse([TextPart("hi")])

    agent = ModelAgent(FunctionModel(ask), tools=[bound.servers["lean"]])
    asl.run(task(), {}, agents={"A": agent})
    assert told[0].description == "Looks with ***."
    assert "s3cr3t" not in repr(bound) + repr(result.to_json())


def test_headers_go_to_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL gets the headers of the file, with its secrets."""
    monkeypatch.setenv("MCP_KEY", "s3cr3t")

    def answer(exchange: Exchange) -> None:
        message = exchange.json if exchange.body else {}
        reply = lean_mcp.reply(message) if "method" in message else None
        if reply is None:
            exchange.answer(202 if exchange.method == "POST" else 405)
        else:
            exchange.answer(200, reply, Content_Type="application/json")

    with serving(answer) as server:
        (tmp_path / "agents.yaml").write_text(
            "agents: {A: {server: lean, tool: two}}\n"
            f"servers:\n  lean:\n    url: {server.url}/mcp\n"
            "    headers: {X-Key: '${env:MCP_KEY}'}\n"
        )
        result = asl.run(task(), {}, agents=load_bindings(tmp_path / "agents.yaml").agents)
    assert result.output == "one\ntwo"
    assert {each.headers.get("x-key") for each in server.requests} == {"s3cr3t"}


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (401, "States.Permissions"),
        (429, "States.RateLimitExceeded"),
        (500, "Agent.NetworkError"),
    ],
)
@pytest.mark.parametrize("method", ["initialize", "tools/call"])
def test_a_status_is_an_error(method: str, status: int, name: str) -> None:
    """As that of any endpoint, at its start and in a call."""

    def answer(exchange: Exchange) -> None:
        message = exchange.json if exchange.body else {}
        reply = lean_mcp.reply(message) if "method" in message else None
        if message.get("method") == method:
            exchange.answer(status, b"no")
        elif reply is None:
            exchange.answer(202 if exchange.method == "POST" else 405)
        else:
            exchange.answer(200, reply, Content_Type="application/json")

    with serving(answer) as server:
        agents = {"A": McpServer(url=server.url, timeout=60).tool("two")}
        result = asl.run(task(), {}, agents=agents)
    assert result.error == name
    assert (result.cause or "").startswith(f"{server.url}: {status}: ")


def test_calls_at_the_same_time_have_their_own_errors() -> None:
    """What HTTP says of one request is not told of another."""
    both = threading.Barrier(2)

    def answer(exchange: Exchange) -> None:
        message = exchange.json if exchange.body else {}
        reply = lean_mcp.reply(message) if "method" in message else None
        if message.get("method") == "tools/call":
            both.wait(PATIENCE)
            exchange.answer(message["params"]["arguments"]["status"], b"no")
        elif reply is None:
            exchange.answer(202 if exchange.method == "POST" else 405)
        else:
            exchange.answer(200, reply, Content_Type="application/json")

    workflow = for_each(2)
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Caught"}]
    machine = workflow["States"]["Each"]["ItemProcessor"]
    machine["States"]["T"]["Catch"] = catch
    machine["States"]["Caught"] = {"Type": "Succeed"}
    items = [{"status": 401}, {"status": 429}]
    with serving(answer) as server:
        agents = {"A": McpServer(url=server.url, timeout=60).tool("two")}
        result = asl.run(workflow, items, agents=agents)
    told = [each["error"]["Cause"].removeprefix(f"{server.url}: ")[:4] for each in result.output]
    assert told == ["401:", "429:"]


def test_unknown_tool_error_names_server_and_similar_tool(tmp_path: Path) -> None:
    """The server has the name that the agents file gives it."""
    command = json.dumps(LEAN)
    (tmp_path / "agents.yaml").write_text(
        f"agents: {{A: {{server: lean, tool: lok}}}}\nservers: {{lean: {{command: {command}}}}}"
    )
    result = asl.run(task(), {}, agents=load_bindings(tmp_path / "agents.yaml").agents)
    assert result.cause == "lean: there is no tool 'lok' (did you mean 'look'?)"


def test_the_end_of_a_connection_leaves_the_one_that_has_replaced_it(started: list[Any]) -> None:
    """However long the old one takes to end."""

    async def main() -> None:
        session = open_agent(McpServer(LEAN), {})
        assert isinstance(session, _Session)
        first = await session.connect()
        ending = asyncio.create_task(session.drop(first))
        await asyncio.sleep(0)
        second = await session.connect()
        await ending
        assert session.connection is second is not first
        assert second.program is not None
        assert second.program.process.poll() is None
        await session.close()

    asyncio.run(main())


def endless(exchange: Exchange) -> None:
    """Answer with a text that goes on for as long as somebody reads it."""
    exchange.begin(200, Content_Type="application/json", Connection="close")
    with suppress(ConnectionError):
        while True:
            exchange.write(b" " * 10_000)


def compressed(exchange: Exchange) -> None:
    """Answer with what may be larger than it looks."""
    exchange.answer(200, b"x", Content_Type="application/json", Content_Encoding="gzip")


@pytest.mark.parametrize(
    ("bad", "name", "cause"),
    [
        (endless, "States.DataLimitExceeded", "an answer of more than 100000 bytes"),
        (compressed, "Agent.ParseError", "the answer is compressed, and none was asked for"),
    ],
)
@pytest.mark.parametrize("method", ["initialize", "tools/list", "tools/call"])
def test_an_answer_is_bounded(
    method: str,
    bad: Callable[[Exchange], None],
    name: str,
    cause: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading stops there, and the next call finds the server again."""
    monkeypatch.setattr("asl.agents.mcp_connection.MAX_BYTES", 100_000)
    done: list[str] = []

    def answer(exchange: Exchange) -> None:
        message = exchange.json if exchange.body else {}
        reply = lean_mcp.reply(message) if "method" in message else None
        if message.get("method") == method and not done:
            done.append(method)
            bad(exchange)
        elif reply is None:
            exchange.answer(202 if exchange.method == "POST" else 405)
        else:
            exchange.answer(200, reply, Content_Type="application/json")

    with serving(answer) as server:
        tools = McpServer(url=server.url, timeout=60)
        first, second = outcomes(tools, ("two", {}), ("two", {}))
        assert server.requests[0].headers["accept-encoding"] == "identity"
    assert first == {"Error": name, "Cause": f"{server.url}: {cause}"}
    assert second == "one\ntwo"


def test_invalid_message_is_reported_by_the_error_alone(capfd: pytest.CaptureFixture[str]) -> None:
    """Over HTTP it is an answer that makes no sense; the library's own report is not printed."""

    def answer(exchange: Exchange) -> None:
        message = exchange.json if exchange.body else {}
        reply = lean_mcp.reply(message) if "method" in message else None
        if message.get("method") == "tools/call":
            exchange.answer(200, b'{"a": 1}', Content_Type="application/json")
        elif reply is None:
            exchange.answer(202 if exchange.method == "POST" else 405)
        else:
            exchange.answer(200, reply, Content_Type="application/json")

    logger, before = logging.getLogger("mcp"), logging.getLogger("mcp").handlers[:]
    logger.handlers, root = [], logging.getLogger()
    others, root.handlers = root.handlers, []
    try:
        with serving(answer) as server:
            agents = {"A": McpServer(url=server.url, timeout=60).tool("two")}
            result = asl.run(task(), {}, agents=agents)
    finally:
        logger.handlers, root.handlers = before, others
    assert result.error == "Agent.ParseError"
    assert (result.cause or "").startswith(f"{server.url}: the answer is not valid: ")
    assert capfd.readouterr().err == ""


def test_url_without_a_server_is_an_error() -> None:
    """Refused, or something else than MCP."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        result = asl.run(task(), {}, agents={"A": McpServer(url=url).tool("x")})
        assert result.error == "Agent.NetworkError"
    with serving(lambda exchange: exchange.answer(500, b"oops")) as server:
        result = asl.run(task(), {}, agents={"A": McpServer(url=server.url, timeout=60).tool("x")})
        assert result.error in ("Agent.NetworkError", "Agent.ToolError")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A: {server: s, tool: t}", "1:13: error AGENTS-08: the file has no server 's'"),
        ("A: {server: s}", "1:1: error AGENTS-01: 'tool' is missing"),
        ("servers: {s: {}}", "1:14: error AGENTS-03: an MCP server needs 'command' or 'url'"),
        (
            "servers: {s: {command: [x], url: 'http://x'}}",
            "1:29: error AGENTS-03: 'command' and 'url' exclude each other",
        ),
        (
            "servers: {s: {url: 'http://x', folder: x}}",
            "1:32: error AGENTS-03: 'url' and 'folder' exclude each other",
        ),
        ("servers: {s: {command: [x], folder: nope}}", "error AGENTS-04: 'folder' is no folder"),
        (
            "servers: {s: {command: ['${env:K}']}}",
            "1:25: error AGENTS-05: a secret is not allowed here",
        ),
        (
            "servers: {s: {command: [x], environment: {K: '${env:NOT_THERE}'}}}",
            "1:46: error AGENTS-06: the environment has no variable 'NOT_THERE'",
        ),
        ("servers: {s: {command: [x], pins: {t: x}}}", "error AGENTS-01: 't' must be 'sha256:'"),
        (
            "agents: {A: {model: 'a:b', tools: [s/t]}}",
            "1:36: error AGENTS-08: the file has no server 's'",
        ),
    ],
)
def test_a_fault_in_the_file_has_its_place(text: str, found: str, tmp_path: Path) -> None:
    """What a server cannot be is said by the check of the file."""
    (tmp_path / "agents.yaml").write_text(text)
    with pytest.raises(InvalidAgents) as refusal:
        load_bindings(tmp_path / "agents.yaml")
    assert found in str(refusal.value)


def test_models_name_tools_of_servers(tmp_path: Path) -> None:
    """One tool, or all of a server."""
    spec = {
        "agents": {"A": {"model": "openai:x", "tools": ["lean/*", "lean/two"]}},
        "servers": {"lean": {"command": LEAN}},
    }
    (tmp_path / "agents.json").write_text(json.dumps(spec))
    bound = load_bindings(tmp_path / "agents.json")
    assert [type(each).__name__ for each in bound.agents["A"].tools] == ["McpServer", "McpTool"]


def test_misuse_and_a_missing_library_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything runs, with the line that installs it."""
    with pytest.raises(asl.AslError, match="a command or a URL"):
        McpServer()
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(asl.AslError) as missing:
        McpServer(LEAN)
    assert str(missing.value) == ("an MCP server needs 'mcp': pip install '.[mcp]'")
