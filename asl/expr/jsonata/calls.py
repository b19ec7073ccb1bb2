"""Functions as values: built in, defined in the query, partially applied, composed; signatures.

A signature such as `<s-nn?:s>` checks and completes the arguments of a call: the type letters of
all arguments are matched against a pattern made of the parameters. The context item may replace a
missing value (`-`), and a single value may become an array (`a`).
"""

import re
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Thread
from typing import Any, NamedTuple, TypeVar

from asl.expr.jsonata.analysis import Nesting
from asl.expr.jsonata.faults import QueryFault, fault
from asl.expr.jsonata.javascript import UNDEFINED, Value
from asl.expr.jsonata.scopes import COPIED, READ, QueryScope
from asl.expr.jsonata.values import Closure, QueryFunction, collapse, symbol

_PLURALS = {
    "a": "arrays",
    "b": "booleans",
    "f": "functions",
    "n": "numbers",
    "o": "objects",
    "s": "strings",
}
_ANY = {"a": "[asnblfom]", "x": "[asnblfom]", "j": "[asnblom]", "f": "f"}


class SignatureParameter(NamedTuple):
    """One parameter: its type letter, and the pattern of the accepted letters."""

    kind: str
    pattern: str
    context: re.Pattern[str] | None
    """The type of a context item that may replace the argument."""
    inner: str | None
    """The type of an array's items."""


class Signature:
    """A parsed signature; `validate` is called with the arguments of a call."""

    def __init__(
        self, parameters: Sequence[SignatureParameter], compile: Callable[[str], Any] = re.compile
    ) -> None:
        """Args:
        parameters: The parameters.
        compile: Compiles the pattern, in linear time for signatures in queries.
        """
        self.parameters = parameters
        self.compile = compile
        self.plain: set[str] = set()
        """Letters of arguments that need no change."""
        if compile is not re.compile:
            _ = self.pattern  # report a malformed signature of a query before its first call

    @cached_property
    def pattern(self) -> Any:
        """The pattern of the argument letters, compiled on first use."""
        return self.compile("".join(f"({each.pattern})" for each in self.parameters))

    def validate(self, arguments: list[Value], item: Value) -> list[Value]:
        """Return the arguments for the function; optional ones missing at the end stay missing.

        Args:
            arguments: The arguments of the call.
            item: The context item.

        Raises:
            QueryFault: T0410, T0411 or T0412 for arguments that do not match.
        """
        letters = "".join(map(symbol, arguments))
        if letters in self.plain:
            return arguments
        match = self.pattern.fullmatch(letters)
        if match is None:
            raise self._mismatch(arguments, letters)
        found: list[Value] = []
        position = given = 0
        plain = True
        for parameter, part in zip(self.parameters, match.groups(), strict=True):
            plain = plain and (part != "" or parameter.context is None)
            plain = plain and (parameter.kind != "a" or (part == "a" and parameter.inner is None))
            if part == "" and parameter.context is not None:
                if not parameter.context.match(symbol(item)):
                    raise fault("T0411", value=item, index=position + 1)
                found.append(item)
                given = len(found)
                continue
            for letter in part or "m":
                value = arguments[position] if position < len(arguments) else UNDEFINED
                if parameter.kind == "a" and letter != "m":
                    _check_items(parameter, part, letter, value, position)
                    value = value if letter == "a" else [value]
                found.append(value)
                position += 1
            given = len(found) if part else given
        if plain:
            self.plain.add(letters)
        return found[:given]

    def _mismatch(self, arguments: list[Value], letters: str) -> Exception:
        good, pattern = 0, ""
        for parameter in self.parameters:
            pattern += parameter.pattern
            match = self.compile(pattern).match(letters)
            if match is None:
                break
            good = match.end()
        value = arguments[good] if good < len(arguments) else UNDEFINED
        return fault("T0410", value=value, index=good + 1)


def _check_items(
    parameter: SignatureParameter, part: str, letter: str, value: Value, position: int
) -> None:
    inner = parameter.inner
    if inner is None:
        return
    if letter == "a":
        wanted = inner[:1]
        good = all(symbol(item) == wanted for item in value)
    else:
        good = part == inner
    if not good:
        raise fault("T0412", value=value, index=position + 1, type=_PLURALS.get(inner, inner))


