"""The syntax tree of HCL, with positions."""

from dataclasses import dataclass, field
from typing import Final

from asl.core.values import Json
from asl.sources.text import TrackedText

__all__ = [
    "ITEM",
    "HclAttribute",
    "HclBlock",
    "HclBody",
    "HclCall",
    "HclCondition",
    "HclFor",
    "HclIndex",
    "HclLiteral",
    "HclName",
    "HclNode",
    "HclObject",
    "HclOperation",
    "HclRepeat",
    "HclSplat",
    "HclTuple",
    "TemplateExpression",
]

ITEM: Final = "*"
"""The name of a splat's item; no variable has this name."""


@dataclass(slots=True)
class HclNode:
    """An expression, from one offset of the text up to another."""

    at: int
    end: int


@dataclass(slots=True)
class HclLiteral(HclNode):
    """A number, true, false or null."""

    value: Json


@dataclass(slots=True)
class TemplateExpression(HclNode):
    """A quoted text, a heredoc, or the body of a directive: texts and expressions in turn.

    A quoted text with a single expression has the value of that expression.
    """

    parts: list[TrackedText | HclNode]
    quoted: bool = False


@dataclass(slots=True)
class HclName(HclNode):
    """A variable, or the first word of a reference."""

    name: str


@dataclass(slots=True)
class HclAttribute(HclNode):
    """`of.name`."""

    of: HclNode
    name: str


@dataclass(slots=True)
class HclIndex(HclNode):
    """`of[key]`."""

    of: HclNode
    key: HclNode


@dataclass(slots=True)
class HclSplat(HclNode):
    """`of[*].each`: the value of `each` for every item, which is named `ITEM`."""

    of: HclNode
    each: HclNode


@dataclass(slots=True)
class HclCall(HclNode):
    """`name(arguments)`; with `spread` the last one holds the remaining arguments."""

    name: str
    arguments: list[HclNode]
    spread: bool


@dataclass(slots=True)
class HclTuple(HclNode):
    """`[items]`."""

    items: list[HclNode]


@dataclass(slots=True)
class HclObject(HclNode):
    """`{ key = value }`."""

    items: list[tuple[HclNode, HclNode]]


@dataclass(slots=True)
class HclFor(HclNode):
    """`[for names in over : value if test]`; in braces with a key, optionally grouped by it."""

    names: list[str]
    over: HclNode
    key: HclNode | None
    value: HclNode
    test: HclNode | None
    grouped: bool


@dataclass(slots=True)
class HclCondition(HclNode):
    """`test ? yes : no`, also as a directive of a template."""

    test: HclNode
    yes: HclNode
    no: HclNode


@dataclass(slots=True)
class HclRepeat(HclNode):
    """The directive `%{ for names in over }body%{ endfor }`."""

    names: list[str]
    over: HclNode
    body: HclNode


@dataclass(slots=True)
class HclOperation(HclNode):
    """`left operator right`, or `operator right`."""

    operator: str
    left: HclNode | None
    right: HclNode


@dataclass(slots=True)
class HclBlock:
    """`kind "label" { body }`."""

    at: int
    kind: str
    labels: list[str]
    body: "HclBody"


@dataclass(slots=True)
class HclBody:
    """Attributes by name, and blocks."""

    attributes: dict[str, HclNode] = field(default_factory=dict)
    blocks: list[HclBlock] = field(default_factory=list)
