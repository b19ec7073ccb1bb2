"""Handles of executions."""

from typing import Any

import pytest

import asl
from asl.executions import handle
from asl.executions.store import Store

PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}


def test_an_execution_that_ends_between_two_reads_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends while its version is read, after which the version no longer changes."""

    def refuse(seconds: float) -> None:
        raise AssertionError("it waits")

    class Ending(Store):
        def version(self, name: str) -> Any:
            if self.get(name).status == "RUNNING":
                self.cancel(name)
            return super().version(name)

    monkeypatch.setattr(handle, "sleep", refuse)
    with Ending("memory:") as store:
        started: asl.Handle = store.start(PASS, {})
        assert started.result(5).status == "ABORTED"
