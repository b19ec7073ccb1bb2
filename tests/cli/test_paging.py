"""Pages of `asl ls`, `asl inbox` and `asl show`."""

import gc
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import asl as front_door
from asl.cli.show import ActiveStates
from asl.engine.events import Event
from asl.stores.values import StoredValues

from .conftest import PASS, Asl

LOOP = {
    "StartAt": "Work",
    "States": {
        "Work": {"Type": "Task", "Agent": "Count", "Next": "More"},
        "More": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.n", "NumericLessThan": 300, "Next": "Work"}],
            "Default": "Done",
        },
        "Done": {"Type": "Succeed"},
    },
}


def next_command(stderr: str) -> list[str]:
    """Return the words of the command that a page names for the next one."""
    return shlex.split(stderr.split("'")[1])[1:]


def test_ls_pages_list_every_execution_once(asl: Asl, folder: Path) -> None:
    """Each names the command for the next one, with the options that were given."""
    with front_door.open_store(folder / "runs.db", clock="virtual") as store:
        for number in range(7):
            store.run(PASS, {}, name=f"it-{number}")
    words, listed, pages = ["ls", "-n", "3", "--status", "succeeded", "--store", "runs.db"], [], 0
    while words:
        done = asl(*words)
        listed += [line.split()[0] for line in done.stdout.splitlines()]
        words, pages = next_command(done.stderr) if done.stderr else [], pages + 1
    assert listed == [f"it-{number}" for number in reversed(range(7))]
    assert pages == 3


def test_ls_after_an_unknown_execution_exits_with_2(asl: Asl, folder: Path) -> None:
    with front_door.open_store(folder / "runs.db", clock="virtual") as store:
        store.run(PASS, {}, name="it")
    done = asl("ls", "--after", "its", "--store", "runs.db")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "there is no execution 'its'" in done.stderr


TOKEN = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"


def for_each_item(state: Any) -> Any:
    """Return a document that waits in this state for each item."""
    inner = {"StartAt": "Ask", "States": {"Ask": {**state, "End": True}}}
    return {"StartAt": "M", "States": {"M": {"Type": "Map", "ItemProcessor": inner, "End": True}}}


