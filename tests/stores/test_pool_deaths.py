"""Pools when a process dies in the middle of a call."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import asl
from tests.sql import rows

POOL = "1.00"
CALL = {"Type": "Task", "Agent": "Work", "End": True}
KNOWN = {**CALL, "Model": {"Preferred": "m"}, "Generation": {"MaxTokens": 10}}
"""A call of ten tokens and its prompt at most, of two cents each."""
UNKNOWN = CALL


def document(state: dict[str, Any], **budget: Any) -> dict[str, Any]:
    return {"StartAt": "A", "Budget": {"Pool": "p", **budget}, "States": {"A": state}}


def opened(path: Path) -> asl.Store:
    given: Any = {"pools": {"p": POOL}, "prices": {"m": "0.02"}, "clock": asl.VirtualClock()}
    return asl.open_store(path, agents={"Work": lambda data: {"_cost": 0.1}}, **given)


HOLDING = """
import sys
import asl

def work(data):
    print("at work", flush=True)
    sys.stdin.readline()

given = {"pools": {"p": "1.00"}, "prices": {"m": "0.02"}}
with asl.open_store(sys.argv[1], agents={"Work": work}, **given) as store:
    store.run(eval(sys.argv[2]), {}, name="killed")
"""


def killed_within_a_call(path: Path, workflow: dict[str, Any]) -> None:
    """Run an execution in a process, and kill it while its agent is at work."""
    command = [sys.executable, "-c", HOLDING, str(path), repr(workflow)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        process.kill()


def pool(store: asl.Store) -> Any:
    ((body,),) = rows(store, "SELECT body FROM budget WHERE name = 'Pool p'")
    return store.session.values.unpack(body)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.mark.parametrize(
    ("state", "known"), [(KNOWN, "0.22"), (UNKNOWN, "0")], ids=["known", "unknown"]
)
def test_call_of_a_killed_process(path: Path, state: dict[str, Any], known: str) -> None:
    """Others wait for it no longer; what is known of it counts as spent, once."""
    killed_within_a_call(path, document(state))
    with opened(path) as store:
        (held,) = pool(store)["open"]
        assert ":killed:" in held
        assert [*store.faults()] == [
            "Pool p: a reservation is left of killed, whose process has died; "
            "--release gives it back"
        ]
        assert store.run(document(UNKNOWN), {}, name="other").ok
        assert store.clock.now() == asl.VirtualClock().now()  # without any wait
        known_and_other = float(known) + 0.1
        assert float(pool(store)["spent"]["0"]) == pytest.approx(known_and_other)
        assert store.resume("killed").ok
        assert pool(store)["open"] == {}
        assert float(pool(store)["spent"]["0"]) == pytest.approx(known_and_other + 0.1)
        assert [*store.faults()] == []


def test_doctor_releases_the_call_of_a_killed_process(path: Path) -> None:
    """What the execution has reserved for itself stays its own."""
    killed_within_a_call(path, document(KNOWN))
    with opened(path) as store:
        assert store.release_reservations() == ["Pool p"]
        assert store.release_reservations() == []
        assert pool(store) == {"spent": {"0": "0.22"}, "open": {}}


def test_part_of_a_pool_of_a_killed_process(path: Path) -> None:
    """It stays reserved until the execution ends, which recovery goes on with."""
    killed_within_a_call(path, document(KNOWN, MaxFromPool="0.50", ReleaseOnComplete=True))
    with opened(path) as store:
        part, call = pool(store)["open"].values()
        assert part[0] == "0.50"
        assert call[-1] in pool(store)["open"]  # it draws on that part
        assert store.release_reservations() == ["Pool p"]
        (part,) = pool(store)["open"].values()
        assert (part[0], part[-1]) == ("0.50", "0.22")
        assert [*store.faults()] == []
        assert store.resume("killed").ok
        assert pool(store)["open"] == {}
