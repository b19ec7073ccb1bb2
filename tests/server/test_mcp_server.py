"""`asl mcp`: workflows as tools, driven by a client of the Model Context Protocol."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import asl
from tests.server.service import SHIP

mcp = pytest.importorskip("mcp")
mcp_types = pytest.importorskip("mcp_types")
GREET = {
    "Comment": "Greets somebody.",
    "StartAt": "Greet",
    "States": {
        "Greet": {
            "Type": "Pass",
            "Parameters": {"text.$": "States.Format('Hello {}', $.name)"},
            "End": True,
        }
    },
}
LONG = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 3600, "End": True}}}
Call = Callable[..., Awaitable[Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three workflows."""
    (tmp_path / "greet.asl.json").write_text(json.dumps(GREET), encoding="utf-8")
    (tmp_path / "ship.asl.json").write_text(
        SHIP.replace('"Type": "Task", "Agent": "Writer"', '"Type": "Pass"'), encoding="utf-8"
    )
    (tmp_path / "long.asl.json").write_text(json.dumps(LONG), encoding="utf-8")
    return tmp_path


def drive(
    folder: Path, scenario: Callable[[Any, Call], Awaitable[None]], *options: str, **client: Any
) -> None:
    """Run a scenario with a client of a server in a process of its own."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def main() -> None:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "asl", "mcp", str(folder), "--wait", "0.5", *options],
            cwd=str(Path(__file__).resolve().parents[2]),
        )
        with (folder / "stderr.txt").open("w") as errors:
            async with mcp.Client(stdio_client(server, errlog=errors), **client) as session:

                async def call(name: str, /, **arguments: Any) -> Any:
                    result = await session.call_tool(name, arguments)
                    content = result.structured_content
                    assert json.loads(result.content[0].text) == content
                    assert ("error" in content and "status" not in content) == result.is_error
                    return content

                await scenario(session, call)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_mcp_workflow_tools(folder: Path) -> None:
    """Every workflow is a tool; its arguments are the input, its result is the output."""

    async def scenario(session: Any, call: Call) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert {"greet", "ship", "long", "execution_status", "answer_request"} <= tools.keys()
        assert tools["greet"].description.startswith("Greets somebody.")
        greeted = await call("greet", name="Ada")
        assert greeted["status"] == "SUCCEEDED"
        assert greeted["output"] == {"text": "Hello Ada"}
        failed = await call("greet")
        assert (failed["status"], failed["error"]) == ("FAILED", "States.ParameterPathFailure")

    drive(folder, scenario)


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "object", "required": ["name"]}, {"type": "object", "required": ["name"]}),
        ({"required": ["name"]}, {"type": "object", "required": ["name"]}),
        ({"type": "string"}, {"type": "object", "additionalProperties": True}),
        ({"type": 7}, {"type": "object", "additionalProperties": True}),
    ],
)
def test_mcp_tool_has_the_input_schema_of_its_workflow(schema: Any, shown: Any) -> None:
    """If that is a valid one of an object; arguments that do not fit start nothing."""
    from asl.mcp_server import WorkflowTools

    document = asl.load({**GREET, "Metadata": {"InputSchema": schema}})
    with asl.open_store("memory:") as store:
        tools = WorkflowTools(store, {"greet": document}, "ann")
        assert tools.tools()[0].input_schema == shown
        if "required" in shown:
            params = mcp_types.CallToolRequestParams(name="greet", arguments={})
            refused = asyncio.run(tools.call(params, None))
            assert isinstance(refused, mcp_types.CallToolResult)
            assert "'name' is a required property" in refused.structured_content["error"]
            assert store.executions() == []


def test_mcp_answer_request(folder: Path) -> None:
    """A paused execution names its requests; an answer continues it."""

    async def scenario(session: Any, call: Call) -> None:
        paused = await call("ship", order=7)
        (request,) = paused["requests"]
        assert request["options"] == ["ship", "hold"]
        listed = await call("list_requests", execution=paused["execution"])
        assert listed["requests"] == [request]
        refused = await call("answer_request", request=request["requestId"], approval="sink")
        assert "no option" in refused["error"]
        done = await call("answer_request", request=request["requestId"], approval="ship")
        assert done["complete"]
        ended = await call("execution_status", execution=paused["execution"], wait=True)
        assert ended["output"]["approval"] == "ship"

    drive(folder, scenario)


def test_mcp_elicitation_lets_the_user_decide(folder: Path) -> None:
    """Where the client can show a form, the decision is the user's, not the assistant's."""

    async def decide(context: Any, params: Any) -> Any:
        assert params.message == "Ship it?"
        return mcp_types.ElicitResult(action="accept", content={"approval": "hold"})

    async def scenario(session: Any, call: Call) -> None:
        (request,) = (await call("ship"))["requests"]
        done = await call("answer_request", request=request["requestId"], approval="ship")
        assert done["record"]["approval"] == "hold"

    drive(folder, scenario, elicitation_callback=decide)


def test_mcp_elicitation_declined(folder: Path) -> None:
    """A user who closes the form has decided nothing."""

    async def decline(context: Any, params: Any) -> Any:
        return mcp_types.ElicitResult(action="cancel")

    async def scenario(session: Any, call: Call) -> None:
        paused = await call("ship")
        request = paused["requests"][0]["requestId"]
        assert (
            "not decided"
            in (await call("answer_request", request=request, approval="ship"))["error"]
        )
        assert (await call("execution_status", execution=paused["execution"]))["status"] == "PAUSED"

    drive(folder, scenario, elicitation_callback=decline)


def test_mcp_long_execution(folder: Path) -> None:
    """A tool returns the status of what goes on; another one stops it."""

    async def scenario(session: Any, call: Call) -> None:
        running = await call("long")
        assert running["status"] in ("RUNNING", "PAUSED")
        name = running["execution"]
        assert (await call("stop_execution", execution=name, reason="enough"))["execution"] == name
        ended = await call("execution_status", execution=name, wait=True)
        assert (ended["status"], ended["cause"]) == ("ABORTED", "enough")
        listed = await call("list_executions", status="ABORTED")
        assert [each["execution"] for each in listed["executions"]] == [name]

    drive(folder, scenario)


def test_mcp_wrong_arguments(folder: Path) -> None:
    """Wrong names, types and executions are results that say what is wrong."""

    async def scenario(session: Any, call: Call) -> None:
        for name, arguments, words in (
            ("brew", {}, "there is no tool"),
            ("execution_status", {}, "required"),
            ("execution_status", {"execution": 7}, "not of type"),
            ("execution_status", {"execution": "none"}, "no execution"),
            ("execution_status", {"execution": "x", "more": 1}, "not allowed"),
            ("answer_request", {"request": "none", "approval": "ship"}, "no request"),
            ("list_executions", {"status": "HAPPY"}, "not 'HAPPY'"),
        ):
            assert words in (await call(name, **arguments))["error"], name

    drive(folder, scenario)


def test_mcp_no_answers(folder: Path) -> None:
    """--no-answers leaves decisions to other channels."""

    async def scenario(session: Any, call: Call) -> None:
        names = [tool.name for tool in (await session.list_tools()).tools]
        assert "answer_request" not in names

    drive(folder, scenario, "--no-answers")
