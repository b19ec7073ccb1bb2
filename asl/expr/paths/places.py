"""Where the nodes of a path lie: their steps from the root, and data without some of them."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.paths.segments import Descend, Filter, Path, Segment, Slice, Union, Wildcard
from asl.expr.paths.select import MAX_NODES

__all__ = ["Steps", "located", "without", "written"]

Steps: TypeAlias = tuple[str | int, ...]
"""The way from the root to one node."""
Located: TypeAlias = tuple[Steps, Json]


def located(path: Path, data: Json) -> list[Located]:
    """Return the nodes of a path in *data*, each with its steps; none where nothing is there.

    Raises StateError("States.Runtime") for a path that matches a million nodes.
    """
    nodes: list[Located] = [((), data)]
    for segment in path.segments:
        following: list[Located] = []
        for node in nodes:
            for each in _step(segment, node, data):
                following.append(each)
                if len(following) > MAX_NODES:
                    raise StateError("States.Runtime", f"{path.text}: more than {MAX_NODES} nodes")
        nodes = following
    return nodes


def _step(segment: Segment, node: Located, root: Json) -> Iterator[Located]:
    steps, value = node
    match segment:
        case str():
            if type(value) is dict and segment in value:
                yield (*steps, segment), value[segment]
        case int():
            if type(value) is list and -len(value) <= segment < len(value):
                yield (*steps, segment % len(value)), value[segment]
        case Wildcard():
            yield from _children(node)
        case Slice(bounds):
            if type(value) is list:
                yield from (((*steps, at), value[at]) for at in range(len(value))[bounds])
        case Union(members):
            for member in members:
                yield from _step(member, node, root)
        case Filter(test):
            candidates = [node] if type(value) is dict else _children(node)
            yield from (each for each in candidates if test(each[1], root))
        case Descend():
            yield from _descendants(node)


def _children(node: Located) -> Iterator[Located]:
    steps, value = node
    if type(value) is dict:
        yield from (((*steps, key), each) for key, each in value.items())
    elif type(value) is list:
        yield from (((*steps, at), each) for at, each in enumerate(value))


def _descendants(node: Located) -> Iterator[Located]:
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(_children(node))))


def written(steps: Steps) -> str:
    """Write the path of one node."""
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


def without(data: Json, places: Iterable[Steps]) -> Json:
    """Return *data* without the nodes at *places*; without its root it is an empty object."""
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
    """Return a node without what the tree has None for."""
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
