"""Select the nodes of an indefinite path of RFC 9535, in document order."""

from collections.abc import Iterator

from asl.core.errors import StateError
from asl.core.values import Json
from asl.core.work import WorkExceeded
from asl.expr.paths.segments import Descend, Filter, PathEvaluation, Segment, Slice, Union, Wildcard

__all__ = ["children", "nodes_of", "select", "too_much_work"]


def select(segments: tuple[Segment, ...], start: Json, root: Json) -> list[Json]:
    """Return the nodes of segments.

    Args:
        segments: The segments of a path.
        start: The node where the path starts.
        root: The document that `$` names within filters.

    Raises:
        StateError: "States.Runtime" for a path that takes too many steps.
    """
    try:
        return nodes_of(segments, start, PathEvaluation(root))
    except WorkExceeded as exceeded:
        raise too_much_work(exceeded) from None


def too_much_work(exceeded: WorkExceeded) -> StateError:
    """Return the error of a path whose evaluation exceeds a limit."""
    return StateError("States.Runtime", f"A path cannot be evaluated: {exceeded}")


def nodes_of(segments: tuple[Segment, ...], start: Json, evaluation: PathEvaluation) -> list[Json]:
    """Return the nodes of segments within an evaluation; raises WorkExceeded."""
    nodes = [start]
    for segment in segments:
        nodes = _step(segment, nodes, evaluation)
        if not nodes:
            break
    return nodes


def _step(segment: Segment, nodes: list[Json], evaluation: PathEvaluation) -> list[Json]:
    evaluation.meter.spend(len(nodes))
    match segment:
        case str():
            return [n[segment] for n in nodes if type(n) is dict and segment in n]
        case int():
            return [n[segment] for n in nodes if type(n) is list and -len(n) <= segment < len(n)]
        case Wildcard():
            if len(nodes) == 1:
                return children(nodes[0], evaluation)
            return [child for n in nodes for child in children(n, evaluation)]
        case Slice(bounds):
            arrays = [n for n in nodes if type(n) is list]
            evaluation.meter.spend(sum(len(range(len(n))[bounds]) for n in arrays))
            return [child for n in arrays for child in n[bounds]]
        case Union(members):
            evaluation.meter.spend(len(nodes) * len(members))
            return [child for n in nodes for m in members for child in _step(m, [n], evaluation)]
        case Filter(test):
            return [c for n in nodes for c in children(n, evaluation) if test(c, evaluation)]
        case Descend():
            return list(_descendants(nodes, evaluation))
        case _:
            raise AssertionError(segment)  # a segment of AWS


def children(node: Json, evaluation: PathEvaluation) -> list[Json]:
    """Count and return the children of a node."""
    if type(node) is dict:
        evaluation.meter.spend(len(node))
        return list(node.values())
    if type(node) is list:
        evaluation.meter.spend(len(node))
        return node
    return []


def _descendants(nodes: list[Json], evaluation: PathEvaluation) -> Iterator[Json]:
    stack = nodes[::-1]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node, evaluation)))
