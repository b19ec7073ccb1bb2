"""The syntax tree of HCL, with positions."""

from dataclasses import dataclass, field
from typing import Final

from asl.core.values import Json
from asl.sources.text import TrackedText

__all__ = [
    "ITEM",
    "Attribute",
    "Block",
    "Body",
    "Call",
    "Condition",
    "For",
    "Index",
    "Literal",
    "Name",
    "Node",
    "Object",
    "Operation",
    "Repeat",
    "Splat",
    "TemplateExpression",
    "Tuple",
]

ITEM: Final = "*"
"""The name of a splat's item; no variable has this name."""


@dataclass(slots=True)
class Node:
    """An expression, from one offset of the text up to another."""

    at: int
    end: int


@dataclass(slots=True)
class Literal(Node):
    """A number, true, false or null."""

    value: Json


@dataclass(slots=True)
class TemplateExpression(Node):
    """A quoted text, a heredoc, or the body of a directive: texts and expressions in turn.

    A quoted text with a single expression has the value of that expression.
    """

    parts: list[TrackedText | Node]
    quoted: bool = False


@dataclass(slots=True)
class Name(Node):
    """A variable, or the first word of a reference."""

    name: str


@dataclass(slots=True)
class Attribute(Node):
    """`of.name`."""

    of: Node
    name: str


@dataclass(slots=True)
class Index(Node):
    """`of[key]`."""

    of: Node
    key: Node


@dataclass(slots=True)
class Splat(Node):
    """`of[*].each`: the value of `each` for every item, which is named `ITEM`."""

    of: Node
    each: Node


@dataclass(slots=True)
class Call(Node):
    """`name(arguments)`; with `spread` the last one holds the remaining arguments."""

    name: str
    arguments: list[Node]
    spread: bool


@dataclass(slots=True)
class Tuple(Node):
    """`[items]`."""

    items: list[Node]


@dataclass(slots=True)
class Object(Node):
    """`{ key = value }`."""

    items: list[tuple[Node, Node]]


@dataclass(slots=True)
class For(Node):
    """`[for names in over : value if test]`; in braces with a key, optionally grouped by it."""

    names: list[str]
    over: Node
    key: Node | None
    value: Node
    test: Node | None
    grouped: bool


@dataclass(slots=True)
class Condition(Node):
    """`test ? yes : no`, also as a directive of a template."""

    test: Node
    yes: Node
    no: Node


@dataclass(slots=True)
class Repeat(Node):
    """The directive `%{ for names in over }body%{ endfor }`."""

    names: list[str]
    over: Node
    body: Node


@dataclass(slots=True)
class Operation(Node):
    """`left operator right`, or `operator right`."""

    operator: str
    left: Node | None
    right: Node


@dataclass(slots=True)
class Block:
    """`kind "label" { body }`."""

    at: int
    kind: str
    labels: list[str]
    body: "Body"


@dataclass(slots=True)
class Body:
    """Attributes by name, and blocks."""

    attributes: dict[str, Node] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
