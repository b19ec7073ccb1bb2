"""JSON values: equality, size and copies."""

import json
from collections.abc import Callable, Collection, Sized
from gc import is_tracked
from math import isfinite
from typing import Any, Final, TypeAlias

import orjson

from asl.core.errors import NotJson, StateError, too_large
from asl.core.lazy import lazy_pattern

Json: TypeAlias = Any
"""Any JSON value: None, bool, int, float, str, list or dict with str keys."""

PLAIN_MEMBERS = 32
PLAIN_LENGTH = 256
"""Size of a small object: below every size limit."""
MAX_DEPTH = 200
"""Levels of containers in a value that enters an execution."""
MODERATE = 64 * 1024
"""Lower bound of a text (see `_is_moderate`) above which it is not made without measuring."""
EXTENSIVE = 1024 * 1024
"""The same for a text that is made to measure it: visiting all of the value takes longer."""
MANY = 1000
"""Parts on a level above which shared parts are searched."""
FEW = 64
"""Times that one part may occur in a container whose text is made to count it."""
PIECE: Final = 64 * 1024
"""Characters of a text that are measured together."""
FOREIGN = 16 * 1024
"""The same for a value of foreign code, whose longer texts are better shared than read again."""

MAX_DIGITS = 4000
"""Digits of an integer: Python refuses to convert much longer ones."""

MAX_INTEGER = 10**MAX_DIGITS - 1

_LEAST, _MOST = -(2**63), 2**63 - 1
_NUMBERS = (int, float)
SURROGATE = lazy_pattern("[\ud800-\udfff]")


class Opaque(str):
    """A string whose final value is unknown: a deployment fills in a part of it."""

    __slots__ = ()


_NAMES = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    Opaque: "string",
    list: "array",
    dict: "object",
}


def is_number(value: Json) -> bool:
    """Return whether the value is a JSON number; booleans are not."""
    return isinstance(value, _NUMBERS) and type(value) is not bool


def is_integer(value: Json) -> bool:
    """Return whether the value is a JSON number without a fraction, such as 3 and 3.0."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def type_name(value: Json) -> str:
    """Return the JSON name of the value's type."""
    return _NAMES[type(value)]


def compact(value: Json) -> str:
    """Return the value as JSON text without blanks; key order and non-ASCII characters are kept."""
    return encode(value).decode()


