"""What the reader has written in JSONata, read again: calls of its functions, paths, values."""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from asl.core.values import Json
from asl.expr.jsonata.parser import parse
from asl.expr.query_protocol import query_source

__all__ = ["INPUT", "Call", "Literal", "Members", "Operation", "Term", "Way", "term_of"]

_PREFIX: Final = "flujo_"


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is written out."""

    value: Json


@dataclass(frozen=True, slots=True)
class Way:
    """A path: the names behind `$states`."""

    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the dialect, or of JSONata, with what it is given."""

    name: str
    given: tuple["Term", ...]

    def literal(self, index: int) -> Any:
        """Return an argument that is written out, None where there is none."""
        found = self.given[index] if index < len(self.given) else None
        return found.value if isinstance(found, Literal) else None


@dataclass(frozen=True, slots=True)
class Members:
    """An object whose members are computed."""

    members: tuple[tuple[str, "Term"], ...]

    def get(self, name: str) -> "Term | None":
        """Return a member."""
        return dict(self.members).get(name)


@dataclass(frozen=True, slots=True)
class Operation:
    """Two operands."""

    sign: str
    left: "Term"
    right: "Term"


Term: TypeAlias = Literal | Way | Call | Members | Operation
INPUT: Final = Way(("input",))


def term_of(value: Json) -> Term:
    """Return what a field says that the reader has written."""
    source = query_source(value) if isinstance(value, str) else None
    return Literal(value) if source is None else _term(parse(source).tree)


def _term(node: Any) -> Term:
    match node.type:
        case "string" | "number" | "value":
            return Literal(node.value)
        case "path":
            return Way(tuple(str(step.value) for step in node.steps[1:]))
        case "function":
            name = str(node.procedure.value).removeprefix(_PREFIX)
            return Call(name, tuple(map(_term, node.arguments)))
        case "binary":
            return Operation(node.value, _term(node.lhs), _term(node.rhs))
        case "block":
            return _term(node.expressions[0])
        case "unary" if node.value == "[":
            items = [_term(each) for each in node.expressions]
            if all(isinstance(each, Literal) for each in items):
                return Literal([each.value for each in items if isinstance(each, Literal)])
        case "unary" if node.value == "-":
            found = _term(node.expression)
            if isinstance(found, Literal) and isinstance(found.value, int | float):
                return Literal(-found.value)
        case "unary" if node.value == "{":
            pairs = [(_term(key), _term(each)) for key, each in node.lhs_object]
            named = tuple((str(key.value), each) for key, each in pairs if isinstance(key, Literal))
            if all(isinstance(each, Literal) for _, each in named):
                return Literal(
                    {key: each.value for key, each in named if isinstance(each, Literal)}
                )
            return Members(named)
    return Call(node.type, ())
