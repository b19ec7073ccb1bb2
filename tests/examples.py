"""How much a quick run tries of what there is much of."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def examples(quick: int, full: int | None = None) -> int:
    """Return the number of examples of a law whose examples take long.

    Args:
        quick: Examples without `--full`.
        full: Examples with `--full`; None for twenty times as many as in a quick run.
    """
    is_quick = settings().max_examples <= 100
    return quick if is_quick else full or 20 * quick


def sampled(values: Iterable[Any], each: int) -> list[Any]:
    """Return the parameters of a test; without `--full` it runs for one of so many of them."""
    return [
        value if index % each == 0 else pytest.param(value, marks=pytest.mark.full)
        for index, value in enumerate(values)
    ]
