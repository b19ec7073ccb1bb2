"""Intrinsic functions on objects and on JSON text (Specification 5.2, 5.3)."""

import json
import re

import orjson

from asl.core.java import json_text
from asl.core.profile import Profile
from asl.core.values import MAX_DEPTH, Json, compact
from asl.core.work import WorkMeter
from asl.expr.frame import Frame
from asl.expr.intrinsics.arguments import bounded, failure, mapping, string, text_of

MEMBER = 16
"""Smallest number of bytes of a copied member of an object or array."""
_BLANKS = " \t\r\n"
_LONG_INTEGER = re.compile("[0-9]{19}")


def string_to_json(profile: Profile, text: Json) -> Json:
    """`States.StringToJson(s)`: the value of a JSON text; null for blank text."""
    name = "States.StringToJson"
    text = string(name, 1, text)
    if not text.strip(_BLANKS):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        told = f"Cannot convert String to Json in {name}, caused by: {error}"
        raise failure(name, f"not JSON: {error}", told) from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        bounded(name, value, profile.max_payload)
    # orjson reads integers beyond 64 bits as floats; they are rare, so found by a cheap look.
    return json.loads(text) if _LONG_INTEGER.search(text) else value


def json_to_string(profile: Profile, value: Json) -> Json:
    """`States.JsonToString(v)`: compact JSON text, key order kept, non-ASCII unescaped."""
    write = json_text if profile.java_format else compact
    text = text_of("States.JsonToString", value, profile.max_payload, write)
    return compact(text) if type(value) is str else text


def json_merge(profile: Profile, one: Json, other: Json, deep: Json) -> Json:
    """`States.JsonMerge(a, b, false)`: shallow, the second wins; deep merging is not supported.

    AWS refuses only true and treats anything else as false.
    """
    name = "States.JsonMerge"
    if deep is True or (deep is not False and not profile.aws):
        raise failure(name, "argument 3 must be false: only shallow merging is supported")
    return {**mapping(name, 1, one), **mapping(name, 2, other)}


def merge(profile: Profile, frame: Frame, *objects: Json) -> Json:
    """`States.Merge(o, ...)`: objects are merged deeply, arrays joined, otherwise the later value
    wins.

    Null arguments are skipped.
    """
    name = "States.Merge"
    whole: Json = {}
    for position, value in enumerate(objects, 1):
        if value is not None:
            bounded(name, value, profile.max_payload, frame.work)
            whole = merged(whole, mapping(name, position, value), frame.work)
    return whole


def merged(one: Json, other: Json, work: WorkMeter, level: int = 1) -> Json:
    """Return two values merged deeply: objects recurse, arrays join, otherwise the later value
    wins.

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
    both = {key: merged(one[key], item, work, below) for key, item in other.items() if key in one}
    return {**one, **other, **both}


def pick(value: Json, *keys: Json) -> Json:
    """`States.Pick(o, key, ...)`: the listed members that exist, in the order listed."""
    members = mapping("States.Pick", 1, value)
    wanted = [string("States.Pick", at, key) for at, key in enumerate(keys, 2)]
    return {key: members[key] for key in wanted if key in members}


def omit(value: Json, *keys: Json) -> Json:
    """`States.Omit(o, key, ...)`: the members except those listed."""
    members = mapping("States.Omit", 1, value)
    unwanted = {string("States.Omit", at, key) for at, key in enumerate(keys, 2)}
    return {key: item for key, item in members.items() if key not in unwanted}


def coalesce(*values: Json) -> Json:
    """`States.Coalesce(a, ...)`: the first argument that is not null, else null."""
    return next((value for value in values if value is not None), None)
