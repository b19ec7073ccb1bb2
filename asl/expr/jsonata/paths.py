"""Paths: steps that map over items, filters, bound variables.

A step is applied to every item of the sequence before it, and the results are flattened into one
sequence. Once a step binds a variable (`@$v`, `#$i`) or is the parent of a later `%`, the path
carries *tuples*: dicts with the item at `@` and the bound variables next to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor
from typing import Any

from asl.expr.jsonata.grouping import ObjectPair, group
from asl.expr.jsonata.javascript import UNDEFINED, Value
from asl.expr.jsonata.scopes import QueryRun, QueryScope
from asl.expr.jsonata.sorting import SortTerm, sort_items
from asl.expr.jsonata.values import (
    ITEM,
    Closure,
    ConstructedArray,
    ResultSequence,
    are_numbers,
    as_list,
    boolean,
    collapse,
    is_number,
)


@dataclass(frozen=True, slots=True)
class PathFilter:
    """`[...]` after a step: a constant index, or a predicate with its weight."""

    predicate: Closure
    weight: int
    index: int | float | None


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a path; stages are filters, or the name of an index variable."""

    closure: Closure
    weight: int
    stages: list[PathFilter | str]
    terms: list[SortTerm] | None
    focus: str | None
    index: str | None
    ancestor: str | None
    tuples: bool
    constructs: bool


# Names -------------------------------------------------------------------------------------------


def member(value: Value, name: str, run: QueryRun) -> Value:
    """Return a member of an object, or those of the objects in an array."""
    if type(value) is dict:
        return value.get(name, UNDEFINED)
    if not isinstance(value, list):
        return UNDEFINED
    run.spend(len(value))
    found = ResultSequence()
    for item in value:
        inner = item.get(name, UNDEFINED) if type(item) is dict else member(item, name, run)
        if isinstance(inner, list):
            found.extend(inner)
            run.spend(len(inner))
        elif inner is not UNDEFINED:
            found.append(inner)
    return found


def name_step(name: str) -> Closure:
    """Return the step that looks up a name."""
    return lambda item, scope: collapse(member(item, name, scope.run))


def name_path(start: Closure | None, names: tuple[str, ...]) -> Closure:
    """Return a path of names only, from a variable or from the context item.

    While it meets objects it is a series of look-ups.
    """

    def walk(item: Value, scope: QueryScope) -> Value:
        value = item if start is None else start(item, scope)
        for position, name in enumerate(names):
            if type(value) is not dict:
                whole = start is not None or position > 0
                return _through_arrays(value, names, position, whole, scope.run)
            value = value.get(name, UNDEFINED)
        return collapse(value) if type(value) is ResultSequence else value

    return walk


def _through_arrays(
    value: Value, names: tuple[str, ...], position: int, whole: bool, run: QueryRun
) -> Value:
    """Continue from the first non-object; *whole* marks it as a step's result."""
    if not isinstance(value, list):
        return UNDEFINED
    items: list[Value] = [value] if type(value) is ConstructedArray and whole else value
    last = len(names) - 1
    for place in range(position, len(names)):
        name = names[place]
        run.spend(len(items) + 1)
        found: list[Value] = []
        for item in items:
            inner = (
                item.get(name, UNDEFINED)
                if type(item) is dict
                else collapse(member(item, name, run))
            )
            if inner is not UNDEFINED:
                found.append(inner)
        if place == last:
            return collapse(_flat(found, True, run))
        items = _flat(found, False, run)
        if not items:
            return UNDEFINED
    return UNDEFINED


def _flat(found: list[Value], last: bool, run: QueryRun) -> list[Value]:
    """Return the results of a step as one sequence; a single array at the end remains an array."""
    if (
        last
        and len(found) == 1
        and isinstance(found[0], list)
        and type(found[0]) is not ResultSequence
    ):
        array: list[Value] = found[0]
        return array
    flat = ResultSequence()
    for value in found:
        if isinstance(value, list) and type(value) is not ConstructedArray:
            flat.extend(value)
            run.spend(len(value))
        else:
            flat.append(value)
    return flat


def wildcard(item: Value, scope: QueryScope) -> Value:
    """`*`: the values of an object, arrays among them flattened."""
    if type(item) is dict:
        values: Any = item.values()
    elif isinstance(item, list):
        values = item
    else:
        return UNDEFINED
    found = ResultSequence()
    plain = False
    for value in values:
        if isinstance(value, list):
            found.extend(_flattened(value, scope.run))
            plain = True
        else:
            found.append(value)
    scope.run.spend(3 * len(found))
    return list(found) if plain else found


def _flattened(items: list[Value], run: QueryRun) -> Iterator[Value]:
    """Yield the items of nested arrays, in order."""
    stack = [iter(items)]
    while stack:
        for item in stack[-1]:
            run.spend(3)
            if isinstance(item, list):
                stack.append(iter(item))
                break
            yield item
        else:
            stack.pop()


def descendants(item: Value, scope: QueryScope) -> Value:
    """`**`: the item and all of its descendants, except arrays themselves."""
    if item is UNDEFINED:
        return UNDEFINED
    found = ResultSequence()
    todo = [item]
    while todo:
        value = todo.pop()
        scope.run.spend(5)
        if isinstance(value, list):
            todo.extend(reversed(value))
            continue
        found.append(value)
        if type(value) is dict:
            todo.extend(reversed(value.values()))
    return found[0] if len(found) == 1 else found


# Paths -------------------------------------------------------------------------------------------


