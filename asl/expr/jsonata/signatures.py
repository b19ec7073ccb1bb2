"""Signatures of functions: `<s-nn?:s>` checks and completes the arguments of a call.

The type letters of all arguments are matched against a pattern made of the parameters. The context
item may replace a missing value (`-`), and a single value may become an array (`a`).
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.javascript import UNDEFINED, Value
from asl.expr.jsonata.values import symbol

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
