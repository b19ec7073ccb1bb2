"""What is remembered outlives the run where the caller says so, and is recorded in a store."""

import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asl
from asl.core.work import WorkLimits, WorkMeter
from asl.engine.memory import MemoryEntry, ProcessMemory
from asl.expr.text_matching import similarity, words
from asl.memories.sqlite import TABLE, SqliteMemory

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


def test_backend_can_be_bound_to_another_memory(tmp_path: Path) -> None:
    """A document that names another backend runs with what the caller has instead."""
    document = {**COUNT, "Memory": {"Backend": "redis"}}
    for expected in (1, 2):
        memory = {"redis": tmp_path / "m.db"}
        result = asl.run(document, agents={"Count": count}, memory=memory)
        assert result.output == {"n": expected}


@pytest.mark.parametrize("backend", ["file", "custom", "redis"])
def test_unbound_backend_fails_the_state(backend: str) -> None:
    """What the document asks for is not silently replaced."""
    result = asl.run({**COUNT, "Memory": {"Backend": backend}}, agents={"Count": count})
    assert result.error == "States.MemoryNotConfigured"


def test_a_memory_that_is_down(tmp_path: Path) -> None:
    """A file that is none fails the state, by the name that the specification has for it."""
    (tmp_path / "m.db").write_text("no database at all, but long enough to be looked into" * 20)
    result = asl.run(COUNT, agents={"Count": count}, memory=tmp_path / "m.db")
    assert result.error == "States.MemoryNotConfigured"
    assert "m.db" in (result.cause or "")


ASKING: dict[str, dict[str, Json]] = {
    "get": {"Read": ["k"]},
    "entries": {"Type": "episodic", "Read": {"Collection": "c"}},
    "change": {"Write": {"Key": "k"}},
    "search": {"Type": "semantic", "Read": {"Query": "q", "Collection": "c"}},
}
"""By the method of a memory: a block that uses it."""


def failing(method: str, answer: Callable[..., Any]) -> str:
    """The cause with which a state fails whose memory has another method instead."""

    class Own(ProcessMemory):
        def search(self, *given: Any) -> Any:
            return self.entries("", 0)

    memory = Own()
    setattr(memory, method, answer)
    task = {"Type": "Task", "Agent": "A", "Memory": ASKING[method], "End": True}
    result = asl.run(
        {"Memory": {"Backend": "custom"}, "StartAt": "T", "States": {"T": task}},
        agents={"A": {"return": 1}},
        memory=memory,
    )
    assert result.error == "States.MemoryNotConfigured"
    return result.cause or ""


@pytest.mark.parametrize("method", ASKING)
def test_a_memory_of_ones_own_that_is_down(method: str) -> None:
    """What it raises fails the state that asks, and can be caught like any error."""

    def fails(*given: Any) -> Any:
        raise ConnectionError("nobody is there")

    assert "ConnectionError: nobody is there" in failing(method, fails)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("get", lambda *given: {"key": "k"}),
        ("entries", lambda *given: [{"key": "k"}]),
        ("search", lambda *given: [{"key": "k"}]),
        ("change", lambda namespace, key, now, make: make({"key": "k"})),
    ],
)
def test_a_memory_of_ones_own_that_gives_no_entry(method: str, answer: Any) -> None:
    """So does one that gives something else than entries."""
    assert "dict is not a MemoryEntry" in failing(method, answer)


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
            store.run(document, {"id": 1}, name="e")
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
            entry = MemoryEntry(key, value, now, None if lifetime is None else now + lifetime)
            for memory in memories:
                memory.change(namespace, key, now, partial(_replaced, entry))
            one, other = (list(memory.entries(namespace, now + 1)) for memory in memories)
            assert one == other
            one_entry, other_entry = (memory.get(namespace, key, now + 2) for memory in memories)
            assert one_entry == other_entry


def _replaced(entry: MemoryEntry, known: MemoryEntry | None) -> MemoryEntry:
    return entry


VALUES = st.one_of(st.text("aB_é1 ,.ßẞ-", max_size=12), st.sampled_from([["a b"], {"b": "é"}, 5]))


