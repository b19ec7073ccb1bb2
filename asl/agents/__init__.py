"""Layer 6: agents are reached through adapters, one module for each kind.

    from asl.agents import HttpAgent, McpServer, ModelAgent, ProcessAgent, Tool

Functions and scripts need no object: they are bound to a name as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asl.agents.function import LambdaSettings, function_agent
    from asl.agents.graph_agent import GraphAgent
    from asl.agents.http import HttpAgent
    from asl.agents.mcp import McpServer
    from asl.agents.model import ModelAgent
    from asl.agents.openai_agent import OpenAiAgent
    from asl.agents.process import ProcessAgent
    from asl.agents.pydantic_agent import PydanticAgent
    from asl.agents.tool import Tool

__all__ = [
    "GraphAgent",
    "HttpAgent",
    "LambdaSettings",
    "McpServer",
    "ModelAgent",
    "OpenAiAgent",
    "ProcessAgent",
    "PydanticAgent",
    "Tool",
    "function_agent",
]

_MODULES = {
    "GraphAgent": "graph_agent",
    "HttpAgent": "http",
    "LambdaSettings": "function",
    "McpServer": "mcp",
    "ModelAgent": "model",
    "OpenAiAgent": "openai_agent",
    "ProcessAgent": "process",
    "PydanticAgent": "pydantic_agent",
    "Tool": "tool",
    "function_agent": "function",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