def encode(value: Json) -> bytes:
    """Return the text of `compact` in UTF-8."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # integers beyond 64 bits, or deeper than orjson goes
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def replace_surrogates(text: str) -> str:
    """Return the text with a question mark for each lone surrogate."""
    return text.encode("utf-8", "replace").decode()


def index_of(step: str, items: Sized) -> int | None:
    """Return the list index that a text of digits names, None if there is no such item."""
    # No list is longer, and Python refuses to read very long numbers.
    if len(step) > MAX_DIGITS or not (step.isascii() and step.isdecimal()):
        return None
    index = int(step)
    return index if index < len(items) else None


def json_equal(one: Json, other: Json) -> bool:
    """Return deep JSON equality: 1 equals 1.0, true differs from 1, key order is ignored."""
    todo = [(one, other)]
    seen: set[tuple[int, int]] = set()
    while todo:
        a, b = todo.pop()
        pair = (id(a), id(b))
        if a is b or pair in seen:
            continue
        if type(a) is dict:
            if type(b) is not dict or a.keys() != b.keys():
                return False
            seen.add(pair)
            todo.extend((item, b[key]) for key, item in a.items())
        elif type(a) is list:
            if type(b) is not list or len(a) != len(b):
                return False
            seen.add(pair)
            todo.extend(zip(a, b, strict=True))
        elif (type(a) is bool) is not (type(b) is bool) or a != b:
            return False
    return True


class _Close:
    """A stack entry of `measure`: the end of a container, and the count at its start."""

    __slots__ = ("container", "start")

    def __init__(self, container: int, start: int) -> None:
        self.container = container
        self.start = start


def measure(value: Json, limit: int) -> int:
    """Return the length of the value's compact JSON text in UTF-8 bytes.

    Exact up to `limit`; beyond it some number above the limit is returned. A shared container is
    visited once, so the cost is bounded by the size in memory.
    """
    total = 0
    sizes: dict[int, int | None] = {}
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is _Close:
            sizes[item.container] = total - item.start
        elif kind is not dict and kind is not list:
            total += _text_size(item) if kind is str else len(encode(item))
        elif id(item) in sizes:
            size = sizes[id(item)]
            if size is None:  # the container holds itself: no text is long enough
                return limit + 1
            total += size
        else:
            members = item.values() if kind is dict else item
            if not {dict, list}.isdisjoint(map(type, members)):
                sizes[id(item)] = None
                todo.append(_Close(id(item), total))
                todo.extend(members)
                total += 1 + len(item)
                if kind is dict:  # a list of the keys has one comma less than there are colons
                    total += len(encode(list(item))) - 1
            else:
                sizes[id(item)] = size = _flat_size(item)
                total += size
        if total > limit:
            return total
    return total


def _flat_size(container: Json) -> int:
    """Return the text length of a container without inner containers."""
    members = container.values() if type(container) is dict else container
    long = [each for each in members if type(each) is str and len(each) > PIECE]
    if not long:
        return len(encode(container))
    short = [each for each in members if type(each) is not str or len(each) <= PIECE]
    size = len(encode(short)) + sum(_text_size(each) + 1 for each in long)
    if not short:  # one comma less
        size -= 1
    return size + len(encode(list(container))) - 1 if type(container) is dict else size


def _text_size(text: str) -> int:
    """Return the length of a text as JSON.

    A long one is measured in pieces to save the memory of its copy.
    """
    if len(text) <= PIECE:
        return len(encode(text))
    pieces = (text[start : start + PIECE] for start in range(0, len(text), PIECE))
    return 2 + sum(len(encode(piece)) - 2 for piece in pieces)


def excerpt(value: Json, limit: int = 8192) -> str:
    """Return the value as compact JSON for a message; a description if it is too large or deep."""
    if fits(value, limit):
        return compact(value)
    return f"({type_name(value)} too large to be shown)"


def fits(value: Json, limit: int) -> bool:
    """Return whether the value has at most *limit* bytes of compact JSON and a finite depth."""
    if type(value) is dict and not is_tracked(value):
        return _flat_size(value) <= limit
    if _is_moderate(value, EXTENSIVE):
        return len(encode(value)) <= limit
    return not deeper_than(value, MAX_DEPTH) and measure(value, limit) <= limit


def _is_moderate(value: Json, most: int = MODERATE) -> bool:
    """Return whether it is safe to make the JSON text: shared parts can make it arbitrarily long.

    Adds up a lower bound of the text level by level, and stops once it exceeds *most*, or where
    many parts of a level are shared. A value that nests too deep is not moderate.
    """
    kind = type(value)
    if kind is not dict and kind is not list:
        return kind is not str or len(value) <= most
    total, level = 0, [value]
    for _ in range(MAX_DEPTH):
        inner: list[Json] = []
        for item in level:
            is_object = type(item) is dict
            members = item.values() if is_object else item
            few = 2 < len(item) <= FEW  # of one or two, to walk through them takes no longer
            if not is_tracked(item) or (few and not any(map(is_tracked, members))):
                total += len(encode(item))  # its text is no longer than FEW times one of its parts
            else:
                total += 1 + (len("".join(item)) if is_object else len(item))
                if total > most:
                    return False
                for member in members:
                    kind = type(member)
                    if kind is str:
                        total += len(member)
                    elif kind is dict or kind is list:
                        inner.append(member)
            if total > most:
                return False
        if not inner:
            return True
        if len(inner) > MANY and len(set(map(id, inner))) < len(inner):
            return False
        level = inner
    return False


def has_more_values(value: Json, most: int) -> bool:
    """Return whether a value holds more than *most* values, itself included."""
    count, rest = 1, [value]
    while rest and count <= most:
        item = rest.pop()
        if isinstance(item, (dict, list)):
            count += len(item)
            if count <= most:
                rest.extend(item.values() if isinstance(item, dict) else item)
    return count > most


def deeper_than(value: Json, limit: int) -> bool:
    """Return whether containers nest more than *limit* levels; shared parts count once a level."""
    level = [value] if type(value) is dict or type(value) is list else []
    for _ in range(limit):
        inner: dict[int, Json] = {}
        for node in level:
            for child in node.values() if type(node) is dict else node:
                if type(child) is dict or type(child) is list:
                    inner[id(child)] = child
        if not inner:
            return False
        level = list(inner.values())
    return True


def copy_foreign(value: Json) -> Json:
    """Return an independent copy of a value that comes from foreign code.

    Raises:
        NotJson: The value has no JSON form; the error names the place and Python type. This holds
            for tuples, sets, bytes, dates, subclasses of the plain types, other keys than strings,
            NaN, infinities, lone surrogates, huge integers, cycles and containers nested beyond
            `MAX_DEPTH`.
    """
    try:
        return _copied(value, 0, {})
    except _Foreign as foreign:
        place = "$" + "".join(reversed(foreign.steps))
        raise NotJson(place, foreign.found, foreign.reason) from None


def deep_copy(value: Json) -> Json:
    """Return an independent copy of a JSON value of ours, whatever its size."""
    kind = type(value)
    if kind is not dict and kind is not list:
        return value
    if _is_moderate(value):  # its text is the fastest way to a copy
        try:
            return orjson.loads(orjson.dumps(value))
        except orjson.JSONEncodeError:  # integers beyond 64 bits, half a character
            pass
    from copy import deepcopy

    return deepcopy(value)


def copy_for_agent(value: Json, limit: int, state: str) -> Json:
    """Return a copy of a JSON value of ours for foreign code that may keep or change it.

    Args:
        value: The value.
        limit: The allowed bytes of compact JSON.
        state: The name of the state, for the error.

    Raises:
        StateError: The value is too large or too deep.
    """
    # What the garbage collector does not follow is flat: the usual payload, whatever its texts. So
    # are the members of many others, and a text of few such members is safe to make.
    if type(value) is dict:
        flat = not is_tracked(value)
        if flat or (len(value) <= FEW and not any(map(is_tracked, value.values()))):
            try:
                text = orjson.dumps(value)
                if len(text) <= limit:
                    return value.copy() if flat else orjson.loads(text)
            except orjson.JSONEncodeError:  # integers beyond 64 bits
                pass
    return _handed_over(value, limit, state)


def _handed_over(value: Json, limit: int, state: str) -> Json:
    """Copy through the JSON text, which gives the exact size and is the fastest."""
    if _is_moderate(value):
        try:
            text = orjson.dumps(value)
        except orjson.JSONEncodeError:  # integers beyond 64 bits
            text = b""
        if text and len(text) <= limit:
            return orjson.loads(text)
    try:
        return copy_result(value, limit, state)
    except NotJson as error:  # only its depth can be wrong: it was made of JSON
        raise StateError("States.Runtime", f"the input of the agent: {error}") from None


class _Foreign(Exception):
    """A part without JSON form, found while copying; `steps` collects its path inside out."""

    def __init__(self, found: object, reason: str) -> None:
        super().__init__(reason)
        self.found = type(found).__name__
        self.reason = reason
        self.steps: list[str] = []


def copy_result(
    value: Json, limit: int, state: str, count: Callable[[int], object] | None = None
) -> Json:
    """Return a copy of the result of foreign code.

    Args:
        value: The result.
        limit: The allowed bytes of compact JSON.
        state: The name of the state, for the error.
        count: Receives the number of bytes.

    Raises:
        NotJson: The value has no JSON form, as for `copy_foreign`.
        StateError: "States.DataLimitExceeded" for a value over the limit.
    """
    try:
        # Its text has the exact size, and reading that again is the fastest way to a copy.
        plain = _room_left((value,), FOREIGN, MAX_DEPTH) >= 0
        text = orjson.dumps(value, None, _EXACT) if plain else None
    except TypeError:  # a key that is no text, half a character, an integer beyond 64 bits
        text = None
    if text is not None and len(text) <= limit:
        if count is not None:
            count(len(text))
        flat = type(value) is dict and not is_tracked(value)
        return value.copy() if flat else orjson.loads(text)
    copy = copy_foreign(value)
    size = measure(copy, limit)
    if size > limit:
        raise too_large(state)
    if count is not None:
        count(size)
    return copy


_EXACT = orjson.OPT_PASSTHROUGH_SUBCLASS
"""Refuse keys that are not plain strings."""


def _room_left(members: Collection[Json], limit: int, depth: int) -> int:
    """Return the part of *limit* that foreign values leave, counted as in `_is_moderate`.

    Negative if none is left, or if a value may not be JSON. Raises TypeError for a key that is no
    text.
    """
    limit -= 1 + len(members)
    if limit < 0 or depth < 0:
        return -1
    for member in members:
        kind = type(member)
        if kind is str:
            limit -= len(member)
        elif kind is int or kind is bool or member is None:
            continue
        elif kind is dict:
            limit = _room_left(member.values(), limit - len("".join(member)), depth - 1)
        elif kind is list:
            limit = _room_left(member, limit, depth - 1)
        elif kind is not float or not isfinite(member):
            return -1
    return limit


def plain_copy(value: Json) -> dict[str, Json] | None:
    """Return a copy of a small flat object of plain values, None for any other value."""
    if type(value) is not dict or len(value) > PLAIN_MEMBERS:
        return None
    for key, item in value.items():
        if type(key) is not str or not key.isascii():
            return None
        kind = type(item)
        if kind is str:
            if not item.isascii() or len(item) > PLAIN_LENGTH:
                return None
        elif kind is bool or item is None:
            continue
        elif kind is int:
            if not _LEAST <= item <= _MOST:
                return None
        elif kind is not float or not isfinite(item):
            return None
    return value.copy()


def _copied(value: Json, depth: int, seen: dict[int, tuple[int, Json]]) -> Json:
    """Copy a value at a depth; `seen` holds the containers copied so far."""
    kind = type(value)
    if kind is dict:
        return plain_copy(value) or _container(value, depth, seen)
    return _container(value, depth, seen) if kind is list else _scalar(value)


def _container(value: Json, depth: int, seen: dict[int, tuple[int, Json]]) -> Json:
    if depth >= MAX_DEPTH:
        raise _Foreign(value, f"nested deeper than {MAX_DEPTH} levels, or within itself")
    known = seen.get(id(value))
    if known is not None and known[0] >= depth:  # copied before, and no less deep
        return known[1]
    is_dict = type(value) is dict
    copy: Json = {} if is_dict else []
    step: object = None
    try:
        for step, item in value.items() if is_dict else enumerate(value):
            if is_dict:
                _check_key(step)
                copy[step] = _copied(item, depth + 1, seen)
            else:
                copy.append(_copied(item, depth + 1, seen))
    except _Foreign as foreign:
        foreign.steps.append(_step(step))
        raise
    seen[id(value)] = depth, copy
    return copy


def _step(key: object) -> str:
    try:
        return f"[{key!r}]"
    except Exception:  # foreign code again: even the text of its key may fail
        return f"[{type(key).__name__}]"


def _check_key(key: object) -> None:
    if type(key) is not str:
        raise _Foreign(key, "a JSON object's key must be a plain string")
    _scalar(key)


AWAITS: Final = "await it first, in an async function"


def _scalar(value: Json) -> Json:
    kind = type(value)
    if kind is str:
        if not value.isascii() and SURROGATE.search(value):
            raise _Foreign(value, "a lone surrogate is not a character")
    elif kind is float:
        if not isfinite(value):
            raise _Foreign(value, f"{value} is not a JSON number")
    elif kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise _Foreign(value, f"an integer of more than {MAX_DIGITS} digits")
    elif kind is not bool and value is not None:
        waits = hasattr(kind, "__await__")
        raise _Foreign(value, AWAITS if waits else "not a JSON value")
    return value