@settings(deadline=None, max_examples=40)
@given(st.lists(VALUES, max_size=8), st.text("aB_é1 ,ßẞ-", max_size=8))
def test_a_file_finds_what_a_comparison_of_all_finds(values: list[Json], query: str) -> None:
    """Its index and the likeness agree on what has a word in common, whatever the words are."""
    wanted = words(query)
    with TemporaryDirectory() as folder:
        memory = SqliteMemory(Path(folder) / "m.db")
        for now, value in enumerate(values):
            memory.change(
                "n", str(now), now, partial(_replaced, MemoryEntry(str(now), value, now, None))
            )
        memory.change("other", "x", 0, partial(_replaced, MemoryEntry("x", query, 0, None)))
        entries = memory.entries("n", 9)
        alike = [entry for entry in entries if similarity(query, entry.value) > 0]
        assert memory.search("n", wanted, 9, 100) == alike
        assert all(entry in alike for entry in memory.search("n", wanted, 9, 2))


def test_of_too_many_those_with_the_rarer_words_are_found(tmp_path: Path) -> None:
    """A word that is everywhere says little."""
    memory = SqliteMemory(tmp_path / "m.db")
    texts = ["the cat", "the zebra", *(f"the dog {number}" for number in range(20))]
    for number, text in enumerate(texts):
        memory.change("n", text, 0, partial(_replaced, MemoryEntry(text, text, number, None)))
    found = memory.search("n", ["the", "zebra", "cat"], 0, 2)
    assert [entry.key for entry in found] == ["the zebra", "the cat"]


def test_what_was_replaced_or_forgotten_is_not_found(tmp_path: Path) -> None:
    """The index goes with the values."""
    memory = SqliteMemory(tmp_path / "m.db")
    for value, expires in (("cat", None), ("dog", 5)):
        memory.change("n", "k", 0, partial(_replaced, MemoryEntry("k", value, 0, expires)))
    assert memory.search("n", ["cat"], 0, 9) == []
    assert memory.search("n", ["dog"], 0, 9) != []
    assert memory.search("n", ["dog"], 5, 9) == []
    memory.change("n", "other", 6, partial(_replaced, MemoryEntry("other", "dog", 6, None)))
    assert [entry.key for entry in memory.search("n", ["dog"], 6, 9)] == ["other"]


def test_a_file_without_an_index_gets_one(tmp_path: Path) -> None:
    """Values that were written before there was an index are found by it."""
    import sqlite3

    with closing(sqlite3.connect(tmp_path / "m.db")) as file:
        file.execute(TABLE)
        file.execute("INSERT INTO memory VALUES ('memory:default', 'k', '\"a cat\"', 0, NULL)")
        file.commit()
    memory = SqliteMemory(tmp_path / "m.db")
    assert [entry.key for entry in memory.search("memory:default", ["cat"], 0, 9)] == ["k"]
    with closing(sqlite3.connect(tmp_path / "m.db")) as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(asl.StateError, match="newer version") as error:
        memory.get("memory:default", "k", 0)
    assert error.value.name == "States.MemoryNotConfigured"


# What agents do with it by themselves


def used(agent: Any, data: Json | None = None, **block: Json) -> asl.Result:
    """Run a Task with this block, whose agent uses the memory."""
    task = {"Type": "Task", "Agent": "A", "Memory": block, "End": True}
    document = {"StartAt": "A", "Memory": {"Namespace": "team"}, "States": {"A": task}}
    return asl.run(document, data or {}, agents={"A": agent}, clock="virtual")


def test_an_agent_reads_and_writes() -> None:
    """By keys, by a query and by time; what it did stands in the history."""

    def agent(parameters: Json, call: asl.Call) -> Json:
        memory = call.memory
        assert memory is not None
        value = {"n": [1]}
        memory.put("one", value)
        value["n"].append(2)
        memory.put("one", {"n": [3]}, merge=True)
        memory.put("one", "lost", overwrite=False)
        memory.put("two", "a cat", ttl="1m")
        memory.get("one")["n"].clear()
        return {
            "one": memory.get("one"),
            "none": [memory.get("none"), memory.get("none", 0)],
            "found": [each["key"] for each in memory.search("the cat")],
            "latest": [each["key"] for each in memory.recent(limit=1)],
            "first": [each["key"] for each in memory.recent(order="asc", filter={"n": [1, 3]})],
            "namespace": memory.namespace,
        }

    result = used(agent, Namespace="own")
    assert result.output == {
        "one": {"n": [1, 3]},
        "none": [None, 0],
        "found": ["two"],
        "latest": ["two"],
        "first": ["one"],
        "namespace": "own",
    }
    told = [(event.type, event.details) for event in result.events if "Memory" in event.type]
    assert told == [
        ("MemoryRead", {"keys": ["one", "two"], "agent": "A"}),
        ("MemoryWritten", {"keys": ["one", "two"], "agent": "A"}),
    ]


