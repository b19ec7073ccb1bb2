"""The schema of a blueprint: its keys and the types of their values."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding, did_you_mean
from asl.core.pointers import escape
from asl.core.values import Json, type_name
from asl.dialects import schema
from asl.dialects.flujo.blueprint import EVENTS, KINDS
from asl.dialects.schema import (
    BOOLEAN,
    OBJECT,
    TEXT,
    Codes,
    ListSchema,
    ObjectSchema,
    anything,
    filled,
    is_a,
)

__all__ = ["check"]

_CODES = Codes("FL-SHAPE", "FL-NEAR-MISS", "FL-UNKNOWN-KEY")
_SCALAR = is_a("string", "integer", "number", "boolean")
_NULLABLE_TEXT = is_a("string", "null")
_NULLABLE_OBJECT = is_a("object", "null")
MOST: Final = 99_999_999
"""Seconds that an attempt may be given."""


def _limit(value: Json) -> str | None:
    if value is None:
        return None
    if type(value) not in (int, float):
        return "must be a number of seconds"
    return None if 0 <= value <= MOST else f"must be from 0 to {MOST}"


def _name(value: Json) -> str | None:
    return None if type(value) is dict else filled(value)


def _reducer(value: Json) -> str | None:
    return None if value is None else _name(value)


def _count(value: Json) -> str | None:
    if type(value) is not int:
        return "must be a whole number"
    return None if 0 <= value <= 1000 else "must be from 0 to 1000"


def _rounds(value: Json) -> str | None:
    if type(value) is not int:
        return "must be a whole number"
    return None if 1 <= value <= 100_000 else "must be from 1 to 100000"


_CONFIG = ObjectSchema(
    {
        "max_retries": _count,
        "timeout_s": _limit,
        "timeout": _limit,
        **dict.fromkeys(
            (
                "temperature", "top_k", "top_p", "preserve_fallback_diagnostics",
                "execution_mode", "idempotent", "use_history", "inherit_context",
                "inherit_conversation", "input_to", "input_scratchpad_key", "outputs", "on_failure",
                "propagate_hitl", "params",
            ),
            anything,
        ),
    },
    near_misses={"retries": "the key is max_retries", "retry": "the key is max_retries"},
)  # fmt: skip
_AGENT = ObjectSchema({"id": TEXT, "path": TEXT, "params": _NULLABLE_OBJECT})


def _agent(value: Json) -> str | None:
    return None if value is None or type(value) in (str, dict) else "must be a string or an object"


_COMMON: Final[Mapping[str, Any]] = {
    "kind": TEXT,
    "name": _SCALAR,
    "step": _SCALAR,
    "config": _CONFIG,
    "updates_context": BOOLEAN,
    **dict.fromkeys(
        (
            "description", "validate_fields", "usage_limits", "plugins", "validators", "processing",
            "input_schema", "output_schema", "input", "use_history", "meta",
        ),
        anything,
    ),
}  # fmt: skip
_BODY = is_a("array", "object", "null")
_ROUTER = ObjectSchema({"router_agent": _name, "branches": OBJECT}, ("router_agent", "branches"))
_LOOP = ObjectSchema(
    {
        "body": _BODY,
        "max_loops": _rounds,
        "exit_expression": _NULLABLE_TEXT,
        "exit_condition": _NULLABLE_TEXT,
        **dict.fromkeys(
            (
                "init", "state", "propagation", "output", "output_template", "conversation",
                "history_management", "ai_turn_source", "user_turn_sources", "named_steps",
                "history_template", "stop_when", "initial_input_mapper",
                "iteration_input_mapper", "loop_output_mapper",
            ),
            anything,
        ),
    },
    ("body",),
    {"steps": "the key is body", "until": "the key is exit_expression"},
)  # fmt: skip
_MAP = ObjectSchema(
    {
        "iterable_input": is_a("string", "array"),
        "body": _BODY,
        "init": anything,
        "finalize": anything,
    },
    ("iterable_input", "body"),
    {
        "items": "the key is iterable_input",
        "iterable": "the key is iterable_input",
        "steps": "the key is body",
    },
)
_BRANCHED: Final[Mapping[str, Any]] = {"branches": OBJECT}
_OF_STEP = ObjectSchema(
    {
        **_COMMON,
        "uses": _NULLABLE_TEXT,
        "agent": _agent,
        "sink_to": _NULLABLE_TEXT,
        "fallback": _NULLABLE_OBJECT,
    },
    near_misses={"retries": "say config: {max_retries: ...}", "next": "steps follow each other"},
)
SHAPES: Final[Mapping[str, ObjectSchema]] = {
    "step": _OF_STEP,
    "hitl": ObjectSchema({**_COMMON, "message": _NULLABLE_TEXT, "sink_to": _NULLABLE_TEXT}),
    "parallel": ObjectSchema(
        {
            **_COMMON,
            **_BRANCHED,
            "merge_strategy": TEXT,
            "reduce": _reducer,
            "on_branch_failure": TEXT,
            "context_include_keys": anything,
            "field_mapping": anything,
            "ignore_branch_names": anything,
        },
        ("branches",),
    ),
    "conditional": ObjectSchema(
        {
            **_COMMON,
            **_BRANCHED,
            "condition": _NULLABLE_TEXT,
            "condition_expression": _NULLABLE_TEXT,
            "default_branch": _BODY,
        },
        ("branches",),
        {"default": "the key is default_branch"},
    ),
    "loop": ObjectSchema({**_COMMON, "loop": _LOOP}, ("loop",)),
    "map": ObjectSchema({**_COMMON, "map": _MAP}, ("map",)),
    "dynamic_router": ObjectSchema({**_COMMON, "router": _ROUTER}, ("router",)),
    "cache": ObjectSchema({**_COMMON, "wrapped_step": OBJECT}, ("wrapped_step",)),
    "agentic_loop": ObjectSchema(
        {
            **_COMMON,
            "planner": filled,
            "registry": anything,
            "output_template": anything,
            "max_loops": anything,
        },
        ("planner",),
    ),
    "StateMachine": ObjectSchema(
        {
            **_COMMON,
            "start_state": _SCALAR,
            "end_states": is_a("array", "string", "null"),
            "states": OBJECT,
            "transitions": is_a("array", "null"),
        },
        near_misses={
            "max_hops": "a machine makes ten hops for each of its states",
            "start": "the key is start_state",
            "initial_state": "the key is start_state",
            "ends": "the key is end_states",
            "rules": "the key is transitions",
        },
    ),
}
"""The shape of each kind of step."""
_RULE = ObjectSchema(
    {"from": anything, "on": anything, "to": _SCALAR, "when": _NULLABLE_TEXT},
    ("from", "on", "to"),
    {"condition": "the key is when", "if": "the key is when", "event": "the key is on"},
)
_BLUEPRINT = ObjectSchema(
    {
        "version": _SCALAR,
        "name": is_a("string", "null"),
        "steps": anything,
        "agents": _NULLABLE_OBJECT,
        "imports": _NULLABLE_OBJECT,
        "static_invariants": anything,
        "pipeline_config": anything,
        "description": anything,
    },
    near_misses={
        "transitions": "they belong to a step of kind StateMachine",
        "states": "they belong to a step of kind StateMachine",
    },
)
_DECLARED = ObjectSchema(
    {
        "model": TEXT,
        "system_prompt": is_a("string", "object"),
        "output_schema": OBJECT,
        "model_settings": _NULLABLE_OBJECT,
        "timeout": _limit,
        "max_retries": anything,
    },
    ("model", "system_prompt", "output_schema"),
)


def check(value: Json) -> Iterator[Finding]:
    """Yield what does not fit a blueprint: FL-SHAPE and the like, and keys without effect."""
    if type(value) is not dict:
        hint = "list the steps under steps:"
        yield Finding("FL-SHAPE", f"a blueprint is an object, not {type_name(value)}", "", hint)
        return
    if type(value.get("steps")) is not list:
        at = "/steps" if "steps" in value else ""
        hint = "list the steps under steps:"
        yield Finding("FL-STEPS", "there is no list of steps", at, hint, at_key=True)
        return
    yield from schema.check(value, _BLUEPRINT, "", _CODES)
    agents = value.get("agents")
    for name, each in (agents if type(agents) is dict else {}).items():
        yield from schema.check(each, _DECLARED, f"/agents/{escape(name)}", _CODES)
    imports = value.get("imports")
    for name, each in (imports if type(imports) is dict else {}).items():
        yield from schema.check(each, TEXT, f"/imports/{escape(name)}", _CODES)
    yield from _body(value["steps"], "/steps")


def _body(value: Json, pointer: str) -> Iterator[Finding]:
    if type(value) is dict and "steps" in value:
        value, pointer = value["steps"], f"{pointer}/steps"
    if type(value) is dict:
        yield from _step(value, pointer)
    elif type(value) is list:
        for index, each in enumerate(value):
            yield from _step(each, f"{pointer}/{index}")
    elif value is not None:
        shown = type_name(value)
        hint = "write each as - name: ..., with what it uses"
        yield Finding("FL-SHAPE", f"the steps are a list, not {shown}", pointer, hint)


def _step(value: Json, pointer: str) -> Iterator[Finding]:
    if type(value) is not dict:
        shown = repr(value)[:60] if type(value) is str else type_name(value)
        hint = "write {name: ..., uses: ...}"
        yield Finding("FL-SHAPE", f"a step is an object, not {shown}", pointer, hint)
        return
    kind = value.get("kind", "step")
    if kind == "tree_search":
        hint = "let an agent do the search, in one step"
        yield Finding("FL-TREE", "a search in a tree cannot be run here", f"{pointer}/kind", hint)
        return
    if type(kind) is not str or kind not in SHAPES:
        near = did_you_mean(kind, KINDS) if type(kind) is str else None
        hint = near or f"there are {', '.join(KINDS)}"
        yield Finding("FL-KIND", f"there is no kind of step {kind!r}", f"{pointer}/kind", hint)
        return
    if value.get("name", value.get("step")) in (None, ""):
        message = "a step needs a name"
        yield Finding("FL-NAME", message, pointer, "its output is found by it", at_key=True)
    if isinstance(value.get("agent"), dict):
        yield from schema.check(value["agent"], _AGENT, f"{pointer}/agent", _CODES)
    yield from schema.check(value, SHAPES[kind], pointer, _CODES)
    if kind == "StateMachine":
        yield from _machine(value, pointer)
    for each, at in _bodies(kind, value, pointer):
        yield from _body(each, at)


def _bodies(kind: str, value: Mapping[str, Any], pointer: str) -> Iterator[tuple[Json, str]]:
    """Yield what holds steps, and where it is."""
    held: dict[str, Json] = {}
    if kind == "StateMachine":
        held, at = value.get("states") or {}, f"{pointer}/states"
    elif kind == "dynamic_router":
        router = value.get("router")
        held = (router.get("branches") or {}) if type(router) is dict else {}
        at = f"{pointer}/router/branches"
    else:
        held, at = value.get("branches") or {}, f"{pointer}/branches"
    if type(held) is dict:
        for name, each in held.items():
            yield each, f"{at}/{escape(name)}"
    if kind in ("loop", "map") and type(value.get(kind)) is dict:
        yield value[kind].get("body"), f"{pointer}/{kind}/body"
    for key in ("default_branch", "wrapped_step", "fallback"):
        if key in value and key in SHAPES[kind].keys:
            yield value[key], f"{pointer}/{key}"


def _machine(value: Mapping[str, Any], pointer: str) -> Iterator[Finding]:
    if value.get("start_state") in (None, ""):
        message = "a state machine needs a start_state"
        yield Finding("FL-START", message, pointer, "name the state it begins with", at_key=True)
    states = value.get("states")
    if not states:
        at = f"{pointer}/states" if "states" in value else pointer
        hint = "list the states, each with its steps"
        yield Finding("FL-STATES", "a state machine needs states", at, hint, at_key=True)
    ends = value.get("end_states")
    if type(ends) is list:
        yield from schema.check(ends, ListSchema(_SCALAR), f"{pointer}/end_states", _CODES)
    rules = value.get("transitions")
    if type(rules) is not list or type(states) is not dict:
        return
    known = [*states, *(map(str, ends) if type(ends) is list else [str(ends)] if ends else [])]
    for index, rule in enumerate(rules):
        yield from _rule(rule, states, known, f"{pointer}/transitions/{index}")


def _rule(
    rule: Json, states: Mapping[str, Json], known: list[str], pointer: str
) -> Iterator[Finding]:
    yield from schema.check(rule, _RULE, pointer, _CODES)
    if type(rule) is not dict:
        return
    source, event, target = rule.get("from"), rule.get("on"), rule.get("to")
    if "from" in rule and source != "*" and str(source) not in states:
        if type(source) is list:
            hint: str | None = "write one rule for each of them"
        elif str(source) in known:
            hint = "an end state is never left; give it steps under states to run it"
        else:
            near = did_you_mean(str(source), [*states, "*"])
            hint = near or "name one of states, or * for any of them"
        message = f"there is no state {source!r} to come from"
        yield Finding("FL-FROM", message, f"{pointer}/from", hint)
    if "to" in rule and str(target) not in known:
        hint = did_you_mean(str(target), known) or "name it under states or in end_states"
        yield Finding("FL-TO", f"there is no state {target!r}", f"{pointer}/to", hint)
    if "on" in rule and event not in EVENTS:
        hint = did_you_mean(str(event), EVENTS) or f"there are {', '.join(EVENTS)}"
        message = f"there is no event {event!r}"
        yield Finding("FL-ON", message, f"{pointer}/on", hint)
