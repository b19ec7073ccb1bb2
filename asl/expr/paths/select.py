"""Selecting the nodes of an indefinite path, in document order."""

from collections.abc import Iterator

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.paths.segments import Descend, Filter, Pick, Segment, Slice, Union, Wildcard

__all__ = ["select"]

MAX_NODES = 1_000_000
"""Nodes that one evaluation may hold: the bound on `$..*..*`."""


def select(segments: tuple[Segment, ...], start: Json, root: Json) -> list[Json]:
    """Return the nodes that *segments* reach from *start*; *root* is `$` inside filters.

    Raises StateError("States.Runtime") when more than `MAX_NODES` would have to be held.
    """
    nodes = [start]
    for segment in segments:
        nodes = _step(segment, nodes, root)
        if len(nodes) > MAX_NODES:
            raise StateError("States.Runtime", f"a path matched more than {MAX_NODES} nodes")
        if not nodes:
            break
    return nodes


def _step(segment: Segment, nodes: list[Json], root: Json) -> list[Json]:
    match segment:
        case str():
            return [n[segment] for n in nodes if type(n) is dict and segment in n]
        case int():
            return [n[segment] for n in nodes if type(n) is list and -len(n) <= segment < len(n)]
        case Wildcard():
            return [child for n in nodes for child in _children(n)]
        case Slice(bounds):
            return [child for n in nodes if type(n) is list for child in n[bounds]]
        case Union(members):
            return [child for n in nodes for m in members for child in _step(m, [n], root)]
        case Pick(members):
            return [{m: n[m] for m in members if m in n} for n in nodes if type(n) is dict]
        case Filter(test):
            return [child for n in nodes for child in _candidates(n) if test(child, root)]
        case Descend():
            return list(_descendants(nodes))


def _children(node: Json) -> list[Json]:
    if type(node) is dict:
        return list(node.values())
    return node if type(node) is list else []


def _candidates(node: Json) -> list[Json]:
    # A filter behind a single object tests that object, as AWS's path engine does.
    return [node] if type(node) is dict else _children(node)


def _descendants(nodes: list[Json]) -> Iterator[Json]:
    stack = nodes[::-1]
    count = 0
    while stack:
        node = stack.pop()
        count += 1
        if count > MAX_NODES:
            raise StateError("States.Runtime", f"a path walked over more than {MAX_NODES} nodes")
        yield node
        stack.extend(reversed(_children(node)))
