"""Tools: listed by a toolbox, used by agents through a dispatcher (8.9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from asl.core.values import Json
from asl.engine.agent import Agent, Call, OpenAgents

__all__ = ["CallTools", "ListTools", "ToolListing", "ToolOffer", "Toolbox"]


class ToolOffer(NamedTuple):
    """A tool as one run sees it."""

    name: str
    """Name for the model."""
    description: str
    input: Json
    """JSON Schema of its arguments."""
    agent: Agent
    server: str = ""
    """Name of its MCP server, empty without one."""
    also: tuple[str, ...] = ()
    """Original names on its server, if it was renamed."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names that a policy may use; the first is that of the registry."""
        own = (f"{self.server}/{self.name}", self.name) if self.server else (self.name,)
        return own + self.also


ListTools: TypeAlias = Callable[[Call], Awaitable[list[ToolOffer]]]
"""Lists tools to the agent of a call."""


class Toolbox(Protocol):
    """A provider of tools."""

    def offers(self, open_agents: OpenAgents) -> ListTools:
        """Return the function that lists its tools in one run."""
        ...


class ToolListing:
    """The tools of one toolbox in one run, with what is known of them before they are listed.

    Args:
        offers: Lists the tools.
        agent: The agent that answers, or any of several of the same kind.
        names: Names of the tool; none for a server, which has to be queried.
        server: Name of the server.
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

    async def offer_tools(self, listings: list[ListTools] | None = None) -> list[ToolOffer]:
        """Return the tools of *listings* that may be used.

        Args:
            listings: Listings to choose from; None for the tools of the run that the document
                allows by name.
        """
        ...

    async def select_tools(self, names: Sequence[str]) -> list[ToolOffer]:
        """Return the tools of the run that a document names.

        Args:
            names: `NAME`, `SERVER/TOOL`, `SERVER` or `SERVER/*` for all tools of a server, `*` for
                all tools of the run; `!NAME` excludes a tool or a server.
        """
        ...

    async def use(self, offer: ToolOffer, arguments: Json) -> Json:
        """Use a tool that was offered.

        Raises:
            RaisedError: The tool fails or may not be used.
        """
        ...

    async def call(self, name: str, arguments: Json = None) -> Json:
        """Use a tool of the run by its name.

        Raises:
            RaisedError: The tool fails or may not be used.
        """
        ...

    async def names(self) -> list[str]:
        """Return the names of the tools of the run that may be used."""
        ...

    def refuse(self, tool: str, arguments: Json, error: str, cause: str) -> None:
        """Record that a tool was requested and not used."""
        ...
