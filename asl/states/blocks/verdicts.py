"""Verdicts: what a validator or a hook answers about what it judges."""

from typing import Final

from asl.core.values import Json, compact, excerpt, type_name

__all__ = ["UnclearVerdict", "is_verdict", "rejection"]


class UnclearVerdict(ValueError):
    """An answer is no verdict; what it judges does not pass."""

    def __init__(self, wanted: str, found: str) -> None:
        super().__init__(f"expected {wanted}, got {found}")
        self.wanted = wanted
        self.found = found


FIELDS: Final = ("valid", "blocked")


def is_verdict(answer: Json) -> bool:
    """Whether an answer judges something, clearly or not."""
    if type(answer) is dict:
        return any(key.strip().lower() in FIELDS for key in answer)
    return type(answer) is bool


def rejection(answer: Json) -> str | None:
    """Return the reason for which an answer rejects what it judges, None where it accepts it.

    Args:
        answer: An object that has 'valid', 'blocked' or both, and may have 'reason'.

    Raises:
        UnclearVerdict: The answer is anything else.
    """
    if type(answer) is not dict:
        raise UnclearVerdict("an object that has 'valid'", type_name(answer))
    misspelt = [key for key in answer if key not in FIELDS and key.strip().lower() in FIELDS]
    if misspelt:
        raise UnclearVerdict("'valid' and 'blocked' in small letters", repr(misspelt[0]))
    if "valid" not in answer and "blocked" not in answer:
        raise UnclearVerdict("an object that has 'valid'", excerpt(answer, 200))
    for field in FIELDS:
        if type(answer.get(field, True)) is not bool:
            raise UnclearVerdict(f"{field!r} of true or false", excerpt(answer[field], 200))
    if answer.get("valid", True) and not answer.get("blocked", False):
        return None
    reason = answer.get("reason")
    if reason is None:
        return "it says so"
    return reason if type(reason) is str else compact(reason)