def parse_parameters(text: str) -> list[SignatureParameter]:
    """Parse the text between `<` and `:`.

    Raises:
        QueryFault: S0401 and S0402 for a malformed signature.
    """
    found: list[SignatureParameter] = []
    position = 1
    while position < len(text) and text[position] != ":":
        letter = text[position]
        if letter == "(":
            end = _closing(text, position, "(", ")")
            choice = text[position + 1 : end]
            if "<" in choice:
                raise fault("S0402", value=choice)
            found.append(SignatureParameter(f"({choice})", f"[{choice}m]", None, None))
            position = end
        elif letter in "snblo":
            found.append(SignatureParameter(letter, f"[{letter}m]", None, None))
        elif letter in _ANY:
            found.append(SignatureParameter(letter, _ANY[letter], None, None))
        elif found and letter in "-?+<":
            last = found.pop()
            if letter == "<":
                if last.kind not in "af":
                    raise fault("S0401", value=last.kind)
                end = _closing(text, position, "<", ">")
                last = SignatureParameter(
                    last.kind, last.pattern, last.context, text[position + 1 : end]
                )
                position = end
            elif letter == "-":
                context = re.compile(last.pattern)
                last = SignatureParameter(last.kind, last.pattern + "?", context, last.inner)
            else:
                last = SignatureParameter(
                    last.kind, last.pattern + letter, last.context, last.inner
                )
            found.append(last)
        position += 1
    return found


def _closing(text: str, start: int, opening: str, closing: str) -> int:
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == opening) - (text[position] == closing)
        if depth == 0:
            return position
    return len(text)


class NativeFunction(QueryFunction):
    """A built-in function. With `scoped` it is called with the scope before its arguments.

    An undefined first argument makes the result undefined, unless the function is `total`. One that
    `walks` visits each item of an array; others handle an array as a whole. With `json` arguments
    and results are JSON only.
    """

    __slots__ = ("call", "cost", "json", "scoped", "signature", "total", "walks")

    def __init__(
        self,
        name: str,
        signature: str,
        call: Callable[..., Value],
        arity: int,
        *,
        scoped: bool = False,
        total: bool = False,
        walks: bool = False,
        json: bool = False,
    ) -> None:
        super().__init__(name, arity)
        self.signature = Signature(parse_parameters(signature))
        self.call = call
        self.scoped = scoped
        self.total = total
        self.walks = walks
        self.json = json
        self.cost = BUILT_IN
        """Steps of a call, besides the cost of its arguments."""

    def apply(self, arguments: list[Value], item: Value, scope: QueryScope) -> Value:
        """Check the arguments and call the function.

        Raises:
            QueryFault: T0410 to T0412 for wrong arguments, D1012 beyond the limit of steps, or as
                the function does.
        """
        run = scope.run
        run.steps -= self.cost
        for argument in arguments:
            if type(argument) is str:
                run.steps -= len(argument) >> READ
            elif isinstance(argument, list):
                run.steps -= len(argument) if self.walks else len(argument) >> COPIED
        if run.steps < 0:
            run.exceed("steps")
        arguments = self.signature.validate(arguments, item)
        if not self.total and arguments and arguments[0] is UNDEFINED:
            return UNDEFINED
        return self.call(scope, *arguments) if self.scoped else self.call(*arguments)


class TailCall:
    """A call in tail position, performed by the caller."""

    __slots__ = ("arguments", "function", "item", "name", "scope")

    def __init__(
        self,
        name: str,
        function: Closure,
        arguments: Sequence[Closure],
        item: Value,
        scope: QueryScope,
    ) -> None:
        self.name = name
        self.function = function
        self.arguments = arguments
        self.item = item
        self.scope = scope


BUILT_IN = 6
"""Steps of a call of a built-in function, besides its work."""

HOP = 16
"""Number of nested calls between two checks of the stack."""

CALL = 14
"""Steps of a call, besides the function's body."""


