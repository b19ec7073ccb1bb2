"""The schema of a workflow: its keys and the types of their values."""

from collections.abc import Iterator

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects import schema
from asl.dialects.schema import (
    BOOLEAN,
    OBJECT,
    TEXT,
    TEXTS,
    Codes,
    ListSchema,
    ObjectSchema,
    anything,
    filled,
    integer,
    number,
)

__all__ = ["CODES", "EDITOR_KEYS", "NEXT", "NODE", "STATE", "TOOL", "WORKFLOW", "check"]


def _clearing(value: Json) -> str | None:
    if type(value) is bool or value == "keep_current":
        return None
    return "must be a boolean or 'keep_current'"


EDITOR_KEYS = frozenset(("meta_config", "meta_states", "orphaned_states", "name", "description"))

_RETRY = ObjectSchema(
    {
        "max_attempts": integer(1, 100),
        "initial_interval": number(0, 3_600_000),
        "backoff_factor": number(1, 10),
        "max_interval": number(0, 3_600_000),
    },
    near_misses={
        "initial_interval_seconds": "the key is initial_interval, in seconds",
        "max_interval_seconds": "the key is max_interval, in seconds",
    },
)
_MCP = ObjectSchema(
    {
        "name": TEXT,
        "enabled": BOOLEAN,
        "config": OBJECT,
        "command": TEXT,
        "arguments": anything,
        "mcp_config_id": TEXT,
        "tools_tokens_size_limit": anything,
        "integration_alias": anything,
        "resolve_dynamic_values_in_arguments": BOOLEAN,
        "mcp_connect_url": anything,
        "mcp_connect_auth_token": anything,
        "description": anything,
        "settings": anything,
        "tools": anything,
    },
    ("name",),
)
ASSISTANT = ObjectSchema(
    {
        "id": TEXT,
        "assistant_id": TEXT,
        "system_prompt": TEXT,
        "model": TEXT,
        "name": TEXT,
        "temperature": number(0, 2, text=True),
        "limit_tool_output_tokens": integer(1),
        "tools": ListSchema(
            ObjectSchema({"name": TEXT, "integration_alias": TEXT}, ("name",)),
        ),
        "datasource_ids": TEXTS,
        "skill_ids": TEXTS,
        "exclude_extra_context_tools": BOOLEAN,
        "mcp_servers": ListSchema(_MCP),
    },
    ("id",),
)
TOOL = ObjectSchema(
    {
        "id": TEXT,
        "tool": TEXT,
        "tool_args": OBJECT,
        "integration_alias": TEXT,
        "trace": BOOLEAN,
        "mcp_server": anything,
        "tokens_size_limit": anything,
        "input_key": TEXT,
        "tool_result_json_pointer": TEXT,
        "resolve_dynamic_values_in_response": BOOLEAN,
    },
    ("id", "tool"),
    {"toolset": "it has no effect"},
)
NODE = ObjectSchema(
    {
        "id": TEXT,
        "custom_node_id": TEXT,
        "name": TEXT,
        "model": TEXT,
        "system_prompt": TEXT,
        "config": OBJECT,
    },
    ("id",),
)
CONDITION = ObjectSchema(
    {"expression": TEXT, "then": TEXT, "otherwise": TEXT},
    ("expression", "then", "otherwise"),
    missing={
        "then": "say where to go when it holds; 'end' ends the run",
        "otherwise": "say where to go when it does not hold; 'end' ends the run",
    },
)
CASE = ObjectSchema(
    {"condition": TEXT, "state_id": TEXT},
    ("condition", "state_id"),
    {"iter_key": "a case only chooses a state; iterate from that"},
)
SWITCH = ObjectSchema(
    {"cases": ListSchema(CASE), "default": TEXT},
    ("cases", "default"),
    missing={"default": "say where to go when no case holds; 'end' ends the run"},
)
NEXT = ObjectSchema(
    {
        "state_id": TEXT,
        "state_ids": TEXTS,
        "condition": CONDITION,
        "switch": SWITCH,
        "iter_key": filled,
        "store_in_context": BOOLEAN,
        "include_in_llm_history": BOOLEAN,
        "keep_history": BOOLEAN,
        "clear_prior_messages": BOOLEAN,
        "clear_context_store": _clearing,
        "reset_keys_in_context_store": TEXTS,
        "append_to_context": BOOLEAN,
        "output_key": TEXT,
        "override_task": BOOLEAN,
        "include_in_iterator_context": TEXTS,
    },
    near_misses={
        "use_flyweight_history": "it has no effect",
        "then": "it belongs into 'condition', beside 'expression'",
        "else": "it is called 'otherwise' and belongs into 'condition'",
        "otherwise": "it belongs into 'condition', beside 'expression'",
    },
    ignored=frozenset(("meta_next_state_id", "meta_iter_state_id")),
)
STATE = ObjectSchema(
    {
        "id": TEXT,
        "assistant_id": TEXT,
        "tool_id": TEXT,
        "custom_node_id": TEXT,
        "task": TEXT,
        "next": NEXT,
        "resolve_dynamic_values_in_prompt": BOOLEAN,
        "output_schema": TEXT,
        "retry_policy": _RETRY,
        "interrupt_before": BOOLEAN,
        "wait_for_user_confirmation": BOOLEAN,
        "finish_iteration": BOOLEAN,
        "tool_args": OBJECT,
        "result_as_human_message": BOOLEAN,
    },
    ("id", "next"),
    {"output_format": "say in 'output_schema' what the answer looks like"},
    EDITOR_KEYS,
    {"next": "say where to go; 'state_id: end' ends the run"},
)
WORKFLOW = ObjectSchema(
    {
        "assistants": ListSchema(ASSISTANT),
        "tools": ListSchema(TOOL),
        "custom_nodes": ListSchema(NODE),
        "states": ListSchema(STATE),
        "recursion_limit": integer(1, 5000),
        "max_concurrency": integer(1, 100),
        "enable_summarization_node": BOOLEAN,
        "messages_limit_before_summarization": integer(1, 10000),
        "tokens_limit_before_summarization": integer(1, 2147483647),
        "retry_policy": _RETRY,
        "type": TEXT,
        "verbose": BOOLEAN,
        "max_iteration_key_output_limit": integer(1, 10000),
    },
    near_misses={"limit_tool_output_tokens": "it belongs to an assistant"},
    ignored=EDITOR_KEYS | {"mode"},
)


CODES = Codes("CM-SCHEMA", "CM-NEAR-MISS", "CM-UNKNOWN-KEY")


def check(value: Json, pointer: str) -> Iterator[Finding]:
    """Yield what does not fit a workflow: CM-SCHEMA, and keys without effect as warnings."""
    yield from schema.check(value, WORKFLOW, pointer, CODES)
