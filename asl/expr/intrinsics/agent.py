"""Intrinsic functions on tokens and money, for workflows of agents (Specification 5.3)."""

from decimal import Decimal

from asl.core.profile import Profile
from asl.core.values import Json
from asl.core.work import WorkMeter
from asl.expr.frame import Frame
from asl.expr.intrinsics.arguments import (
    SMALL,
    TEXT_READ,
    failure,
    integer,
    size_of,
    string,
    text_of,
)
from asl.expr.intrinsics.numeric import shortest

BYTES_PER_TOKEN = 4


def token_count(profile: Profile, frame: Frame, value: Json) -> Json:
    """`States.TokenCount(v)`: an estimate of one token for each started 4 bytes of text."""
    return tokens_of("States.TokenCount", value, profile, frame.work)


def truncate(profile: Profile, frame: Frame, value: Json, max_tokens: Json) -> Json:
    """`States.Truncate(s, maxTokens)`: whole characters of at most that many tokens, then `...`.

    Text that fits is returned unchanged.
    """
    name = "States.Truncate"
    tokens = integer(name, 2, max_tokens)
    if tokens < 0:
        raise failure(name, f"maxTokens must not be negative, found {tokens}")
    text = text_of(name, value, profile.max_payload, work=frame.work)
    limit = min(tokens * BYTES_PER_TOKEN, profile.max_payload)
    if min(limit, len(text)) > SMALL:
        frame.work.spend(min(limit, len(text)) // TEXT_READ)
        frame.work.spend_bytes(min(limit, len(text)))
    prefix = text[: limit + 1].encode()
    if len(prefix) <= limit:
        return text
    return prefix[:limit].decode(errors="ignore") + "..."


def current_cost(frame: Frame) -> Json:
    """`States.CurrentCost()`: the cost of the whole execution so far."""
    return shortest("States.CurrentCost", frame.usage.cost)


def current_tokens(frame: Frame) -> Json:
    """`States.CurrentTokens()`: the tokens of the whole execution so far."""
    return frame.usage.tokens


def remaining_budget(frame: Frame) -> Json:
    """`States.RemainingBudget()`: the unspent budget, null without a limit."""
    usage = frame.usage
    if usage.max_cost is None:
        return None
    return shortest("States.RemainingBudget", max(usage.max_cost - usage.cost, Decimal(0)))


def estimate_cost(profile: Profile, frame: Frame, value: Json, model: Json) -> Json:
    """`States.EstimateCost(v, model)`: the price of the value's tokens as input of the model."""
    name = "States.EstimateCost"
    price = frame.price(string(name, 2, model))
    if price is None:
        raise failure(name, f"no price is known for model {model!r}")
    return shortest(name, tokens_of(name, value, profile, frame.work) * price)


def tokens_of(function: str, value: Json, profile: Profile, work: WorkMeter | None = None) -> int:
    """Estimate the tokens of a value: one for each started 4 bytes of its text."""
    return -(-size_of(function, value, profile.max_payload, work) // BYTES_PER_TOKEN)
