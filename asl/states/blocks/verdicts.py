"""Verdicts: what a validator or a hook answers about what it judges."""

from asl.core.values import Json, compact, excerpt, type_name

__all__ = ["UnclearVerdict", "rejection"]


class UnclearVerdict(ValueError):
    """An answer is no verdict; what it judges does not pass."""

    def __init__(self, wanted: str, found: str) -> None:
        super().__init__(f"expected {wanted}, got {found}")
        self.wanted = wanted
        self.found = found


def rejection(answer: Json) -> str | None:
    """Return the reason for which an answer rejects what it judges, None where it accepts it.

    Args:
        answer: An object that may have 'valid', 'blocked' and 'reason'.

    Raises:
        UnclearVerdict: The answer is anything else.
    """
    if type(answer) is not dict:
        raise UnclearVerdict("an object that has 'valid'", type_name(answer))
    for field in ("valid", "blocked"):
        if type(answer.get(field, True)) is not bool:
            raise UnclearVerdict(f"{field!r} of true or false", excerpt(answer[field], 200))
    if answer.get("valid", True) and not answer.get("blocked", False):
        return None
    reason = answer.get("reason")
    if reason is None:
        return "it says so"
    return reason if type(reason) is str else compact(reason)
