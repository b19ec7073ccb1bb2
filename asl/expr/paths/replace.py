"""Replacing the nodes that a path reaches, in a copy."""

from collections.abc import Iterator

from asl.core.values import Json
from asl.expr.paths.segments import (
    Descend,
    Evaluation,
    Filter,
    Segment,
    Slice,
    Union,
    Wildcard,
)

__all__ = ["replaced"]


def replaced(segments: tuple[Segment, ...], start: Json, by: Json) -> Json:
    """Return *start* with *by* at every node that *segments* reach; raises WorkExceeded."""
    return _Replacing(start, by).at(start, segments)


class _Replacing:
    def __init__(self, root: Json, by: Json) -> None:
        self.evaluation = Evaluation(root)
        self.by = by

    def at(self, node: Json, segments: tuple[Segment, ...]) -> Json:
        self.evaluation.meter.spend()
        if not segments:
            return self.by
        segment, rest = segments[0], segments[1:]
        if isinstance(segment, Descend):
            here = self.at(node, rest)
            return self._put(here, _keys(here), segments) if type(here) is type(node) else here
        return self._put(node, self._reached(segment, node), rest)

    def _put(self, node: Json, keys: Iterator[str | int], segments: tuple[Segment, ...]) -> Json:
        copy: Json = None
        for key in keys:
            new = self.at(node[key], segments)
            if new is not node[key]:
                if copy is None:
                    copy = node.copy()
                copy[key] = new
        return node if copy is None else copy

    def _reached(self, segment: Segment, node: Json) -> Iterator[str | int]:
        """Yield the members of a node that a segment reaches."""
        match segment:
            case str():
                if type(node) is dict and segment in node:
                    yield segment
            case int():
                if type(node) is list and -len(node) <= segment < len(node):
                    yield segment
            case Wildcard():
                yield from _keys(node)
            case Slice(bounds):
                if type(node) is list:
                    yield from range(*bounds.indices(len(node)))
            case Union(members):
                for member in dict.fromkeys(members):
                    yield from self._reached(member, node)
            case Filter(test):
                for key in _keys(node):
                    self.evaluation.meter.spend()
                    if test(node[key], self.evaluation):
                        yield key


def _keys(node: Json) -> Iterator[str | int]:
    if type(node) is dict:
        yield from list(node)
    elif type(node) is list:
        yield from range(len(node))