def path(
    steps: list[PathStep],
    *,
    keep: bool,
    keep_result: bool,
    as_tuples: bool,
    pairs: list[ObjectPair] | None,
    absolute: bool,
) -> Closure:
    """Return a path with all features of its steps.

    `keep` is `[]` at one of its steps, `keep_result` after it; `as_tuples` says that an enclosing
    `%` needs the tuples, `absolute` that it starts with a variable.
    """
    last = len(steps) - 1

    def walk(item: Value, scope: QueryScope) -> Value:
        items: Any = item if isinstance(item, list) and not absolute else ResultSequence([item])
        result: Any = UNDEFINED
        tuples: Any = None
        streaming = False
        for place, step in enumerate(steps):
            streaming = streaming or step.tuples
            if place == 0 and step.constructs:
                result = step.closure(items, scope)
            elif streaming:
                tuples = _tuple_step(step, items, tuples, scope)
            else:
                result = _step(step, items, scope, place == last)
            if not streaming and (result is UNDEFINED or not result):
                break
            if step.focus is None:
                items = result
        if streaming:
            result = tuples if as_tuples else ResultSequence(each[ITEM] for each in tuples)
        if keep:
            if type(result) is ConstructedArray:
                result = ResultSequence([result])
            if type(result) is ResultSequence:
                result.keep = True
        if pairs is not None:
            return group(pairs, tuples if streaming else result, scope)
        if keep_result and type(result) is ResultSequence:
            result.keep = True
        return collapse(result)

    return walk


def _step(step: PathStep, items: list[Value], scope: QueryScope, last: bool) -> Value:
    if step.terms is not None:
        return _staged(step.stages, sort_items(step.terms, items, scope), scope)
    scope.run.spend(len(items) * (step.weight + SELECTION * len(step.stages)))
    closure = step.closure
    found: list[Value] = []
    if step.stages:
        for item in items:
            value = closure(item, scope)
            for stage in step.stages:
                assert isinstance(stage, PathFilter)
                value = select(stage, value, scope)
            if value is not UNDEFINED:
                found.append(value)
    else:
        found = [value for item in items if (value := closure(item, scope)) is not UNDEFINED]
    scope.run.spend(len(found))
    return _flat(found, last, scope.run)


SELECTION = 6
"""Steps of a filter for each item, besides its predicate."""
TUPLE, MEMBER = 64, 48
"""Bytes of a tuple, and of each of its members."""


def _staged(stages: list[PathFilter | str], items: Value, scope: QueryScope) -> Value:
    """Apply the stages to a whole sequence of items or tuples."""
    for stage in stages:
        if isinstance(stage, str):
            for index, each in enumerate(items):
                each[stage] = index
        else:
            items = select(stage, items, scope)
    return items


def _tuple_step(step: PathStep, items: Value, tuples: Value, scope: QueryScope) -> Value:
    if step.terms is not None:
        if tuples is not None:
            result = sort_items(step.terms, tuples, scope)
        else:
            in_order = sort_items(step.terms, items, scope)
            numbered = ({ITEM: item, step.index: place} for place, item in enumerate(in_order))
            result = ResultSequence(numbered, tuples=True)
        return _staged(step.stages, result, scope)
    result = ResultSequence(tuples=True)
    if tuples is None:
        tuples = [{ITEM: item} for item in items]
    scope.run.spend(len(tuples) * step.weight)
    for each in tuples:
        found = step.closure(each[ITEM], QueryScope(scope.run, scope, dict(each)))
        if found is UNDEFINED:
            continue
        nested = type(found) is ResultSequence and found.tuples
        for index, value in enumerate(as_list(found)):
            new = dict(each)
            if nested:
                new.update(value)
            else:
                if step.focus is not None:
                    new[step.focus] = value
                else:
                    new[ITEM] = value
                if step.index is not None:
                    new[step.index] = index
                if step.ancestor is not None:
                    new[step.ancestor] = each[ITEM]
            result.append(new)
            scope.run.steps -= 5
            scope.run.spend_bytes(TUPLE + MEMBER * len(new))
        scope.run.spend(1)
    return _staged(step.stages, result, scope)


# Filters -----------------------------------------------------------------------------------------


def filter_by(closure: Closure, filter: PathFilter) -> Closure:
    """Return an expression followed by a filter."""
    return lambda item, scope: select(filter, closure(item, scope), scope)


def select(filter: PathFilter, value: Value, scope: QueryScope) -> Value:
    """Return the items that pass a filter: by truth of the predicate, or by index."""
    items: list[Value] = value if isinstance(value, list) else ResultSequence([value])
    tuples = type(items) is ResultSequence and items.tuples
    chosen = ResultSequence(tuples=tuples)
    if filter.index is not None:
        place = floor(filter.index)
        place = place if place >= 0 else len(items) + place
        if 0 <= place < len(items) and items[place] is not UNDEFINED:
            item = items[place]
            if isinstance(item, list):
                return item
            chosen.append(item)
        return chosen
    scope.run.spend(len(items) * (filter.weight + 2))
    predicate = filter.predicate
    size = len(items)
    for index, item in enumerate(items):
        if tuples:
            found = predicate(item[ITEM], QueryScope(scope.run, scope, dict(item)))
        else:
            found = predicate(item, scope)
        if found is True:
            chosen.append(item)
        elif found is not False and found is not UNDEFINED:
            places = as_list(found)
            if is_number(found) or (isinstance(found, list) and are_numbers(found)):
                scope.run.spend(len(places))
                for each in places:
                    place = floor(each)
                    if index == (place if place >= 0 else size + place):
                        chosen.append(item)
            elif boolean(found):
                chosen.append(item)
    return chosen
