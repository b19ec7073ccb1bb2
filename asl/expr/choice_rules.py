"""Choice rules: `And`, `Or`, `Not` and the 39 comparison operators (Specification 6.2).

The operators are a table: a relation and the type of value that it compares. For a value of another
type the comparison is false, never an error.
"""

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.frame import Evaluate, ExpressionFrame, constant
from asl.expr.text_matching import compile_glob
from asl.expr.times import instant, parse_relative, shift_time

__all__ = ["COMBINATORS", "OPERATORS", "Operand", "Operator", "Predicate", "compile_rule"]

Predicate: TypeAlias = Callable[[Json, ExpressionFrame], bool]
COMBINATORS = ("And", "Or", "Not")


class Operator(NamedTuple):
    """One comparison operator: the type of its operand, and its compilation.

    `operand` is `string`, `number`, `boolean`, `timestamp` or `path`; `compile` takes the variable,
    the compiled operand and the operand as written.
    """

    name: str
    operand: str
    compile: Callable[[Evaluate, Evaluate, Json], Predicate]


class Operand(NamedTuple):
    """Compiles the texts inside a rule; supplied by the compiler of the state."""

    variable: Callable[[str, bool], Evaluate]
    """Compiles `Variable`, a path of any kind; True: a missing value always raises."""
    expression: Callable[[str], Evaluate]
    """Compiles `Variable.$`, a path or an intrinsic call."""
    reference: Callable[[str], Evaluate]
    """Compiles the operand of a `...Path` operator."""


_RELATIONS: Mapping[str, Callable[[Json, Json], bool]] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "GreaterThan": operator.gt,
    "LessThanEquals": operator.le,
    "GreaterThanEquals": operator.ge,
}
_KINDS: Mapping[str, frozenset[type]] = {
    "String": frozenset({str}),
    "Numeric": frozenset({int, float}),
    "Boolean": frozenset({bool}),
}
_OPERAND_KINDS = {"String": "string", "Numeric": "number", "Boolean": "boolean"}


def _compared(
    kinds: frozenset[type], relation: Callable[[Json, Json], bool]
) -> Callable[[Evaluate, Evaluate, Json], Predicate]:
    def compile(variable: Evaluate, operand: Evaluate, written: Json) -> Predicate:
        def holds(data: Json, frame: ExpressionFrame) -> bool:
            value = variable(data, frame)
            return type(value) in kinds and relation(value, written)

        return holds

    return compile


def _same(variable: Evaluate, operand: Evaluate, written: Json) -> Predicate:
    """Compile a comparison with a boolean."""
    return lambda data, frame: variable(data, frame) is written


def _compared_with_path(
    kinds: frozenset[type], relation: Callable[[Json, Json], bool]
) -> Callable[[Evaluate, Evaluate, Json], Predicate]:
    def compile(variable: Evaluate, operand: Evaluate, written: Json) -> Predicate:
        def holds(data: Json, frame: ExpressionFrame) -> bool:
            value, wanted = variable(data, frame), operand(data, frame)
            return type(value) in kinds and type(wanted) in kinds and relation(value, wanted)

        return holds

    return compile


def _instants(
    relation: Callable[[Json, Json], bool],
) -> Callable[[Evaluate, Evaluate, Json], Predicate]:
    def compile(variable: Evaluate, operand: Evaluate, written: Json) -> Predicate:
        wanted = _wanted_instant(operand, written)

        def holds(data: Json, frame: ExpressionFrame) -> bool:
            value, bound = instant(variable(data, frame)), wanted(data, frame)
            return value is not None and bound is not None and relation(value, bound)

        return holds

    return compile


def _wanted_instant(operand: Evaluate, written: Json) -> Evaluate:
    if written is None:
        return lambda data, frame: instant(operand(data, frame))
    offset = parse_relative(written)
    if offset is not None:
        return lambda data, frame: shift_time(frame.now, offset)
    return constant(instant(written))


