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
        value if index % each == 0 else _only_in_full(value) for index, value in enumerate(values)
    ]


def _only_in_full(value: Any) -> Any:
    """Return a parameter for `--full`; one that is marked or named already stays so."""
    if isinstance(value, type(pytest.param())):
        return pytest.param(*value.values, marks=[*value.marks, pytest.mark.full], id=value.id)
    return pytest.param(value, marks=pytest.mark.full)
