"""JSON Pointers (RFC 6901)."""

from collections.abc import Iterable, Iterator

from asl.core.values import Json, index_of

__all__ = ["escape", "pointer_to", "resolve_pointer", "split_pointer", "tokens", "unescape"]


def escape(token: str) -> str:
    """Return a name as a reference token of a JSON Pointer."""
    if "/" not in token and "~" not in token:
        return token
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """Return the name of a reference token."""
    return token.replace("~1", "/").replace("~0", "~")


def tokens(pointer: str) -> Iterator[str]:
    """Return the names and positions of a pointer, the outermost first."""
    return map(unescape, pointer.split("/")[1:])


def pointer_to(names: Iterable[str]) -> str:
    """Return the JSON Pointer of names and positions; the inverse of `tokens`."""
    return "".join(f"/{escape(name)}" for name in names)


def split_pointer(pointer: str) -> tuple[str, str]:
    """Return the pointer of the parent and the name of the last member."""
    holder, _, token = pointer.rpartition("/")
    return holder, unescape(token)


def resolve_pointer(value: Json, pointer: str) -> Json:
    """Return the value at a JSON Pointer, None if there is none."""
    for token in tokens(pointer):
        if type(value) is list:
            index = index_of(token, value)
            value = None if index is None else value[index]
        else:
            value = value.get(token) if type(value) is dict else None
    return value
