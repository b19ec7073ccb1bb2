"""Object constructors `{...}`: on their own, and after an expression, to group its items."""

from dataclasses import dataclass

from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.javascript import UNDEFINED, Value
from asl.expr.jsonata.scopes import QueryRun, QueryScope
from asl.expr.jsonata.values import ITEM, Closure, ResultSequence


@dataclass(frozen=True, slots=True)
class ObjectPair:
    """A key and a value of an object; `name` is the key if it is constant."""

    key: Closure
    value: Closure
    name: str | None
    weight: int
    """Steps of the key and the value."""


def object_of(pairs: list[ObjectPair]) -> Closure:
    """Return `{...}` on its own: an object of the context item, or a group of its items."""
    names = [pair.name for pair in pairs]
    if None in names or len(set(names)) < len(names):
        return lambda item, scope: group(pairs, item, scope)
    members = [(str(pair.name), pair.value) for pair in pairs]

    def make(item: Value, scope: QueryScope) -> Value:
        if isinstance(item, list):
            return group(pairs, item, scope)
        scope.run.steps -= len(members)
        return {
            name: value
            for name, closure in members
            if (value := closure(item, scope)) is not UNDEFINED
        }

    return make


PAIR = 3
"""Steps of adding an item to a group."""


def group_by(closure: Closure, pairs: list[ObjectPair]) -> Closure:
    """Return an expression followed by `{...}`."""
    return lambda item, scope: group(pairs, closure(item, scope), scope)


def group(pairs: list[ObjectPair], value: Value, scope: QueryScope) -> Value:
    """Return one object: items with the same key are collected before its value is computed.

    Raises:
        QueryFault: T1003 for a key that is no string, D1009 for a key of two pairs.
    """
    items: list[Value] = value if isinstance(value, list) else [value]
    tuples = type(value) is ResultSequence and value.tuples
    run = scope.run
    run.spend(len(items) * sum(PAIR + pair.weight for pair in pairs))
    groups: dict[str, tuple[int, list[Value]]] = {}
    for item in items or ([] if tuples else [UNDEFINED]):
        inner = QueryScope(run, scope, dict(item)) if tuples else scope
        for index, pair in enumerate(pairs):
            key = pair.key(item[ITEM] if tuples else item, inner)
            if key is UNDEFINED:
                continue
            if type(key) is not str:
                raise fault("T1003", value=key)
            known = groups.setdefault(key, (index, []))
            if known[0] != index:
                raise fault("D1009", value=key)
            known[1].append(item)
    result: dict[str, Value] = {}
    for key, (index, members) in groups.items():
        if tuples:
            names = _merged(members, run)
            context = names.pop(ITEM)
            inner = QueryScope(run, scope, names)
        else:
            context, inner = _together(members, run), scope
        found = pairs[index].value(context, inner)
        if found is not UNDEFINED:
            result[key] = found
    return result


def _together(items: list[Value], run: QueryRun) -> Value:
    """Return the items of a group as the context of its value."""
    if len(items) == 1:
        return items[0]
    together: list[Value] = []
    for item in items:
        if isinstance(item, list):
            together += item
            run.hold(len(item))
        elif item is not UNDEFINED:
            together.append(item)
    return together


def _merged(tuples: list[Value], run: QueryRun) -> dict[str, Value]:
    """Return several tuples as one, with the values of each variable joined."""
    if len(tuples) == 1:
        return dict(tuples[0])
    return {
        name: _together([each.get(name, UNDEFINED) for each in tuples], run) for name in tuples[0]
    }
