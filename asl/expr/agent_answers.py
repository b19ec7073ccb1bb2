"""Answers of agents, separate from the reported usage (Specification 7)."""

from typing import Final

from asl.core.values import Json

__all__ = ["ANSWER", "USAGE_KEYS", "answer_of"]

USAGE_KEYS: Final = frozenset({"_tokens", "_usage", "_cost"})
"""The keys of the usage in a raw result."""
ANSWER: Final = "response"
"""The key of the answer of a language model in a result with usage."""
_ASIDE: Final = (*USAGE_KEYS, "model", "messages", "finish_reason")


def answer_of(result: Json) -> Json:
    """Return the answer of an agent without its usage.

    Args:
        result: Raw result of a call.

    Returns:
        The `response` of a result that reports usage, or the rest of it if it has none. Any other
        result is returned unchanged.
    """
    if type(result) is not dict or USAGE_KEYS.isdisjoint(result):
        return result
    if ANSWER in result and result.keys() <= {ANSWER, *_ASIDE}:
        return result[ANSWER]
    hidden = (*USAGE_KEYS, "model")
    return {key: value for key, value in result.items() if key not in hidden}
