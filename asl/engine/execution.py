"""One run of a program: its identity, what it has spent, and its flat history."""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType

from asl.core.values import Json, is_number
from asl.program import Program
from asl.states.host import Record

__all__ = ["Execution"]

ARN = "arn:aws:states:us-east-1:111111111111"
"""Ids have the form of AWS's, so that documents which take them apart run unchanged."""
ROLE = "arn:aws:iam::111111111111:role/local"
NO_PRICES: Mapping[str, Decimal] = MappingProxyType({})


class Execution:
    """One run of a program; shared by all of its machines.

    `started` is in epoch seconds, `deadline` the epoch second at which it times out. Usage is
    counted here (`cost`, `tokens`, and both by state), whatever becomes of the states.
    """

    __slots__ = (
        "by_model",
        "by_state",
        "cost",
        "deadline",
        "emit",
        "express",
        "id",
        "input",
        "max_cost",
        "name",
        "prices",
        "program",
        "role",
        "started",
        "tokens",
        "workflow_id",
    )

    def __init__(
        self,
        program: Program,
        data: Json,
        *,
        name: str,
        started: float,
        emit: Callable[[Record], None],
        express: bool = False,
        prices: Mapping[str, Decimal] = NO_PRICES,
    ) -> None:
        self.program = program
        self.input = data
        self.name = name
        self.express = express
        self.id = (
            f"{ARN}:express:{program.name}:{name}:{name}"
            if express
            else f"{ARN}:execution:{program.name}:{name}"
        )
        self.workflow_id = f"{ARN}:stateMachine:{program.name}"
        self.role = ROLE
        self.started = started
        self.deadline = None if program.timeout is None else started + program.timeout
        self.emit = emit
        self.prices = prices
        self.cost = Decimal(0)
        self.tokens = 0
        self.max_cost: Decimal | None = None
        self.by_state: dict[str, tuple[Decimal, int]] = {}
        self.by_model: dict[str, tuple[Decimal, int]] = {}

    def account(self, state: str, result: Json) -> None:
        """Count the usage that an agent reports in its raw result (Specification 7).

        Keys: `_tokens`, `_usage` {`input`, `output`}, `_cost`, `model`. Missing keys count 0;
        negative or non-numeric usage is ignored.
        """
        tokens = _tokens(result)
        cost = _cost(result.get("_cost"))
        if not tokens and not cost:
            return
        self.tokens += tokens
        self.cost += cost
        _add(self.by_state, state, cost, tokens)
        model = result.get("model")
        if type(model) is str:
            _add(self.by_model, model, cost, tokens)


def _tokens(result: Mapping[str, Json]) -> int:
    if "_tokens" in result:
        return _count(result["_tokens"])
    usage = result.get("_usage")
    if type(usage) is not dict:
        return 0
    return _count(usage.get("input")) + _count(usage.get("output"))


def _count(value: Json) -> int:
    return int(value) if is_number(value) and value >= 0 else 0


def _cost(value: Json) -> Decimal:
    if not is_number(value) or value < 0:
        return Decimal(0)
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return Decimal(0)


def _add(totals: dict[str, tuple[Decimal, int]], key: str, cost: Decimal, tokens: int) -> None:
    spent, used = totals.get(key, (Decimal(0), 0))
    totals[key] = (spent + cost, used + tokens)
