"""The data of an execution: the context at the root, and the platform's own data under `cm`.

`cm` has `last` (the text of the last output), `steps` (the number of states so far), `history` (the
messages, in documents with assistants), in an iteration `item`, and in a branch `writes` (its
writes to the context so far) and `inherited` (the number of messages that it began with).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from asl.core.errors import StateError
from asl.core.pointers import unescape
from asl.core.values import Json, index_of
from asl.dialects.codemie.functions.outputs import (
    NOTHING,
    as_text,
    coerce_literals,
    context_values,
    parse_output,
)
from asl.dialects.codemie.functions.placeholders import Scope

__all__ = [
    "RESERVED",
    "Write",
    "apply_write",
    "check_recursion_limit",
    "close_data",
    "context_of",
    "history",
    "item_of",
    "join_branches",
    "last_object",
    "list_items",
    "message",
    "open_data",
    "pick_part",
    "refuse_answer",
    "resume_data",
    "scope_of",
    "start_branch",
    "store_result",
    "without_reserved",
]

RESERVED: Final = "cm"
"""The key of the platform's own data."""

Context: TypeAlias = dict[str, Json]
Write: TypeAlias = Mapping[str, Json]
"""A change of the context: `{"set": {...}}`, `{"append": {...}}`, `{"remove": [...]}` or `{"clear":
true}`.
"""
Flags: TypeAlias = Mapping[str, Any]


def open_data(data: Json) -> tuple[Context, dict[str, Json]]:
    """Return the context and the platform's own data; a raw input becomes the context."""
    if isinstance(data, dict):
        kept = data.get(RESERVED)
        return without_reserved(data), dict(kept) if isinstance(kept, dict) else {}
    text = as_text(data)
    found = parse_output(text)
    context = without_reserved(found) if isinstance(found, dict) else {}
    return context, {"last": text, "history": [message("human", text)]}


def without_reserved(found: Mapping[str, Json]) -> Context:
    """Return the members that may be in the context."""
    return {key: value for key, value in found.items() if key != RESERVED}


def close_data(context: Context, kept: Mapping[str, Json]) -> dict[str, Json]:
    """Return a context and the platform's own data as the data of an execution."""
    return {**context, RESERVED: kept}


def context_of(data: Json) -> Context:
    """Return the context alone."""
    return open_data(data)[0]


def scope_of(data: Json) -> Scope:
    """Return the values of placeholders by name: the context, and `task`.

    `task` is the item of an iteration, else the last output; a key of the context takes precedence.
    """
    context, kept = open_data(data)
    for implicit in ("item", "last"):
        if implicit in kept:
            return {"task": kept[implicit], **context}
    return context


def history(data: Json) -> Json:
    """Return the messages so far."""
    return open_data(data)[1].get("history", [])


def item_of(data: Json) -> Json:
    """Return the item of an iteration, null outside of one."""
    return open_data(data)[1].get("item")


def message(role: str, content: str, state: str | None = None) -> dict[str, Json]:
    """Return a message of the history."""
    found: dict[str, Json] = {"role": role, "content": content}
    return found if state is None else {**found, "state": state}


def last_object(data: Json) -> dict[str, Json]:
    """Return the last output for conditions; an empty object if it is no object."""
    found = parse_output(open_data(data)[1].get("last", ""))
    return coerce_literals(found) if isinstance(found, dict) else {}


# --------------------------------------------------------------------------------------------
# Writes


def apply_write(context: Context, write: Write) -> Context:
    """Return the context after a write."""
    if "clear" in write:
        return {}
    if "remove" in write:
        return {key: value for key, value in context.items() if key not in write["remove"]}
    if "set" in write:
        return {**context, **write["set"]}
    return {
        **context,
        **{key: _append_value(context, key, each) for key, each in _append_items(write)},
    }


def _append_items(write: Write) -> Iterable[tuple[str, Json]]:
    found: Mapping[str, Json] = write["append"]
    return found.items()


def _append_value(context: Context, key: str, value: Json) -> Json:
    old = context.get(key)
    if old is None:
        return [value]
    return [*old, value] if isinstance(old, list) else [old, value]


