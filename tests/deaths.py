"""Processes that die at an instant of a store: before a commit, after an effect, and so on."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar

import pytest

from asl.executions import Store
from tests.examples import sampled

T = TypeVar("T")


def instants(each: range, quick: int) -> list[Any]:
    """Return parameters for deaths at these instants; without `--full` at one of so many."""
    return sampled(each, quick)


def instants_of_kinds(each: range, kinds: Sequence[T], quick: int) -> list[Any]:
    """Return pairs of an instant and a kind; without `--full` the kinds take turns."""
    return [
        (n, kind)
        if index % quick == 0 and kind == kinds[index // quick % len(kinds)]
        else pytest.param(n, kind, marks=pytest.mark.full)
        for index, n in enumerate(each)
        for kind in kinds
    ]


class Died(KeyboardInterrupt):
    """The process is gone."""


def lived(store: Store, live: Callable[[], T], die_at: int | None = None, *of: str) -> T | None:
    """What *live* returns, or None where the process dies at the *die_at*-th instant before.

    Only the instants named in *of* count, or all of them. The file is left as a process leaves it
    that is gone.
    """
    instants = count(1)

    def reached(point: str) -> None:
        if (not of or point in of) and next(instants) == die_at:
            raise Died

    store.session.on_fail_point = reached
    try:
        return live()
    except Died:
        return None
    finally:
        store.session.crash()
        store.close()
