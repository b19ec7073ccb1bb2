"""One store in several threads, and in processes that were forked with it open."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store
from asl.stores.statements import Select
from asl.stores.tables import BLOB

TASK = {"Type": "Task", "Agent": "Work", "End": True}
DOCUMENT = {"StartAt": "A", "States": {"A": TASK}}
TWO = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "Work", "Next": "B"}, "B": TASK}}
ASK = {"StartAt": "Ask", "States": {"Ask": {"Type": "Approval", "Prompt": "Good?", "End": True}}}
PATIENCE = 30


def echo(data: Any) -> Any:
    return data


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with asl.open_store(path, agents={"Work": echo}, synchronous="OFF") as store:
        yield store


@pytest.fixture
def other() -> Iterator[ThreadPoolExecutor]:
    """Another thread, which is there all the time."""
    with ThreadPoolExecutor(1) as other:
        yield other


# Threads


def test_executions_of_several_threads_do_not_meet(store: Store) -> None:
    """What they come to is what is kept, and the file is whole."""
    together = threading.Barrier(4, timeout=PATIENCE)

    def work(data: Any) -> Any:
        together.wait()
        return data

    def started(i: int) -> Any:
        return store.run(TWO, {"i": i}, name=f"e{i}", agents={"Work": work})

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(started, range(8)))
    for i, result in enumerate(results):
        assert result.output == store.result(f"e{i}").output == {"i": i}
        assert len(result.events) == len(list(store.events(f"e{i}")))
    assert list(store.faults()) == []


def test_a_thread_looks_while_another_one_runs(store: Store, other: ThreadPoolExecutor) -> None:
    """Neither waits for the other: each has a connection of its own."""
    ready, looked = threading.Event(), threading.Event()

    def work(data: Any) -> Any:
        ready.set()
        assert looked.wait(PATIENCE)
        return data

    running = other.submit(store.run, DOCUMENT, 1, name="e", agents={"Work": work})
    assert ready.wait(PATIENCE)
    assert [each.status for each in store.executions()] == ["RUNNING"]
    assert [event.type for event in store.events("e")][-1] == "TaskScheduled"
    with pytest.raises(asl.ExecutionBusy):
        store.resume("e")
    assert not store.is_interrupted("e")
    looked.set()
    assert running.result().output == store.resume("e").output == 1
    assert other.submit(lambda: store.session).result() is not store.session


def test_what_one_thread_has_begun_others_go_on_with(
    store: Store, other: ThreadPoolExecutor
) -> None:
    """A result, its events, the history and the desk may be handed over."""
    (request,) = other.submit(store.run, ASK, {}, name="e").result().pending
    store.answer(request["requestId"], "approve", by="ann")
    assert other.submit(store.due).result() == ["e"]
    result = other.submit(store.resume, "e").result()
    other.shutdown()
    assert result.ok
    assert [event.type for event in result.events][:3] == [
        "ExecutionStarted",
        "ApprovalStateEntered",
        "ApprovalRequested",
    ]


def test_a_history_may_be_read_by_turns(store: Store, other: ThreadPoolExecutor) -> None:
    """Whoever asks for the next event may be another thread each time, as in a web server."""
    store.run(TWO, {"text": "x" * 100_000}, name="e")
    events, told = store.events("e"), []
    turns: list[Callable[[], Any]] = [
        lambda: next(events, None),
        lambda: other.submit(next, events, None).result(),
    ]
    while event := turns[len(told) % 2]():
        told.append(event.type)
    assert told == [event.type for event in store.events("e")]


def test_a_desk_serves_every_thread(store: Store, other: ThreadPoolExecutor) -> None:
    """A worker takes tasks and answers them in a thread of its own."""
    activity = "arn:aws:states:us-east-1:123456789012:activity:sign"
    sign = {"Type": "Task", "Resource": activity, "End": True}
    document = {"StartAt": "A", "States": {"A": sign}}
    store.run(document, {"by": "ann"}, name="e")
    desk = store.tokens
    task = other.submit(desk.get_activity_task, activity, wait=0).result()
    desk.send_task_success(task["taskToken"], {"signed": True})
    assert other.submit(store.resume, "e").result().output == {"signed": True}


def test_an_execution_of_a_thread_keeps_its_event_loop(
    store: Store, other: ThreadPoolExecutor
) -> None:
    """For the next one in that thread: two of them never share one."""
    import asyncio

    async def work(data: Any) -> Any:
        await asyncio.sleep(0)
        return id(asyncio.get_running_loop())

    def started() -> Any:
        return store.run(DOCUMENT, agents={"Work": work}).output

    mine, theirs = started(), other.submit(started).result()
    assert mine != theirs
    assert (mine, theirs) == (started(), other.submit(started).result())


def test_a_thread_that_ends_lets_go_of_the_file(store: Store) -> None:
    """It holds neither a connection nor a lock any more."""
    with ThreadPoolExecutor(1) as other:
        assert other.submit(store.run, DOCUMENT, 1, name="e").result().ok
        locks = other.submit(lambda: store.session.connection).result()
        assert not locks.is_closed
    assert locks.is_closed


def test_a_store_that_is_closed_is_so_for_every_thread(
    path: Path, other: ThreadPoolExecutor
) -> None:
    """Those who have used it, and those who have not; what still runs comes to its end."""
    store = asl.open_store(path, agents={"Work": echo})
    ready, closed = threading.Event(), threading.Event()

    def work(data: Any) -> Any:
        ready.set()
        assert closed.wait(PATIENCE)
        return data

    running = other.submit(store.run, DOCUMENT, 1, agents={"Work": work})
    assert ready.wait(PATIENCE)
    store.close()
    closed.set()
    assert running.result().ok
    with ThreadPoolExecutor(1) as third:
        for thread in (other, third):
            with pytest.raises(asl.StoreError, match="the store is closed; open it again"):
                thread.submit(store.executions).result()
    assert repr(store) == f"<Store {path}>"


def test_the_file_of_one_thread_is_not_for_another(store: Store, other: ThreadPoolExecutor) -> None:
    """Rather than to wait for each other for ever, the second is refused."""
    with pytest.raises(asl.StoreError, match="thread"):
        other.submit(store.session.select, Select(BLOB, ("hash",))).result()


def test_another_folder_is_not_another_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: ThreadPoolExecutor
) -> None:
    """A path is meant from where the store was opened."""
    monkeypatch.chdir(tmp_path)
    with asl.open_store("runs.db", agents={"Work": echo}) as store:
        store.run(DOCUMENT, 1, name="e")
        (tmp_path / "below").mkdir()
        monkeypatch.chdir(tmp_path / "below")
        assert other.submit(store.get, "e").result().status == "SUCCEEDED"


# Forks, in a process that has no other threads

FORKING = """
import os, sys, threading
from contextlib import contextmanager
import asl

