"""Interrupted calls: their usage is unknown, so the reservation counts."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.agents.http import HttpAgent
from asl.agents.mcp import McpServer
from asl.agents.process import ProcessAgent

from .servers import Exchange, serving
from .test_mcp import LEAN
from .workflows import caught, program

Json = Any
SHARE = 2
"""What is set aside for the first call of an agent: a sixteenth of the limit."""


def spent(agent: Any, **fields: Any) -> tuple[int, int]:
    """Return the tokens that a call was reported, and is assumed, to have used."""
    document = {**caught("States.ALL", **fields), "Budget": {"MaxTokens": 16 * SHARE}}
    result = asl.run(document, {"prompt": "x"}, agents={"A": agent})
    assert result.visited[-1] == "Caught" or result.error == "States.DataLimitExceeded"
    told = [each for each in result.events if each.type == "UsageWarning"]
    assert bool(told) == bool(result.usage["assumed"]["tokens"])
    return result.usage["tokens"], result.usage["assumed"]["tokens"]


@pytest.mark.parametrize("mode", ["die", "garbage", "list", "nothing-known", "stillborn"])
def test_a_program_that_breaks_off(mode: str, tmp_path: Path) -> None:
    """It may have used something by then; one that says what is wrong has said it all."""
    assert spent(program(tmp_path, mode)) == (0, SHARE)


def test_a_program_that_says_what_is_wrong(tmp_path: Path) -> None:
    """It says what it used as well."""
    assert spent(program(tmp_path, "error")) == (0, 0)
    line = '{"error": "Quota", "cause": "none", "_usage": {"input": 3, "output": 4}}'
    told = ProcessAgent([sys.executable, "-c", f"input(); print('{line}')"])
    assert spent(told) == (7, 0)


def test_a_program_that_is_not_there() -> None:
    """Nobody was asked."""
    assert spent(ProcessAgent(["/no/such/program"])) == (0, 0)


def test_a_program_that_hangs(tmp_path: Path) -> None:
    """It is ended by the time limit of the state."""
    assert spent(program(tmp_path, "hang"), TimeoutSeconds=1) == (0, SHARE)


def cut(exchange: Exchange) -> None:
    exchange.begin(200, Content_Length="1000")
    exchange.write(b'{"id": "x", ')
    exchange.cut()


@pytest.mark.parametrize(
    ("answer", "used"),
    [
        (cut, (0, SHARE)),
        (lambda e: e.answer(200, b"<html>"), (0, SHARE)),
        (lambda e: e.answer(200, b"x" * 2000), (0, SHARE)),
        (lambda e: e.answer(500, b"<html>"), (0, 0)),
        (lambda e: e.answer(429, {"error": "slow down"}), (0, 0)),
        (lambda e: e.answer(500, {"error": "No", "cause": "x", "_tokens": 7}), (7, 0)),
        (lambda e: e.answer(500, {"message": "no", "_usage": {"input": 1, "output": 2}}), (3, 0)),
    ],
)
def test_an_endpoint(answer: Callable[[Exchange], None], used: tuple[int, int]) -> None:
    """A status is an answer, and says what was used; half an answer says nothing."""
    with serving(answer) as server:
        assert spent(HttpAgent(server.url, max_bytes=1000)) == used


def test_an_endpoint_that_names_its_error_and_its_usage() -> None:
    """The error is the one that it names, as without the usage."""
    with serving(lambda e: e.answer(500, {"error": "No", "cause": "x", "_cost": 0.5})) as server:
        document = caught("No", End=True)
        result = asl.run(document, agents={"A": HttpAgent(server.url)})
    assert result.output == {"Error": "No", "Cause": "x"}
    assert result.usage["cost"] == 0.5


def test_an_endpoint_that_is_not_there() -> None:
    """Nobody was asked."""
    with serving(cut) as server:
        url = server.url
    assert spent(HttpAgent(url)) == (0, 0)


def test_a_server_that_dies() -> None:
    """A tool of an MCP server as an agent."""
    server = McpServer(LEAN)
    assert spent(server.tool("die")) == (0, SHARE)
    assert spent(server.tool("fail")) == (0, 0)


def test_a_function_that_raises() -> None:
    """It has used what its error says."""

    def busy(parameters: Json) -> Json:
        error = asl.StateError("Model.Busy", "later")
        error.usage = {"_tokens": 5}
        raise error

    def broken(parameters: Json) -> Json:
        raise ValueError("no")

    assert spent(busy) == (5, 0)
    assert spent(broken) == (0, 0)


def test_cancelled_model_call_counts_its_answered_requests() -> None:
    """The requests that were answered are counted, and the one under way as what was set aside."""
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import messages
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from asl.agents.model import ModelAgent

    async def say(said: list[messages.ModelMessage], info: AgentInfo) -> messages.ModelResponse:
        if len(said) > 1:
            from asyncio import sleep

            await sleep(100)
        return messages.ModelResponse([messages.ToolCallPart("t", {})])

    document = {
        **caught("States.Timeout", TimeoutSeconds=2, Tools={"Allowed": ["t"]}),
        "Budget": {"MaxTokens": 3200},
    }
    given: Json = {"agents": {"A": ModelAgent(FunctionModel(say))}, "tools": {"t": {"return": 1}}}
    result = asl.run(document, {"prompt": "x"}, clock="virtual", **given)
    assert result.visited[-1] == "Caught"
    used, assumed = result.usage["tokens"], result.usage["assumed"]["tokens"]
    assert used > 50
    assert used + assumed == 200
    without = asl.run({**document, "Budget": {}}, {"prompt": "x"}, clock="virtual", **given)
    assert without.usage["tokens"] == used
    assert not any(each.type == "UsageWarning" for each in without.events)
