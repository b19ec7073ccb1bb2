"""Agents as their document defines them: prompt, model, settings, output schema and tools.

A dialect reads definitions from its documents (`asl.dialects.base.Dialect.agents`). An agent that
is bound to the name of one takes them from its call (`Call.definition`); what an agents file says
wins.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from asl.core.values import Json

__all__ = [
    "AgentDefinition",
    "DefinedServer",
    "DefinedTool",
    "ModelRequest",
    "NoDefinitions",
    "ToolCalls",
    "Unsupported",
    "is_answered_by_tools",
    "is_bound_tool",
]

ToolCalls: TypeAlias = Callable[[Json], Sequence[tuple[str, Json]]]
"""Returns the names and arguments of the tools that a call's parameters ask for."""


class ModelRequest(NamedTuple):
    """What a document asks a model in one call.

    Args:
        parameters: Prompt and messages, as `asl.agents.conversation` reads them.
        system: System prompt; empty for none.
        model: Name of the model, maybe with its provider (`"openai:gpt-5"`); None for any.
        settings: Sampling settings, by their names in an agents file.
        output: JSON Schema of the answer; None for text.
        tools: Tools that the model may use: names of the run's tools, `SERVER/*`, `*` for all, and
            `!NAME` for one that it may not use.
        returns_calls: Whether the answer is the model's request for tools, which the document
            performs itself.
    """

    parameters: Json
    system: str = ""
    model: str | None = None
    settings: Mapping[str, Json] = MappingProxyType({})
    output: Mapping[str, Json] | None = None
    tools: tuple[str, ...] = ()
    returns_calls: bool = False


class DefinedTool(NamedTuple):
    """A tool that a document names.

    Args:
        name: Its name among the tools of a run: `NAME`, `SERVER/TOOL` or `SERVER/*`.
        pointer: JSON Pointer of the name in the author's document.
    """

    name: str
    pointer: str


class DefinedServer(NamedTuple):
    """An MCP server that a document names.

    Args:
        name: Its name among the servers of an agents file.
        pointer: JSON Pointer of the server in the author's document.
        spec: What the document says of it, as an agents file has it.
    """

    name: str
    pointer: str
    spec: Mapping[str, Json] = MappingProxyType({})


class Unsupported(NamedTuple):
    """A setting of a document that no model is given.

    Args:
        pointer: JSON Pointer of the setting in the author's document.
        message: What has no effect.
        hint: What to do instead.
    """

    pointer: str
    message: str
    hint: str | None = None


def _plain_request(payload: Json) -> ModelRequest:
    return ModelRequest(payload)


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """One agent of a document.

    Attributes:
        name: Its name in the document that runs.
        pointer: JSON Pointer of the definition in the author's document.
        kind: `model` for what a language model answers, `tool` for what a tool of the run answers,
            `agent` for anything else.
        prompt: System prompt as it is written; empty for none.
        model: Name of the model, maybe with its provider; None if the document names none.
        settings: Sampling settings, by their names in an agents file.
        output: JSON Schema of the answer; None if the document has none.
        tools: The tools that the agent uses.
        servers: The MCP servers that the agent uses.
        unsupported: Settings that are not passed to a model.
        code: Import path of the Python function that the document names; None for none.
        function_arguments: Returns what that function is called with, for the parameters of a call:
            its first argument, and keyword arguments; it gets those that it takes.
        request: Returns what a model is asked in a call, for the parameters of the call.
        tool_calls: Returns the tools that answer a call; None if tools do not answer it.
        selects: The tools that may answer the calls of a list, as `ModelRequest.tools` names them;
            the answer is the list of their results. None where one tool answers.
    """

    name: str
    pointer: str
    kind: Literal["model", "tool", "agent"] = "model"
    prompt: str = ""
    model: str | None = None
    settings: Mapping[str, Json] = field(default_factory=dict)
    output: Mapping[str, Json] | None = None
    tools: tuple[DefinedTool, ...] = ()
    servers: tuple[DefinedServer, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()
    code: str | None = None
    function_arguments: Callable[[Json], tuple[Json, Mapping[str, Json]]] | None = None
    request: Callable[[Json], ModelRequest] = _plain_request
    tool_calls: ToolCalls | None = None
    selects: tuple[str, ...] | None = None


NoDefinitions: Mapping[str, AgentDefinition] = MappingProxyType({})
"""The definitions of a document that defines no agents."""


def is_bound_tool(name: str, tools: Container[str]) -> bool:
    """Return whether a tool, or its server, is among the tools of a run.

    Args:
        name: `NAME`, `SERVER/TOOL` or `SERVER/*`.
        tools: Names of the bindings.
    """
    return name in tools or name.rpartition("/")[0] in tools


def is_answered_by_tools(definition: AgentDefinition, tools: Container[str]) -> bool:
    """Return whether bound tools answer an agent of a document that is bound to nothing itself."""
    if definition.tool_calls is None:
        return False
    return definition.selects is not None or any(
        is_bound_tool(each.name, tools) for each in definition.tools
    )
