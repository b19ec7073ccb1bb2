"""Terms as texts and arguments: paths in them become placeholders."""

import re
from collections.abc import Callable
from typing import Final

from asl.dialects.codemie.functions.placeholders import find_placeholders
from asl.dialects.codemie.writing.expressions import Unsayable
from asl.dialects.codemie.writing.scope import ContextScope
from asl.dialects.terms import DataPath, Literal, Step, Term, Text, Unknown, as_text

__all__ = ["Texts", "unreadable"]

_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def placeholder(steps: tuple[Step, ...]) -> str | None:
    """Return the placeholder of a place in the context, None if it has none."""
    first, *others = map(str, steps)
    said = first
    for step in others:
        if step.isdecimal():
            said += f"[{step}]"
        else:
            said += f".{step}" if _KEY.fullmatch(step) else f"['{step}']"
    made = f"{{{{{said}}}}}"
    found = [*find_placeholders(made)]
    fits = len(found) == 1 and found[0].end == len(made) and found[0].steps == (first, *others)
    return made if fits else None


class Texts:
    """Prints the terms of one state as texts.

    Args:
        scope: Where data is.
        compute: Returns the key under which a computed value is in front of the state; raises
            Unsayable.
    """

    def __init__(self, scope: ContextScope, compute: Callable[[Term], str]) -> None:
        self.scope = scope
        self.compute = compute

    def text(self, term: Term) -> str:
        """Return a term, over the context and the item, as a text; raises Unsayable."""
        match term:
            case Literal(value):
                return as_text(value)
            case DataPath():
                place = self.scope.place(term)
                found = None if not place else placeholder(place)
                if found is None:
                    raise _unsayable(term)
                return found
            case Text(parts):
                return self._joined(parts)
            case Unknown():
                raise _unsayable(term)
        return f"{{{{{self.compute(term)}}}}}"

    def _joined(self, parts: tuple[Term, ...]) -> str:
        made, meant = "", []
        for each in parts:
            text = self.text(each)
            if not isinstance(each, Literal):
                meant.append((len(made), len(made) + len(text)))
            made += text
        if [(each.start, each.end) for each in find_placeholders(made)] != meant:
            message = "braces next to a placeholder would become placeholders"
            raise Unsayable("L-INTRINSIC", message)
        return made


def unreadable(text: str) -> bool:
    """Whether something would be filled in within a text that is meant as it is."""
    return any(each.steps is not None for each in find_placeholders(text))


def _unsayable(term: Term) -> Unsayable:
    if isinstance(term, DataPath) and term.root == "context":
        return Unsayable("L-CONTEXT", "no placeholder reads the execution, the state or the time")
    if isinstance(term, Unknown) and not term.text.startswith("$"):
        return Unsayable("L-JSONATA", "no placeholder computes this")
    return Unsayable("L-PATH", "no placeholder reads this path")
