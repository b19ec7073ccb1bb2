"""What is wrong with a workflow beyond its shape, and what may surprise its author: CM-*."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from asl.core.diagnostics import Finding, did_you_mean
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.codemie.config import ACTORS, END, FORMS, CodemieState, Config
from asl.dialects.codemie.functions.conditions import parse
from asl.dialects.codemie.functions.placeholders import find_placeholders
from asl.dialects.codemie.options import DEFAULT, CodemieOptions
from asl.dialects.codemie.schema import SCHEMA
from asl.dialects.codemie.transforms import misfits

__all__ = ["of_shape", "of_states"]

RESERVED_IDS = frozenset(
    (END, "__start__", "__end__", "summarize_memory_node", "result_finalizer_node")
)
RESERVED_KEYS = frozenset(
    (
        "messages",
        "next",
        "context_store",
        "user_input",
        "iteration_source",
        "task",
        "iter_key",
        "state_id",
    )
)
"""Names that the platform uses itself, so that items under them get lost there."""
CONFLICTS = (
    ("condition", "switch"),
    ("state_id", "state_ids"),
    ("state_ids", "iter_key"),
    ("state_ids", "condition"),
    ("state_ids", "switch"),
    ("iter_key", "condition"),
    ("iter_key", "switch"),
    ("state_id", "condition"),
    ("state_id", "switch"),
)

LEGACY = frozenset((("state_ids", "iter_key"), ("iter_key", "condition")))
"""Conflicts that older workflows have."""
SHOWN = 10
"""How many names a hint lists."""
_MADE_OF = frozenset(("assistant_id", "system_prompt"))


def of_shape(config: Config, options: CodemieOptions = DEFAULT) -> Iterator[Finding]:
    """Yield what a workflow's keys and values have that they may not; no reader can go on then."""
    yield from SCHEMA.check(config.value, config.base)
    value = config.value
    if type(value.get("states")) is not list:
        if "states" not in value:
            yield Finding("CM-NO-STATES", "there are no states", config.base, at_key=True)
        return
    if not value["states"]:
        yield Finding("CM-NO-STATES", "there are no states", f"{config.base}/states", at_key=True)
    for name, each, pointer in _members(config, "assistants"):
        yield from _assistant(name, each, pointer, options)
    for _, each, pointer in _members(config, "custom_nodes"):
        yield from _node(each, pointer)
    for _, each, pointer in _members(config, "states"):
        yield from _state(each, pointer, options)


