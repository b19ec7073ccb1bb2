"""The schema of a chain: its keys and the types of their values."""

from collections.abc import Iterator
from typing import Final

from asl.core.diagnostics import Finding
from asl.core.values import Json, type_name
from asl.dialects import schema
from asl.dialects.schema import (
    BOOLEAN,
    OBJECT,
    TEXT,
    TEXTS,
    Codes,
    ListSchema,
    MapSchema,
    ObjectSchema,
    anything,
    is_a,
)

__all__ = ["CHAIN", "check"]


MOST: Final = 99_999_999
"""Times that a task may be tried again."""


def _text_or_null(value: Json) -> str | None:
    return None if value is None or type(value) is str else "must be a string"


def _scalar(value: Json) -> str | None:
    return None if type(value) in (str, int, float) else "must be a string"


def _whole(value: Json) -> str | None:
    return None if type(value) is int else "must be a whole number"


def _retries(value: Json) -> str | None:
    complaint = _whole(value)
    return complaint or (None if value <= MOST else f"must be {MOST} or less")


_RETRY = ObjectSchema(
    {
        "max_attempts": _whole,
        "initial_backoff": TEXT,
        "max_backoff": TEXT,
        "jitter": anything,
        "rate_limit_min_wait": TEXT,
        "fallback_model_id": TEXT,
        "fallback_after": anything,
    }
)
_CONFIG = ObjectSchema(
    {
        "model": TEXT,
        "models": TEXTS,
        "provider": TEXT,
        "providers": TEXTS,
        "temperature": anything,
        "think": anything,
        "max_tokens": is_a("integer", "number", "string"),
        "shift": BOOLEAN,
        "hooks": TEXTS,
        "tools": TEXTS,
        "hide_tools": TEXTS,
        "tools_policies": OBJECT,
        "hook_policies": OBJECT,
        "compact_policy": anything,
        "pass_clients_tools": BOOLEAN,
        "retry_policy": _RETRY,
    }
)
_TOOL = ObjectSchema({"name": TEXT, "type": TEXT, "tool_name": TEXT, "args": OBJECT})
_COMPOSE = ObjectSchema({"with_var": TEXT, "strategy": TEXT}, ("with_var",))
_BRANCH = ObjectSchema(
    {
        "operator": TEXT,
        "when": _scalar,
        "goto": _text_or_null,
        "edge": TEXT,
        "compose": _COMPOSE,
        "alert_on_match": anything,
    },
    ("operator",),
    {
        "on_failure": "it belongs to the transition, beside 'branches'",
        "next": "the key is goto",
    },
)
_TRANSITION = ObjectSchema(
    {
        "branches": ListSchema(_BRANCH),
        "on_failure": _text_or_null,
        "on_failure_alert": anything,
    },
    near_misses={
        "goto": "it belongs to a branch",
        "next": "say it in a branch with the operator default",
    },
)
_TASK = ObjectSchema(
    {
        "id": TEXT,
        "handler": TEXT,
        "type": TEXT,
        "description": TEXT,
        "system_instruction": TEXT,
        "prompt_template": TEXT,
        "input_var": TEXT,
        "input_max_bytes": _whole,
        "output_template": TEXT,
        "print": TEXT,
        "valid_conditions": MapSchema(BOOLEAN),
        "execute_config": _CONFIG,
        "hook": _TOOL,
        "tools": _TOOL,
        "transition": _TRANSITION,
        "timeout": TEXT,
        "retry_on_failure": _retries,
        "compose": _COMPOSE,
    },
    ("id",),
    {
        "on_failure": "it belongs to the transition",
        "branches": "it belongs to the transition",
        "goto": "it belongs to a branch of the transition",
        "retry": "the key is retry_on_failure",
        "retries": "the key is retry_on_failure",
        "model": "it belongs to execute_config",
        "provider": "it belongs to execute_config",
    },
)
CHAIN = ObjectSchema(
    {
        "id": TEXT,
        "description": TEXT,
        "tasks": ListSchema(_TASK),
        "token_limit": _whole,
        "debug": BOOLEAN,
        "triggers": anything,
        "routing_strategy": anything,
    },
    ("tasks",),
    ignored=frozenset(("$schema", "name")),
)


_CODES = Codes("CX-SCHEMA", "CX-NEAR-MISS", "CX-UNKNOWN-KEY")


def check(value: Json) -> Iterator[Finding]:
    """Yield what does not fit a chain: CX-SCHEMA, and keys without effect as warnings."""
    if type(value) is not dict:
        shown = type_name(value)
        hint = 'write {"id": ..., "tasks": [...]}'
        yield Finding("CX-SCHEMA", f"a chain is an object, not {shown}", "", hint)
        return
    yield from schema.check(value, CHAIN, "", _CODES)
