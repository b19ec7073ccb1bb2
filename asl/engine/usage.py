"""Usage: reports of calls, amounts by the fields of a budget, and sums of both (8.11).

Every execution counts its usage, with or without a budget. `asl.engine.limits` has the accounts of
budgets.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from math import ceil
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from asl.core.values import Json, compact, excerpt, is_number
from asl.expr.agent_answers import USAGE_KEYS
from asl.states.blocks.budget_limits import Amounts, BudgetLimits

__all__ = [
    "BROKEN",
    "LOST",
    "NOTHING",
    "NO_USAGE",
    "UNKNOWN",
    "UNSPENT",
    "UNUSED",
    "ZERO",
    "Attribution",
    "CallUsage",
    "ExecutionSpending",
    "PastUsage",
    "Price",
    "RequestTokens",
    "UsageTotals",
    "add_amounts",
    "add_to",
    "amounts_of",
    "max_amounts",
    "read_amounts",
    "read_tokens",
    "read_totals",
    "reported_amount",
    "reported_usage",
    "request_tokens",
    "requests_usage",
    "subtract_amounts",
    "totals_to_json",
    "usage_of_failure",
    "write_amounts",
    "write_totals",
]

ZERO = Decimal(0)
_TOLD = frozenset({"_tokens", "_cost"})
_PARTS = frozenset({"input", "output"})
MOST = 10**12
"""Maximum usage that one call can report; larger values are invalid."""


class UsageTotals(NamedTuple):
    """The totals of an execution; replaced, never changed, so that history can store them."""

    cost: Decimal = ZERO
    tokens: int = 0
    max_cost: Decimal | None = None


NO_USAGE = UsageTotals()


class Price(NamedTuple):
    """The price of one token of a model."""

    input: Decimal
    output: Decimal


class CallUsage(NamedTuple):
    """The usage of one call, as its raw result reports it."""

    cost: Decimal
    tokens: int
    input: int
    output: int
    model: str | None
    unpriced: bool = False
    """Whether there are tokens, but neither a cost nor a price of their model."""
    fault: str | None = None
    """Invalid part of the report, which was ignored; None without one."""


UNUSED: Final = CallUsage(ZERO, 0, 0, 0, None)
LOST: Final = UNUSED._replace(fault="nothing")
"""Usage of a call that was cancelled before its end."""
BROKEN: Final = UNUSED._replace(fault="nothing, as a tool")
"""Usage of a tool call that was cancelled before its end."""


class ExecutionSpending(NamedTuple):
    """The spending of an execution, in total and by model."""

    usage: UsageTotals = UsageTotals()
    by_model: Mapping[str, tuple[Decimal, int]] = MappingProxyType({})
    assumed: Mapping[str, Decimal | int] = MappingProxyType({})
    """Amounts assumed for calls that reported no usage, by the fields of a budget."""


UNSPENT = ExecutionSpending()


def usage_of_failure(failure: Json) -> dict[str, Json] | None:
    """Return the usage that an agent reports together with a failure, None without one."""
    if type(failure) is not dict or USAGE_KEYS.isdisjoint(failure):
        return None
    return {key: failure[key] for key in (*USAGE_KEYS, "model") if key in failure}


def reported_usage(result: Mapping[str, Json], prices: Mapping[str, Price]) -> CallUsage:
    """Return the usage that an agent reports in its raw result (Specification 7).

    Keys: `_tokens`, `_usage` {`input`, `output`}, `_cost`, `model`. Missing keys count 0. Negative,
    non-numeric or excessive values are a fault and count 0, as does a `_usage` with other keys
    only, unless there is `_tokens` or `_cost`. Fractions of a token are rounded up. Without `_cost`
    the price of the model applies; tokens beyond input and output cost as the dearer of both.
    """
    fault, given, made = None, 0, 0
    if "_usage" in result:
        usage: Json = result["_usage"]
        parts = usage if type(usage) is dict else {}
        given, made = _count(parts.get("input", 0)), _count(parts.get("output", 0))
        unread = parts and _TOLD.isdisjoint(result) and _PARTS.isdisjoint(parts)
        if type(usage) is not dict or given is None or made is None or unread:
            fault, given, made = f"_usage {excerpt(usage, 200)}", 0, 0
    tokens = given + made
    if "_tokens" in result:
        tokens = _count(result["_tokens"])
        if tokens is None:
            fault, tokens = f"_tokens {excerpt(result['_tokens'], 200)}", 0
    model = result.get("model")
    if type(model) is not str:
        model = None
    if "_cost" in result:
        cost: Json = result["_cost"]
        if not _is_usage(cost):
            fault, cost = f"_cost {excerpt(cost, 200)}", 0
        return CallUsage(Decimal(str(cost)), tokens, given, made, model, False, fault)
    if not (tokens or given or made):
        return CallUsage(ZERO, tokens, given, made, model, False, fault)
    price = None if model is None else prices.get(model)
    if price is None:
        return CallUsage(ZERO, tokens, given, made, model, True, fault)
    other = max(0, tokens - given - made)
    whole = price.input * given + price.output * made + max(price) * other
    return CallUsage(whole, tokens, given, made, model, False, fault)


def _count(value: Json) -> Any:
    """Return a number of tokens, rounded up; None for an invalid value."""
    if type(value) is int and 0 <= value <= MOST:
        return value
    return ceil(value) if _is_usage(value) else None


def _is_usage(value: Json) -> bool:
    kind = type(value)
    return (kind is float or kind is int or is_number(value)) and 0 <= value <= MOST


class RequestTokens(NamedTuple):
    """The tokens of one request to a model."""

    input: int
    output: int
    known: bool
    """Whether these are all tokens that it has used."""


def request_tokens(given: Json, made: Json) -> RequestTokens:
    """Return the tokens of a request to a model, as far as its provider reports them.

    A count that is no usage (negative, no number, beyond all measure) counts 0 and leaves the usage
    unknown. So does a report of no tokens at all, since no request is free.
    """
    counts = _count(given), _count(made)
    read = counts[0] or 0, counts[1] or 0
    return RequestTokens(*read, known=None not in counts and any(read))


def requests_usage(requests: Iterable[RequestTokens], *, complete: bool = True) -> dict[str, Json]:
    """Return the usage of a call in the form of a raw result.

    Args:
        requests: The requests to models that the call has made.
        complete: Whether no other request has used anything.
    """
    requests = list(requests)
    used: dict[str, Json] = {
        "input": sum(each.input for each in requests),
        "output": sum(each.output for each in requests),
    }
    known = complete and all(each.known for each in requests)
    return {
        "_tokens": used["input"] + used["output"],
        "_usage": used if known else None,  # null is no usage: nothing is free
    }


def add_to(totals: dict[str, tuple[Decimal, int]], key: str, cost: Decimal, tokens: int) -> None:
    """Add to the totals of one key."""
    known = totals.get(key)
    totals[key] = (cost, tokens) if known is None else (known[0] + cost, known[1] + tokens)


def totals_to_json(table: Mapping[str, tuple[Decimal, int]]) -> dict[str, Json]:
    """Return costs and tokens by key as JSON."""
    return {name: {"cost": float(cost), "tokens": tokens} for name, (cost, tokens) in table.items()}


# Amounts

NOTHING: Final[dict[str, Decimal | int]] = {
    "MaxCost": ZERO,
    "MaxTokens": 0,
    "MaxInputTokens": 0,
    "MaxOutputTokens": 0,
}
UNKNOWN: Final[Amounts] = {}
"""Amounts of a call without any knowledge."""


def amounts_of(used: CallUsage) -> Amounts:
    """Return the usage of a call by the fields that limit it, without zeros."""
    found: dict[str, Decimal | int] = {}
    cost, tokens, given, made, *_ = used
    if cost:
        found["MaxCost"] = cost
    if tokens:
        found["MaxTokens"] = tokens
    if given:
        found["MaxInputTokens"] = given
    if made:
        found["MaxOutputTokens"] = made
    return found


def write_amounts(amounts: Amounts) -> dict[str, str]:
    """Return amounts as JSON."""
    return {name: str(each) for name, each in amounts.items()}


def read_amounts(written: Mapping[str, str]) -> dict[str, Decimal | int]:
    """Return amounts from JSON."""
    return {name: Decimal(each) for name, each in written.items()}


def write_totals(totals: Mapping[str, tuple[Decimal, int]]) -> dict[str, Json]:
    """Return cost and tokens by key as JSON."""
    return {key: [str(cost), tokens] for key, (cost, tokens) in totals.items()}


def read_totals(written: Mapping[str, Json]) -> dict[str, tuple[Decimal, int]]:
    """Return cost and tokens by key from JSON."""
    return {key: (Decimal(cost), read_tokens(tokens)) for key, (cost, tokens) in written.items()}


def read_tokens(written: Json) -> int:
    """Return a number of tokens from JSON.

    Raises:
        TypeError: The value is not an integer.
    """
    if type(written) is not int:
        raise TypeError(f"a number of tokens cannot be {excerpt(written)}")
    return written


def reported_amount(name: str, amount: Decimal | int) -> float | int:
    """Return an amount for a report: a number for money, an integer for tokens."""
    return float(amount) if name == "MaxCost" else ceil(amount)


def add_amounts(one: Amounts, other: Amounts) -> Amounts:
    """Return the sums for the fields of the second argument."""
    return {name: one.get(name, 0) + each for name, each in other.items()}


def subtract_amounts(sizes: Amounts, counted: Amounts) -> dict[str, Decimal | int]:
    """Return by how much sizes exceed the counted amounts, without fields where they do not."""
    found: dict[str, Decimal | int] = {}
    for name, size in sizes.items():
        rest = size - counted.get(name, 0)
        if rest > 0:
            found[name] = rest if name == "MaxCost" else ceil(rest)
    return found


def max_amounts(one: Amounts, other: Amounts) -> Amounts:
    """Return the larger of two amounts for each field."""
    return {**one, **{name: max(each, one.get(name, 0)) for name, each in other.items()}}


# Usage of several calls

TOKENS: Final = {name: each for name, each in NOTHING.items() if name != "MaxCost"}
"""Usage of a call without tokens and of unknown cost."""


class PastUsage:
    """The largest usage of the agents and tools of a run, by key of their calls."""

    def __init__(self) -> None:
        self.own: dict[str, Amounts] = {}
        """Largest usage of one call; replaced, never changed."""
        self.within: dict[str, Amounts] = {}
        """Largest usage of all nested calls of one call."""
        self.unbounded: set[str] = set()
        """Keys of calls that have exceeded the bounds of the document."""
        self.rates: dict[str, Decimal] = {}
        """Highest observed cost of a token, by key of the calls."""
        self._known: dict[str, Amounts] = {}
        """Sums of both usages."""

    def expect(self, key: str, sizes: Amounts) -> tuple[Amounts, Amounts]:
        """Return the maximum expected usage of a call: its own, and that including nested calls.

        Args:
            key: Key of similar calls.
            sizes: Bounds of the document, which hold until a call has exceeded them.
        """
        own = self.own.get(key, UNKNOWN)
        if not sizes:
            return own, self._known.get(key, UNKNOWN)
        if "MaxTokens" in sizes and "MaxCost" not in sizes:  # a model without a price
            if key in self.rates:
                own = max_amounts(own, {"MaxCost": self.rates[key] * sizes["MaxTokens"]})
            elif not own.get("MaxCost", 1):  # calls without tokens have no price per token
                own = {name: size for name, size in own.items() if name != "MaxCost"}
        own = max_amounts(own, sizes) if key in self.unbounded else {**own, **sizes}
        within = self.within.get(key, UNKNOWN)
        return own, {name: size + within.get(name, 0) for name, size in own.items()}

    def learn(
        self,
        key: str,
        used: Amounts,
        within: Amounts = UNKNOWN,
        sizes: Amounts = UNKNOWN,
        *,
        priced: bool = True,
    ) -> None:
        """Record the usage of a call.

        Args:
            key: Key of similar calls.
            used: Its own usage.
            within: Usage of its nested calls.
            sizes: Bounds of the document.
            priced: Whether its cost is known.
        """
        if used.get("MaxTokens") and used.get("MaxCost"):
            rate = Decimal(used["MaxCost"]) / used["MaxTokens"]
            self.rates[key] = max(rate, self.rates.get(key, rate))
        nothing = NOTHING if priced else TOKENS
        own, inner = self.own.get(key, nothing), self.within.get(key, UNKNOWN)
        if any(size < used.get(name, 0) for name, size in sizes.items()):
            self.unbounded.add(key)
        known = {**nothing, **used} if own is nothing else _most(own, {**nothing, **used})
        if within is not UNKNOWN and (most := max_amounts(inner, within)) != inner:
            self.within[key] = most
        elif known is own:
            return
        self.own[key] = known
        self._add_up(key)

    def _add_up(self, key: str) -> None:
        own, within = self.own[key], self.within.get(key)
        self._known[key] = own if within is None else {**own, **add_amounts(own, within)}

    # Persistence

    def to_json(self) -> dict[str, Json]:
        """Return the recorded usage as JSON."""
        return {
            "largest": {key: write_amounts(known) for key, known in self.own.items()},
            "within": {key: write_amounts(known) for key, known in self.within.items()},
            "unbounded": sorted(self.unbounded),
            "rates": {key: str(rate) for key, rate in self.rates.items()},
        }

    def restore(self, written: Json) -> None:
        """Add stored usage."""
        self.unbounded.update(map(str, written.get("unbounded", ())))
        within = written.get("within", {})
        for key, known in written.get("largest", {}).items():
            self.learn(key, read_amounts(known), read_amounts(within.get(key, {})) or UNKNOWN)
        for key, rate in written.get("rates", {}).items():
            self.rates[key] = max(Decimal(rate), self.rates.get(key, Decimal(0)))


def _most(known: Amounts, used: Amounts) -> Amounts:
    """Return the larger amount of each field; *known* itself if nothing is larger."""
    for name, each in used.items():
        if name not in known or each > known[name]:
            known = {**known, name: each}
    return known


UNCATEGORIZED = "uncategorized"


class Attribution:
    """Cost and tokens by category, tag and attribution of the states' budgets."""

    def __init__(self, track_by: tuple[str, ...] | None) -> None:
        self.track_by = track_by
        """Keys of attributions that are reported, None for all."""
        self.by_category: dict[str, tuple[Decimal, int]] = {}
        self.by_tag: dict[str, tuple[Decimal, int]] = {}
        self.by_attribution: dict[str, dict[str, tuple[Decimal, int]]] = {}

    def add(self, limits: BudgetLimits, used: CallUsage) -> None:
        """Count the usage of a call under the attributions of its limits."""
        cost, tokens = used.cost, used.tokens
        add_to(self.by_category, limits.category or UNCATEGORIZED, cost, tokens)
        for tag in limits.tags:
            add_to(self.by_tag, tag, cost, tokens)
        if limits.attribution is None:
            return
        for key, value in limits.attribution.items():
            if self.track_by is None or key in self.track_by:
                text = value if type(value) is str else compact(value)
                add_to(self.by_attribution.setdefault(key, {}), text, cost, tokens)

    def report(self) -> dict[str, Json]:
        """Return the totals in the form of a result's usage."""
        attributed = {key: totals_to_json(table) for key, table in self.by_attribution.items()}
        return {
            "byCategory": totals_to_json(self.by_category),
            "byTag": totals_to_json(self.by_tag),
            "byAttribution": attributed,
        }

    # Persistence

    def to_json(self) -> dict[str, Json]:
        """Return the totals as JSON."""
        return {
            "attributions": list(self.by_attribution),
            "tables": [write_totals(table) for table in self._tables()],
        }

    def restore(self, written: Json) -> None:
        """Restore stored totals."""
        self.by_attribution = {key: {} for key in written["attributions"]}
        for table, found in zip(self._tables(), written["tables"], strict=True):
            table.update(read_totals(found))

    def _tables(self) -> list[dict[str, tuple[Decimal, int]]]:
        return [self.by_category, self.by_tag, *self.by_attribution.values()]
