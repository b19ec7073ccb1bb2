"""The actors of a workflow as its language models and tools are given them."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from asl.core.diagnostics import is_error
from asl.core.values import Json
from asl.dialects.codemie.config import ACTORS
from asl.dialects.codemie.functions.outputs import as_text
from asl.dialects.codemie.reader import METADATA
from asl.dialects.codemie.schema import SCHEMA
from asl.dialects.foreign_documents import kept
from asl.engine.definitions import (
    AgentDefinition,
    DefinedServer,
    DefinedTool,
    ModelRequest,
    Unsupported,
)

__all__ = ["definitions"]

_ROLES: Final = {"human": "user", "ai": "assistant"}
_UNSUPPORTED: Final = {
    "datasource_ids": "give the model a tool that searches the data source",
    "skill_ids": "write what the skill says into the system prompt",
    "limit_tool_output_tokens": "limit the results in the tools, or by MaxResultSize of Tools",
}
"""The fields of an assistant that no model is given, and what to do instead."""


def definitions(document: Mapping[str, Any]) -> dict[str, AgentDefinition]:
    """Return the actors of the workflow that a document was read from, by their ids.

    Args:
        document: Value of the document that runs.
    """
    about = kept(document, METADATA, "config")
    if about is None or any(map(is_error, SCHEMA.check(about["config"]))):
        return {}  # metadata may be anything
    config, base = about["config"], "/execution_config" if about.get("form") == "wrapped" else ""
    makers = {"assistants": _assistant, "tools": _tool, "custom_nodes": _node}
    found: dict[str, AgentDefinition] = {}
    for key in ACTORS.values():
        for index, actor in enumerate(config.get(key) or ()):
            made = makers[key](actor, f"{base}/{key}/{index}")
            found.setdefault(made.name, made)
    return found


def _assistant(actor: Mapping[str, Any], pointer: str) -> AgentDefinition:
    servers = [*_servers(actor, pointer)]
    tools = [
        DefinedTool(each["name"], f"{pointer}/tools/{index}/name")
        for index, each in enumerate(actor.get("tools") or ())
    ]
    tools += (each for server in servers for each in _of_server(server, actor))
    prompt, model, settings = actor.get("system_prompt") or "", actor.get("model"), _settings(actor)
    ask = partial(_request, prompt, model, settings, tuple(each.name for each in tools))
    return AgentDefinition(
        actor["id"],
        pointer,
        prompt=prompt,
        model=model,
        settings=settings,
        tools=tuple(tools),
        servers=tuple(servers),
        unsupported=tuple(_unsupported(actor, pointer)),
        request=ask,
    )


def _node(actor: Mapping[str, Any], pointer: str) -> AgentDefinition:
    prompt, model = actor.get("system_prompt") or "", actor.get("model")
    kind = actor.get("custom_node_id", actor["id"])
    return AgentDefinition(
        actor["id"],
        pointer,
        "model" if prompt or model or kind == "state_processor_node" else "agent",
        prompt=prompt,
        model=model,
        request=partial(_request, prompt, model, {}, ()),
    )


def _tool(actor: Mapping[str, Any], pointer: str) -> AgentDefinition:
    servers = [*_servers({"mcp_servers": [actor.get("mcp_server")]}, pointer)]
    name = f"{servers[0].name}/{actor['tool']}" if servers else actor["tool"]
    servers = [each._replace(pointer=f"{pointer}/mcp_server") for each in servers]
    return AgentDefinition(
        actor["id"],
        pointer,
        "tool",
        tools=(DefinedTool(name, f"{pointer}/tool"),),
        servers=tuple(servers),
        tool_calls=lambda arguments: [(name, arguments)],
    )


def _servers(actor: Mapping[str, Any], pointer: str) -> Iterator[DefinedServer]:
    for index, each in enumerate(actor.get("mcp_servers") or ()):
        if type(each) is dict and type(each.get("name")) is str and each.get("enabled", True):
            yield DefinedServer(each["name"], f"{pointer}/mcp_servers/{index}", _server(each))


def _server(server: Mapping[str, Any]) -> dict[str, Json]:
    """Return what an agents file says of a server."""
    config = server.get("config") or {}
    if config.get("url"):
        spec: dict[str, Json] = {"url": config["url"]}
        return spec | (
            {"headers": config["headers"]} if type(config.get("headers")) is dict else {}
        )
    command = config.get("command") or server.get("command")
    if not command:
        return {}
    given = config.get("args", server.get("arguments"))
    arguments = given.split() if type(given) is str else given if type(given) is list else []
    spec = {"command": [*str(command).split(), *map(str, arguments)]}
    return spec | ({"environment": config["env"]} if type(config.get("env")) is dict else {})


def _of_server(server: DefinedServer, actor: Mapping[str, Any]) -> Iterator[DefinedTool]:
    """Yield the tools of a server that an assistant uses: all, or those that it lists."""
    index = int(server.pointer.rpartition("/")[2])
    listed = actor["mcp_servers"][index].get("tools")
    names = [each for each in listed if type(each) is str] if type(listed) is list else []
    for name in names or ["*"]:
        yield DefinedTool(f"{server.name}/{name}", f"{server.pointer}/name")


def _settings(actor: Mapping[str, Any]) -> dict[str, Json]:
    temperature = actor.get("temperature")
    return {} if temperature is None else {"temperature": float(temperature)}


def _unsupported(actor: Mapping[str, Any], pointer: str) -> Iterator[Unsupported]:
    for field, hint in _UNSUPPORTED.items():
        if actor.get(field):
            message = f"{field!r} of the assistant {actor['id']!r} is not passed to its model"
            yield Unsupported(f"{pointer}/{field}", message, hint)
    if not actor.get("system_prompt"):
        message = f"the prompt of {actor['id']!r} is stored on the platform, not in the document"
        hint = f"write it into the agents file: {actor['id']}: {{system: ...}}"
        yield Unsupported(f"{pointer}/assistant_id", message, hint)


# --------------------------------------------------------------------------------------------
# Requests


def _request(
    prompt: str,
    model: str | None,
    settings: Mapping[str, Json],
    tools: tuple[str, ...],
    payload: Json,
) -> ModelRequest:
    """Return what the model of an assistant is asked: the history, then the task."""
    given: dict[str, Any] = payload if isinstance(payload, dict) else {"task": as_text(payload)}
    schema = given.get("output_schema")
    messages: list[Json] = []
    if isinstance(schema, str):
        messages.append({"role": "system", "content": f"Answer in this form:\n{schema}"})
    for each in given.get("history") or ():
        messages.append({"role": _ROLES.get(each["role"], "user"), "content": each["content"]})
    task = _task(given)
    parameters: dict[str, Json] = {"messages": messages} if messages else {}
    if task or not messages or _role(messages[-1]) != "user":
        parameters["prompt"] = task
    output = schema if isinstance(schema, dict) else None
    return ModelRequest(parameters, prompt, model, settings, output, tools)


def _role(message: Json) -> Json:
    return message.get("role") if isinstance(message, dict) else None


def _task(given: Mapping[str, Any]) -> str:
    """Return the text of the task, the item as on the platform, and faults of earlier answers."""
    parts = [as_text(given.get("task") or "")]
    if "item" in given:
        parts.append(f"Current task: {as_text(given['item'])}")
    for fault in given.get("errors") or ():
        parts.append(f"An earlier answer does not fit the schema: {fault}")
    return "\n\n".join(filter(None, parts))