TASK = {"Type": "Task", "Agent": "Work", "End": True}
DOCUMENT = {"StartAt": "A", "States": {"A": TASK}}

def pipe():
    read, write = os.pipe()
    return (lambda: os.read(read, 1)), (lambda: os.write(write, b"."))

def child(work):
    process = os.fork()
    if process:
        return process
    try:
        work()
        os._exit(0)
    except BaseException as error:
        print(type(error).__name__, error, flush=True)
        os._exit(1)

def ended(process):
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

path = sys.argv[1]
"""


def forking(program: str, path: Path) -> str:
    """Run a program that forks; returns what all of its processes have printed."""
    done = subprocess.run(
        [sys.executable, "-c", FORKING + program, str(path)],
        env={**os.environ, "PYTHONPATH": str(Path(asl.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_processes_that_were_forked_exclude_each_other(path: Path) -> None:
    """Though the store was open before: each has opened it anew, with locks of its own."""
    told = forking(
        """
(begun, begin), (may_go, go) = pipe(), pipe()

def work(data):
    begin()
    may_go()
    return data

def first():
    print(store.run(DOCUMENT, 1, name="e").status, flush=True)

def second():
    store.run(DOCUMENT, 1, name="e")

with asl.open_store(path, agents={"Work": work}) as store:
    one = child(first)
    begun()
    assert ended(child(second)) == 1
    print(store.is_interrupted("e"), flush=True)
    go()
    assert ended(one) == 0
    print(store.result("e").output, [*store.faults()], flush=True)