def _writes(output: Json, raw: str, flags: Flags) -> Iterator[Write]:
    """Yield the writes of an output, in the order of the platform."""
    cleared = flags.get("clear_context_store")
    if cleared:
        yield {"clear": True}
        if cleared is True:
            return
    if flags.get("reset_keys_in_context_store"):
        yield {"remove": flags["reset_keys_in_context_store"]}
    if flags.get("store_in_context") is False:
        return
    how = "append" if flags.get("append_to_context") else "set"
    if found := without_reserved(context_values(output)):
        yield {how: found}
    if flags.get("output_key") is not None:
        yield {how: {flags["output_key"]: raw}}


def store_result(data: Json, result: Json, state: str | None, flags: Flags) -> Json:
    """Return the data after a state: its result is written and added to the messages.

    Args:
        data: The data before the state.
        result: The result of the state.
        state: Name of the state; None without a message history.
        flags: The flags of the state's `next`, and `history`: whether there are messages.

    Raises:
        StateError: CM.RecursionLimit after too many states.
    """
    context, kept = open_data(data)
    raw = as_text(result)
    writes = list(_writes(parse_output(raw), raw, flags))
    for write in writes:
        context = apply_write(context, write)
    first = kept.pop("entered", False)
    if first:
        writes = [*_item_writes(kept, flags), *writes]
    if "writes" in kept:
        kept["writes"] = [*kept["writes"], *writes]
    if state is None or flags.get("history") is False:
        kept.pop("history", None)
    else:
        _add_messages(kept, raw, state, flags, first=first)
    kept["last"] = raw
    kept.pop("refused", None)
    if flags.get("override_task"):
        kept["item"] = raw
    kept["steps"] = kept.get("steps", 0) + 1
    return check_recursion_limit(close_data(context, kept), flags.get("recursion_limit"))


def check_recursion_limit(data: Json, limit: float | None) -> Json:
    """Return the data unchanged.

    Args:
        data: The data of the execution.
        limit: Number of states that the execution may run; None for no limit.

    Raises:
        StateError: CM.RecursionLimit if it has run that many.
    """
    if limit is not None and open_data(data)[1].get("steps", 0) >= limit:
        raise StateError(
            "CM.RecursionLimit", f"the run has reached its recursion_limit of {limit:g} states"
        )
    return data


def _item_writes(kept: Mapping[str, Json], flags: Flags) -> Iterator[Write]:
    """Yield the keys of an item as the first write of its branch."""
    item = kept.get("item")
    if isinstance(item, dict) and flags.get("store_in_context") is not False:
        yield {"append" if flags.get("append_to_context") else "set": without_reserved(item)}


def _add_messages(
    kept: dict[str, Json], raw: str, state: str, flags: Flags, *, first: bool
) -> None:
    """Add the output of a state to the messages."""
    messages = kept.get("history", [])
    if flags.get("clear_prior_messages"):
        messages = []
        if "inherited" in kept:
            kept["inherited"] = 0
    if flags.get("include_in_llm_history") is not False:
        role = "human" if flags.get("result_as_human_message") else "ai"
        told = [message("human", as_text(kept["item"]), state)] if first else []
        messages = [*messages, *told, message(role, raw, state)]
    kept["history"] = messages


# --------------------------------------------------------------------------------------------
# Gates and refusals


def resume_data(data: Json, record: Mapping[str, Json], state: str | None) -> Json:
    """Return the data after an approval.

    The input of the approver is added to the messages, and an object is written to the context.
    """
    context, kept = open_data(data)
    given = record.get("input")
    if given is None or given == "":
        return close_data(context, kept)
    text = as_text(given)
    found = parse_output(text)
    if isinstance(found, dict):
        write = {"set": without_reserved(found)}
        context = apply_write(context, write)
        if "writes" in kept:
            kept["writes"] = [*kept["writes"], write]
    if state is not None:
        kept["history"] = [*kept.get("history", []), message("human", text, state)]
    return close_data(context, kept)


def refuse_answer(data: Json, error: Mapping[str, Json], limit: int) -> Json:
    """Return the data after an answer that does not fit its schema.

    Args:
        data: The data before the answer.
        error: The error with its `Cause`, which the agent gets with the next attempt.
        limit: Number of answers after which the state fails.

    Raises:
        StateError: CM.OutputSchema for the last of these answers.
    """
    context, kept = open_data(data)
    faults = [*kept.get("refused", []), error["Cause"]]
    if len(faults) >= limit:
        raise StateError("CM.OutputSchema", error["Cause"])
    return close_data(context, {**kept, "refused": faults})


