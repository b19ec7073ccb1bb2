"""Several processes at one store."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import asl
from asl.stores.sqlite import SqliteBackend

DOCUMENT = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "Work", "End": True}}}
HOLDING = """
import sys
import threading
import asl
from asl.stores.sqlite import SqliteBackend

def work(data):
    print("at work", flush=True)
    return sys.stdin.readline().strip()

document = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "Work", "End": True}}}
with asl.open_store(sys.argv[1], agents={"Work": work}) as store:
    print(store.run(document, {}, name="held").output)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def holding(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process, which is at work on the execution `held`."""
    command = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        yield process
        process.kill()


def test_processes_exclude_each_other_per_execution(
    path: Path, holding: "subprocess.Popen[str]"
) -> None:
    """Nobody touches an execution while another process is at work on it; all others are free."""
    with asl.open_store(path, agents={"Work": lambda data: "mine"}) as store:
        for touch in (store.resume, lambda name: store.run(DOCUMENT, {}, name=name)):
            with pytest.raises(asl.ExecutionBusy, match="'held'"):
                touch("held")
        assert store.run(DOCUMENT, {}, name="free").output == "mine"
        assert store.result("held").status == "RUNNING"
        assert holding.communicate("theirs\n")[0] == "theirs\n"
        assert store.resume("held").output == "theirs"


def test_a_lock_ends_with_its_process(path: Path, holding: "subprocess.Popen[str]") -> None:
    """Whoever comes after a process that was killed goes on at once."""
    holding.send_signal(signal.SIGKILL)
    holding.wait()
    with asl.open_store(path, agents={"Work": lambda data: "mine"}) as store:
        assert store.resume("held").output == "mine"


def test_another_process_leaves_the_log_of_an_open_store(path: Path) -> None:
    """It is put away by the last connection; a further one of this process changes nothing."""
    log = path.with_name("runs.db-wal")
    with asl.open_store(path, agents={"Work": lambda data: data}) as store:
        store.run(DOCUMENT, 1, name="one")
        SqliteBackend(path).connect().close()
        before = log.stat().st_ino
        looks = "import asl, sys; asl.open_store(sys.argv[1]).close()"
        subprocess.run([sys.executable, "-c", looks, str(path)], check=True)
        assert log.stat().st_ino == before
        assert store.run(DOCUMENT, 2, name="two").ok


def test_many_can_create_one_store_at_once(tmp_path: Path) -> None:
    """SQLite refuses all but one of them for a moment, whatever its timeout is."""
    for number in range(30):
        barrier = threading.Barrier(6)

        def create(path: Path, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            SqliteBackend(path).connect().close()

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(create, [tmp_path / f"{number}.db"] * 6))


def test_an_execution_is_stopped_from_another_process(
    path: Path, holding: "subprocess.Popen[str]"
) -> None:
    """It ends at its next effect where no event loop can cut off what is under way."""
    with asl.open_store(path) as store:
        store.handle("held").cancel("enough")
        assert store.result("held").status == "RUNNING"
        assert holding.communicate("theirs\n")[0] == "None\n"
        result = store.result("held")
        assert (result.status, result.cause) == ("ABORTED", "enough")


def test_an_async_call_is_cut_off_from_another_process(path: Path) -> None:
    """Within a second."""
    began = asyncio.Event()

    async def work(data: object) -> None:
        began.set()
        await asyncio.sleep(3600)

    async def main(store: asl.Store) -> str:
        running = asyncio.create_task(store.arun(DOCUMENT, {}, name="one"))
        await began.wait()
        with asl.open_store(path) as other:
            other.handle("one").cancel()
        return (await running).status

    with asl.open_store(path, agents={"Work": work}) as store:
        assert asyncio.run(main(store)) == "ABORTED"
