"""The operators of the language: arithmetic, comparison, text, ranges and transforms."""

from collections.abc import Callable
from math import fmod

from asl.expr.jsonata.calls import Signature, parse_parameters
from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.javascript import INFINITY, PLAIN, SAFE, UNDEFINED, TooLong, Value, double
from asl.expr.jsonata.scopes import CHARACTER, QueryRun, QueryScope
from asl.expr.jsonata.values import (
    COMPARED,
    Closure,
    QueryFunction,
    are_strings,
    as_list,
    equal,
    identical,
    is_number,
    normal,
    utf16_keys,
    value_text,
)

MAX_RANGE = 1_000_000
"""Items of a range in JSONata; the limits may allow fewer."""


def _quotient(one: float, other: float) -> float:
    if other:
        return double(one) / double(other)
    return NAN if not one or one != one else INFINITY if one > 0 else -INFINITY


def _remainder(one: float, other: float) -> float:
    return fmod(double(one), double(other)) if other else NAN


def _remainder_of_java(one: float, other: float) -> float:
    if not other:
        raise fault("D1001", value=NAN)
    return _remainder(one, other)


def _product(one: float, other: float) -> float:
    return one * other


NAN = float("nan")

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": _product,
    "/": _quotient,
    "%": _remainder,
}


def arithmetic(operator: str, java: bool) -> Callable[[Value, Value], Value]:
    """Return an arithmetic operator.

    It is undefined if an operand is, and raises T2001 and T2002 for non-numbers. On AWS (*java*)
    the remainder of a division by zero is an error, unlike its quotient (measured).
    """
    compute = _remainder_of_java if java and operator == "%" else _ARITHMETIC[operator]

    def with_care(one: Value, other: Value) -> Value:
        if one is not UNDEFINED and not is_number(one):
            raise fault("T2001", token=operator, value=one)
        if other is not UNDEFINED and not is_number(other):
            raise fault("T2002", token=operator, value=other)
        if one is UNDEFINED or other is UNDEFINED:
            return UNDEFINED
        return normal(compute(double(one), double(other)))

    def apply(one: Value, other: Value) -> Value:
        if (type(one), type(other)) in _NUMBERS:
            try:
                result = compute(one, other)
            except (
                OverflowError,
                ValueError,
            ):  # an integer that is no double; an infinite dividend
                return with_care(one, other)
            if type(result) is int and -SAFE <= result <= SAFE:
                return result
            if type(result) is float and -PLAIN < result < PLAIN and _finite(other):
                return int(result) if result.is_integer() else result
        return with_care(one, other)

    return apply


_NUMBERS = frozenset((one, other) for one in (int, float) for other in (int, float))


def _finite(value: float) -> bool:
    return -INFINITY < value < INFINITY


def negative(value: Value) -> Value:
    """Return the negated value.

    Raises:
        QueryFault: D1002 for a value that is no number.
    """
    if value is UNDEFINED:
        return UNDEFINED
    if not is_number(value):
        raise fault("D1002", token="-", value=value)
    return -value


