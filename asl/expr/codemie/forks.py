"""Branches: what each begins with, the items of an iteration, and how branches come together."""

from collections.abc import Iterable, Mapping
from typing import Final

from asl.core.errors import StateError
from asl.core.pointers import unescape
from asl.core.values import Json, index_of
from asl.expr.codemie.outputs import NOTHING, as_text, parsed
from asl.expr.codemie.store import RESERVED, applied, closed, last, opened, unreserved

__all__ = ["begun", "items", "joined", "picked"]

EVERYTHING: Final = ["*"]


def begun(data: Json) -> Json:
    """Return what a branch of a fork begins with: a copy of the data, and nothing written yet."""
    context, kept = opened(data)
    return closed(context, _beginning(kept))


def entered(data: Json, item: Json, include: list[str]) -> Json:
    """Return what an item's branch begins with; the keys of an object are in its context.

    *include* lists the keys of the context that it may see, `*` for all.
    """
    context, kept = opened(data)
    if "*" not in include:
        context = {key: value for key, value in context.items() if key in include}
    if isinstance(item, dict):
        context = {**context, **unreserved(item)}
    return closed(context, {**_beginning(kept), "item": item, "entered": True})


def _beginning(kept: Mapping[str, Json]) -> dict[str, Json]:
    begun = {key: kept[key] for key in ("last", "history", "item", "steps") if key in kept}
    return {**begun, "inherited": len(kept.get("history", ())), "writes": []}


def joined(data: Json, branches: Iterable[Mapping[str, Json]]) -> Json:
    """Return the data after a fork: the writes of its branches, one branch after the other.

    What they have said follows the messages from before, and the last output is the array of their
    last outputs.
    """
    context, kept = opened(data)
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
        context = applied(context, write)
    if "writes" in kept:
        kept["writes"] = [*kept["writes"], *writes]
    if messages:
        kept["history"] = messages
    return closed(context, {**kept, "last": as_text(outputs), "steps": steps})


# --------------------------------------------------------------------------------------------
# Items


def items(data: Json, key: str) -> list[Json]:
    """Return the items that the last output has under a key, or at a JSON Pointer.

    A list is itself the items, whatever the key; what is no list is one item. Raises
    StateError("CM.IterKey") where nothing is there.
    """
    output = last(data)
    if key.startswith("/"):
        found = _at(output, key)
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


def picked(result: Json, pointer: str) -> Json:
    """Return the part of a tool's result at a JSON Pointer.

    Raises StateError("CM.ResultPointer") where nothing is there.
    """
    found = _at(result, pointer)
    if found is NOTHING:
        raise StateError("CM.ResultPointer", f"the result has nothing at {pointer!r}")
    return found


def _at(value: Json, pointer: str) -> Json:
    """Return what a pointer leads to, else NOTHING; texts on the way are parsed."""
    inner = pointer.strip("/")
    for segment in inner.split("/") if inner else ():
        if isinstance(value, str):
            value = parsed(value)
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
        found = parsed(value)
        return value if found is NOTHING else found
    return value