def _matches(variable: Evaluate, operand: Evaluate, written: Json) -> Predicate:
    matches = compile_glob(written)

    def holds(data: Json, frame: ExpressionFrame) -> bool:
        value = variable(data, frame)
        return type(value) is str and matches(value)

    return holds


def _is(
    belongs: Callable[[Json], bool],
) -> Callable[[Evaluate, Evaluate, Json], Predicate]:
    def compile(variable: Evaluate, operand: Evaluate, written: Json) -> Predicate:
        return lambda data, frame: belongs(variable(data, frame)) is written

    return compile


def _is_present(variable: Evaluate, operand: Evaluate, written: Json) -> Predicate:
    def holds(data: Json, frame: ExpressionFrame) -> bool:
        try:
            variable(data, frame)
        except StateError:
            if frame.work.is_exceeded:
                raise
            return written is False
        return written is True

    return holds


def _operators() -> Mapping[str, Operator]:
    table = [
        Operator("StringMatches", "string", _matches),
        Operator("IsPresent", "boolean", _is_present),
        Operator("IsNull", "boolean", _is(lambda value: value is None)),
        Operator("IsNumeric", "boolean", _is(lambda value: type(value) in _KINDS["Numeric"])),
        Operator("IsString", "boolean", _is(lambda value: type(value) is str)),
        Operator("IsBoolean", "boolean", _is(lambda value: type(value) is bool)),
        Operator("IsTimestamp", "boolean", _is(lambda value: instant(value) is not None)),
    ]
    for kind, types in _KINDS.items():
        for suffix, relation in _RELATIONS.items():
            if kind == "Boolean" and suffix != "Equals":
                continue
            name = kind + suffix
            compiled = _same if kind == "Boolean" else _compared(types, relation)
            table.append(Operator(name, _OPERAND_KINDS[kind], compiled))
            table.append(Operator(f"{name}Path", "path", _compared_with_path(types, relation)))
    for suffix, relation in _RELATIONS.items():
        name = f"Timestamp{suffix}"
        table.append(Operator(name, "timestamp", _instants(relation)))
        table.append(Operator(f"{name}Path", "path", _instants(relation)))
    return MappingProxyType({each.name: each for each in table})


OPERATORS = _operators()


def compile_rule(rule: Mapping[str, Json], operand: Operand) -> Predicate:
    """Compile a rule into a predicate on the effective input.

    Args:
        rule: The rule; its `Next` and `Assign` are ignored.
        operand: Compiles the texts in the rule.
    """
    if "And" in rule:
        return _all_of([compile_rule(part, operand) for part in rule["And"]])
    if "Or" in rule:
        return _any_of([compile_rule(part, operand) for part in rule["Or"]])
    if "Not" in rule:
        negated = compile_rule(rule["Not"], operand)
        return lambda data, frame: not negated(data, frame)
    name = next(key for key in rule if key in OPERATORS)
    chosen, written = OPERATORS[name], rule[name]
    if "Variable.$" in rule:
        variable = operand.expression(rule["Variable.$"])
    else:
        variable = operand.variable(rule["Variable"], name == "IsPresent")
    if chosen.operand == "path":
        return chosen.compile(variable, operand.reference(written), None)
    return chosen.compile(variable, constant(written), written)


def _all_of(predicates: list[Predicate]) -> Predicate:
    def holds(data: Json, frame: ExpressionFrame) -> bool:
        for predicate in predicates:  # noqa: SIM110 - a generator would cost more than the rules
            if not predicate(data, frame):
                return False
        return True

    return holds


def _any_of(predicates: list[Predicate]) -> Predicate:
    def holds(data: Json, frame: ExpressionFrame) -> bool:
        for predicate in predicates:  # noqa: SIM110 - a generator would cost more than the rules
            if predicate(data, frame):
                return True
        return False

    return holds