WAITING = for_each_item({"Type": "Approval", "Prompt": "{{ $ }}?"})
AWAITING = for_each_item(
    {"Type": "Task", "Resource": TOKEN, "Parameters": {"T.$": "$$.Task.Token"}}
)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 50])
def test_inbox_pages_list_every_request_once(asl: Asl, folder: Path, size: int) -> None:
    """First those of people, then the task tokens, in the order of one page."""
    handlers: Any = {TOKEN: lambda parameters: {}}
    with front_door.open_store(folder / "runs.db", clock="virtual", resources=handlers) as store:
        store.run(WAITING, ["a", "b", "c"], name="people")
        store.run(AWAITING, [1, 2, 3], name="tokens")
        ids = [each["requestId"] for each in store.pending()]
        ids += [each["taskToken"] for each in store.pending_callbacks()]
    assert len(ids) == 6
    words, listed, pages = ["inbox", "--json", "-n", str(size), "--store", "runs.db"], [], 0
    while words:
        done = asl(*words)
        for line in done.stdout.splitlines():
            each = json.loads(line)
            listed.append(each.get("requestId") or each["taskToken"])
        words, pages = [], pages + 1
        if done.stderr:
            command = done.stderr.partition("more requests: '")[2].rpartition("' lists")[0]
            words = [*shlex.split(command)[1:], "--json"]
    assert listed == ids
    assert pages == -(-6 // size)


def test_inbox_after_an_unknown_request_exits_with_2(asl: Asl, folder: Path) -> None:
    with front_door.open_store(folder / "runs.db", clock="virtual") as store:
        store.run(WAITING, ["a"], name="people")
    done = asl("inbox", "--after", "it", "--store", "runs.db")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "there is no request 'it'" in done.stderr


def test_inbox_after_an_answered_request(asl: Asl, folder: Path) -> None:
    """The next page is complete."""
    with front_door.open_store(folder / "runs.db", clock="virtual") as store:
        store.run(WAITING, ["a", "b", "c"], name="people")
        first, second, third = (each["requestId"] for each in store.pending())
        store.answer(first, "approve")
    done = asl("inbox", "--json", "--after", first, "--store", "runs.db")
    assert [json.loads(line)["requestId"] for line in done.stdout.splitlines()] == [second, third]


def test_show_pages_print_every_event_once(asl: Asl, folder: Path) -> None:
    """A page without the beginning has no summary; its times and durations are the same."""
    agents: Any = {"Count": lambda data: {"n": data["n"] + 1}}
    with front_door.open_store(folder / "runs.db", clock="virtual", agents=agents) as store:
        result = store.run(LOOP, {"n": 0}, name="loop")
    whole = asl("show", "loop", "-n", 5000, "--store", "runs.db")
    assert whole.stderr == ""
    summary, history = whole.stdout.split("\n\n")
    assert len(history.splitlines()) == len(result.events) == 1804
    first = asl("show", "loop", "--store", "runs.db")
    second = asl(*next_command(first.stderr))
    assert first.stdout.startswith(summary)
    assert len(first.stdout.splitlines()) == 1000 + len(summary.splitlines()) + 1
    assert second.stderr == ""
    pages = [*first.stdout.split("\n\n")[1].splitlines(), *second.stdout.splitlines()]
    assert [line.split() for line in pages] == [line.split() for line in history.splitlines()]


def test_show_reads_only_the_steps_of_its_page(
    asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long history that succeeded."""
    agents: Any = {"Count": lambda data: {"n": data["n"] + 1}}
    with front_door.open_store(folder / "runs.db", clock="virtual", agents=agents) as store:
        store.run(LOOP, {"n": 0}, name="loop")
    read, count = StoredValues.read, 0

    def counted(self: StoredValues, body: bytes) -> Any:
        nonlocal count
        count += 1
        return read(self, body)

    monkeypatch.setattr(StoredValues, "read", counted)
    assert asl("show", "loop", "-n", 20, "--store", "runs.db").exit_code == 0
    assert count < 15, "of 301 steps"


def events_alive() -> int:
    """Count the events that are in memory."""
    return sum(type(each) is Event for each in gc.get_objects())


def test_show_streams_the_history_of_a_failed_execution(
    asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its events are read one by one, beside those of the page."""

    def count_to(data: Any) -> Any:
        if data["n"] == 200:
            raise ValueError("enough")
        return {"n": data["n"] + 1}

    agents: Any = {"Count": count_to}
    with front_door.open_store(folder / "runs.db", clock="virtual", agents=agents) as store:
        assert store.run(LOOP, {"n": 0}, name="loop").status == "FAILED"
    before, most = events_alive(), 0
    add = ActiveStates._add

    def counted(self: ActiveStates, event: Event) -> None:
        nonlocal most
        add(self, event)
        if event.id % 100 == 0:
            most = max(most, events_alive() - before)

    monkeypatch.setattr(ActiveStates, "_add", counted)
    shown = asl("show", "loop", "-n", 20, "--store", "runs.db")
    assert "error     States.TaskFailed: ValueError: enough" in shown.stdout
    assert "state     Work" in shown.stdout
    assert 0 < most < 50, "of 1200 events"


def test_show_events_takes_a_page(asl: Asl, folder: Path) -> None:
    """All of them by default, as programs read them."""
    with front_door.open_store(folder / "runs.db", clock="virtual") as store:
        store.run(PASS, {}, name="it")
    ids = [
        [json.loads(line)["id"] for line in asl(*words).stdout.splitlines()]
        for words in (
            ("show", "it", "--events", "--store", "runs.db"),
            ("show", "it", "--events", "-n", 2, "--after", 1, "--store", "runs.db"),
            ("show", "it", "--events", "--after", 9, "--store", "runs.db"),
        )
    ]
    assert ids == [[1, 2, 3, 4], [2, 3], []]


def test_result_without_history_has_the_same_fields(tmp_path: Path) -> None:
    with front_door.open_store(tmp_path / "runs.db", clock="virtual") as store:
        store.run(PASS, {"n": 1}, name="it")
        result = store.result("it", with_history=False)
        assert (result.output, result.status, result.visited) == ({"n": 1}, "SUCCEEDED", [])
