"""Rows of the table of events in docs/temporal.md; `event_counts` measures all."""

import pytest

from tests.temporal.event_counts import count_events, worker

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""


def test_events_of_steps(address: str) -> None:
    with worker(address) as store:
        steps = ("state without effects", "call", "checkpoint in a storage", "approval")
        assert [count_events(store, each) for each in steps] == [0, 6, 6, 6]
