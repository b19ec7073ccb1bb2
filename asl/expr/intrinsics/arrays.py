"""Intrinsic functions on arrays (Specification 5.2)."""

from collections.abc import Hashable

from asl.core.errors import StateError
from asl.core.profile import Profile
from asl.core.values import Json, json_equal
from asl.expr.intrinsics.arguments import array, bounded, failure, integer
from asl.expr.intrinsics.numeric import rounded

MAX_RANGE = 1000
"""Elements that `States.ArrayRange` may return."""


def make(*items: Json) -> Json:
    """`States.Array(a, ...)`: the arguments as an array."""
    return list(items)


def partition(items: Json, size: Json) -> Json:
    """`States.ArrayPartition(array, n)`: chunks of n elements; the last may be shorter."""
    name = "States.ArrayPartition"
    items = array(name, 1, items)
    step = rounded(name, 2, size)
    if step < 1:
        raise failure(name, f"the chunk size must be positive, found {step}")
    return [items[start : start + step] for start in range(0, len(items), step)]


def contains(items: Json, wanted: Json) -> Json:
    """`States.ArrayContains(array, value)`: whether an element equals the value, as JSON."""
    return any(json_equal(item, wanted) for item in array("States.ArrayContains", 1, items))


def span(first: Json, last: Json, step: Json = 1) -> Json:
    """`States.ArrayRange(first, last, step)`: the last is inclusive; without a step it is 1."""
    name = "States.ArrayRange"
    start, end, stride = rounded(name, 1, first), rounded(name, 2, last), rounded(name, 3, step)
    if stride == 0:
        raise failure(name, "the step must not be 0")
    count = (end - start) // stride + 1
    if count > MAX_RANGE:
        raise failure(name, f"the range has more than {MAX_RANGE} elements")
    return [start + stride * index for index in range(count)]


def get_item(profile: Profile, items: Json, index: Json) -> Json:
    """`States.ArrayGetItem(array, i)`: counted from 0, a negative index from the end.

    AWS knows no negative index, nor does its profile.
    """
    name = "States.ArrayGetItem"
    items, place = array(name, 1, items), integer(name, 2, index)
    lowest = 0 if profile.aws else -len(items)
    if not lowest <= place < len(items):
        raise failure(name, f"index {place} is outside an array of {len(items)} elements")
    return items[place]


def length(items: Json) -> Json:
    """`States.ArrayLength(array)`."""
    return len(array("States.ArrayLength", 1, items))


def unique(profile: Profile, items: Json) -> Json:
    """`States.ArrayUnique(array)`: the first of equal elements, in order."""
    name = "States.ArrayUnique"
    bounded(name, items, profile.max_payload)
    first: dict[Hashable, Json] = {}
    for item in array(name, 1, items):
        first.setdefault(_identity(item), item)
    return list(first.values())


def _identity(value: Json) -> Hashable:
    """A key that is equal for equal JSON values only, so that each is looked up, not compared."""
    kind = type(value)
    if kind is list:
        return ("array", *map(_identity, value))
    if kind is dict:
        return frozenset((key, _identity(item)) for key, item in value.items())
    return ("boolean", value) if kind is bool else value


def concat(profile: Profile, *values: Json) -> Json:
    """`States.ArrayConcat(a, b, ...)`: arrays are spliced, other values appended."""
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
