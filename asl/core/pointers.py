"""JSON Pointers (RFC 6901): how they name a place in a value."""

from collections.abc import Iterable, Iterator

from asl.core.values import Json, index_of

__all__ = ["escape", "pointer_to", "resolve_pointer", "split_pointer", "tokens", "unescape"]


def escape(token: str) -> str:
    """One reference token of a JSON Pointer."""
    if "/" not in token and "~" not in token:
        return token
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """The text that `escape` has made a reference token of."""
    return token.replace("~1", "/").replace("~0", "~")


def tokens(pointer: str) -> Iterator[str]:
    """The names and positions on the way from the whole value, the outermost first."""
    return map(unescape, pointer.split("/")[1:])


def pointer_to(names: Iterable[str]) -> str:
    """The JSON Pointer of these names and positions; the inverse of `tokens`."""
    return "".join(f"/{escape(name)}" for name in names)


def split_pointer(pointer: str) -> tuple[str, str]:
    """The JSON Pointer of a value's holder, and the name of the value in it."""
    holder, _, token = pointer.rpartition("/")
    return holder, unescape(token)


def resolve_pointer(value: Json, pointer: str) -> Json:
    """The value at a JSON Pointer, None where there is none."""
    for token in tokens(pointer):
        if type(value) is list:
            index = index_of(token, value)
            value = None if index is None else value[index]
        else:
            value = value.get(token) if type(value) is dict else None
    return value
