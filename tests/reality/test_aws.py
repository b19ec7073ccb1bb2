"""Recordings of the real service: our `aws` profile gives the same status, output, error.

The recordings lie beside the repository; without them these tests are skipped.
"""

from typing import Any

import pytest

from .aws import agrees, needs_recordings, recordings, replay

pytestmark = needs_recordings


@pytest.mark.parametrize("case", list(recordings()))
def test_a_recorded_execution_ends_as_it_did(case: Any) -> None:
    """Status, output, error name and cause are those of the recording."""
    result, expected = replay(case), case["expected"]
    assert result.status == expected["status"], (result.error, result.cause)
    if result.ok:
        assert agrees(expected["output"], result.output)
    else:
        assert agrees(expected.get("error"), result.error)
        assert agrees(expected.get("cause"), result.cause)
