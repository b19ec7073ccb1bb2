"""Tools of agents; any kind of agent can be a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asl.agents.adapters import as_agent
from asl.agents.typed_functions import input_schema
from asl.core.errors import AslError
from asl.core.values import Json
from asl.engine.agent import Call, OpenAgents, open_agent
from asl.engine.tools import ListTools, Toolbox, ToolListing, ToolOffer

__all__ = ["Tool", "as_toolbox"]

ANYTHING: Json = {"type": "object"}


class Tool:
    """One tool: its name, its description for models, and its agent.

    `agent` is whatever can be bound to a name: a function, `"module:function"`, a script or an
    agent object. `input` is the JSON Schema of its arguments, which are an object; a function whose
    parameter is a pydantic model has the schema of it. Raises AslError for what cannot answer.
    """

    def __init__(self, name: str, description: str, agent: Any, *, input: Json = None) -> None:
        self.name = name
        self.description = description
        self.agent = as_agent(agent, name)
        schema = input_schema(agent) if input is None else input
        self.input = ANYTHING if schema is None else schema

    def offers(self, open_agents: OpenAgents) -> ListTools:
        """Return the listing of this tool in one run."""
        offer = ToolOffer(
            self.name, self.description, self.input, open_agent(self.agent, open_agents)
        )

        async def listed(call: Call) -> list[ToolOffer]:
            return [offer]

        return ToolListing(listed, offer.agent, offer.names)


def as_toolbox(value: Any, name: str) -> Toolbox:
    """Turn what a user bound to *name* as a tool into one; raises AslError if it cannot be one.

    That is a `Tool`, an MCP server or one of its tools, whatever can answer as an agent, or an
    object with its `agent`, `description` and `input`.
    """
    if isinstance(value, Mapping) and "agent" in value:
        unknown = next(
            (each for each in value if each not in ("agent", "description", "input")), None
        )
        if unknown is not None:
            raise AslError(
                f"the tool {name!r} has 'agent', 'description' and 'input', not {unknown!r}"
            )
        return Tool(name, value.get("description", ""), value["agent"], input=value.get("input"))
    if hasattr(value, "offers"):
        own = getattr(value, "name", None)
        if own == "":  # a server, which models may use as well
            value.name = name
        if isinstance(value, Tool) and own != name:
            raise AslError(f"the tool {own!r} is bound to {name!r}: a tool has one name")
        return _Named(value, name)
    description = value.__doc__ if callable(value) else None
    return Tool(name, (description or "").strip(), value)


class _Named:
    """The tools of a server by the name that the server is bound to, or one tool by its name."""

    def __init__(self, toolbox: Toolbox, name: str) -> None:
        self.box = toolbox
        self.name = name

    def offers(self, open_agents: OpenAgents) -> ListTools:
        """Return the listing of the tools in one run."""
        told, name = self.box.offers(open_agents), self.name
        whole = hasattr(self.box, "tool")  # a server

        async def listed(call: Call) -> list[ToolOffer]:
            found = await told(call)
            if whole:
                return [offer._replace(server=name) for offer in found]
            return [offer._replace(name=name, server="", also=offer.names) for offer in found]

        if not isinstance(told, ToolListing):
            return listed
        if whole:
            return ToolListing(listed, told.agent, server=name)
        return ToolListing(listed, told.agent, (name, *told.names))
