"""Evaluate segments as Jayway JsonPath 2.0.0 does: depth first, node by node.

Unlike an RFC 9535 path, an indefinite one can fail: a member missing in an element fails the path,
unless a wildcard over an array precedes it. A segment is compiled into a closure that calls the
next one's; the last one collects.
"""

from collections.abc import Callable
from typing import TypeAlias

from asl.core.values import Json, excerpt
from asl.core.work import WorkMeter
from asl.expr.paths.jayway.failures import (
    MULTIPLE,
    ROOT,
    PathFailure,
    PathInvalid,
    PathNotFound,
    Trail,
    name_list,
    no_array,
    segments_text,
)
from asl.expr.paths.jayway.syntax import is_definite
from asl.expr.paths.segments import (
    ComputedSegment,
    Descend,
    Filter,
    PathEvaluation,
    Pick,
    Segment,
    Slice,
    Test,
    Union,
    Wildcard,
)

__all__ = ["Find", "compile_segments", "explain"]

Find: TypeAlias = Callable[[Json, WorkMeter], list[Json]]
"""Returns the nodes of a path in a document.

Raises PathNotFound, PathInvalid, or WorkExceeded."""


class _Run(PathEvaluation):
    """An evaluation with the nodes found so far."""

    __slots__ = ("nodes",)

    def __init__(self, root: Json, meter: WorkMeter) -> None:
        super().__init__(root, meter)
        self.nodes: list[Json] = []


_Step: TypeAlias = Callable[[Json, Trail, _Run], None]


def compile_segments(segments: tuple[Segment, ...]) -> Find:
    """Compile the segments of a path."""
    first = _compiled(segments)

    def find(document: Json, meter: WorkMeter) -> list[Json]:
        run = _Run(document, meter)
        first(document, ROOT, run)
        return run.nodes

    return find


def explain(segments: tuple[Segment, ...], document: Json) -> PathFailure | None:
    """Return why names and indices from 0 up cannot be followed, None if they can."""
    node, trail, run = document, ROOT, _Run(document, WorkMeter())
    for position, key in enumerate(segments):
        assert isinstance(key, str | int)
        fits = type(node) is (dict if isinstance(key, str) else list)
        if not fits or (key not in node if isinstance(key, str) else key >= len(node)):
            try:
                _compiled(segments[position:])(node, trail, run)
            except PathFailure as failure:
                return failure
        node, trail = node[key], (trail, key)
    return None


def _collect(node: Json, trail: Trail, run: _Run) -> None:
    run.nodes.append(node)


def _compiled(segments: tuple[Segment, ...]) -> _Step:
    """Compile from the end: a segment knows its successor, `..` also the one after."""
    after: _Step = _collect
    follow: _Step = _collect
    for at in reversed(range(len(segments))):
        after, follow = follow, _step(segments, at, follow, after)
    return follow


def _step(segments: tuple[Segment, ...], at: int, follow: _Step, after: _Step) -> _Step:
    match segments[at]:
        case str(name):
            return _member(name, segments, at, follow)
        case Pick(members):
            return _members(members, follow)
        case Wildcard():
            return _wildcard(segments[at + 1 :], follow)
        case Filter(test):
            return _filtered(test, segments[at:], follow)
        case Descend():
            return _scan(segments[at + 1], follow, after, leaf=at + 2 == len(segments))
        case _:
            return _elements(segments[at:], follow)


def _member(name: str, segments: tuple[Segment, ...], at: int, follow: _Step) -> _Step:
    last = at == len(segments) - 1
    # Where it may be missing: what the engine calls "upstream" is the path from the segment before.
    quiet = not last and not is_definite(segments[max(at - 1, 0) :])
    missing = "No results for path: " if last else "Missing property in path "

    def step(node: Json, trail: Trail, run: _Run) -> None:
        run.meter.spend()
        if type(node) is not dict:
            raise PathNotFound(f"Property ['{name}'] not found in path ", trail)
        if name in node:
            follow(node[name], (trail, name), run)
        elif not quiet:
            raise PathNotFound(missing, (trail, name))

    return step


def _members(names: tuple[str, ...], follow: _Step) -> _Step:
    names_listed = name_list(names)

    def step(node: Json, trail: Trail, run: _Run) -> None:
        run.meter.spend(1 + len(names))
        if type(node) is not dict:
            raise PathNotFound(f"Property {names_listed} not found in path ", trail)
        if follow is not _collect:
            raise PathInvalid(MULTIPLE, trail, names_listed)
        run.nodes.append({name: node[name] for name in names if name in node})

    return step


