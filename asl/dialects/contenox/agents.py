"""The tasks of a chain as their language models and tools are given them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from asl.core.diagnostics import is_error
from asl.core.values import Json, compact
from asl.dialects.contenox.chain import Chain, Task
from asl.dialects.contenox.reader import METADATA
from asl.dialects.contenox.schema import SCHEMA
from asl.dialects.foreign_documents import kept
from asl.engine.definitions import (
    AgentDefinition,
    DefinedServer,
    DefinedTool,
    ModelRequest,
    Unsupported,
)

__all__ = ["definitions"]

_ASK_NOBODY: Final = (
    "noop",
    "raise_error",
    "parse_transition",
    "parse_key_value",
    "convert_to_openai_chat_response",
)
_UNSUPPORTED: Final = {
    "think": "choose a model with the reasoning that the task needs",
    "shift": "shorten the chat in an earlier task, or let the model fail",
    "tools_policies": "write a Tools block in an agent state language document around the chain",
    "hook_policies": "write a Tools block in an agent state language document around the chain",
    "compact_policy": "shorten the chat in an earlier task",
    "pass_clients_tools": "bind the tools in the agents file",
    "retry_policy": "use retry_on_failure",
    "models": "write one model as 'model'",
    "providers": "write one provider as 'provider'",
}
"""The fields of `execute_config` that no model is given, and what to do instead."""
_CONTINUE: Final = "Continue."
"""The prompt behind a chat that ends with an answer: models answer a message of the user."""
_PROVIDERS: Final = {"gemini": "google", "vertex-google": "google-cloud", "local": "ollama"}
"""Providers by their names in chains, where an agents file has another one."""


def definitions(document: Mapping[str, Any]) -> dict[str, AgentDefinition]:
    """Return the tasks of the chain that a document was read from, by their ids.

    Args:
        document: Value of the document that runs.
    """
    about = kept(document, METADATA, "chain")
    if about is None or any(map(is_error, SCHEMA.check(about["chain"]))):
        return {}  # metadata may be anything
    chain = Chain(about["chain"], str(about.get("profile")))
    tasks = (
        each for each in chain.tasks.values() if each.handler not in _ASK_NOBODY and not each.echoes
    )
    return {task.id: _definition(task) for task in tasks}


def _definition(task: Task) -> AgentDefinition:
    if task.handler == "tools":
        return _tool(task)
    if task.handler == "execute_tool_calls":
        return _tool_calls(task)
    if task.handler == "text_to_embedding":
        return AgentDefinition(task.id, task.pointer, "agent")
    return AgentDefinition(
        task.id,
        task.pointer,
        prompt=task.value.get("system_instruction") or "",
        model=_model(task.config),
        settings=_settings(task.config),
        tools=tuple(_listed(task)),
        unsupported=tuple(_unsupported(task)),
        request=partial(_request, task.handler, _names(task.tools)),
    )


def _tool(task: Task) -> AgentDefinition:
    tool = task.tool.get("tool_name")
    name = f"{task.provider}/{tool}" if tool else task.provider
    key = "tools" if "tools" in task.value else "hook"
    place = f"{task.pointer}/{key}/{'name' if 'name' in task.tool else 'type'}"

    def calls(payload: Json) -> Sequence[tuple[str, Json]]:
        given = payload if isinstance(payload, dict) else {}
        arguments = given.get("args")
        if not arguments:
            held = given.get("input")
            arguments = held if isinstance(held, dict) else {"input": held}
        return [(name, arguments)]

    return AgentDefinition(
        task.id,
        task.pointer,
        "tool",
        tools=(DefinedTool(name, place),),
        servers=(DefinedServer(task.provider, place),) if tool else (),
        tool_calls=calls,
    )


def _tool_calls(task: Task) -> AgentDefinition:
    def calls(payload: Json) -> Sequence[tuple[str, Json]]:
        given: Any = payload
        return [(each["name"], each["arguments"]) for each in given["calls"]]

    return AgentDefinition(
        task.id,
        task.pointer,
        "tool",
        tools=tuple(_listed(task)),
        tool_calls=calls,
        selects=_names(task.tools) if task.tools is not None else ("*",),
    )


def _bound_name(name: str) -> str:
    """Return the name of a tool in an agents file: `provider.tool` is `provider/tool`."""
    return name.replace(".", "/", 1)


def _names(tools: list[str] | None) -> tuple[str, ...]:
    """Return an allowlist by the names of an agents file."""
    return tuple(map(_bound_name, tools or ()))


def _listed(task: Task) -> Iterator[DefinedTool]:
    """Yield the tools that a task lists one by one."""
    key = "tools" if "tools" in task.config else "hooks"
    for index, name in enumerate(task.config.get(key) or ()):
        if name != "*" and not name.startswith("!"):
            place = f"{task.pointer}/execute_config/{key}/{index}"
            yield DefinedTool(_bound_name(name), place)


def _model(config: Mapping[str, Any]) -> str | None:
    """Return the model of a configuration, with its provider if it has one."""
    name = config.get("model") or next(iter(config.get("models") or ()), None)
    provider = config.get("provider") or next(iter(config.get("providers") or ()), None)
    if not name:
        return None
    return f"{_PROVIDERS.get(provider, provider)}:{name}" if provider else str(name)


_SETTINGS: Final[Mapping[str, Callable[[Any], Json]]] = {"temperature": float, "max_tokens": int}


def _settings(config: Mapping[str, Any]) -> dict[str, Json]:
    """Return the sampling settings of a configuration; those that are no numbers are left out."""
    found: dict[str, Json] = {}
    for name, read in _SETTINGS.items():
        try:
            found[name] = read(config[name])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return {name: value for name, value in found.items() if name != "max_tokens" or value}


def _unsupported(task: Task) -> Iterator[Unsupported]:
    config = task.config
    for field, hint in _UNSUPPORTED.items():
        if not config.get(field) or (field in ("models", "providers") and len(config[field]) < 2):
            continue
        message = f"{field!r} of the task {task.id!r} is not passed to its model"
        yield Unsupported(f"{task.pointer}/execute_config/{field}", message, hint)


# --------------------------------------------------------------------------------------------
# Requests


def _request(handler: str, tools: tuple[str, ...], payload: Json) -> ModelRequest:
    """Return what the model of a task is asked."""
    given: dict[str, Any] = payload if isinstance(payload, dict) else {"prompt": payload}
    config = given.get("config") or {}
    system = given.get("system") or ""
    parameters: dict[str, Json] = {}
    if "messages" in given:
        system, messages = _chat(given["messages"])
        parameters = {"messages": messages}
        if given["messages"] and given["messages"][-1].get("role") == "assistant":
            parameters["prompt"] = _CONTINUE
    else:
        choices = given.get("labels") or given.get("conditions")
        if choices:
            text = f"Answer with one of these words only: {', '.join(map(str, choices))}"
            parameters["messages"] = [{"role": "system", "content": text}]
        parameters["prompt"] = given.get("prompt", "")
    chats = handler == "chat_completion"
    return ModelRequest(
        parameters,
        system,
        _model(config),
        _settings(config),
        tools=tools if chats else (),
        returns_calls=chats,
    )


def _chat(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[Json]]:
    """Return the system prompt of a chat, and its other messages as OpenAI's protocol has them."""
    system = ""
    if messages and messages[0].get("role") == "system":
        system, messages = str(messages[0].get("content") or ""), messages[1:]
    return system, [_message(each) for each in messages]


def _message(message: Mapping[str, Any]) -> Json:
    calls = message.get("tool_calls")
    if not calls:
        return dict(message)
    return {**message, "tool_calls": [_requested(each) for each in calls]}


def _requested(call: Mapping[str, Any]) -> Json:
    if "function" in call:
        return dict(call)
    arguments = call.get("arguments") or "{}"
    written = arguments if isinstance(arguments, str) else compact(arguments)
    function: Json = {"name": call.get("name"), "arguments": written}
    return {"id": call.get("id"), "type": "function", "function": function}
