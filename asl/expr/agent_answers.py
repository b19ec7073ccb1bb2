"""The answers of agents without the usage that they report (Specification 7)."""

from typing import Final

from asl.core.values import Json

__all__ = ["ANSWER", "USAGE_KEYS", "answer_of"]

USAGE_KEYS: Final = frozenset({"_tokens", "_usage", "_cost"})
"""The keys under which a raw result reports what it has used."""
ANSWER: Final = "response"
"""The key of the answer of a language model, beside its usage."""
_ASIDE: Final = (*USAGE_KEYS, "model", "messages", "finish_reason")


def answer_of(result: Json) -> Json:
    """Return the answer of an agent as its document sees it: without the usage beside it.

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
