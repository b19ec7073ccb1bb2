"""Runners that die at an instant: another one goes on, and nothing recorded is done again."""

import asyncio
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.effects.clock import VirtualClock
from tests.deaths import instants
from tests.stores.conftest import Place

Json = Any

TASK = {"Type": "Task", "Agent": "Work"}
DOCUMENT: dict[str, Json] = {
    "StartAt": "First",
    "States": {
        "First": {**TASK, "ResultPath": "$.first", "Next": "Both"},
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {
                    "StartAt": "Ask",
                    "States": {
                        "Ask": {
                            "Type": "Approval",
                            "Prompt": "Go on?",
                            "ResultPath": "$.answer",
                            "Next": "Asked",
                        },
                        "Asked": {**TASK, "End": True},
                    },
                },
                {
                    "StartAt": "Wait",
                    "States": {
                        "Wait": {"Type": "Wait", "Seconds": 30, "Next": "Waited"},
                        "Waited": {**TASK, "End": True},
                    },
                },
            ],
            "Next": "Last",
        },
        "Last": {**TASK, "Parameters": {"state": "Last"}, "End": True},
    },
}


class Lives:
    """The lives of runners on one store, on one clock; the calls of their agents."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = VirtualClock()
        self.calls: Counter[str] = Counter()

    async def work(self, data: Json, call: asl.Call) -> str:
        self.calls[call.state_name] += 1
        await asyncio.sleep(1)
        return call.state_name

    def run(self, die_at: int | None) -> bool:
        """Run what is due to its end, answering what is asked; False where the runner dies."""
        store = asl.open_store(self.path, clock=self.clock)
        if die_at is not None:
            instants = count(1)

            def reached(point: str) -> None:
                if next(instants) >= die_at:  # nothing is written from here on
                    store.session.crash()
                    raise asl.StoreError("the process is gone")

            store.session.on_fail_point = reached

        async def live() -> None:
            handle = store.handle("one")
            async with store.runner(agents={"Work": self.work}):
                while handle.status() not in ("SUCCEEDED", "FAILED"):
                    for request in handle.pending():
                        handle.answer(str(request["requestId"]), "approve", by="ann")
                    await asyncio.sleep(1)

        try:
            with asyncio.Runner(loop_factory=self.clock.new_event_loop) as runner:
                runner.run(live())
        except asl.StoreError:
            return False
        finally:
            store.close()
        return True


def lives(path: Place) -> Lives:
    found = Lives(path)
    with asl.open_store(path, clock=found.clock) as store:
        store.start(DOCUMENT, {}, name="one")
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Json:
    path = tmp_path_factory.mktemp("store") / "runs.db"
    found = lives(path)
    assert found.run(None)
    assert found.calls == Counter(First=1, Asked=1, Waited=1, Last=1)
    with asl.open_store(path) as store:
        return store.result("one").output


@pytest.mark.parametrize("die_at", instants(range(1, 110), 9))
def test_another_runner_goes_on(place: Place, undisturbed: Json, die_at: int) -> None:
    """The outcome is that of an execution that nobody disturbed."""
    found = lives(place)
    died = not found.run(die_at)
    assert found.run(None) or not died
    with asl.open_store(found.path) as store:
        result = store.result("one")
        assert (result.status, result.output) == ("SUCCEEDED", undisturbed)
        assert [*store.faults()] == []
        assert store.workers() == []
    assert set(found.calls) == {"First", "Asked", "Waited", "Last"}
    assert sum(found.calls.values()) <= 4 + 2 * died, "only what was under way is called again"
