"""The conformance cases as workflows: calls are activities, every history is replayed."""

import asyncio
from collections.abc import Sequence

import pytest

from asl.conformance import Case
from tests.temporal.conformance import executable, is_exception, run_cases

SAMPLE = 60
"""One case of so many is in the quick run."""


def failures(cases: Sequence[Case]) -> dict[str, tuple[str, ...]]:
    """Return the reasons of the cases that fail, by their ids."""
    results = asyncio.run(run_cases([each for each in cases if not is_exception(each)]))
    return {each.case.id: each.reasons for each in results if each.outcome == "failed"}


def test_sample_of_cases() -> None:
    assert not failures(executable()[::SAMPLE])


@pytest.mark.full
def test_all_cases() -> None:
    assert not failures(executable())
