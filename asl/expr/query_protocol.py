"""What a parsed JSONata expression reads; whoever looks at that needs no query language."""

from typing import NamedTuple, Protocol, TypeAlias

__all__ = [
    "CalledMember",
    "CertainFailure",
    "ParsedQuery",
    "QueryShape",
    "Reference",
    "TextOperand",
]


class Reference(NamedTuple):
    """One reading of a variable that the query does not bind itself.

    `called` says that it is invoked as a function, `member` which member is taken at once:
    `input` in `$states.input.x`.
    """

    name: str
    offset: int
    called: bool = False
    member: str | None = None


class TextOperand(NamedTuple):
    """A string literal as an operand of an arithmetic operator."""

    offset: int
    operator: str


class CalledMember(NamedTuple):
    """A call of a member of the data as a function, as `upper(x)` without its `$`."""

    offset: int
    name: str


CertainFailure: TypeAlias = TextOperand | CalledMember
"""A part of an expression that fails for any data."""


class QueryShape(Protocol):
    """What expressions have in common that differ in constant texts alone."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """Every reading of a free variable; the offsets are those of the form."""

    @property
    def shadowed(self) -> frozenset[str]:
        """The built-in functions whose names it reads, which variables of these would replace."""


class ParsedQuery(Protocol):
    """An expression, as far as it can be told without evaluating it."""

    @property
    def shape(self) -> QueryShape:
        """What is known without its texts: of the same shape, what is right for one is for all."""

    @property
    def variables(self) -> frozenset[str]:
        """The workflow variables that it reads."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """Each reading of a variable, with its offset."""

    @property
    def context(self) -> tuple[tuple[str, int], ...]:
        """What it reads of its context item, and where."""

    @property
    def constant(self) -> str | None:
        """The JSON type of an expression that is a literal value, None for any other."""

    def certain_failures(self) -> list[CertainFailure]:
        """Return the parts that fail for any data."""


DELIMITERS = ("{%", "%}")
"""What an expression begins and ends with, blanks before or after them not being allowed."""


def query_source(text: str) -> str | None:
    """The source between the delimiters, without the blanks around it; None for other strings.

    `" {% 1 %} "` is an ordinary string (AWS, recorded).
    """
    opening, closing = DELIMITERS
    if len(text) < 4 or not text.startswith(opening) or not text.endswith(closing):
        return None
    return text[2:-2].strip()
