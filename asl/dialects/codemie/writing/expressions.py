"""Terms as expressions: the conditions and the scripts of a workflow.

An expression fails where a name is missing, or a value is of another type, and a condition that
fails is false as a whole. So behind `or` and within `not` a condition first tests that a value
exists and has the type. Reported is what CodeMie reads or compares in another way.
"""

from collections.abc import Mapping
from typing import Final

from asl.core.diagnostics import Severity
from asl.core.values import Json
from asl.dialects.codemie.functions.outputs import read_literal
from asl.dialects.codemie.writing.names import READ, Loss, ValueNames
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
    Record,
    Term,
    Text,
)
from asl.expr.text_matching import literal_pieces

__all__ = ["Expressions", "Unsayable"]


class Unsayable(Exception):
    """An expression has no form in the language.

    Attributes:
        loss: What is lost with it.
    """

    def __init__(
        self, code: str = "L-CONDITION", message: str = "no condition expresses this"
    ) -> None:
        super().__init__(message)
        self.loss = Loss(code, message)


_UNQUOTED: Final = Loss(
    "L-COERCE", "a text in quotes is compared without the quotes", Severity.INFO
)
_TIMES: Final = Loss("L-TIMESTAMP", "timestamps are compared as texts")
_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _SINGLE = range(1, 8)
"""The levels of operators; the operand of a tighter one is set in parentheses."""
_LEVELS: Final[Mapping[str, int]] = {
    "+": _ADD,
    "-": _ADD,
    "*": _MULTIPLY,
    "/": _MULTIPLY,
    "%": _MULTIPLY,
}
_TYPES: Final[Mapping[str, str]] = {
    "string": "str",
    "timestamp": "str",
    "number": "(int, float)",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}
_SIGNS: Final = ("<", "<=", ">", ">=")
_FUNCTIONS: Final[Mapping[str, str]] = {
    "count": "len({})",
    "length": "len({})",
    "sum": "sum({})",
    "max": "max({})",
    "min": "min({})",
    "abs": "abs({})",
    "round": "round({})",
    "boolean": "bool({})",
    "number": "float({})",
}
"""Functions of one argument, as calls."""
_METHODS: Final[Mapping[str, str]] = {
    "lowercase": ".lower()",
    "uppercase": ".upper()",
    "trim": ".strip()",
    "split": ".split({})",
}
"""Functions of a text, as methods."""


