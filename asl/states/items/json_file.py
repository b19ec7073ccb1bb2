"""JSON: an array or an object, or the one that a JSON Pointer finds inside the file.

A large file is read item by item; the text after the items of a pointer is not read.
"""

from collections.abc import Iterator
from sys import maxsize
from typing import BinaryIO, Final

from asl.core.pointers import tokens
from asl.core.values import Json, index_of
from asl.states.items.base import DataFault, DataFormat, parse_json
from asl.states.items.json_stream import JsonStream
from asl.states.map_data import MapEntry

__all__ = ["map_entries", "read_json"]

NO_ITEMS: Final = "Attempting to map over non-iterable node."
NOWHERE = (
    "The provided ReaderConfig.ItemsPointer does not match any valid path in the JSON structure."
)
SMALL: Final = 1 << 21
"""Bytes of a file that is read as a whole: a mistake in it is found before anything runs."""


def read_json(file: BinaryIO, form: DataFormat) -> Iterator[Json]:
    """Yield the elements of an array, or the members of an object.

    Raises:
        DataFault: The file has no items, or is not JSON.
    """
    text = file.read(SMALL + 1)
    if len(text) > SMALL:
        return _streamed(JsonStream(file, max(form.longest, SMALL), text), form)
    value = parse_json(text, 1)
    if form.pointer:
        value = _found(value, form.pointer)
    if type(value) is list:
        return iter(value)
    if type(value) is dict and (form.pointer or not form.aws):
        return map_entries(value)
    raise DataFault(NO_ITEMS)


def map_entries(value: dict[str, Json]) -> Iterator[MapEntry]:
    """Yield the members of an object as items."""
    return (MapEntry(key, member) for key, member in value.items())


def _found(value: Json, pointer: str) -> Json:
    for name in tokens(pointer):
        if type(value) is dict and name in value:
            value = value[name]
        elif type(value) is list and (index := index_of(name, value)) is not None:
            value = value[index]
        else:
            raise _missing(name, pointer)
    return value


def _missing(name: str, pointer: str) -> DataFault:
    return DataFault(f"there is no {name!r}", f"ItemsPointer {pointer!r}", NOWHERE)


def _streamed(stream: JsonStream, form: DataFormat) -> Iterator[Json]:
    """Yield the items of a file that is read while they are."""
    for name in tokens(form.pointer):
        if not _enter(stream, name):
            raise _missing(name, form.pointer)
    opening = stream.peek()
    if opening not in (b"[", b"{") or (opening == b"{" and form.aws and not form.pointer):
        raise DataFault(NO_ITEMS)
    for key in _each(stream):
        value = _value(stream)
        yield value if key is None else MapEntry(key, value)
        stream.begin_item()
    if not form.pointer and stream.peek():
        stream.refuse("the text continues after its end")


def _enter(stream: JsonStream, name: str) -> bool:
    """Go on to the member of this name, or to the element at this index."""
    opening = stream.peek()
    if opening not in (b"[", b"{"):
        return False
    wanted = index_of(name, range(maxsize))
    for index, key in enumerate(_each(stream)):
        if key == name or (key is None and index == wanted):
            return True
        stream.skip()
    return False


def _each(stream: JsonStream) -> Iterator[str | None]:
    """Iterate over an array or object, with the stream before each value.

    Yields the key of the value, None in an array.
    """
    opening = stream.take(b"[", b"{")
    closing = b"]" if opening == b"[" else b"}"
    if stream.peek() == closing:
        stream.take(closing)
        return
    while True:
        if opening == b"[":
            yield None
        else:
            if stream.peek() != b'"':
                stream.refuse("a key in double quotes is expected")
            key: str = _value(stream)
            stream.take(b":")
            yield key
        if stream.take(b",", closing) == closing:
            return


def _value(stream: JsonStream) -> Json:
    place = stream.place()
    return parse_json(stream.value(), *place)