def test_an_agent_sees_the_namespace_of_its_state(tmp_path: Path) -> None:
    """That of the block, else that of the document; in the memory that the run has."""

    def agent(parameters: Json, call: asl.Call) -> Json:
        assert call.memory is not None
        call.memory.put("k", call.memory.get("k", 0) + 1)
        return call.memory.get("k")

    task = {"Type": "Task", "Agent": "A", "Memory": {}, "Next": "B"}
    named = {"Type": "Task", "Agent": "A", "Memory": {"Namespace": "b_{{ $ }}"}, "End": True}
    states = {"A": task, "B": named}
    document = {"StartAt": "A", "Memory": {"Namespace": "all"}, "States": states}
    for _ in range(2):
        result = asl.run(document, agents={"A": agent}, memory=tmp_path / "m.db")
        assert result.output == 1, result.cause
    memory = SqliteMemory(tmp_path / "m.db")
    assert [memory.get(f"memory:{name}", "k", 0) is not None for name in ("all", "b_1", "b_2")] == [
        True, True, True
    ]  # fmt: skip
    entry = memory.get("memory:all", "k", 0)
    assert entry is not None
    assert entry.value == 2


def test_without_the_block_there_is_no_memory() -> None:
    """What the document does not say is not given."""
    document = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "A", "End": True}}}
    agents = {"A": lambda parameters, call: call.memory is None}
    assert asl.run(document, agents=agents).output is True


@pytest.mark.parametrize(
    ("block", "reads", "writes"),
    [
        ({}, True, True),
        ({"Read": ["k"]}, True, False),
        ({"Write": {"Key": "k"}}, False, True),
        ({"Read": ["k"], "Write": {"Key": "k"}}, True, True),
    ],
    ids=str,
)
def test_an_agent_may_what_its_state_may(block: Json, reads: bool, writes: bool) -> None:
    """A state that only reads has an agent that only reads."""

    def agent(parameters: Json, call: asl.Call) -> Json:
        assert call.memory is not None
        refused = []
        for use in (lambda: call.memory.get("x"), lambda: call.memory.put("x", 1)):
            try:
                use()
            except asl.StateError as error:
                refused.append(error.name)
            else:
                refused.append(None)
        return refused

    no = "States.Permissions"
    result = used(agent, **block)
    assert result.output == [None if reads else no, None if writes else no]


def test_unhandled_refusal_fails_the_state() -> None:
    """It is an error of the state, by its name."""
    result = used(lambda parameters, call: call.memory.put("x", 1), Read=["k"])
    assert (result.error, result.cause) == (
        "States.Permissions", "the state's Memory block writes nothing"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("use", "error", "cause"),
    [
        (lambda memory: memory.put("", 1), "States.TaskFailed", "'key' must be a non-empty text"),
        (lambda memory: memory.get(5), "States.TaskFailed", "got 5"),
        (lambda memory: memory.put("k", {1, 2}), "States.TaskFailed", "of the key 'k' is not JSON"),
        (lambda memory: memory.put("k", 1, ttl="soon"), "States.InvalidTTL", "soon"),
    ],
)
def test_a_wrong_use_is_an_error_of_the_state(use: Any, error: str, cause: str) -> None:
    """Its cause says what was wrong."""
    result = used(lambda parameters, call: use(call.memory))
    assert result.error == error
    assert cause in (result.cause or "")


def test_a_memory_that_is_not_there_is_missed_by_agents() -> None:
    """The same error as for the block itself."""
    task = {"Type": "Task", "Agent": "A", "Memory": {}, "End": True}
    document = {"StartAt": "A", "Memory": {"Backend": "redis"}, "States": {"A": task}}
    result = asl.run(document, agents={"A": lambda parameters, call: call.memory.get("k")})
    assert result.error == "States.MemoryNotConfigured"


def test_after_its_call_an_agent_has_no_memory_any_more() -> None:
    """A thread that nobody waits for changes nothing."""
    kept: list[Any] = []

    async def agent(parameters: Json, call: asl.Call) -> Json:
        kept.append(call.memory)
        return 1

    assert used(agent).ok
    with pytest.raises(asl.StateError, match="the call has ended"):
        kept[0].put("k", 1)


