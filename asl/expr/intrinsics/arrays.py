"""Intrinsic functions on arrays (Specification 5.2)."""

from collections.abc import Hashable

from asl.core.errors import StateError
from asl.core.java import java_text, sort_by_hash
from asl.core.profile import Profile
from asl.core.schemas import identity
from asl.core.values import Json, json_equal
from asl.expr.frame import Frame
from asl.expr.intrinsics.arguments import SMALL, array, bounded, failure, integer
from asl.expr.intrinsics.numeric import counted

MAX_RANGE = 1000
"""Elements that `States.ArrayRange` may return."""


def make(*items: Json) -> Json:
    """`States.Array(a, ...)`: the arguments as an array."""
    return list(items)


def partition(profile: Profile, items: Json, size: Json) -> Json:
    """`States.ArrayPartition(array, n)`: chunks of n elements; the last may be shorter."""
    name = "States.ArrayPartition"
    items = array(name, 1, items)
    step = counted(profile, name, 2, size)
    if step < 1:
        raise failure(name, f"the chunk size must be positive, found {step}")
    return [items[start : start + step] for start in range(0, len(items), step)]


def contains(profile: Profile, frame: Frame, items: Json, wanted: Json) -> Json:
    """`States.ArrayContains(array, value)`: whether an element equals the value, as JSON.

    AWS compares printed values, so 1 equals "1" there.
    """
    name = "States.ArrayContains"
    items = array(name, 1, items)
    if profile.aws:
        bounded(name, items, profile.max_payload, frame.work)
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
    """`States.ArrayRange(first, last, step)`: the last is inclusive; the step defaults to 1."""
    name = "States.ArrayRange"
    bounds = enumerate((first, last, step), 1)
    start, end, stride = (counted(profile, name, at, bound) for at, bound in bounds)
    if stride == 0:
        raise failure(name, "the step must not be 0")
    count = (end - start) // stride + 1
    if count > MAX_RANGE:
        raise failure(name, f"the range has more than {MAX_RANGE} elements")
    return [start + stride * index for index in range(count)]


def get_item(profile: Profile, items: Json, index: Json) -> Json:
    """`States.ArrayGetItem(array, i)`: from 0, a negative index from the end.

    AWS has no negative indices, nor does its profile; there any index into an empty array is null.
    """
    name = "States.ArrayGetItem"
    items = array(name, 1, items)
    place = counted(profile, name, 2, index) if profile.aws else integer(name, 2, index)
    lowest = 0 if profile.aws else -len(items)
    if profile.aws and not items and place >= 0:
        return None
    if not lowest <= place < len(items):
        raise failure(name, f"index {place} is outside an array of {len(items)} elements")
    return items[place]


def length(items: Json) -> Json:
    """`States.ArrayLength(array)`."""
    return len(array("States.ArrayLength", 1, items))


def unique(profile: Profile, frame: Frame, items: Json) -> Json:
    """`States.ArrayUnique(array)`: the first of equal elements, in order.

    On AWS in the order of a hash set, in which 1 and 1.0 differ.
    """
    name = "States.ArrayUnique"
    bounded(name, items, profile.max_payload, frame.work)
    first: dict[Hashable, Json] = {}
    for item in array(name, 1, items):
        first.setdefault(identity(item, frame.work, profile.java_format), item)
    return sort_by_hash(first.values()) if profile.aws else list(first.values())


def concat(profile: Profile, *values: Json) -> Json:
    """`States.ArrayConcat(a, b, ...)`: arrays are joined, other values appended."""
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
