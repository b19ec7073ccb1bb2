"""Kinds of agents: what an agents file says of one becomes an agent in one way."""

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
"""What a file says of one agent; it has the shape that the schema of its kind asks for."""


class ToolServer(Toolbox, Protocol):
    """Something that has tools, each of which is an agent, too."""

    def tool(self, name: str) -> Openable:
        """Return one of its tools."""
        ...


class FileContext(Protocol):
    """The file in which an agent stands."""

    folder: Path
    """Where paths begin."""
    code: tuple[Path, ...]
    """Where modules are looked for that Python does not find by itself."""
    imports: bool
    """Whether its modules are imported after the check, which need not look for them then."""

    def tool(self, name: str) -> Toolbox:
        """Return the tool of this name; raises AslError if it cannot be made."""
        ...

    def server(self, name: str) -> ToolServer:
        """Return the MCP server of this name; raises AslError if it cannot be made."""
        ...

    def server_faults(self, name: str, pointer: str) -> Iterator[Finding]:
        """Yield what is wrong with the name of a server that stands at *pointer*."""
        ...

    def tool_faults(self, name: str, pointer: str) -> Iterator[Finding]:
        """Yield what is wrong with the name of a tool that stands at *pointer*."""
        ...


def _nothing(spec: AgentSpec, home: FileContext) -> Iterator[Finding]:
    yield from ()


class AgentKind(NamedTuple):
    """One kind of agents: a row of the table in `asl.agents.file`."""

    schema: str
    """The name of its schema: `agents:Process`."""
    build: Callable[[AgentSpec, FileContext], Any]
    """Makes the agent (or whatever can be bound to a name); raises AslError if there is none."""
    check: Callable[[AgentSpec, FileContext], Iterator[Finding]] = _nothing
    """Yields what the schema cannot see; pointers begin at the agent. Nothing foreign runs."""
    secrets: tuple[str, ...] = ()
    """The fields in which secrets may stand."""
    meant: Mapping[str, Callable[[Json], str | None]] = MappingProxyType({})
    """The hint at what is probably meant by a value that the schema refuses, by the field."""
    discreet: bool = False
    """Whether it lets no secret out by itself."""
