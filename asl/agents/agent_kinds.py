"""Kinds of agents in an agents file: how a spec is checked and becomes an agent."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.engine.agent import Openable
from asl.engine.tools import Toolbox

__all__ = ["AgentKind", "AgentSpec", "FileContext", "ToolServer"]

AgentSpec: TypeAlias = Mapping[str, Json]
"""One agent in a file; its kind has the schema."""


class ToolServer(Toolbox, Protocol):
    """A server of tools; each tool is an agent too."""

    def tool(self, name: str) -> Openable:
        """Return one of its tools."""
        ...


class FileContext(Protocol):
    """The agents file of an agent under check or construction."""

    folder: Path
    """The base of relative paths."""
    code: tuple[Path, ...]
    """Additional folders of Python modules."""
    imports: bool
    """Whether modules are imported after the check, so the check need not look for them."""

    def tool(self, name: str) -> Toolbox:
        """Return the tool of this name; raises AslError if it cannot be made."""
        ...

    def server(self, name: str) -> ToolServer:
        """Return the MCP server of this name; raises AslError if it cannot be made."""
        ...

    def server_faults(self, name: str, pointer: str) -> Iterator[Finding]:
        """Yield the faults of the name of a server at *pointer*."""
        ...

    def tool_faults(self, name: str, pointer: str) -> Iterator[Finding]:
        """Yield the faults of the name of a tool at *pointer*."""
        ...


def _nothing(spec: AgentSpec, context: FileContext) -> Iterator[Finding]:
    yield from ()


class AgentKind(NamedTuple):
    """One kind of agents, a row of `asl.agents.file`."""

    schema: str
    """The name of its schema: `agents:Process`."""
    build: Callable[[AgentSpec, FileContext], Any]
    """Makes the agent, or another bindable value; raises AslError for an invalid spec."""
    check: Callable[[AgentSpec, FileContext], Iterator[Finding]] = _nothing
    """Yields faults beyond the schema, with pointers relative to the agent; runs no user code."""
    secrets: tuple[str, ...] = ()
    """The fields that may hold secrets."""
    meant: Mapping[str, Callable[[Json], str | None]] = MappingProxyType({})
    """Field -> hint for a value that the schema refuses."""
    discreet: bool = False
    """Whether the agent itself masks its secrets."""
