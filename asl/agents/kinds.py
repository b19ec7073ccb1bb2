"""The table of the kinds of agents, by the key of an agents file that says which one it is."""

from collections.abc import Mapping
from types import MappingProxyType

from asl.agents.http import HTTP
from asl.agents.kind import Kind
from asl.agents.mcp import MCP
from asl.agents.model import MODEL
from asl.agents.named import FUNCTION
from asl.agents.process import PROCESS
from asl.agents.scripted import SCRIPT, SCRIPTS

__all__ = ["KINDS"]

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "function": FUNCTION,
        "command": PROCESS,
        "url": HTTP,
        "model": MODEL,
        "server": MCP,
        **dict.fromkeys(SCRIPTS, SCRIPT),
    }
)
