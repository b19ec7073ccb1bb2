"""Tools: listed by a toolbox, used by agents through a dispatcher (8.9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeAlias

from asl.core.values import Json
from asl.engine.agent import Agent, Call, OpenAgents

__all__ = ["CallTools", "ListTools", "ToolListing", "ToolOffer", "Toolbox"]


class ToolOffer(NamedTuple):
    """A tool as one run sees it."""

    name: str
    """What a model calls it."""
    description: str
    input: Json
    """JSON Schema of its arguments."""
    agent: Agent
    server: str = ""
    """The name of the MCP server that has it, where the server has a name."""
    also: tuple[str, ...] = ()
    """Its names as a tool of its server, where it was given another one."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names by which a policy may mean it; the first is that of the registry."""
        own = (f"{self.server}/{self.name}", self.name) if self.server else (self.name,)
        return own + self.also


ListTools: TypeAlias = Callable[[Call], Awaitable[list[ToolOffer]]]
"""Tells what there is, to somebody who is called."""


class Toolbox(Protocol):
    """A provider of tools."""

    def offers(self, held: OpenAgents) -> ListTools:
        """Return the function that lists its tools in one run."""
        ...


class ToolListing:
    """The tools of one toolbox in one run, and who answers for them, known before they are listed.

    Args:
        offers: Lists the tools.
        agent: Who answers, or any of those who do, all of one kind.
        names: The names of the tool; none for a server, which has to be asked.
        server: The name of the server.
    """

    def __init__(
        self, offers: ListTools, agent: Agent, names: tuple[str, ...] = (), server: str = ""
    ) -> None:
        self.offers = offers
        self.agent = agent
        self.names = names
        self.server = server

    def __call__(self, call: Call) -> Awaitable[list[ToolOffer]]:
        """List the tools to an agent that is called."""
        return self.offers(call)


class CallTools(Protocol):
    """The tools that an agent may use in one call: `call.tools`."""

    async def offered(self, boxes: list[ListTools] | None = None) -> list[ToolOffer]:
        """Return what may be used of *boxes*.

        Without boxes these are the tools of the run that the document allows by their names.
        """
        ...

    async def use(self, offer: ToolOffer, arguments: Json) -> Json:
        """Use a tool that was offered; raises RaisedError, whatever goes wrong."""
        ...

    async def call(self, name: str, arguments: Json = None) -> Json:
        """Use a tool of the run by its name; raises RaisedError, whatever goes wrong."""
        ...

    async def names(self) -> list[str]:
        """Return the names of the tools of the run that may be used."""
        ...

    def refuse(self, tool: str, arguments: Json, error: str, cause: str) -> None:
        """Record that a tool was requested and not used."""
        ...
