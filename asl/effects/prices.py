"""Prices of models: the caller's table, then the package `genai-prices` if installed."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from asl.core.errors import AslError
from asl.core.values import Json
from asl.engine.usage import Price

__all__ = ["FixedPrices", "Prices"]

MANY: Final = 1_000_000
"""Number of tokens to which prices of other tables refer."""


class Prices(Mapping[str, Price]):
    """The price of one token by model; models missing in the own table are looked up once."""

    def __init__(self, own: Mapping[str, Any] | None = None) -> None:
        given: Any = own
        if not (given is None or isinstance(given, Mapping)):
            found = type(own).__name__
            raise AslError(f"'prices' must be a mapping from models to prices, got {found}")
        self.known: dict[str, Price | None] = {
            model: _price(model, written) for model, written in (own or {}).items()
        }

    def __getitem__(self, model: str) -> Price:
        if model not in self.known:
            self.known[model] = _public(model)
        found = self.known[model]
        if found is None:
            raise KeyError(model)
        return found

    def __iter__(self) -> Iterator[str]:
        return (model for model, price in self.known.items() if price is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class FixedPrices(Mapping[str, Price]):
    """The prices of one execution, which no later table changes.

    Args:
        prices: Prices of the run.
        recorded: Prices recorded with the execution, as JSON.
        record: Takes all of them as JSON after each new lookup.
    """

    def __init__(
        self,
        prices: Mapping[str, Price],
        recorded: Mapping[str, Json],
        record: Callable[[Json], object],
    ) -> None:
        self.prices = prices
        self.recorded = dict(recorded)
        self.record = record

    def __getitem__(self, model: str) -> Price:
        if model not in self.recorded:
            price = self.prices[model]  # an unknown price may be available later
            self.recorded[model] = [str(price.input), str(price.output)]
            self.record(self.recorded)
        return Price(*map(Decimal, self.recorded[model]))

    def __iter__(self) -> Iterator[str]:
        return iter({**dict(self.prices), **self.recorded})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _price(model: str, written: Any) -> Price:
    """Read a price: one for all tokens, or `{"input": ..., "output": ...}`."""
    both = written if isinstance(written, Mapping) else {"input": written, "output": written}
    try:
        price = Price(Decimal(str(both["input"])), Decimal(str(both["output"])))
    except (InvalidOperation, KeyError):
        price = None
    if price is None or not all(each.is_finite() and each >= 0 for each in price):
        raise AslError(
            f"the price of {model!r} is a number or its text, or an object with input and output, "
            f"for one token each, not {written!r}"
        )
    return price


def _public(model: str) -> Price | None:
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    provider, colon, name = model.partition(":")
    try:
        found = calc_price(
            Usage(input_tokens=MANY, output_tokens=MANY),
            name if colon else model,
            provider_id=provider if colon else None,
        )
    except LookupError:
        return None
    return Price(found.input_price / MANY, found.output_price / MANY)
