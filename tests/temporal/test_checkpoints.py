"""Checkpoints on Temporal: workers save them in their storages, and executions resume from them."""

from __future__ import annotations

from typing import Any

import pytest

import asl

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""

DOCUMENT = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Pass", "Assign": {"x": 1}, "Next": "Save"},
        "Save": {"Type": "Checkpoint", "Name": "saved", "Storage": "vault", "Next": "B"},
        "B": {"Type": "Task", "Agent": "B", "End": True},
    },
}


def test_resume_from_a_checkpoint_of_a_worker(address: str) -> None:
    def fail(data: Any) -> Any:
        raise ValueError("no")

    vault = dict[str, Any]()
    with asl.open_store(address, checkpoints={"vault": vault}) as store:
        failed = store.run(DOCUMENT, 1, agents={"B": fail})
        (checkpoint,) = store.checkpoints(failed.name)
        assert vault[checkpoint.id]["variables"] == {"x": 1}
        found = store.resume(failed.name, from_checkpoint="saved", agents={"B": lambda data: 2})
        assert (found.status, found.output, found.visited) == ("SUCCEEDED", 2, ["A", "Save", "B"])


def test_a_storage_that_is_not_bound(address: str) -> None:
    with asl.open_store(address) as store:
        found = store.run(DOCUMENT, 1, agents={"B": lambda data: 2})
    assert found.error == "States.Runtime"
    assert found.cause == "no storage 'vault' is registered (there are default, file)"
