"""Segments as the engine writes them in its messages: `['a'][0][*]`."""

from asl.core.values import Json, excerpt
from asl.expr.paths.segments import (
    Computed,
    Descend,
    Filter,
    Pick,
    Segment,
    Slice,
    Union,
    Wildcard,
)

__all__ = ["MULTIPLE", "listed", "no_array", "written"]

MULTIPLE = "Multi properties can only be used as path leafs: "


def no_array(segments: tuple[Segment, ...], value: Json) -> str:
    """Say that an index or a slice, and what follows it, is applied to a value that is no array."""
    return (
        f"Filter: {written(segments)} can only be applied to arrays. "
        f"Current context is: {excerpt(value)}"
    )


def listed(names: tuple[str, ...]) -> str:
    """Write several names: `['a', 'b']`."""
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def written(segments: tuple[Segment, ...]) -> str:
    """Write segments in the canonical form of the engine."""
    return "".join(map(_fragment, segments))


def _fragment(segment: Segment) -> str:
    match segment:
        case str():
            return f"['{segment}']"
        case int():
            return f"[{segment}]"
        case Pick(members):
            return listed(members)
        case Wildcard():
            return "[*]"
        case Descend():
            return ".."
        case Filter():
            return "[?]"
        case Computed(offset):
            return f"[@.size(){offset}]"
        case Slice(bounds):
            first, stop = ("" if n is None else n for n in (bounds.start, bounds.stop))
            return f"[{first}:{stop}]"
        case Union(members):
            return "[" + ",".join(map(str, members)) + "]"
