"""Backups: a restored store runs on where the copy was made."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cronsim")
pytest.importorskip("starlette")

import asl
from asl.effects.clock import VirtualClock
from asl.executions.scheduler import Scheduler
from asl.executions.schedules import Schedule, save_schedule
from asl.server.local import local_access, publish

DOCUMENT = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Agent": "Work", "Next": "W"},
        "W": {"Type": "Wait", "Seconds": 100, "Next": "B"},
        "B": {"Type": "Task", "Agent": "Work", "End": True},
    },
}
MACHINE = "arn:aws:states:us-east-1:111111111111:stateMachine:workflow"


def test_a_restored_store_runs_on(tmp_path: Path) -> None:
    """Executions that waited, and schedules; what was recorded before the copy is not repeated."""
    clock, calls = VirtualClock(), list[str]()

    def work(data: Any, call: Any) -> Any:
        calls.append(f"{call.execution_id.rpartition(':')[2]} {call.state_name}")
        return data

    def run(store: asl.Store, seconds: float) -> None:
        async def main() -> None:
            async with store.runner(agents={"Work": work}):
                await asyncio.sleep(seconds)

        with asyncio.Runner(loop_factory=clock.new_event_loop) as loop:
            loop.run(main())

    with asl.open_store(tmp_path / "runs.db", clock=clock) as store:
        publish(local_access(store), asl.load(DOCUMENT))
        schedule = Schedule(name="often", machine=MACHINE, expression="rate(10 minutes)")
        save_schedule(store.session, schedule, clock.now())
        store.start(DOCUMENT, {}, name="one")
        run(store, 50)
        store.backup(tmp_path / "copy.db")
        run(store, 100)
        assert store.get("one").status == "SUCCEEDED"
    assert calls == ["one A", "one B"]
    with asl.open_store(tmp_path / "copy.db", clock=clock) as restored:
        assert [*restored.faults()] == []
        assert restored.get("one").status == "PAUSED"
        clock.elapsed += 700
        assert len(Scheduler(restored).start_due()) == 1
        run(restored, 200)
        assert {each.status for each in restored.executions()} == {"SUCCEEDED"}
        assert [*restored.faults()] == []
    later = calls[2:]
    assert sorted(each.split()[-1] for each in later) == ["A", "B", "B"]
    assert "one A" not in later
