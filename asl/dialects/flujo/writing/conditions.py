"""Terms as conditions of a blueprint."""

from collections.abc import Callable, Iterator
from typing import Final

from asl.core.values import Json
from asl.dialects.flujo.functions.conditions import parse_number
from asl.dialects.flujo.writing.places import print_path
from asl.dialects.terms import (
    Choose,
    Comparison,
    DataPath,
    Exists,
    FunctionCall,
    Items,
    Literal,
    Logic,
    Negation,
    Term,
    Unknown,
    walk,
)
from asl.expr.text_matching import literal_pieces

__all__ = ["ConditionPrinter", "Unprintable", "is_boolean"]

Report = Callable[[str, str], None]
"""Reports a loss: its code and its message."""

_NULL: Final = "a condition reads a missing value as null"
_PRESENT: Final = "a condition reads null as a missing value"
_READ: Final = "numeric texts are compared as numbers, and true equals 1"
_OTHERS: Final = "values of other types are compared too"
_LISTS: Final = "a text is searched for in lists and objects too; other values fail the condition"
_FAILS: Final = "a value that is not a text fails the whole condition"
_SHAPING: Final = {"lowercase": "lower", "uppercase": "upper", "trim": "strip"}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_OR, _AND, _NOT, _SINGLE = range(4)
"""The levels of operators; the operand of a tighter one is set in parentheses."""


class Unprintable(Exception):
    """A blueprint has no condition for a term; the text says why."""


def is_boolean(term: Term) -> bool:
    """Whether the condition that is printed for a term is true or false, not another value."""
    match term:
        case Logic("and", parts):
            left = [each for each in parts if not _is_text_test(each)]
            return len(left) != 1 or is_boolean(left[0])
        case Comparison() | Exists() | Logic() | Negation():
            return True
        case Literal(value):
            return isinstance(value, bool)
        case FunctionCall("matches", (_, Literal(str(pattern)))):
            return len(literal_pieces(pattern)) != 2  # startswith and endswith of null are null
        case FunctionCall("contains" | "includes", _):
            return True
    return False


