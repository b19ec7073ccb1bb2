"""The data available to a running expression, and the signature of compiled expressions."""

from collections.abc import Callable
from decimal import Decimal
from typing import Protocol, TypeAlias

from asl.core.values import Json
from asl.core.work import WorkMeter

__all__ = [
    "Evaluate",
    "ExpressionFrame",
    "StateView",
    "UsageView",
    "Variables",
    "assign_variables",
    "constant",
    "identity",
]


class UsageView(Protocol):
    """The usage of the execution so far, and its limit."""

    @property
    def cost(self) -> Decimal:
        """Money spent, in the budget's currency."""
        ...

    @property
    def tokens(self) -> int:
        """Tokens used."""
        ...

    @property
    def max_cost(self) -> Decimal | None:
        """The workflow's limit, None without one."""
        ...


class StateView(Protocol):
    """The state of an expression, bound at compile time."""

    @property
    def state(self) -> str:
        """The state's name."""
        ...

    @property
    def effect(self) -> bool:
        """Whether the state performs an effect."""
        ...

    @property
    def token(self) -> bool:
        """Whether the state has a task token."""
        ...


class ExpressionFrame(Protocol):
    """The running machine as an expression sees it."""

    variables: dict[str, Json]
    now: float
    """Seconds since the epoch, read once per stretch of pure states."""

    @property
    def work(self) -> WorkMeter:
        """The work of all evaluations since the state was entered, or since its effect ended."""
        ...

    @property
    def usage(self) -> UsageView:
        """Totals of the whole execution."""
        ...

    def context(self, root: str, at: "StateView") -> Json:
        """Return one member of the context object (`Execution`, `State`, ...) as a state sees it.

        Raises:
            KeyError: The context object has no such member now (Specification 3.10).
        """
        ...

    def entropy(self) -> int:
        """Return 128 random bits, the same in a replay of the execution."""
        ...

    def price(self, model: str) -> Decimal | None:
        """Return the price of one input token of *model*, None if it is unknown."""
        ...


class Variables(dict[str, Json]):
    """All variables after a state has assigned some of them."""

    __slots__ = ("assigned",)
    assigned: dict[str, Json]
    """The variables assigned by that state, changed or not."""


def assign_variables(variables: dict[str, Json], values: dict[str, Json]) -> Variables:
    """Return new variables: the old ones updated with these values."""
    made = Variables(variables)
    made.update(values)
    made.assigned = values
    return made


Evaluate: TypeAlias = Callable[[Json, ExpressionFrame], Json]
"""Signature of compiled expressions: `(data, frame) -> value`; raises StateError."""


def identity(data: Json, frame: ExpressionFrame) -> Json:
    """Return the data as it is: the expression `$`."""
    return data


def constant(value: Json) -> Evaluate:
    """Return the expression with a constant value."""
    return lambda data, frame: value