""",
        path,
    )
    busy, left, first, kept = told.splitlines()
    assert busy.startswith("ExecutionBusy")
    assert (left, first, kept) == ("False", "SUCCEEDED", "1 []")


def test_what_a_child_has_written_stays_when_the_parent_closes(path: Path) -> None:
    """SQLite would take the parent's locks for those of the child, if it found them there."""
    told = forking(
        """
(opened, open_), (is_closed, closed) = pipe(), pipe()

def work():
    store.executions()
    open_()
    is_closed()
    store.run(DOCUMENT, 1, name="the child's")

store = asl.open_store(path, agents={"Work": lambda data: data})
one = child(work)
opened()
store.close()
with asl.open_store(path, agents={"Work": lambda data: data}) as again:
    again.run(DOCUMENT, 2, name="another")
    closed()
    assert ended(one) == 0
with asl.open_store(path) as store:
    print(sorted(each.name for each in store.executions()), [*store.faults()])
""",
        path,
    )
    assert told == """['another', "the child's"] []\n"""


def test_a_lock_ends_with_its_process_and_not_with_its_children(path: Path) -> None:
    """A child that an agent has forked, and that lives on, holds nothing."""
    told = forking(
        """
(born, bear), (may_end, end) = pipe(), pipe()

def dies(data):
    def live_on():
        bear()
        may_end()

    child(live_on)
    born()
    os._exit(9)

def work():
    asl.open_store(path, agents={"Work": dies}).run(DOCUMENT, 1, name="e")

assert ended(child(work)) == 9
with asl.open_store(path, agents={"Work": lambda data: data}) as store:
    print(store.interrupted(), store.resume("e").output)
end()
""",
        path,
    )
    assert told == "['e'] 1\n"


def test_a_child_makes_an_event_loop_of_its_own(path: Path) -> None:
    """What it inherited listens to the same files as the parent's, which goes on with it."""
    told = forking(
        """
import asyncio
loops = []

async def work(data):
    loops.append(id(asyncio.get_running_loop()))
    await asyncio.sleep(0)
    return data

with asl.open_store(path, agents={"Work": work}) as store:
    start = lambda: print(store.run(DOCUMENT, 1).status, len({*loops}), flush=True)
    start()
    assert ended(child(start)) == 0
    start()
""",
        path,
    )
    assert told.splitlines() == ["SUCCEEDED 1", "SUCCEEDED 2", "SUCCEEDED 1"]


def test_an_execution_does_not_go_on_twice_behind_a_fork(path: Path) -> None:
    """A child that comes back from the agent can write nothing, and takes no lock away."""
    told = forking(
        """
def work(data):
    process = os.fork()
    if process:
        print(ended(process), store.is_interrupted("e"), flush=True)
    return process

store = asl.open_store(path, agents={"Work": work})
try:
    print(store.run(DOCUMENT, 1, name="e").status, [*store.faults()], flush=True)
except asl.StoreError as error:
    print("closed" in str(error), flush=True)
    os._exit(1)
store.close()
""",
        path,
    )
    assert told == "True\n1 False\nSUCCEEDED []\n"


def test_a_file_is_refused_where_a_thread_was_at_work_on_it(path: Path) -> None:
    """Its connection cannot be closed in the child, and nothing is safe beside it."""
    told = forking(
        """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # that the process has other threads
ready, done = threading.Event(), threading.Event()

def work(data):
    ready.set()
    done.wait()
    return data

def use():
    store.executions()

def open_again():
    asl.open_store(path)

with asl.open_store(path, agents={"Work": work}) as store:
    thread = threading.Thread(target=store.run, args=(DOCUMENT, 1), kwargs={"name": "e"})
    thread.start()
    ready.wait()
    print(ended(child(use)), ended(child(open_again)), flush=True)
    done.set()
    thread.join()
    print(ended(child(use)), store.get("e").status)
""",
        path,
    )
    refused, again, codes, after = told.splitlines()
    assert refused == again
    assert "another thread was at work on it when this process was forked" in refused
    assert (codes, after) == ("1 1", "0 SUCCEEDED")
