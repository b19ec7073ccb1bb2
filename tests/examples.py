"""How many examples of a law hypothesis tries."""

from hypothesis import settings


def examples(quick: int, full: int | None = None) -> int:
    """Return the number of examples of a law whose examples take long.

    Args:
        quick: Examples without `--full`.
        full: Examples with `--full`; None for ten times as many as in a quick run.
    """
    is_quick = settings().max_examples <= 100
    return quick if is_quick else full or 10 * quick