def _members(config: Config, key: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    listed = config.value.get(key)
    for index, each in enumerate(listed if type(listed) is list else ()):
        if type(each) is dict:
            yield str(each.get("id", "")), each, f"{config.base}/{key}/{index}"


def _assistant(
    name: str, value: Mapping[str, Any], pointer: str, options: CodemieOptions
) -> Iterator[Finding]:
    if options.accept_legacy and "model" in value and value.keys().isdisjoint(_MADE_OF):
        message = f"the platform refuses {name!r}, which has only a 'model'"
        yield Finding(
            "CM-LEGACY", message, f"{pointer}/model", "add a 'system_prompt'", at_key=True
        )
    elif value.keys().isdisjoint(_MADE_OF):
        yield Finding(
            "CM-SCHEMA",
            f"the assistant {name!r} has neither 'assistant_id' nor 'system_prompt'",
            pointer,
            "add a 'system_prompt'; 'model' alone is not enough",
            at_key=True,
        )
    servers = value.get("mcp_servers")
    for index, server in enumerate(servers if type(servers) is list else ()):
        if type(server) is not dict or server.get("enabled") is False:
            continue
        if not {"config", "command", "mcp_config_id"} & server.keys():
            yield Finding(
                "CM-SCHEMA",
                "an enabled server needs 'config', 'command' or 'mcp_config_id'",
                f"{pointer}/mcp_servers/{index}",
                at_key=True,
            )


def _node(value: Mapping[str, Any], pointer: str) -> Iterator[Finding]:
    config = value.get("config")
    if (
        type(config) is dict
        and {"documents_filter", "documents_filtering_pattern"} <= config.keys()
    ):
        yield Finding(
            "CM-SCHEMA",
            "'documents_filter' and 'documents_filtering_pattern' exclude each other",
            f"{pointer}/config/documents_filtering_pattern",
            at_key=True,
        )
    yield from misfits(value, pointer)
    mappings = config.get("mappings") if type(config) is dict else None
    for index, mapping in enumerate(mappings if type(mappings) is list else ()):
        for key in ("condition", "filter_condition", "script"):
            text = mapping.get(key) if type(mapping) is dict else None
            if type(text) is str:
                yield from _transforming(text, f"{pointer}/config/mappings/{index}/{key}")


def _transforming(text: str, pointer: str) -> Iterator[Finding]:
    """Warn of an expression of a transformation that fails whenever it is evaluated."""
    try:
        parse(text, members=True)
    except ExpressionFault as fault:
        yield Finding(
            "CM-EXPR-UNSUPPORTED", fault.message, pointer, fault.hint, inside=fault.offset
        )


def _state(value: Mapping[str, Any], pointer: str, options: CodemieOptions) -> Iterator[Finding]:
    kinds = [key for key in ACTORS if key in value]
    if len(kinds) != 1:
        what = "none" if not kinds else " and ".join(map(repr, kinds))
        yield Finding(
            "CM-STATE-KIND",
            f"a state runs exactly one of {', '.join(map(repr, ACTORS))}, and this one has {what}",
            f"{pointer}/{kinds[1]}" if kinds else pointer,
            at_key=True,
        )
    if "interrupt_before" in value and "wait_for_user_confirmation" in value:
        yield Finding(
            "CM-NEXT-CONFLICT",
            "'interrupt_before' and 'wait_for_user_confirmation' are the same: keep the first",
            f"{pointer}/wait_for_user_confirmation",
            at_key=True,
        )
    elif "wait_for_user_confirmation" in value:
        yield Finding(
            "CM-DEPRECATED",
            "'wait_for_user_confirmation' is an old name",
            f"{pointer}/wait_for_user_confirmation",
            "write interrupt_before",
            at_key=True,
        )
    if type(value.get("next")) is dict:
        yield from _next(value["next"], f"{pointer}/next", options)


def _next(value: Mapping[str, Any], pointer: str, options: CodemieOptions) -> Iterator[Finding]:
    for one, other in CONFLICTS:
        if one not in value or other not in value:
            continue
        if options.accept_legacy and (one, other) in LEGACY:
            yield Finding(
                "CM-LEGACY",
                f"{one!r} with {other!r} is refused by the platform; each item branches",
                f"{pointer}/{other}",
                "branch first, and iterate from the chosen state",
                at_key=True,
            )
        else:
            yield Finding(
                "CM-NEXT-CONFLICT",
                f"{one!r} and {other!r} exclude each other",
                f"{pointer}/{other}",
                "branch first, and iterate from the chosen state"
                if "iter_key" in (one, other)
                else None,
                at_key=True,
            )
    if not any(form in value for form in FORMS):
        if "iter_key" in value:
            message = "'iter_key' needs 'state_id': the state that runs for each item"
            yield Finding("CM-SCHEMA", message, f"{pointer}/iter_key", at_key=True)
        else:
            hint = "end the run with state_id: end"
            message = "'next' has no target"
            yield Finding("CM-NEXT-EMPTY", message, pointer, hint, at_key=True)
    elif value.get("state_ids") == []:
        yield Finding("CM-NEXT-EMPTY", "'state_ids' is empty", f"{pointer}/state_ids", at_key=True)
    if "keep_history" in value:
        yield Finding(
            "CM-DEPRECATED",
            "'keep_history' is an old name",
            f"{pointer}/keep_history",
            "write include_in_llm_history",
            at_key=True,
        )


# --------------------------------------------------------------------------------------------
# Beyond the shape


def of_states(config: Config, faulty: Collection[str]) -> Iterator[Finding]:
    """Yield what the states have against each other; those with a fault in their shape are passed.

    *faulty* are the places of such faults.
    """
    yield from _names(config)
    known = dict.fromkeys(name for name, _, _ in _members(config, "states"))
    for _, value, pointer in _members(config, "states"):
        if any(f"{place}/".startswith(f"{pointer}/") for place in faulty):
            continue
        state = CodemieState(value, pointer)
        yield from _actor(config, state)
        for target, place in state.targets():
            if target not in known and target != END:
                yield Finding(
                    "CM-UNDEFINED-REF",
                    f"there is no state {target!r}",
                    f"{state.pointer}/next/{place}",
                    _there(target, [*known, END]),
                )
        for rule in _RULES:
            yield from rule(config, state)


def _names(config: Config) -> Iterator[Finding]:
    for key in ("states", *ACTORS.values()):
        first: dict[str, str] = {}
        for name, value, pointer in _members(config, key):
            place = f"{pointer}/id"
            if "id" not in value:
                continue
            if name in first:
                noun = "state" if key == "states" else key.removesuffix("s").replace("_", " ")
                related = ((first[name], "the first one is here"),)
                message = f"there are two {noun}s {name!r}"
                hint = "give each a name of its own"
                yield Finding("CM-DUPLICATE-ID", message, place, hint, related=related)
            first.setdefault(name, place)
            if key == "states" and (name in RESERVED_IDS or not name or set(name) & set("|:")):
                yield Finding(
                    "CM-RESERVED-ID",
                    f"{name!r} is reserved and cannot be the id of a state",
                    place,
                    "choose another id, without '|' and ':'",
                )


def _actor(config: Config, state: CodemieState) -> Iterator[Finding]:
    key, name = state.actor
    listed = [each for each, _, _ in _members(config, ACTORS[key])]
    if name not in listed:
        noun = key.removesuffix("_id").replace("_", " ")
        yield Finding(
            "CM-UNDEFINED-REF",
            f"there is no {noun} {name!r}",
            f"{state.pointer}/{key}",
            _there(name, listed),
        )


def _there(name: str, known: list[str]) -> str:
    """Say what may be meant with a name that nothing has."""
    near = did_you_mean(name, known)
    if near is not None or not known:
        return near or "none is defined"
    more = ", ..." if len(known) > SHOWN else ""
    return f"there is {', '.join(known[:SHOWN])}{more}"


def _conditions(config: Config, state: CodemieState) -> Iterator[Finding]:
    for text, _, place in state.conditions():
        pointer = f"{state.pointer}/next/{place}"
        try:
            parse(text)
        except ExpressionFault as fault:
            yield Finding(fault.code, fault.message, pointer, fault.hint, inside=fault.offset)
            continue
        if ".contains(" in text:
            yield Finding(
                "CM-CONTAINS",
                "the platform has no .contains(): there the condition is always false",
                pointer,
                "write 'text' in value",
                inside=text.index(".contains("),
            )
        yield from _coerced(text, pointer)


_COERCED = re.compile(
    r"""(?:==|!=)\s*(?P<text>(?P<quote>['"])(?P<said>-?\d+(?:\.\d+)?|true|false|True|False|None)(?P=quote))"""
)


def _coerced(text: str, pointer: str) -> Iterator[Finding]:
    """Warn of a comparison with a text that outputs never hold: it is read as a value there."""
    for match in _COERCED.finditer(text):
        said = match["said"]
        if re.match(r"-?0\d", said):
            continue
        yield Finding(
            "CM-COERCED",
            f"the text {match['text']} never compares equal: in an output it is read as {said}",
            pointer,
            f"compare with {said.capitalize() if said.isalpha() else said}, without quotes",
            inside=match.start("text"),
        )


def _texts(config: Config, state: CodemieState) -> Iterator[Finding]:
    if "assistant_id" in state.value:
        yield from _template(state.value.get("task", ""), f"{state.pointer}/task")
    elif "tool_id" in state.value:
        key, name = state.actor
        for each, tool, pointer in _members(config, ACTORS[key]):
            if each == name:
                own = state.value.get("tool_args")
                holder = (own, state.pointer) if own else (tool.get("tool_args", {}), pointer)
                yield from _templates(holder[0], f"{holder[1]}/tool_args")


def _templates(value: Json, pointer: str) -> Iterator[Finding]:
    if type(value) is dict:
        for key, each in value.items():
            yield from _templates(each, f"{pointer}/{escape(key)}")
    elif type(value) is list:
        for index, each in enumerate(value):
            yield from _templates(each, f"{pointer}/{index}")
    elif type(value) is str:
        yield from _template(value, pointer)


def _template(text: str, pointer: str) -> Iterator[Finding]:
    told = False
    for each in find_placeholders(text):
        if each.steps is None:
            yield Finding(
                "CM-TEMPLATE",
                f"{text[each.start : each.end][:80]!r} is no placeholder, so it stays as it is",
                pointer,
                "a placeholder is {{name}}, {{name.key}} or {{name[0]}}",
                inside=each.start,
            )
        elif each.name == "task" and not told:
            told = True
            yield Finding(
                "CM-TASK-VAR",
                "{{task}} is the item or the last output; the platform does not define it",
                pointer,
                inside=each.start,
            )


def _stores(config: Config, state: CodemieState) -> Iterator[Finding]:
    to = state.next
    for key in ("output_key", "append_to_context"):
        if not to.get(key):
            continue
        reason = None
        if to.get("store_in_context") is False:
            reason = "'store_in_context' is false"
        elif to.get("clear_context_store") is True:
            reason = "'clear_context_store' is true"
        if reason is not None:
            pointer = f"{state.pointer}/next/{key}"
            message = f"{key!r} has no effect: {reason}"
            yield Finding("CM-STORE-CONFLICT", message, pointer, at_key=True)


def _iterations(config: Config, state: CodemieState) -> Iterator[Finding]:
    key = state.next.get("iter_key")
    if key is None:
        return
    place = f"{state.pointer}/next/iter_key"
    if state.next.get("state_id") == END:
        yield Finding(
            "CM-ITER-END", "no state follows, so no item is processed", place, at_key=True
        )
    if key in RESERVED_KEYS:
        message = f"the platform reserves {key!r}, so it does not find the items"
        yield Finding("CM-ITER-RESERVED", message, place, "rename the key of the items")


_RULES: tuple[Callable[[Config, CodemieState], Iterator[Finding]], ...] = (
    _conditions,
    _texts,
    _stores,
    _iterations,
)
