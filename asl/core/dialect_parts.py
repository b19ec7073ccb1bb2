"""Parts of dialects that lower layers use: functions, finding codes, error names, history events.

A dialect declares them on its `asl.dialects.base.Dialect`. The registry of dialects is above the
layers that compile and check documents, so it is loaded by name, when a document needs a part.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

from asl.core.lazy import load_object

__all__ = ["DialectFunction", "DialectPart"]

REGISTRY: Final = "asl.dialects.registry"

T = TypeVar("T")


class DialectFunction(NamedTuple):
    """A function of JSONata that documents of a dialect use: pure, and bounded by its data.

    Attributes:
        signature: Types of its arguments and result, as in JSONata: `<xs?:o>`.
        call: The function. It gets as many arguments as the query has, and raises StateError.
        json: Whether it takes and returns JSON only, so that a query that consists of the call
            need not be evaluated.
    """

    signature: str
    call: Callable[..., Any]
    json: bool = False


class DialectPart(Generic[T]):
    """One attribute of all dialects.

    Args:
        attribute: Name of the attribute of `asl.dialects.base.Dialect`.
    """

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute

    def of_name(self, name: str) -> T | None:
        """Return the attribute of the dialect with this name, None if there is no such dialect."""
        return self._of(load_object(f"{REGISTRY}:find")(name))

    def of_namespace(self, namespace: str) -> T | None:
        """Return the attribute of the dialect with this namespace, None without one."""
        return self._of(load_object(f"{REGISTRY}:find_namespace")(namespace))

    def __iter__(self) -> Iterator[T]:
        """Yield the attributes of all dialects: of the package, then of installed packages."""
        for each in load_object(f"{REGISTRY}:all_dialects")():
            yield getattr(each, self.attribute)

    def _of(self, found: object) -> T | None:
        return None if found is None else getattr(found, self.attribute)
