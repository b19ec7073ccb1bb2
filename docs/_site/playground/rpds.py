"""`rpds` for the browser, as far as jsonschema and referencing use it: copies of dictionaries."""

from collections.abc import Iterable, Mapping
from typing import Any


class HashTrieMap(dict[Any, Any]):
    """A mapping whose methods return changed copies."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    @classmethod
    def convert(cls, value: Mapping[Any, Any]) -> "HashTrieMap":
        """Return a mapping of this type."""
        return value if isinstance(value, cls) else cls(value)

    def insert(self, key: Any, value: Any) -> "HashTrieMap":
        """Return a copy with a member."""
        return type(self)({**self, key: value})

    def remove(self, key: Any) -> "HashTrieMap":
        """Return a copy without a member.

        Raises:
            KeyError: There is none.
        """
        copy = type(self)(self)
        del copy[key]
        return copy

    def update(self, *others: Any, **members: Any) -> "HashTrieMap":  # type: ignore[override]
        """Return a copy with the members of others."""
        copy = dict(self)
        copy.update(*others, **members)
        return type(self)(copy)


class HashTrieSet(frozenset[Any]):
    """A set whose methods return changed copies."""

    def insert(self, value: Any) -> "HashTrieSet":
        """Return a copy with a value."""
        return type(self)(self | {value})

    def discard(self, value: Any) -> "HashTrieSet":
        """Return a copy without a value."""
        return type(self)(self - {value})

    def update(self, *others: Iterable[Any]) -> "HashTrieSet":
        """Return a copy with the values of others."""
        return type(self)(self.union(*others))


class List(tuple[Any, ...]):
    """A list that grows at its front."""

    def push_front(self, value: Any) -> "List":
        """Return a list that begins with a value."""
        return type(self)((value, *self))
