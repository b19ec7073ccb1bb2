"""Tools: what language models may use. Who answers is an agent of any kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from asl.agents.registry import as_agent
from asl.core.values import Json
from asl.engine.agent import Agent, Call, Held, opened

__all__ = ["Offer", "Offers", "Tool", "Toolbox"]

ANYTHING: Json = {"type": "object"}


class Offer(NamedTuple):
    """A tool as one run sees it."""

    name: str
    description: str
    input: Json
    """JSON Schema of its arguments."""
    agent: Agent


Offers: TypeAlias = Callable[[Call], Awaitable[list[Offer]]]
"""Tells what there is, to somebody who is called."""


class Toolbox(Protocol):
    """Something that has tools."""

    def offers(self, held: Held) -> Offers:
        """Return what tells of its tools in one run."""
        ...


class Tool:
    """One tool: its name, what a model is told of it, and who answers.

    `agent` is whatever can be bound to a name: a function, `"module:function"`, a script or an
    agent object. `input` is the JSON Schema of its arguments, which are an object. Raises AslError
    for what cannot answer.
    """

    def __init__(self, name: str, description: str, agent: Any, *, input: Json = None) -> None:
        self.name = name
        self.description = description
        self.agent = as_agent(agent, name)
        self.input = ANYTHING if input is None else input

    def offers(self, held: Held) -> Offers:
        """Return what tells of this tool in one run."""
        offer = Offer(self.name, self.description, self.input, opened(self.agent, held))

        async def listed(call: Call) -> list[Offer]:
            return [offer]

        return listed
