"""Intrinsic functions on arrays, objects and JSON text (Specification 5.2, 5.3)."""

import json
from collections.abc import Hashable

import orjson

from asl.core.errors import StateError
from asl.core.java import java_text, json_text, sort_by_hash
from asl.core.lazy import lazy_pattern
from asl.core.profile import Profile
from asl.core.schemas import identity
from asl.core.values import MAX_DEPTH, Json, compact, json_equal
from asl.core.work import WorkMeter
from asl.expr.frame import ExpressionFrame
from asl.expr.intrinsics.arguments import (
    SMALL,
    array,
    check_bounds,
    failure,
    integer,
    object_argument,
    string,
    text_of,
)
from asl.expr.intrinsics.numeric import count_argument

MAX_RANGE = 1000
"""Elements that `States.ArrayRange` may return."""


def make(*items: Json) -> Json:
    """`States.Array(a, ...)`: the arguments as an array."""
    return list(items)


def partition(profile: Profile, items: Json, size: Json) -> Json:
    """`States.ArrayPartition(array, n)`: chunks of n elements; the last may be shorter.

    Raises:
        StateError: States.IntrinsicFailure if n is not positive.
    """
    name = "States.ArrayPartition"
    items = array(name, 1, items)
    step = count_argument(profile, name, 2, size)
    if step < 1:
        raise failure(name, f"the chunk size must be positive, found {step}")
    return [items[start : start + step] for start in range(0, len(items), step)]


def contains(profile: Profile, frame: ExpressionFrame, items: Json, wanted: Json) -> Json:
    """`States.ArrayContains(array, value)`: whether an element equals the value, as JSON.

    AWS compares printed values, so 1 equals "1" there.
    """
    name = "States.ArrayContains"
    items = array(name, 1, items)
    if profile.aws:
        check_bounds(name, items, profile.max_payload, frame.work)
        text = java_text(wanted)
        return any(java_text(item) == text for item in items)
    if len(items) > SMALL:
        frame.work.spend(len(items))
    if type(wanted) not in (list, dict):
        return any(json_equal(item, wanted) for item in items)
    key = identity(wanted, frame.work)
    alike = (item for item in items if type(item) is type(wanted) and len(item) == len(wanted))
    return any(identity(item, frame.work) == key for item in alike)


def span(profile: Profile, first: Json, last: Json, step: Json = 1) -> Json:
    """`States.ArrayRange(first, last, step)`: the last is inclusive; the step defaults to 1.

    Raises:
        StateError: States.IntrinsicFailure for a step of 0, or above `MAX_RANGE` elements.
    """
    name = "States.ArrayRange"
    bounds = enumerate((first, last, step), 1)
    start, end, stride = (count_argument(profile, name, at, bound) for at, bound in bounds)
    if stride == 0:
        raise failure(name, "the step must not be 0")
    count = (end - start) // stride + 1
    if count > MAX_RANGE:
        raise failure(name, f"the range has more than {MAX_RANGE} elements")
    return [start + stride * index for index in range(count)]


def get_item(profile: Profile, items: Json, index: Json) -> Json:
    """`States.ArrayGetItem(array, i)`: from 0, a negative index from the end.

    AWS has no negative indices, nor does its profile; there any index into an empty array is null.

    Raises:
        StateError: States.IntrinsicFailure for an index outside of the array.
    """
    name = "States.ArrayGetItem"
    items = array(name, 1, items)
    place = count_argument(profile, name, 2, index) if profile.aws else integer(name, 2, index)
    lowest = 0 if profile.aws else -len(items)
    if profile.aws and not items and place >= 0:
        return None
    if not lowest <= place < len(items):
        raise failure(name, f"index {place} is outside an array of {len(items)} elements")
    return items[place]


def length(items: Json) -> Json:
    """`States.ArrayLength(array)`."""
    return len(array("States.ArrayLength", 1, items))


def unique(profile: Profile, frame: ExpressionFrame, items: Json) -> Json:
    """`States.ArrayUnique(array)`: the first of equal elements, in order.

    On AWS in the order of a hash set, in which 1 and 1.0 differ.
    """
    name = "States.ArrayUnique"
    check_bounds(name, items, profile.max_payload, frame.work)
    first: dict[Hashable, Json] = {}
    for item in array(name, 1, items):
        first.setdefault(identity(item, frame.work, profile.java_format), item)
    return sort_by_hash(first.values()) if profile.aws else list(first.values())