_ORDER: dict[str, Callable[[Value, Value], bool]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def comparison(operator: str, java: bool) -> Callable[[Value, Value, QueryRun], Value]:
    """Return a comparison operator.

    It is undefined if an operand is, and raises T2010 and T2009 for values without an order. AWS
    (*java*) compares numbers as doubles, with NaN above all others (measured).
    """
    holds = _ORDER[operator]

    def apply(one: Value, other: Value, run: QueryRun) -> Value:
        left, right = _kind(one), _kind(other)
        if left is None or right is None:
            raise fault("T2010", token=operator, value=one if left is None else other)
        if one is UNDEFINED or other is UNDEFINED:
            return UNDEFINED
        if left is not right:
            raise fault("T2009", token=operator, value=one, value2=other)
        if left is str:
            run.spend((len(one) + len(other)) >> COMPARED)
            return holds(*utf16_keys(one, other))
        if java and (one != one or other != other):
            return holds(one != one, other != other)
        return holds(double(one), double(other)) if java else holds(one, other)

    return apply


def _kind(value: Value) -> object:
    """Return the type by which a value is compared; None for values without an order."""
    kind = type(value)
    if kind is str or value is UNDEFINED:
        return kind
    return float if kind is int or kind is float else None


def equality(one: Value, other: Value, run: QueryRun) -> bool:
    """Return deep equality; undefined equals nothing. AWS compares two numbers as doubles."""
    if one is UNDEFINED or other is UNDEFINED:
        return False
    if run.bounds.java and (type(one), type(other)) in _NUMBERS:
        return double(one) == double(other)
    return equal(one, other, run.spend)


def inequality(one: Value, other: Value, run: QueryRun) -> bool:
    """Return the negation of equality; undefined differs from nothing."""
    if one is UNDEFINED or other is UNDEFINED:
        return False
    return not equality(one, other, run)


def inclusion(one: Value, other: Value, run: QueryRun) -> bool:
    """Return whether the left operand is an item of the right one."""
    if one is UNDEFINED or other is UNDEFINED:
        return False
    items = as_list(other)
    run.spend(2 * len(items))
    if type(one) is str:
        run.spend(len(items) * (len(one) >> COMPARED))
    return any(identical(item, one) for item in items)


def concatenation(one: Value, other: Value, run: QueryRun) -> str:
    """Return both operands as one string."""
    left, right = string(one, run), string(other, run)
    run.write(len(left) + len(right))
    return left + right


TEXT = 6
"""Steps of writing a text, besides its parts."""


def string(value: Value, run: QueryRun, pretty: bool = False) -> str:
    """Return the value as `$string` prints it; undefined is empty.

    Raises:
        QueryFault: D3001 for NaN and infinities, D1013 for too many characters.
    """
    if type(value) is str:
        return value
    if value is UNDEFINED or isinstance(value, QueryFunction):
        return ""
    if type(value) is float and (value != value or value in (INFINITY, -INFINITY)):
        raise fault("D3001", value=value)
    run.spend(TEXT)
    try:
        found = value_text(value, run.bounds.characters, pretty, run.spend, run.bounds.java)
    except TooLong:
        raise run.too_long() from None
    run.spend_bytes(CHARACTER * len(found))
    return found


def interval(one: Value, other: Value, run: QueryRun) -> Value:
    """Return the integers from one to the other.

    Raises:
        QueryFault: T2003 and T2004 for operands that are no integers, D2014 for too many.
    """
    if one is not UNDEFINED and not _is_integer(one):
        raise fault("T2003", token="..", value=one)
    if other is not UNDEFINED and not _is_integer(other):
        raise fault("T2004", token="..", value=other)
    if one is UNDEFINED or other is UNDEFINED or one > other:
        return UNDEFINED
    first, last = int(one), int(other)
    size = last - first + 1
    if size > MAX_RANGE:
        raise fault("D2014", token="..", value=size)
    run.count(size)
    return list(range(first, last + 1))


def _is_integer(value: Value) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


_SIGNATURE = Signature(parse_parameters("<(oa):o>"))


class Transform(QueryFunction):
    """Copies its argument, then changes the objects that the pattern finds in the copy."""

    __slots__ = ("clone", "delete", "pattern", "scope", "update")

    def __init__(
        self,
        pattern: Closure,
        update: Closure,
        delete: Closure | None,
        clone: Value,
        scope: QueryScope,
    ) -> None:
        super().__init__("", 1)
        self.pattern = pattern
        self.update = update
        self.delete = delete
        self.clone = clone
        self.scope = scope

    def apply(self, arguments: list[Value], item: Value, scope: QueryScope) -> Value:
        """Return the changed copy.

        Raises:
            QueryFault: T2011, T2012 and T2013 for a wrong update, deletion or copy.
        """
        (value,) = _SIGNATURE.validate(arguments, item)
        if value is UNDEFINED:
            return UNDEFINED
        if not isinstance(self.clone, QueryFunction):
            raise fault("T2013")
        copy = self.clone.apply([value], None, scope)
        ours = _objects(copy, scope.run)
        found = self.pattern(copy, self.scope)
        for each in [] if found is UNDEFINED else as_list(found):
            scope.run.spend(6)
            self._change(each, id(each) in ours)
        return copy

    def _change(self, found: Value, ours: bool) -> None:
        update = self.update(found, self.scope)
        if update is not UNDEFINED:
            if type(update) is not dict:
                raise fault("T2011", value=update)
            if ours:
                found.update(update)
        if self.delete is None:
            return
        names = self.delete(found, self.scope)
        if names is UNDEFINED:
            return
        if not are_strings(as_list(names)):
            raise fault("T2012", value=names)
        for name in as_list(names):
            if ours:
                found.pop(name, None)


def copy_tree(value: Value, run: QueryRun) -> Value:
    """Return a copy that shares no container with the original."""
    run.spend(6)
    if isinstance(value, list):
        return [copy_tree(item, run) for item in value]
    if type(value) is dict:
        return {name: copy_tree(item, run) for name, item in value.items()}
    return "" if isinstance(value, QueryFunction) else value


def _objects(value: Value, run: QueryRun) -> set[int]:
    """Return the ids of the copy's objects: nothing else may be changed."""
    found: set[int] = set()
    todo = [value]
    while todo:
        each = todo.pop()
        run.spend(2)
        if type(each) is dict:
            found.add(id(each))
            todo.extend(each.values())
        elif isinstance(each, list):
            todo.extend(each)
    return found
