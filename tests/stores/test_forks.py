"""Forks: a new execution that begins at a state of another one."""

from collections.abc import Iterator
from typing import Any

import pytest

import asl
from tests.stores.conftest import Place

Json = Any

LOOP = {
    "StartAt": "Count",
    "QueryLanguage": "JSONata",
    "States": {
        "Count": {
            "Type": "Task",
            "Agent": "Count",
            "Arguments": "{% $states.input %}",
            "Assign": {"seen": "{% $append($seen, $states.result.n) %}"},
            "Output": "{% $states.result %}",
            "Next": "Again",
        },
        "Again": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $states.input.n < 3 %}", "Next": "Count"}],
            "Default": "Done",
        },
        "Done": {"Type": "Pass", "Output": {"seen": "{% $seen %}"}, "End": True},
    },
}
LOOP["States"]["First"] = {"Type": "Pass", "Assign": {"seen": []}, "Next": "Count"}  # type: ignore[index]
LOOP["StartAt"] = "First"


class Count:
    def __init__(self) -> None:
        self.calls: list[Json] = []

    def __call__(self, data: Json) -> Json:
        self.calls.append(data["n"])
        return {"n": data["n"] + 1}


@pytest.fixture
def count() -> Count:
    return Count()


@pytest.fixture
def store(place: Place, count: Count) -> Iterator[asl.Store]:
    with asl.open_store(place, agents={"Count": count}, clock="virtual") as store:
        assert store.run(LOOP, {"n": 0}, name="one").output == {"seen": [1, 2, 3]}
        count.calls.clear()
        yield store


@pytest.mark.parametrize(
    ("at", "calls"), [("Count", [2]), ("Count#2", [1, 2]), ("Count#1", [0, 1, 2]), ("Done", [])]
)
def test_a_fork_begins_with_data_and_variables_of_a_visit(
    store: asl.Store, count: Count, at: str, calls: list[int]
) -> None:
    """What was done before is not done again."""
    before = [event.to_json() for event in store.events("one")]
    handle = store.fork("one", at, new_name="two")
    assert (handle.status(), count.calls) == ("RUNNING", [])
    assert store.resume("two").output == {"seen": [1, 2, 3]}
    assert count.calls == calls
    assert [event.to_json() for event in store.events("one")] == before
    first, second, *_ = store.events("two")
    assert (first.type, second.type) == ("ExecutionStarted", "ExecutionForked")
    assert second.details["execution"] == "one"


def test_a_fork_may_get_other_data(store: asl.Store, count: Count) -> None:
    """The input of the execution stays that of the other one."""
    handle = store.fork("one", "Count#3", input={"n": 7})
    assert store.resume(handle.name).output == {"seen": [1, 2, 8]}
    assert next(iter(store.events(handle.name))).details["input"] == {"n": 0}


def test_a_fork_may_run_by_another_document(store: asl.Store) -> None:
    """One that has the state."""
    shorter = {"StartAt": "Done", "States": {"Done": {"Type": "Pass", "Result": 1, "End": True}}}
    handle = store.fork("one", "Done", document=shorter)
    assert store.resume(handle.name).output == 1
    with pytest.raises(asl.AslError, match="has no state 'Count'"):
        store.fork("one", "Count", document=shorter)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("Cuont", "did you mean 'Count'"),
        ("Count#4", "3 times"),
        ("Count#0", "3 times"),
        ("Done#2", "once"),
    ],
)
def test_a_visit_that_never_was_is_refused(store: asl.Store, at: str, message: str) -> None:
    """The message says what there is."""
    with pytest.raises(asl.AslError, match=message):
        store.fork("one", at)


def test_a_taken_name_is_refused(store: asl.Store) -> None:
    with pytest.raises(asl.ExecutionExists):
        store.fork("one", "Done", new_name="one")


def test_fork_copies_hidden_data(place: Place) -> None:
    """Histories hide it, the new execution needs it."""
    document = {
        "Version": "1.0",
        "StartAt": "A",
        "Audit": {"Redact": ["$.card"]},
        "States": {
            "A": {"Type": "Pass", "Next": "B"},
            "B": {"Type": "Pass", "End": True},
        },
    }
    with asl.open_store(place, clock="virtual") as store:
        store.run(document, {"card": "4111"}, name="one")
        handle = store.fork("one", "B")
        assert store.resume(handle.name).output == {"card": "4111"}
