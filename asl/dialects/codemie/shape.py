"""The shape of a workflow: which keys there are, and what stands under each.

A shape is a table; whatever does not fit it is a finding at its place.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from asl.core.diagnostics import Finding, did_you_mean, escape
from asl.core.values import Json, type_name

__all__ = ["EDITOR_KEYS", "NEXT", "NODE", "STATE", "TOOL", "WORKFLOW", "check"]

Kind: TypeAlias = "Callable[[Json], str | None] | Shape | Items"


@dataclass(frozen=True)
class Shape:
    """An object: its keys with what they hold, which must be there, and keys often meant."""

    keys: Mapping[str, Any]
    required: tuple[str, ...] = ()
    near_misses: Mapping[str, str] = field(default_factory=dict)
    """Keys without effect that stand in documents -> what to do."""
    ignored: frozenset[str] = frozenset()
    """Keys that belong to editors."""


@dataclass(frozen=True)
class Items:
    """A list, and what its items are."""

    kind: Any


def _is(*names: str) -> Callable[[Json], str | None]:
    wanted = " or ".join(names)

    def check(value: Json) -> str | None:
        return None if type_name(value) in names else f"must be a {wanted}"

    return check


def _filled(value: Json) -> str | None:
    if type(value) is not str:
        return "must be a string"
    return None if value else "must not be empty"


def _integer(least: int, most: int | None = None) -> Callable[[Json], str | None]:
    def check(value: Json) -> str | None:
        if type(value) is not int:
            return "must be a whole number"
        if value < least or (most is not None and value > most):
            return _range(least, most)
        return None

    return check


def _number(least: float, most: float, *, text: bool = False) -> Callable[[Json], str | None]:
    def check(value: Json) -> str | None:
        if text and type(value) is str:
            try:
                value = float(value)
            except ValueError:
                return "must be a number"
        if type(value) not in (int, float):
            return "must be a number"
        return None if least <= value <= most else _range(least, most)

    return check


def _range(least: float, most: float | None) -> str:
    return f"must be {least} or more" if most is None else f"must be from {least} to {most}"


def _clearing(value: Json) -> str | None:
    if type(value) is bool or value == "keep_current":
        return None
    return "must be a boolean or 'keep_current'"


_TEXT, _BOOLEAN, _OBJECT = _is("string"), _is("boolean"), _is("object")
_TEXTS = Items(_TEXT)


def _anything(value: Json) -> str | None:
    return None


EDITOR_KEYS = frozenset(("meta_config", "meta_states", "orphaned_states", "name", "description"))

_RETRY = Shape(
    {
        "max_attempts": _integer(1, 100),
        "initial_interval": _number(0, 3_600_000),
        "backoff_factor": _number(1, 10),
        "max_interval": _number(0, 3_600_000),
    },
    near_misses={
        "initial_interval_seconds": "the key is initial_interval, in seconds",
        "max_interval_seconds": "the key is max_interval, in seconds",
    },
)
_MCP = Shape(
    {
        "name": _TEXT,
        "enabled": _BOOLEAN,
        "config": _OBJECT,
        "command": _TEXT,
        "arguments": _anything,
        "mcp_config_id": _TEXT,
        "tools_tokens_size_limit": _anything,
        "integration_alias": _anything,
        "resolve_dynamic_values_in_arguments": _BOOLEAN,
        "mcp_connect_url": _anything,
        "mcp_connect_auth_token": _anything,
        "description": _anything,
        "settings": _anything,
        "tools": _anything,
    },
    ("name",),
)
ASSISTANT = Shape(
    {
        "id": _TEXT,
        "assistant_id": _TEXT,
        "system_prompt": _TEXT,
        "model": _TEXT,
        "name": _TEXT,
        "temperature": _number(0, 2, text=True),
        "limit_tool_output_tokens": _integer(1),
        "tools": Items(
            Shape({"name": _TEXT, "integration_alias": _TEXT}, ("name",)),
        ),
        "datasource_ids": _TEXTS,
        "skill_ids": _TEXTS,
        "exclude_extra_context_tools": _BOOLEAN,
        "mcp_servers": Items(_MCP),
    },
    ("id",),
)
TOOL = Shape(
    {
        "id": _TEXT,
        "tool": _TEXT,
        "tool_args": _OBJECT,
        "integration_alias": _TEXT,
        "trace": _BOOLEAN,
        "mcp_server": _anything,
        "tokens_size_limit": _anything,
        "input_key": _TEXT,
        "tool_result_json_pointer": _TEXT,
        "resolve_dynamic_values_in_response": _BOOLEAN,
    },
    ("id", "tool"),
    {"toolset": "it has no effect"},
)
NODE = Shape(
    {
        "id": _TEXT,
        "custom_node_id": _TEXT,
        "name": _TEXT,
        "model": _TEXT,
        "system_prompt": _TEXT,
        "config": _OBJECT,
    },
    ("id",),
)
CONDITION = Shape(
    {"expression": _TEXT, "then": _TEXT, "otherwise": _TEXT}, ("expression", "then", "otherwise")
)
CASE = Shape(
    {"condition": _TEXT, "state_id": _TEXT},
    ("condition", "state_id"),
    {"iter_key": "a case only chooses a state; iterate from that"},
)
NEXT = Shape(
    {
        "state_id": _TEXT,
        "state_ids": _TEXTS,
        "condition": CONDITION,
        "switch": Shape({"cases": Items(CASE), "default": _TEXT}, ("cases", "default")),
        "iter_key": _filled,
        "store_in_context": _BOOLEAN,
        "include_in_llm_history": _BOOLEAN,
        "keep_history": _BOOLEAN,
        "clear_prior_messages": _BOOLEAN,
        "clear_context_store": _clearing,
        "reset_keys_in_context_store": _TEXTS,
        "append_to_context": _BOOLEAN,
        "output_key": _TEXT,
        "override_task": _BOOLEAN,
        "include_in_iterator_context": _TEXTS,
    },
    near_misses={
        "use_flyweight_history": "it has no effect",
        "then": "it belongs into 'condition', beside 'expression'",
        "else": "it is called 'otherwise' and belongs into 'condition'",
        "otherwise": "it belongs into 'condition', beside 'expression'",
    },
    ignored=frozenset(("meta_next_state_id", "meta_iter_state_id")),
)
STATE = Shape(
    {
        "id": _TEXT,
        "assistant_id": _TEXT,
        "tool_id": _TEXT,
        "custom_node_id": _TEXT,
        "task": _TEXT,
        "next": NEXT,
        "resolve_dynamic_values_in_prompt": _BOOLEAN,
        "output_schema": _TEXT,
        "retry_policy": _RETRY,
        "interrupt_before": _BOOLEAN,
        "wait_for_user_confirmation": _BOOLEAN,
        "finish_iteration": _BOOLEAN,
        "tool_args": _OBJECT,
        "result_as_human_message": _BOOLEAN,
    },
    ("id", "next"),
    {"output_format": "say in 'output_schema' what the answer looks like"},
    EDITOR_KEYS,
)
WORKFLOW = Shape(
    {
        "assistants": Items(ASSISTANT),
        "tools": Items(TOOL),
        "custom_nodes": Items(NODE),
        "states": Items(STATE),
        "recursion_limit": _integer(1, 5000),
        "max_concurrency": _integer(1, 100),
        "enable_summarization_node": _BOOLEAN,
        "messages_limit_before_summarization": _integer(1, 10000),
        "tokens_limit_before_summarization": _integer(1, 2147483647),
        "retry_policy": _RETRY,
        "type": _TEXT,
        "verbose": _BOOLEAN,
        "max_iteration_key_output_limit": _integer(1, 10000),
    },
    near_misses={"limit_tool_output_tokens": "it belongs to an assistant"},
    ignored=EDITOR_KEYS | {"mode"},
)


def check(value: Json, kind: Kind, pointer: str) -> Iterator[Finding]:
    """Yield what does not fit a kind: CM-SCHEMA, and keys without effect as warnings."""
    if isinstance(kind, Shape):
        yield from _object(value, kind, pointer)
    elif isinstance(kind, Items):
        if type(value) is not list:
            yield _misfit(value, "must be an array", pointer)
            return
        for index, item in enumerate(value):
            yield from check(item, kind.kind, f"{pointer}/{index}")
    elif complaint := kind(value):
        yield _misfit(value, complaint, pointer)


def _misfit(value: Json, complaint: str, pointer: str) -> Finding:
    name = pointer.rpartition("/")[2] or "the workflow"
    shown = type_name(value) if not isinstance(value, int | float | str) else repr(value)[:60]
    hint = None
    if "string" in complaint and type(value) in (int, float, bool):
        hint = "put the text in quotes"
    elif value is None:
        hint = "leave the key out"
    message = f"{name!r} {complaint}, not {shown}"
    return Finding("CM-SCHEMA", message, pointer, hint, at_key=value is None)


def _object(value: Json, shape: Shape, pointer: str) -> Iterator[Finding]:
    if type(value) is not dict:
        yield _misfit(value, "must be an object", pointer)
        return
    for key in shape.required:
        if key not in value:
            yield Finding("CM-SCHEMA", f"{key!r} is missing", pointer, at_key=True)
    for key, each in value.items():
        place = f"{pointer}/{escape(key)}"
        if key in shape.keys:
            yield from check(each, shape.keys[key], place)
        elif key in shape.near_misses:
            message = f"{key!r} has no effect here"
            yield Finding("CM-NEAR-MISS", message, place, shape.near_misses[key], at_key=True)
        elif key not in shape.ignored:
            hint = did_you_mean(key, shape.keys)
            message = f"{key!r} means nothing here, so it has no effect"
            yield Finding("CM-UNKNOWN-KEY", message, place, hint, at_key=True)