class ConditionPrinter:
    """Prints terms over places as conditions."""

    def __init__(self, report: Report, *, strict: bool = False) -> None:
        """Create a printer.

        Args:
            report: Called with what the condition decides otherwise.
            strict: Whether a condition that fails is a failure, not one that does not hold.
        """
        self.report = report
        self.strict = strict

    def print(self, term: Term) -> str:
        """Return a condition; raises Unprintable."""
        return self._print(term, _OR, counts=self.strict)

    def _print(self, term: Term, level: int, *, counts: bool) -> str:
        """Return a condition; with *counts* it makes a difference whether it fails."""
        match term:
            case Logic(operator, parts):
                own = _OR if operator == "or" else _AND
                parts = parts if operator == "or" else self._unguarded(parts)
                if len(parts) == 1:
                    return self._print(parts[0], level, counts=counts)
                *before, last = parts
                more = counts or operator == "or"
                shown = [self._print(each, own + 1, counts=more) for each in before]
                shown.append(self._print(last, own + 1, counts=counts))
                return _wrap(f" {operator} ".join(shown), own, level)
            case Negation(Exists(value)):
                self.report("FL-NULL", _PRESENT)
                return f"{self._value(value)} == None"
            case Negation(Comparison("in", left, right)):
                return self._contained(left, right, "not in")
            case Negation(condition):
                return _wrap(f"not {self._print(condition, _SINGLE, counts=True)}", _NOT, level)
            case Exists(value):
                self.report("FL-NULL", _PRESENT)
                return f"{self._value(value)} != None"
            case Comparison("=", DataPath(_, (_, *_)) as path, Literal(None)):
                return self._is_null(path, level)
            case Comparison():
                return _wrap(self._comparison(term), _NOT, level)
            case FunctionCall("matches", (value, Literal(str(pattern)))):
                return self._matched(value, pattern, counts=counts)
            case FunctionCall("contains" | "includes", (value, Literal(str()) as part)):
                return _wrap(self._contained(part, value, "in"), _NOT, level)
            case FunctionCall("boolean", (value,)):
                return self._print(value, level, counts=counts)
            case Choose(condition, then, otherwise) if otherwise is not None:
                ways = (
                    Logic("and", (condition, then)),
                    Logic("and", (Negation(condition), otherwise)),
                )
                return self._print(Logic("or", ways), level, counts=counts)
            case Literal(bool(value)):
                return repr(value)
        return self._value(term)

    def _unguarded(self, parts: tuple[Term, ...]) -> tuple[Term, ...]:
        """Return conditions without tests that a comparison behind them makes, too."""
        compared = [
            each.left
            for each in parts
            if isinstance(each, Comparison)
            and each.operator not in ("!=", "in")
            and _is_value(each)
        ]
        read = [each for part in parts for each in _texts_read(part)]
        negated = [
            each for part in parts if isinstance(part, Negation) for each in _texts_read(part)
        ]
        excluding = [
            each.condition.arguments[0]
            for each in parts
            if isinstance(each, Negation)
            and isinstance(each.condition, FunctionCall)
            and each.condition.function == "includes"
        ]
        found: list[Term] = []
        for each in parts:
            match each:
                case Comparison("in", FunctionCall("type", (value,)), Literal()) if (
                    value in excluding
                ):
                    found.append(Exists(value))
                    continue
                case Negation(Comparison("in", FunctionCall("type", (value,)), Literal())) if (
                    value in excluding
                ):
                    continue
                case Exists(value) if value in compared:
                    continue
                case Comparison("=", FunctionCall("type", (value,)), Literal("string")) if (
                    value in read
                ):
                    self.report("FL-COERCE", _FAILS)
                    if value in negated:
                        found.append(Exists(value))
                    continue
            found.append(each)
        return tuple(found)

    def _value(self, term: Term) -> str:
        """Return a value that is compared."""
        match term:
            case DataPath(_, steps):
                found = print_path(term)
                if found is None or any(isinstance(each, int) for each in steps):
                    raise Unprintable("a condition does not read items of lists")
                return found
            case FunctionCall(function, (value,)) if function in _SHAPING:
                return f"{self._value(value)}.{_SHAPING[function]}()"
            case Literal(value):
                return self._literal(value)
            case Items(items):
                return f"[{', '.join(map(self._value, items))}]"
            case Unknown(text):
                raise Unprintable(f"a condition has no counterpart of {text[:60]!r}")
            case FunctionCall(function, _):
                raise Unprintable(f"a condition has no function {function!r}")
        raise Unprintable("a condition compares only fields with texts and numbers")

    def _literal(self, value: Json) -> str:
        match value:
            case None:
                self.report("FL-NULL", _NULL)
            case bool():
                self.report("FL-COERCE", _READ)
            case int() | float():
                self.report("FL-COERCE", _READ)
                if value < 0:
                    self.report(
                        "FL-NEGATIVE",
                        "a condition has no negative numbers, so this rule never matches",
                    )
            case str():
                if parse_number(value) is not None:
                    message = f"the text {value!r} is numeric, so it is compared as a number"
                    self.report("FL-COERCE", message)
            case list():
                return f"[{', '.join(map(self._literal, value))}]"
            case _:
                raise Unprintable("a condition compares only texts and numbers")
        return repr(value)

    def _comparison(self, term: Comparison) -> str:
        operator, left, right = term.operator, term.left, term.right
        if operator == "in":
            return self._contained(left, right, "in")
        if isinstance(left, Literal) and not isinstance(right, Literal):
            operator, left, right = _TURNED[operator], right, left
        if term.kind == "timestamp":
            raise Unprintable("a condition does not compare timestamps")
        match left, right:
            case FunctionCall("type", (value,)), Literal("null") if operator in ("=", "!="):
                return self._comparison(Comparison(operator, value, Literal(None)))
            case FunctionCall("type", _), _:
                raise Unprintable("a condition does not test types")
            case FunctionCall("count" | "length", (value,)), Literal(int(number)):
                return self._sized(operator, value, number)
        if operator == "!=":
            self.report("FL-NULL", _NULL)
        if not isinstance(right, Literal):
            self.report("FL-COERCE", _OTHERS)
        sign = "==" if operator == "=" else operator
        return f"{self._value(left)} {sign} {self._value(right)}"

    def _is_null(self, path: DataPath, level: int) -> str:
        """Return the condition that a value is null, which a missing one is not."""
        *steps, key = path.steps
        test, holder = f"{self._value(path)} == None", print_path(DataPath(path.root, tuple(steps)))
        if holder is None:
            self.report("FL-NULL", _NULL)
            return _wrap(test, _NOT, level)
        self.report("FL-COERCE", _LISTS)
        return _wrap(f"{key!r} in {holder} and {test}", _AND, level)

    def _sized(self, operator: str, value: Term, number: int) -> str:
        """Return the condition that something is empty, or is not."""
        match operator, number:
            case (">" | "!=", 0) | (">=", 1):
                return self._value(value)
            case ("=" | "<=", 0) | ("<", 1):
                return f"not {self._value(value)}"
        raise Unprintable("a condition does not compare lengths")

    def _contained(self, left: Term, right: Term, word: str) -> str:
        """Return the condition that a value is in a list, or a text in another one."""
        shaped = isinstance(right, FunctionCall) and right.function in _SHAPING
        if not isinstance(right, Literal | Items) and not shaped:
            self.report("FL-COERCE", _LISTS)
        if isinstance(left, Literal) and isinstance(left.value, str):
            return f"{self._literal(left.value)} {word} {self._value(right)}"
        return f"{self._value(left)} {word} {self._value(right)}"

    def _matched(self, value: Term, pattern: str, *, counts: bool) -> str:
        """Return the condition that a text matches a pattern."""
        shown = self._value(value)
        match literal_pieces(pattern):
            case [text]:
                return f"{shown} == {self._literal(text)}"
            case [text, ""] if text:
                test = f"{shown}.startswith({text!r})"
            case ["", text] if text:
                test = f"{shown}.endswith({text!r})"
            case ["", text, ""]:
                self.report("FL-COERCE", _LISTS)
                return f"{self._literal(text)} in {shown}"
            case _:
                raise Unprintable(f"a condition does not match the pattern {pattern!r}")
        if counts:
            self.report("FL-COERCE", _FAILS)
        return test


def _is_text_test(term: Term) -> bool:
    match term:
        case Comparison("=", FunctionCall("type", _), Literal("string")):
            return True
    return False


def _texts_read(term: Term) -> Iterator[Term]:
    """Yield the values that a condition reads as texts."""
    for each in walk(term):
        if isinstance(each, FunctionCall) and each.function in (*_SHAPING, "contains", "matches"):
            yield each.arguments[0]


def _is_value(comparison: Comparison) -> bool:
    """Whether a comparison is with a value that is written out, other than null."""
    return isinstance(comparison.right, Literal) and comparison.right.value is not None


def _wrap(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text
