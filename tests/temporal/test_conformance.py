"""A sample of the conformance cases as workflows: calls are activities, histories are replayed.

`python -m tests.temporal.conformance` runs all of them.
"""

import asyncio
from zlib import crc32

import pytest

from asl.conformance import Case
from tests.temporal.conformance import executable, is_exception, run_cases

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""

PART = 24
"""One case of so many is in the sample, independent of the others."""


def sample() -> list[Case]:
    """Return the cases of the sample."""
    return [
        case
        for case in executable()
        if crc32(case.id.encode()) % PART == 0 and not is_exception(case)
    ]


def test_sample_of_cases() -> None:
    results = asyncio.run(run_cases(sample()))
    assert len(results) > 150
    assert {each.case.id: each.reasons for each in results if each.outcome == "failed"} == {}
