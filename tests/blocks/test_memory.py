"""What is remembered outlives the run where the caller says so, and is recorded in a store."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asl
from asl.engine.memory import Entry, ProcessMemory
from asl.expr.likeness import likeness
from asl.memories.sqlite import SqliteMemory

Json = Any

COUNT = {
    "StartAt": "A",
    "States": {
        "A": {
            "Type": "Task",
            "Agent": "Count",
            "Memory": {
                "Read": {"Keys": ["n"], "Default": {"n": 0}},
                "Write": {"Key": "n", "Value.$": "$.n", "TTL": "1h"},
            },
            "End": True,
        }
    },
}


def count(parameters: Json) -> Json:
    return {"n": parameters["_memory"]["n"] + 1}


def test_a_file_is_remembered_from_run_to_run(tmp_path: Path) -> None:
    """Each run goes on from what the one before has written."""
    document = {**COUNT, "Memory": {"Backend": "file"}}
    for expected in (1, 2, 3):
        result = asl.run(document, agents={"Count": count}, memory=tmp_path / "m.db")
        assert result.output == {"n": expected}


def test_without_a_memory_a_run_begins_anew() -> None:
    """What nobody keeps ends with the run."""
    for _ in range(2):
        assert asl.run(COUNT, agents={"Count": count}).output == {"n": 1}


def test_a_memory_of_the_callers_own() -> None:
    """An object with the methods of a memory is the backend `custom`."""
    memory = ProcessMemory()
    document = {**COUNT, "Memory": {"Backend": "custom", "Namespace": "mine"}}
    for expected in (1, 2):
        result = asl.run(document, agents={"Count": count}, memory=memory)
        assert result.output == {"n": expected}
    assert [entry.key for entry in memory.entries("memory:mine", 0)] == ["n"]
    with pytest.raises(asl.AslError, match="memory is the path"):
        asl.run(COUNT, agents={"Count": count}, memory=5)


def test_what_serves_a_backend_can_be_said(tmp_path: Path) -> None:
    """A document that names another backend runs with what the caller has instead."""
    document = {**COUNT, "Memory": {"Backend": "redis"}}
    for expected in (1, 2):
        memory = {"redis": tmp_path / "m.db"}
        result = asl.run(document, agents={"Count": count}, memory=memory)
        assert result.output == {"n": expected}


@pytest.mark.parametrize("backend", ["file", "custom", "redis"])
def test_a_backend_that_was_not_given_is_missed(backend: str) -> None:
    """What the document asks for is not silently replaced."""
    result = asl.run({**COUNT, "Memory": {"Backend": backend}}, agents={"Count": count})
    assert result.error == "States.MemoryNotConfigured"


def test_a_memory_that_is_down(tmp_path: Path) -> None:
    """A file that is none fails the state, by the name that the specification has for it."""
    (tmp_path / "m.db").write_text("no database at all, but long enough to be looked into" * 20)
    result = asl.run(COUNT, agents={"Count": count}, memory=tmp_path / "m.db")
    assert result.error == "States.MemoryNotConfigured"
    assert "m.db" in (result.cause or "")


def test_a_recovery_does_not_write_twice(tmp_path: Path) -> None:
    """What was written before the process died is not written a second time."""
    document = {
        "StartAt": "W",
        "States": {
            "W": {
                "Type": "Pass",
                "Memory": {"Write": {"Key": "k", "Value": [1], "Merge": True}},
                "Next": "A",
            },
            "A": {"Type": "Task", "Agent": "Once", "Cache": {"Key.$": "$.id"}, "End": True},
        },
    }
    calls = 0

    def once(parameters: Json) -> Json:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt
        return "done"

    memory = ProcessMemory()
    with asl.open_store(tmp_path / "s.db", agents={"Once": once}, memory=memory) as store:
        with pytest.raises(KeyboardInterrupt):
            store.start(document, {"id": 1}, name="e")
        assert store.resume("e").output == "done"
    entry = memory.get("memory:default", "k", 0)
    assert entry is not None
    assert entry.value == [1]


def test_a_cache_is_shared_by_runs(tmp_path: Path) -> None:
    """The scope workflow reaches beyond one execution, where there is a memory to keep it."""
    made: list[Json] = []

    def agent(parameters: Json) -> Json:
        made.append(parameters)
        return len(made)

    document = {
        "StartAt": "A",
        "States": {"A": {"Type": "Task", "Agent": "A", "Cache": {}, "End": True}},
    }
    for path in ("one.db", "one.db", "two.db"):
        asl.run(document, {"x": 1}, agents={"A": agent}, memory=tmp_path / path)
    assert len(made) == 2


changes = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from("xyz"),
        st.integers(),
        st.one_of(st.none(), st.integers(1, 5)),
    ),
    max_size=20,
)


@settings(deadline=None, max_examples=30)
@given(changes)
def test_both_memories_agree(steps: list[tuple[str, str, int, int | None]]) -> None:
    """A file remembers what a process does."""
    with TemporaryDirectory() as folder:
        memories = [ProcessMemory(), SqliteMemory(Path(folder) / "m.db")]
        for now, (namespace, key, value, lifetime) in enumerate(steps):
            entry = Entry(key, value, now, None if lifetime is None else now + lifetime)
            for memory in memories:
                memory.change(namespace, key, now, partial(_replaced, entry))
            one, other = (list(memory.entries(namespace, now + 1)) for memory in memories)
            assert one == other
            one_entry, other_entry = (memory.get(namespace, key, now + 2) for memory in memories)
            assert one_entry == other_entry


def _replaced(entry: Entry, known: Entry | None) -> Entry:
    return entry


def test_likeness() -> None:
    """It is 1 for the same words, 0 for none in common."""
    assert likeness("The cat", "the CAT!") == pytest.approx(1)
    assert likeness("cat", {"animal": "dog"}) == 0
    assert 0 < likeness("a cat", {"animal": "cat"}) < 1