class Lambda(QueryFunction):
    """A function of the query with its enclosing scope."""

    __slots__ = ("body", "item", "nesting", "parameters", "scope", "signature", "weight")

    def __init__(
        self,
        parameters: Sequence[str],
        body: Closure,
        weight: int,
        nesting: Nesting,
        signature: Signature | None,
        item: Value,
        scope: QueryScope,
    ) -> None:
        super().__init__("", len(parameters))
        self.parameters = parameters
        self.body = body
        self.weight = weight + CALL
        self.nesting = nesting
        self.signature = signature
        self.item = item
        self.scope = scope

    def apply(self, arguments: list[Value], item: Value, scope: QueryScope) -> Value:
        """Call the function, and perform its tail calls.

        Raises:
            QueryFault: D1011 for too many nested calls, D1012 beyond the limit of steps.
        """
        run = scope.run
        run.depth += 1
        if run.depth > run.bounds.depth:
            raise fault("D1011")
        level = run.level
        if run.depth % HOP == 0 and is_stack_half_full():
            value = run_on_new_stack(
                lambda: _perform_tail_calls(self._entered(arguments, item), item, scope, level)
            )
        else:
            value = self._entered(arguments, item)
            if type(value) is TailCall:
                value = _perform_tail_calls(value, item, scope, level)
        run.level = level
        run.depth -= 1
        return value

    def _entered(self, arguments: list[Value], item: Value) -> Value:
        """Evaluate the body; a call in tail position is returned as a TailCall."""
        if self.signature is not None:
            arguments = self.signature.validate(arguments, item)
        names = dict(zip(self.parameters, arguments, strict=False))
        if len(names) < self.arity:
            names = dict.fromkeys(self.parameters, UNDEFINED) | names
        run = self.scope.run
        run.steps -= self.weight
        if run.steps < 0:
            run.exceed("steps")
        if run.bounds.nesting is not None:
            run.nest(self.nesting)
        return self.body(self.item, QueryScope(run, self.scope, names))

    def bind_parameters(self, arguments: list[Value]) -> "Lambda":
        """Return the function with some parameters bound; `HOLE` leaves one open."""
        open_, names = [], {}
        for index, name in enumerate(self.parameters):
            value = arguments[index] if index < len(arguments) else UNDEFINED
            if value is HOLE:
                open_.append(name)
            else:
                names[name] = value
        scope = QueryScope(self.scope.run, self.scope, names)
        weight = self.weight - CALL
        return Lambda(open_, self.body, weight, self.nesting, None, self.item, scope)


def _perform_tail_calls(value: Value, item: Value, scope: QueryScope, level: int) -> Value:
    """Perform tail calls one after the other, at the *level* of the first."""
    while type(value) is TailCall:
        call = value
        function = call.function(call.item, call.scope)
        if not isinstance(function, QueryFunction):
            raise fault("T1006")
        arguments = [each(call.item, call.scope) for each in call.arguments]
        try:
            scope.run.level = level
            if type(function) is not Lambda:
                return function.apply(arguments, item, scope)
            value = function._entered(arguments, item)
        except QueryFault as error:
            error.fields.setdefault("token", call.name)
            raise
    return value


HOLE: Any = object()
"""The `?` of a partial application."""


class PartialFunction(QueryFunction):
    """A built-in function with some arguments bound."""

    __slots__ = ("function", "given")

    def __init__(self, function: QueryFunction, given: list[Value]) -> None:
        super().__init__(function.name, sum(value is HOLE for value in given))
        self.function = function
        self.given = given

    def apply(self, arguments: list[Value], item: Value, scope: QueryScope) -> Value:
        """Call the function with the open arguments filled in."""
        rest = iter(arguments)
        filled = [next(rest, UNDEFINED) if value is HOLE else value for value in self.given]
        return self.function.apply(filled, item, scope)


class FunctionChain(QueryFunction):
    """`f ~> g`: first f, then g."""

    __slots__ = ("first", "second")

    def __init__(self, first: QueryFunction, second: QueryFunction) -> None:
        super().__init__("", 1)
        self.first = first
        self.second = second

    def apply(self, arguments: list[Value], item: Value, scope: QueryScope) -> Value:
        """Apply both functions in order.

        Raises:
            QueryFault: D1011 for too many nested calls.
        """
        run = scope.run
        run.spend(1)
        run.depth += 1
        if run.depth > run.bounds.depth:
            raise fault("D1011")
        between = collapse(self.first.apply(arguments[:1], None, scope))
        value = self.second.apply([between], None, scope)
        run.depth -= 1
        return value


Result = TypeVar("Result")


def is_stack_half_full() -> bool:
    """Return whether the interpreter's stack is more than half full."""
    frames, frame = 0, sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        frames += 1
    return frames > sys.getrecursionlimit() // 2


def run_on_new_stack(call: Callable[[], Result]) -> Result:
    """Make a call in a new thread with a stack of its own; return its result.

    So the depth of a query does not depend on the stack of its caller. An exception of the call is
    raised here.
    """
    results: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # raised again in the thread of the caller
            failures.append(error)

    thread = Thread(target=run, name="jsonata")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]