def refusal_causes(data: Json) -> Json:
    """Return the causes why answers of the current state were refused."""
    return open_data(data)[1].get("refused", [])


def last_output(data: Json) -> Json:
    """Return the last output, parsed if it can be, else as text."""
    text = open_data(data)[1].get("last", "")
    found = parse_output(text)
    return text if found is NOTHING else found


EVERYTHING: Final = ["*"]


def start_branch(data: Json) -> Json:
    """Return the data at the start of a branch: a copy without writes."""
    context, kept = open_data(data)
    return close_data(context, _branch_data(kept))


def start_item(data: Json, item: Json, include: list[str]) -> Json:
    """Return the data at the start of the branch of an item.

    Args:
        data: The data before the iteration.
        item: The item; the members of an object are added to the context.
        include: The keys of the context that the branch may read, `*` for all.
    """
    context, kept = open_data(data)
    if "*" not in include:
        context = {key: value for key, value in context.items() if key in include}
    if isinstance(item, dict):
        context = {**context, **without_reserved(item)}
    return close_data(context, {**_branch_data(kept), "item": item, "entered": True})


def _branch_data(kept: Mapping[str, Json]) -> dict[str, Json]:
    begun = {key: kept[key] for key in ("last", "history", "item", "steps") if key in kept}
    return {**begun, "inherited": len(kept.get("history", ())), "writes": []}


def join_branches(data: Json, branches: Iterable[Mapping[str, Json]]) -> Json:
    """Return the data after branches: their writes are applied, one branch after the other.

    The messages of the branches follow those before, and the last output is the array of their last
    outputs.
    """
    context, kept = open_data(data)
    writes: list[Json] = []
    messages = list(kept.get("history", ()))
    outputs, steps = [], kept.get("steps", 0)
    for branch in branches:
        own = branch[RESERVED]
        steps = max(steps, own.get("steps", 0))
        writes += own["writes"]
        messages += own.get("history", [])[own["inherited"] :]
        outputs.append(own.get("last", ""))
    for write in writes:
        context = apply_write(context, write)
    if "writes" in kept:
        kept["writes"] = [*kept["writes"], *writes]
    if messages:
        kept["history"] = messages
    return close_data(context, {**kept, "last": as_text(outputs), "steps": steps})


# --------------------------------------------------------------------------------------------
# Items


def list_items(data: Json, key: str) -> list[Json]:
    """Return the items in the last output.

    A list has its own elements as items, whatever the key; any other value is one item.

    Args:
        data: The data of the execution.
        key: A key of the output, or a JSON Pointer.

    Raises:
        StateError: CM.IterKey if the output has no such key.
    """
    output = last_output(data)
    if key.startswith("/"):
        found = _follow_pointer(output, key)
        if found is NOTHING:
            raise StateError("CM.IterKey", f"the output has nothing at {key!r}")
        return found if isinstance(found, list) else [found]
    if isinstance(output, list):
        return output
    if not isinstance(output, dict) or key == ".":
        return [output]
    if key not in output:
        raise StateError("CM.IterKey", f"the output has no key {key!r}")
    found = output[key]
    return found if isinstance(found, list) else [found]


def pick_part(result: Json, pointer: str) -> Json:
    """Return the part of a tool's result at a JSON Pointer.

    Raises:
        StateError: CM.ResultPointer if the result has no such part.
    """
    found = _follow_pointer(result, pointer)
    if found is NOTHING:
        raise StateError("CM.ResultPointer", f"the result has nothing at {pointer!r}")
    return found


def _follow_pointer(value: Json, pointer: str) -> Json:
    """Return the value at a JSON Pointer, else NOTHING; texts along it are parsed."""
    inner = pointer.strip("/")
    for segment in inner.split("/") if inner else ():
        if isinstance(value, str):
            value = parse_output(value)
        if isinstance(value, dict):
            decoded = unescape(segment)
            value = value.get(segment, value.get(decoded, NOTHING))
        elif isinstance(value, list) and (index := index_of(segment, value)) is not None:
            value = value[index]
        else:
            return NOTHING
        if value is NOTHING:
            return NOTHING
    if not inner and not isinstance(value, dict | list):
        return NOTHING
    if pointer.endswith("/") and isinstance(value, str):
        found = parse_output(value)
        return value if found is NOTHING else found
    return value