def _wildcard(rest: tuple[Segment, ...], follow: _Step) -> _Step:
    names = tuple(each for each in rest if isinstance(each, str))
    over_array = _column(names) if len(names) == len(rest) else _each(follow)

    def step(node: Json, trail: Trail, run: _Run) -> None:
        if type(node) is dict:
            run.meter.spend(1 + len(node))
            for key, child in node.items():
                follow(child, (trail, key), run)
        elif type(node) is list:
            run.meter.spend(1 + len(node))
            over_array(node, trail, run)

    return step


def _each(follow: _Step) -> _Step:
    def step(node: Json, trail: Trail, run: _Run) -> None:
        for index, child in enumerate(node):
            try:
                follow(child, (trail, index), run)
            except PathNotFound:
                continue

    return step


def _column(names: tuple[str, ...]) -> _Step:
    """Read the same members of every element, the most common wildcard."""

    def step(node: Json, trail: Trail, run: _Run) -> None:
        run.meter.spend(len(node) * len(names))
        if not names:
            run.nodes.extend(node)
            return
        for child in node:
            try:
                for name in names:
                    child = child[name]
            except (KeyError, TypeError):
                continue
            run.nodes.append(child)

    return step


def _filtered(test: Test, rest: tuple[Segment, ...], follow: _Step) -> _Step:
    def step(node: Json, trail: Trail, run: _Run) -> None:
        if type(node) is dict:
            run.meter.spend()
            if test(node, run):
                follow(node, trail, run)
        elif type(node) is list:
            run.meter.spend(1 + len(node))
            for index, child in enumerate(node):
                if test(child, run):
                    follow(child, (trail, index), run)
        else:
            raise PathInvalid(
                f"Filter: {segments_text(rest)} can not be applied to primitives. "
                f"Current context is: {excerpt(node)}"
            )

    return step


def _elements(segments: tuple[Segment, ...], follow: _Step) -> _Step:
    segment = segments[0]

    def step(node: Json, trail: Trail, run: _Run) -> None:
        if node is None:
            raise PathNotFound("The path ", trail, " is null")
        if type(node) is not list:
            raise PathInvalid(no_array(segments, node))
        for index in _indices(segment, len(node)):
            run.meter.spend()
            if not 0 <= index < len(node):
                words = "Index out of bounds when evaluating path "
                raise PathNotFound(words, (trail, index))
            follow(node[index], (trail, index), run)

    return step


def _indices(segment: Segment, length: int) -> "range | tuple[int, ...]":
    """Return the indices that a segment selects, including those beyond the array."""
    match segment:
        case int():
            return (segment,)
        case Union(members):
            return members  # type: ignore[return-value]  # indices only
        case ComputedSegment(offset):
            return (length + offset,)
        case Slice(slice(start=first, stop=None)):
            return range(max(0, first + length if first < 0 else first), length)
        case Slice(slice(start=None, stop=stop)):
            return range(min(length, stop + length if stop < 0 else stop))
        case Slice(slice(start=first, stop=stop)):
            return range(first, min(length, stop)) if length else range(0)
        case _:
            raise AssertionError(segment)


# --------------------------------------------------------------------------------------------
# `..`


def _scan(target: Segment, apply: _Step, after: _Step, *, leaf: bool) -> _Step:
    """Apply the next segment at every descendant, as the engine does.

    At an array it only matters whether the segment suits the array: if so, all of its elements are
    passed to the segment after the next.
    """
    suits = _suits(target)

    def step(node: Json, trail: Trail, run: _Run) -> None:
        todo = [(node, trail)]
        while todo:
            node, trail = todo.pop()
            if type(node) is dict:
                run.meter.spend(1 + len(node))
                below = [(child, (trail, key)) for key, child in node.items()]
                if suits(node, run):
                    apply(node, trail, run)
            elif type(node) is list:
                run.meter.spend(1 + len(node))
                below = [(child, (trail, index)) for index, child in enumerate(node)]
                if suits(node, run):
                    if leaf:
                        apply(node, trail, run)
                    else:
                        for child, place in below:
                            after(child, place, run)
            else:
                continue
            todo += reversed(below)

    return step


def _suits(target: Segment) -> Callable[[Json, _Run], bool]:
    match target:
        case str():
            return lambda node, run: type(node) is dict and target in node
        case Pick(members):
            return lambda node, run: type(node) is dict and all(m in node for m in members)
        case Wildcard():
            return lambda node, run: True
        case Filter(test):
            return test
        case Descend():
            return lambda node, run: False
        case _:
            return lambda node, run: type(node) is list
