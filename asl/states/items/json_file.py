"""JSON: an array or an object, or the one that a JSON Pointer finds inside the file.

The file is read as a whole: only JSON Lines and CSV can be larger than the memory.
"""

from collections.abc import Iterator
from typing import BinaryIO

from asl.core.pointers import tokens
from asl.core.values import Json, index_of
from asl.states.forks import Entry
from asl.states.items.base import Fault, Form, parsed

__all__ = ["members", "read_json"]

NOWHERE = (
    "The provided ReaderConfig.ItemsPointer does not match any valid path in the JSON structure."
)
LARGEST = 1 << 30
"""Bytes of a JSON file."""


def read_json(file: BinaryIO, form: Form) -> Iterator[Json]:
    """Yield the elements of an array, the members of an object."""
    text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise Fault(f"larger than {LARGEST >> 30} GiB, write JSON Lines instead", "the file")
    value = parsed(text, 1)
    del text
    if form.pointer:
        value = _found(value, form.pointer)
    if type(value) is list:
        return iter(value)
    if type(value) is dict and (form.pointer or not form.aws):
        return members(value)
    raise Fault("Attempting to map over non-iterable node.")


def members(value: dict[str, Json]) -> Iterator[Entry]:
    """Yield the members of an object as items."""
    return (Entry(key, member) for key, member in value.items())


def _found(value: Json, pointer: str) -> Json:
    for name in tokens(pointer):
        if type(value) is dict and name in value:
            value = value[name]
        elif type(value) is list and (index := index_of(name, value)) is not None:
            value = value[index]
        else:
            raise Fault(f"there is no {name!r}", f"ItemsPointer {pointer!r}", NOWHERE)
    return value
