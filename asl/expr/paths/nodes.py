"""Locate, replace and remove the nodes of a path."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from asl.core.values import Json
from asl.core.work import WorkExceeded
from asl.expr.paths.segments import (
    Descend,
    Filter,
    Path,
    PathEvaluation,
    Segment,
    Slice,
    Union,
    Wildcard,
)
from asl.expr.paths.selection import too_much_work

__all__ = ["Steps", "locate", "node_path", "remove_nodes", "replace_nodes"]

Steps: TypeAlias = tuple[str | int, ...]
"""The keys from the root to one node."""
Located: TypeAlias = tuple[Steps, Json]


def locate(path: Path, data: Json) -> list[Located]:
    """Return the nodes of a path in *data*, each with its steps.

    Raises:
        StateError: "States.Runtime" for a path that takes too many steps.
    """
    nodes: list[Located] = [((), data)]
    evaluation = PathEvaluation(data)
    try:
        for segment in path.segments:
            nodes = [each for node in nodes for each in _step(segment, node, evaluation)]
    except WorkExceeded as exceeded:
        raise too_much_work(exceeded) from None
    return nodes


def _step(segment: Segment, node: Located, evaluation: PathEvaluation) -> Iterator[Located]:
    steps, value = node
    # A place is as long as its path, so a step costs more the deeper it is.
    evaluation.meter.spend(1 + len(steps))
    match segment:
        case str():
            if type(value) is dict and segment in value:
                yield (*steps, segment), value[segment]
        case int():
            if type(value) is list and -len(value) <= segment < len(value):
                yield (*steps, segment % len(value)), value[segment]
        case Wildcard():
            yield from _children(node, evaluation)
        case Slice(bounds):
            if type(value) is list:
                evaluation.meter.spend(len(range(len(value))[bounds]) * (1 + len(steps)))
                yield from (((*steps, at), value[at]) for at in range(len(value))[bounds])
        case Union(members):
            for member in members:
                yield from _step(member, node, evaluation)
        case Filter(test):
            candidates = _children(node, evaluation)
            yield from (each for each in candidates if test(each[1], evaluation))
        case Descend():
            yield from _descendants(node, evaluation)


def _children(node: Located, evaluation: PathEvaluation) -> Iterator[Located]:
    steps, value = node
    if type(value) is dict or type(value) is list:
        evaluation.meter.spend(len(value) * (1 + len(steps)))
    if type(value) is dict:
        yield from (((*steps, key), each) for key, each in value.items())
    elif type(value) is list:
        yield from (((*steps, at), each) for at, each in enumerate(value))


def _descendants(node: Located, evaluation: PathEvaluation) -> Iterator[Located]:
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(_children(node, evaluation))))


def node_path(steps: Steps) -> str:
    """Return the path of one node as text."""
    parts = []
    for step in steps:
        if type(step) is int:
            parts.append(f"[{step}]")
        elif str(step).isidentifier():
            parts.append(f".{step}")
        else:
            quoted = str(step).replace("\\", "\\\\").replace("'", "\\'")
            parts.append(f"['{quoted}']")
    return "$" + "".join(parts)


def remove_nodes(data: Json, places: Iterable[Steps]) -> Json:
    """Return *data* without the nodes at *places*; an empty object without its root."""
    tree: Json = {}
    for steps in places:
        if not steps:
            return {}
        branch = tree
        for step in steps[:-1]:
            branch = branch.setdefault(step, {})
            if branch is None:
                break
        else:
            branch[steps[-1]] = None
    return _pruned(data, tree)


def _pruned(node: Json, tree: Json) -> Json:
    """Return a node without the parts marked by None in the tree."""
    if not tree:
        return node
    if type(node) is dict:
        return {
            key: _pruned(each, tree.get(key, _WHOLE))
            for key, each in node.items()
            if tree.get(key, _WHOLE) is not None
        }
    return [
        _pruned(each, tree.get(at, _WHOLE))
        for at, each in enumerate(node)
        if tree.get(at, _WHOLE) is not None
    ]


_WHOLE: Json = {}


def replace_nodes(segments: tuple[Segment, ...], start: Json, by: Json) -> Json:
    """Return *start* with *by* at every node of *segments*.

    Raises:
        WorkExceeded: The path takes too many steps.
    """
    return _Replacing(start, by).at(start, segments)


class _Replacing:
    def __init__(self, root: Json, by: Json) -> None:
        self.evaluation = PathEvaluation(root)
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
        """Yield the keys of a node that a segment selects."""
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