def concat(profile: Profile, *values: Json) -> Json:
    """`States.ArrayConcat(a, b, ...)`: arrays are joined, other values appended.

    Raises:
        StateError: States.DataLimitExceeded for too many elements.
    """
    # Each element takes at least two bytes of text; a loop could double the array without end.
    if sum(len(value) for value in values if type(value) is list) * 2 > profile.max_payload:
        raise StateError("States.DataLimitExceeded", "States.ArrayConcat: too many elements")
    joined: list[Json] = []
    for value in values:
        if type(value) is list:
            joined.extend(value)
        else:
            joined.append(value)
    return joined


MEMBER = 16
"""Smallest number of bytes of a copied member of an object or array."""
_BLANKS = " \t\r\n"
_LONG_INTEGER = lazy_pattern("[0-9]{19}")


def string_to_json(profile: Profile, text: Json) -> Json:
    """`States.StringToJson(s)`: the value of a JSON text; null for blank text.

    Raises:
        StateError: States.IntrinsicFailure for any other text.
    """
    name = "States.StringToJson"
    text = string(name, 1, text)
    if not text.strip(_BLANKS):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        aws_message = f"Cannot convert String to Json in {name}, caused by: {error}"
        raise failure(name, f"not JSON: {error}", aws_message) from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        check_bounds(name, value, profile.max_payload)
    # orjson reads integers beyond 64 bits as floats; they are rare, so found by a cheap look.
    return json.loads(text) if _LONG_INTEGER.search(text) else value


def json_to_string(profile: Profile, value: Json) -> Json:
    """`States.JsonToString(v)`: compact JSON text in the order of the keys, non-ASCII unescaped."""
    write = json_text if profile.java_format else compact
    text = text_of("States.JsonToString", value, profile.max_payload, write)
    return compact(text) if type(value) is str else text


def json_merge(profile: Profile, one: Json, other: Json, deep: Json) -> Json:
    """`States.JsonMerge(a, b, false)`: shallow, the second wins; deep merging is not supported.

    AWS refuses only true and treats anything else as false.

    Raises:
        StateError: States.IntrinsicFailure for a deep merge.
    """
    name = "States.JsonMerge"
    if deep is True or (deep is not False and not profile.aws):
        raise failure(name, "argument 3 must be false: only shallow merging is supported")
    return {**object_argument(name, 1, one), **object_argument(name, 2, other)}


def merge(profile: Profile, frame: ExpressionFrame, *objects: Json) -> Json:
    """`States.Merge(o, ...)`: merge deeply: arrays are joined, otherwise the later value wins.

    Null arguments are skipped.
    """
    name = "States.Merge"
    whole: Json = {}
    for position, value in enumerate(objects, 1):
        if value is not None:
            check_bounds(name, value, profile.max_payload, frame.work)
            whole = merge_deep(whole, object_argument(name, position, value), frame.work)
    return whole


def merge_deep(one: Json, other: Json, work: WorkMeter, level: int = 1) -> Json:
    """Return two values merged: objects recurse, arrays join, otherwise the later value wins.

    Raises:
        WorkExceeded: There are too many members, or too many common levels.
    """
    kind = type(other)
    if type(one) is not kind or (kind is not dict and kind is not list):
        return other
    work.enter(level)
    members = len(one) + len(other)
    work.spend(1 + members // 2)
    work.spend_bytes(MEMBER * members)
    if kind is list:
        return one + other
    below = level + 1
    both = {
        key: merge_deep(one[key], item, work, below) for key, item in other.items() if key in one
    }
    return {**one, **other, **both}


def pick(value: Json, *keys: Json) -> Json:
    """`States.Pick(o, key, ...)`: the listed members that exist, in the order listed."""
    members = object_argument("States.Pick", 1, value)
    wanted = [string("States.Pick", at, key) for at, key in enumerate(keys, 2)]
    return {key: members[key] for key in wanted if key in members}


def omit(value: Json, *keys: Json) -> Json:
    """`States.Omit(o, key, ...)`: the members except those listed."""
    members = object_argument("States.Omit", 1, value)
    unwanted = {string("States.Omit", at, key) for at, key in enumerate(keys, 2)}
    return {key: item for key, item in members.items() if key not in unwanted}


def coalesce(*values: Json) -> Json:
    """`States.Coalesce(a, ...)`: the first argument that is not null, else null."""
    return next((value for value in values if value is not None), None)