class Expressions:
    """Prints the terms of one place; what they do not say is in `losses`."""

    def __init__(self, names: ValueNames) -> None:
        self.names = names
        self.losses: list[Loss] = []
        self.tested: frozenset[str] = frozenset()
        """Conditions that hold where the next one is evaluated."""

    def condition(self, term: Term) -> str:
        """Return a term as a condition, which only true itself fulfils; raises Unsayable."""
        if isinstance(term, DataPath):
            self.losses.append(READ)
            return f"{self.named(term)} == True"
        return self.test(term, _OR, failing=True)

    def value(self, term: Term, level: int = 0) -> str:
        """Return a term as an expression; raises Unsayable."""
        match term:
            case Literal(value):
                return repr(value)
            case DataPath():
                return self.named(term)
            case Items(items):
                return f"[{', '.join(self.value(each) for each in items)}]"
            case Record(None, members):
                return (
                    "{" + ", ".join(f"{key!r}: {self.value(each)}" for key, each in members) + "}"
                )
            case Text(parts):
                return _wrapped(" + ".join(map(self.shown, parts)), _ADD, level)
            case Choose(condition, then, otherwise):
                last = Literal(None) if otherwise is None else otherwise
                test = self.test(condition, _OR, failing=False)
                return _wrapped(f"{self.value(then, 1)} if {test} else {self.optional(last)}", 0, 1)
            case FunctionCall(function, arguments):
                return self.called(function, arguments, level)
            case Comparison() | Exists() | Logic() | Negation():
                return self.test(term, level, failing=False)
        raise Unsayable

    def optional(self, term: Term) -> str:
        """Return a term as an expression, None for a value that is missing; raises Unsayable."""
        name = self.names.optional(term) if isinstance(term, DataPath) else None
        return self.value(term) if name is None else name

    def shown(self, part: Term) -> str:
        """Return a part of a text, as a text."""
        return repr(part.value) if isinstance(part, Literal) else f"str({self.value(part)})"

    def named(self, path: DataPath) -> str:
        """Return the name of the value at a path.

        Raises:
            Unsayable: No expression says it.
        """
        name = self.names.name(path)
        if name is None:
            raise Unsayable
        return name

    def called(self, function: str, arguments: tuple[Term, ...], level: int) -> str:
        """Return the call of a function.

        Raises:
            Unsayable: No expression says it.
        """
        if function in _LEVELS and len(arguments) == 2:
            own = _LEVELS[function]
            left, right = (self.number(arg, own + at) for at, arg in enumerate(arguments))
            return _wrapped(f"{left} {function} {right}", own, level)
        if function in _FUNCTIONS and len(arguments) == 1:
            return _FUNCTIONS[function].format(self.value(arguments[0]))
        if function in _METHODS and arguments:
            holder, *others = (self.value(each, _SINGLE) for each in arguments)
            if len(others) == _METHODS[function].count("{}"):
                return holder + _METHODS[function].format(*others)
        if function == "append" and len(arguments) == 2:
            left, right = (self.listed(each) for each in arguments)
            return _wrapped(f"{left} + {right}", _ADD, level)
        if function == "lookup":
            inner = "".join(f"[{self.value(each)}]" for each in arguments[1:])
            return self.value(arguments[0], _SINGLE) + inner
        if function in ("contains", "includes", "matches"):
            return self.test(FunctionCall(function, arguments), level, failing=False)
        raise Unsayable

    def number(self, term: Term, level: int) -> str:
        """Return a term as an operand: the text of an answer is read as a number."""
        said = self.value(term, level)
        return f"float({said})" if isinstance(term, DataPath) and self.names.is_text(term) else said

    def listed(self, term: Term) -> str:
        """Return a term as a list: a single value is the only item of one.

        Raises:
            Unsayable: No expression says it.
        """
        if isinstance(term, Items) or (isinstance(term, Literal) and isinstance(term.value, list)):
            return self.value(term, _ADD)
        if isinstance(term, Literal):
            return repr([term.value])
        raise Unsayable

    # Conditions

    def test(self, term: Term, level: int, *, failing: bool) -> str:
        """Return a term as a condition.

        Args:
            term: The term.
            level: How tightly what is around it binds.
            failing: Whether it may fail where it does not hold.

        Raises:
            Unsayable: No condition says this.
        """
        match term:
            case Literal(bool(value)):
                return str(value)
            case DataPath():
                return self.truth(term, level, failing)
            case Logic("or", parts):
                return self.either(parts, level, failing)
            case Logic(_, parts):
                return _wrapped(self.every(parts, failing), _AND, level)
            case Negation(Exists(DataPath() as path)):
                return _wrapped(_absent(self.there(path, 0)), _NOT, level)
            case Negation(condition):
                return _wrapped(f"not ({self.test(condition, _OR, failing=False)})", _NOT, level)
            case Exists(DataPath() as path):
                return self.there(path, level)
            case Comparison("=", FunctionCall("type", (value,)), Literal(str(kind))):
                return self.typed(value, kind, level, failing)
            case Comparison("in", FunctionCall("type", (value,)), Literal(list(kinds))):
                tests = [self.typed(value, str(each), _NOT, failing) for each in kinds]
                return _wrapped(" or ".join(tests), _OR, level)
            case Comparison():
                return self.compared(term, level, failing)
            case FunctionCall("matches", (value, Literal(str(pattern)))):
                return self.matched(value, pattern, level, failing)
            case FunctionCall("contains", (value, Literal(str(part)))):
                said = f"{part!r} in {self.value(value, _COMPARE + 1)}"
                return self.kept(said, value, "string", level, failing)
            case FunctionCall("includes", (value, Literal(str(part)))):
                return self.included(value, part, level, failing)
            case FunctionCall("boolean", (DataPath() as path,)):
                return self.truth(path, level, failing)
            case FunctionCall("boolean", _) | Choose():
                return self.value(term, level)
        raise Unsayable

    def truth(self, path: DataPath, level: int, failing: bool) -> str:
        """Return the condition that a value counts as true; raises Unsayable."""
        if self.coerced(path):
            self.losses.append(READ)
        return self.guarded(f"bool({self.named(path)})", _SINGLE, path, level, failing)

    def there(self, path: DataPath, level: int) -> str:
        """Return the condition that a value exists.

        Raises:
            Unsayable: No expression says it.
        """
        found = self.names.present(path)
        if found is None:
            raise Unsayable
        said, loss = found
        if loss is not None:
            self.losses.append(loss)
        return _wrapped(said, _AND if " and " in said else _COMPARE, level)

    def every(self, parts: tuple[Term, ...], failing: bool) -> str:
        """Return conditions that must all hold; what one has tested the next ones do not."""
        before, said = self.tested, []
        for each in parts:
            said.append(self.test(each, _NOT, failing=failing))
            if isinstance(each, Exists) and isinstance(each.value, DataPath):
                self.tested |= {self.names.guard(each.value)}
        self.tested = before
        return " and ".join(said)

    def either(self, parts: tuple[Term, ...], level: int, failing: bool) -> str:
        """Return alternatives: each is tested if those before it do not hold."""
        one = _one_of(parts)
        if one is not None:
            return self.test(one, level, failing=failing)
        *before, last = parts
        said = [self.test(each, _NOT, failing=False) for each in before]
        said.append(self.test(last, _NOT, failing=failing))
        return _wrapped(" or ".join(said), _OR, level)

    def guarded(self, said: str, own: int, value: Term, level: int, failing: bool) -> str:
        """Return a condition on a value, behind the condition that it is there."""
        guard = self.names.guard(value) if isinstance(value, DataPath) and not failing else ""
        if not guard or guard in self.tested:
            return _wrapped(said, own, level)
        joined = f"({said})" if own < _AND else said
        return _wrapped(f"{guard} and {joined}", _AND, level)

    def kept(self, said: str, value: Term, kind: str, level: int, failing: bool) -> str:
        """Return a condition that is only asked about values of a type."""
        test = f"isinstance({self.value(value)}, {_TYPES[kind]})"
        return self.guarded(f"{test} and {said}", _AND, value, level, failing)

    def coerced(self, *values: Term) -> bool:
        return any(isinstance(each, DataPath) and self.names.coerces(each) for each in values)

    def typed(self, value: Term, kind: str, level: int, failing: bool) -> str:
        """Return the condition that a value has a type.

        Raises:
            Unsayable: No expression says it.
        """
        if self.coerced(value):
            self.losses.append(READ)
        name = self.value(value, _COMPARE + 1)
        if kind == "null":
            return self.guarded(f"{name} is None", _COMPARE, value, level, failing)
        if kind not in _TYPES:
            raise Unsayable
        said, own = f"isinstance({name}, {_TYPES[kind]})", _SINGLE
        if kind == "number":
            said, own = f"{said} and not isinstance({name}, bool)", _AND
        return self.guarded(said, own, value, level, failing)

    def compared(self, term: Comparison, level: int, failing: bool) -> str:
        """Return a comparison; one with a constant by `==` fails for no type."""
        operator, left, right, kind = term.operator, term.left, term.right, term.kind
        if isinstance(left, Literal) and not isinstance(right, Literal):
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
            if turned != operator or operator in ("=", "!="):
                return self.compared(Comparison(turned, right, left, kind), level, failing)
        if kind == "timestamp":
            self.losses.append(_TIMES)
        sign = {"=": "=="}.get(operator, operator)
        if operator in ("=", "!=") and isinstance(right, Literal):
            said = f"{self.value(left, _COMPARE + 1)} {sign} {self.constant(left, right.value)!r}"
            guard = self.names.guard(left) if isinstance(left, DataPath) else ""
            if operator == "!=" and guard:
                return _wrapped(f"{_absent(guard)} or {said}", _OR, level)
            return self.guarded(said, _COMPARE, left, level, failing)
        if operator == "in":
            return self.member(left, right, level, failing)
        if self.coerced(left, right) or kind == "number":
            self.losses.append(READ)
        said = f"{self.value(left, _COMPARE + 1)} {sign} {self.value(right, _COMPARE + 1)}"
        if kind is None or (isinstance(right, Literal) and failing):
            return self.guarded(said, _COMPARE, left, level, failing)
        if operator != "=" and not isinstance(right, Literal):
            said = f"isinstance({self.value(right)}, {_TYPES[kind]}) and {said}"
        return self.kept(said, left, kind, level, failing)

    def member(self, value: Term, items: Term, level: int, failing: bool) -> str:
        """Return the condition that a value is an item of a list."""
        name = self.value(value, _COMPARE + 1)
        if isinstance(items, Literal) and isinstance(items.value, list):
            constants = [self.constant(value, each) for each in items.value]
            return self.guarded(f"{name} in {constants!r}", _COMPARE, value, level, failing)
        if self.coerced(value, items):
            self.losses.append(READ)
        said = f"{name} in {self.value(items, _COMPARE + 1)}"
        return self.kept(said, items, "array", level, failing)

    def included(self, value: Term, part: str, level: int, failing: bool) -> str:
        """Return the condition that a text has a part, a list an item or an object a key."""
        if self.coerced(value):
            self.losses.append(READ)
        said = f"{part!r} in {self.value(value, _COMPARE + 1)}"
        if failing:
            return _wrapped(said, _COMPARE, level)
        test = f"isinstance({self.value(value)}, (str, list, dict))"
        return self.guarded(f"{test} and {said}", _AND, value, level, failing)

    def constant(self, value: Term, constant: Json) -> Json:
        """Return what a value is compared with: a text that says a value is that value there."""
        coerced = self.coerced(value)
        if isinstance(constant, str):
            found = read_literal(constant) if coerced else constant
            if coerced:
                self.losses.append(_UNQUOTED if found == constant else READ)
            return found
        if coerced or (isinstance(constant, bool | int | float) and constant in (0, 1)):
            self.losses.append(READ)
        return constant

    def matched(self, value: Term, pattern: str, level: int, failing: bool) -> str:
        """Return the condition that a text matches a pattern.

        Raises:
            Unsayable: No expression says it.
        """
        first, *rest = literal_pieces(pattern)
        if not rest:
            return self.compared(Comparison("=", value, Literal(first), "string"), level, failing)
        *middle, last = rest
        if len(middle) > 1 or (middle and (first or last)):
            raise Unsayable("L-PATTERN", f"no condition tests the pattern {pattern!r}")
        if self.coerced(value):
            self.losses.append(READ)
        name = self.value(value, _SINGLE)
        if middle:  # there may be a list, which has it as an item
            return self.kept(f"{middle[0]!r} in {name}", value, "string", level, failing)
        tests = [f"{name}.startswith({first!r})"] if first else []
        tests += [f"{name}.endswith({last!r})"] if last else []
        if len(tests) > 1:
            tests.append(f"len({name}) >= {len(first) + len(last)}")
        if not tests:
            return self.typed(value, "string", level, failing)
        said = " and ".join(tests)
        if failing:
            return _wrapped(said, _AND if len(tests) > 1 else _SINGLE, level)
        return self.kept(said, value, "string", level, failing)


def _wrapped(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text


def _absent(present: str) -> str:
    """Return the condition that what a condition asks for is not there."""
    if " and " in present:
        return f"not ({present})"
    return present.replace(" in keys", " not in keys").replace(" is not None", " is None")


def _one_of(parts: tuple[Term, ...]) -> Comparison | None:
    """Return the condition that a value is one of several constants, if that is what parts say."""
    constants: list[Json] = []
    values: list[Term] = []
    for part in parts:
        if not isinstance(part, Comparison) or part.operator != "=":
            return None
        if not isinstance(part.right, Literal) or part.kind == "timestamp":
            return None
        constants.append(part.right.value)
        values.append(part.left)
    if any(each != values[0] for each in values):
        return None
    return Comparison("in", values[0], Literal(constants))
