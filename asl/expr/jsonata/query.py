"""A parsed query: what it reads, and its evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asl.core.values import Json
from asl.expr.frame import Frame
from asl.expr.jsonata.analysis import Reference, references

__all__ = ["UNDEFINED", "Query", "QueryFault", "Undefined", "parse"]


class Undefined:
    """The type of `UNDEFINED`, what an expression gives that finds nothing."""

    def __repr__(self) -> str:
        return "undefined"

    def __bool__(self) -> bool:
        return False


UNDEFINED = Undefined()


class QueryFault(Exception):
    """An evaluation failed; the text is AWS's, such as `T1006: Attempted to invoke ...`."""


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed JSONata expression; threads may evaluate one at the same time.

    `variables` are the workflow variables that it reads, `shadowed` the built-in functions whose
    names it reads and that a variable of the same name would replace, `members` the members of
    `$states` it reads, None for the whole object. `references` has each reading with its offset.
    """

    source: str
    variables: frozenset[str]
    shadowed: frozenset[str]
    members: frozenset[str] | None
    references: tuple[Reference, ...]
    _engine: Any

    def __call__(self, bindings: Mapping[str, Json], frame: Frame) -> Json | Undefined:
        """Evaluate with `$name` for each name of *bindings*; raises QueryFault."""
        from asl.expr.jsonata.library import evaluate

        return evaluate(self._engine, bindings, frame)


def parse(source: str) -> Query:
    """Parse a query; raises ExpressionFault(V-JSONATA-01) with the offset of what is wrong."""
    from asl.expr.jsonata.library import BUILT_IN, compile

    engine = compile(source)
    found = references(engine.ast)
    free = {each.name for each in found if each.name != "states" and not each.called}
    states = [each.member for each in found if each.name == "states"]
    members = None if None in states else frozenset(each for each in states if each is not None)
    return Query(
        source, frozenset(free - BUILT_IN), frozenset(free & BUILT_IN), members, found, engine
    )
