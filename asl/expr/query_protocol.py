"""JSONata expressions as checks see them, without loading the query language."""

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
    """One use of a variable that the query does not bind itself.

    `called` marks a call, `member` is the member taken from it: `input` in `$states.input.x`.
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
    """A call of a member of the data, as `upper(x)` without its `$`."""

    offset: int
    name: str


CertainFailure: TypeAlias = TextOperand | CalledMember
"""A part of an expression that fails for any data."""


class QueryShape(Protocol):
    """The common part of expressions that differ in constant texts only."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """The uses of free variables, with offsets in the form."""

    @property
    def builtin_names(self) -> frozenset[str]:
        """The built-in function names it reads, which workflow variables would replace."""


class ParsedQuery(Protocol):
    """A parsed expression, as far as it is known without evaluation."""

    @property
    def shape(self) -> QueryShape:
        """Everything known without its texts; equal for all expressions of one shape."""

    @property
    def variables(self) -> frozenset[str]:
        """The workflow variables that it reads."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """The uses of variables, with their offsets."""

    @property
    def context(self) -> tuple[tuple[str, int], ...]:
        """The uses of the context item, with their offsets."""

    @property
    def constant(self) -> str | None:
        """The JSON type of an expression that is a literal value, None for any other."""

    def certain_failures(self) -> list[CertainFailure]:
        """Return the parts that fail for any data."""


DELIMITERS = ("{%", "%}")
"""Start and end of an expression; no blanks are allowed outside of them."""


def query_source(text: str) -> str | None:
    """Return the source between the delimiters without outer blanks; None for other strings.

    `" {% 1 %} "` is an ordinary string (AWS, recorded).
    """
    opening, closing = DELIMITERS
    if len(text) < 4 or not text.startswith(opening) or not text.endswith(closing):
        return None
    return text[2:-2].strip()