def test_agents_in_threads_share_the_memory() -> None:
    """No change of many at a time gets lost."""

    def agent(parameters: Json, call: asl.Call) -> Json:
        assert call.memory is not None
        for _ in range(20):
            call.memory.put("all", [1], merge=True)
        return None

    task = {"Type": "Task", "Agent": "A", "TimeoutSeconds": 60, "Memory": {}, "End": True}
    each = {"StartAt": "T", "States": {"T": task}}
    states = {
        "M": {"Type": "Map", "ItemProcessor": each, "ResultPath": None, "Next": "R"},
        "R": {"Type": "Pass", "Memory": {"Read": ["all"]}, "InputPath": None,
              "Parameters": {"n.$": "States.ArrayLength($._memory.all)"}, "End": True},
    }  # fmt: skip
    result = asl.run({"StartAt": "M", "States": states}, list(range(10)), agents={"A": agent})
    assert result.output == {"n": 200}


def test_a_recovery_tells_the_same_of_what_agents_did(tmp_path: Path) -> None:
    """The events of a call that was answered come from the journal, not from a second call."""

    def first(parameters: Json, call: asl.Call) -> Json:
        assert call.memory is not None
        call.memory.put("k", [1], merge=True)
        return 1

    calls = 0

    def second(parameters: Json) -> Json:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt
        return 2

    states = {
        "A": {"Type": "Task", "Agent": "First", "Memory": {}, "Next": "B"},
        "B": {"Type": "Task", "Agent": "Second", "End": True},
    }
    document = {"StartAt": "A", "States": states}
    agents = {"First": first, "Second": second}
    with asl.open_store(tmp_path / "s.db", agents=agents, memory=tmp_path / "m.db") as store:
        with pytest.raises(KeyboardInterrupt):
            store.run(document, {}, name="e")
        told = [event for event in store.resume("e").events if event.type == "MemoryWritten"]
    assert [event.details["keys"] for event in told] == [["k"]]
    entry = SqliteMemory(tmp_path / "m.db").get("memory:default", "k", 0)
    assert entry is not None
    assert entry.value == [1]


def test_threads_that_ask_first_get_one_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that make it at the same time use the one that was there first."""
    from asl.effects import services as module

    services = module.Services()
    both, made = threading.Barrier(2), module.MemoryService

    def slow(given: Any) -> Any:
        both.wait(30)
        return made(given)

    monkeypatch.setattr(module, "MemoryService", slow)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(services.memory_service)) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found[0] is found[1] is services.memory_service


class Remote(ProcessMemory):
    """A memory elsewhere, which takes its time."""

    remote = True

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[str] = set()

    def get(self, namespace: str, key: str, now: float) -> MemoryEntry | None:
        self.threads.add(threading.current_thread().name)
        return super().get(namespace, key, now)


def test_remote_memory_does_not_block_the_event_loop() -> None:
    """It is asked in threads as soon as there is an event loop that must not wait."""
    memory = Remote()
    read = {"Type": "Pass", "Memory": {"Read": {"Keys": ["k"], "Default": 0}}, "End": True}
    states = {"W": {"Type": "Wait", "Seconds": 1, "Next": "R"}, "R": read}
    document = {"StartAt": "W", "Memory": {"Backend": "custom"}, "States": states}
    assert asl.run(document, clock="virtual", memory=memory).ok
    assert threading.current_thread().name not in memory.threads
    assert len(memory.threads) == 1


def test_likeness() -> None:
    """It is 1 for the same words, 0 for none in common."""
    assert similarity("The cat", "the CAT!") == pytest.approx(1)
    assert similarity("cat", {"animal": "dog"}) == 0
    assert 0 < similarity("a cat", {"animal": "cat"}) < 1


def test_merge_of_a_write_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that is merged with itself in a loop doubles until the work of a merge is used up."""
    monkeypatch.setattr(
        "asl.effects.memory_service.WorkMeter", lambda: WorkMeter(WorkLimits(steps=500))
    )
    memory = {"Read": {"Keys": ["k"], "Default": {"k": {"l": [1]}}, "InjectAt": "$.m"}}
    write = {"Key": "k", "Value.$": "$.m.k", "Merge": True}
    task = {"Type": "Task", "Agent": "A", "Memory": {**memory, "Write": write}, "Next": "T"}
    result = asl.run({"StartAt": "T", "States": {"T": task}}, {}, agents={"A": lambda data: data})
    assert result.error == "States.Runtime"
    assert "the evaluation takes more than 500 steps" in str(result.cause)
