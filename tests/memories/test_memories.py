"""Every memory keeps its promises: the same ones, wherever the values lie."""

import asyncio
import re
import shutil
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.engine.memory import MemoryEntry
from asl.memories import bind_memory

from .conftest import free_port, server

Json = Any

VALUES: list[Json] = [None, 0, 1.5, "é€😀", [], {"a": [1, {"b": None}]}, 2**70, True]


def put(memory: Any, key: str, value: Json, now: float, expires: float | None = None) -> None:
    """Write an entry, whatever is there."""
    entry = MemoryEntry(key, value, now, expires)
    memory.change("memory:n", key, now, lambda known: entry)


def keys(memory: Any, now: float, namespace: str = "memory:n") -> list[str]:
    return [entry.key for entry in memory.entries(namespace, now)]


def test_a_value_comes_back_as_it_was(memory: Any) -> None:
    """Any JSON value, with its times."""
    for value in VALUES:
        put(memory, "k", value, 1.25, 99.5)
        (entry,) = memory.entries("memory:n", 2)
        assert entry == memory.get("memory:n", "k", 2) == MemoryEntry("k", value, 1.25, 99.5)
        assert type(entry.value) is type(value)


def test_get_without_entry_returns_none(memory: Any) -> None:
    """Neither a key nor a namespace needs to exist."""
    assert memory.get("memory:n", "k", 0) is None
    assert list(memory.entries("memory:n", 0)) == []


def test_the_latest_comes_first(memory: Any) -> None:
    """By the time of writing, then by the order of writing; what is written again is new."""
    for key, now in (("a", 2), ("b", 3), ("c", 1), ("d", 3), ("a", 3)):
        put(memory, key, key, now)
    assert keys(memory, 9) == ["a", "d", "b", "c"]


def test_expired_entry_does_not_exist(memory: Any) -> None:
    """From its end on, for each way of asking; and it may be written anew."""
    put(memory, "k", "old", 0, 10)
    put(memory, "other", 1, 0)
    assert memory.get("memory:n", "k", 9.9) is not None
    assert memory.get("memory:n", "k", 10) is None
    assert keys(memory, 10) == ["other"]
    seen: list[MemoryEntry | None] = []

    def make(known: MemoryEntry | None) -> MemoryEntry | None:
        seen.append(known)
        return MemoryEntry("k", "new", 10, None)

    memory.change("memory:n", "k", 10, make)
    assert seen == [None]
    assert memory.get("memory:n", "k", 10**9).value == "new"


def test_change_to_none_leaves_entry_unchanged(memory: Any) -> None:
    """A change that decides against it changes nothing."""
    put(memory, "k", 1, 0)
    memory.change("memory:n", "k", 1, lambda known: None)
    memory.change("memory:n", "none", 1, lambda known: None)
    assert [(entry.key, entry.written) for entry in memory.entries("memory:n", 1)] == [("k", 0)]


def test_any_text_is_a_key_and_a_namespace(memory: Any) -> None:
    """None is taken for another, whatever stands in it."""
    texts = ["a/b", "ä ö", "*", "%2F", "x" * 200, "{n}", "'--"]
    places = [(name, key) for key in texts for name in (key, f"{key}/", f"memory:{key}")]
    for namespace, key in places:
        entry = MemoryEntry(key, namespace, 0, None)
        memory.change(namespace, key, 0, partial(_replaced, entry))
    for namespace, key in places:
        (entry,) = memory.entries(namespace, 0)
        assert (entry.key, entry.value) == (key, namespace)
        assert memory.get(namespace, f"{key}/", 0) is None


def _replaced(entry: MemoryEntry, known: MemoryEntry | None) -> MemoryEntry:
    return entry


def test_many_entries_are_all_found(memory: Any) -> None:
    """However they are fetched."""
    for number in range(60):
        put(memory, f"k{number}", "x" * 100, number)
    assert keys(memory, 99) == [f"k{number}" for number in reversed(range(60))]


def test_concurrent_changes_are_all_stored(memory: Any) -> None:
    """Several threads change one value; each change is made of what is there."""
    if not getattr(memory, "remote", False) and not hasattr(memory, "path"):
        pytest.skip("within a process a lock of the run keeps threads apart")

    def more(known: MemoryEntry | None) -> MemoryEntry:
        return MemoryEntry("k", (known.value if known else 0) + 1, 0, None)

    def work() -> None:
        for _ in range(5):
            memory.change("memory:n", "k", 0, more)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.get("memory:n", "k", 0).value == 20


# As the memory of runs

REMEMBERS: Json = {
    "StartAt": "A",
    "States": {
        "A": {
            "Type": "Pass",
            "Memory": {
                "Read": {"Keys": ["n"], "Default": {"n": []}},
                "Write": {"Key": "n", "Value": ["a cat"], "Merge": True, "TTL": "30d"},
            },
            "Parameters": {"n.$": "$._memory.n"},
            "Next": "S",
        },
        "S": {
            "Type": "Pass",
            "Memory": {"Read": {"Query": "cat"}},
            "Parameters": {"n.$": "$.n", "found.$": "$._memory[*].key"},
            "Next": "E",
        },
        "E": {
            "Type": "Pass",
            "Memory": {"Read": {"Limit": 1}},
            "Parameters": {"n.$": "$.n", "found.$": "$.found", "last.$": "$._memory[0].key"},
            "End": True,
        },
    },
}


@pytest.mark.parametrize("backend", ["redis", "dynamodb"])
def test_runs_share_a_server(backend: str, request: pytest.FixtureRequest) -> None:
    """By keys, by queries and by time, with the URL that says where it is."""
    url = request.getfixturevalue(f"{backend}_url")
    document = {**REMEMBERS, "Memory": {"Backend": backend}}
    for expected in ([], ["a cat"], ["a cat", "a cat"]):
        result = asl.run(document, memory=url)
        assert result.output == {"n": expected, "found": ["n"], "last": "n"}, result.cause


@pytest.mark.parametrize("backend", ["redis", "dynamodb"])
def test_agents_use_a_server(backend: str, request: pytest.FixtureRequest) -> None:
    """From several threads at the same time."""
    url = request.getfixturevalue(f"{backend}_url")

    def agent(parameters: Json, call: asl.Call) -> Json:
        assert call.memory is not None
        call.memory.put("all", [parameters], merge=True)
        return call.memory.get("all")

    task = {"Type": "Task", "Agent": "A", "Memory": {"Namespace": "n"}, "End": True}
    each = {"StartAt": "T", "States": {"T": task}}
    document = {
        "StartAt": "M",
        "Memory": {"Backend": backend},
        "States": {"M": {"Type": "Map", "ItemProcessor": each, "End": True}},
    }
    result = asl.run(document, [1, 2, 3, 4], agents={"A": agent}, memory={backend: url})
    assert result.ok, result.cause
    assert sorted(max(result.output, key=len)) == [1, 2, 3, 4]


def test_a_redis_server_forgets_by_itself(redis_url: str) -> None:
    """What expires has a time to live there, and its key leaves the set of keys."""
    from redis import Redis

    memory = bind_memory(redis_url)["redis"]
    put(memory, "k", 1, 1000, 1060)
    put(memory, "gone", 1, 1000)
    with Redis.from_url(redis_url, decode_responses=True) as client:
        assert 50_000 < client.pttl("asl:entry:memory:n/k") <= 60_000
        assert client.pttl("asl:entry:memory:n/gone") == -1
        client.delete("asl:entry:memory:n/gone")
        assert keys(memory, 1000) == ["k"]
        assert client.smembers("asl:keys:memory:n") == {"k"}


def test_a_table_can_forget_by_itself(dynamodb_url: str) -> None:
    """An item that expires says when, in whole seconds."""
    memory: Any = bind_memory(dynamodb_url)["dynamodb"]
    put(memory, "k", 1, 1000.5, 1060.5)
    place = {"namespace": {"S": "memory:n"}, "key": {"S": "k"}}
    item = memory.client.get_item(TableName=memory.table, Key=place)["Item"]
    assert item["expires"] == {"N": "1061"}


# What goes wrong

USES = {"Type": "Pass", "Memory": {"Read": ["k"]}, "End": True}


def failed(url: str, backend: str) -> str:
    """Run a document whose memory cannot be used; returns the cause."""
    document = {"StartAt": "A", "Memory": {"Backend": backend}, "States": {"A": USES}}
    result = asl.run(document, memory=url)
    assert (result.status, result.error) == ("FAILED", "States.MemoryNotConfigured")
    assert "geheim" not in repr([result.cause, [event.to_json() for event in result.events]])
    assert "geheim" not in repr(bind_memory(url)[backend])
    return result.cause or ""


def test_a_redis_server_that_is_down(unused_port: int) -> None:
    """The error names the server, and not the password."""
    cause = failed(f"redis://ann:geheim@127.0.0.1:{unused_port}/3", "redis")
    assert f"'redis://127.0.0.1:{unused_port}/3' cannot be used" in cause


def test_wrong_redis_password_is_an_error(redis_port: int) -> None:
    """A wrong password is the same error."""
    cause = failed(f"redis://:auch-geheim@127.0.0.1:{redis_port}/0", "redis")
    assert "cannot be used" in cause


def test_a_redis_server_with_other_things(redis_url: str) -> None:
    """What somebody else keeps under our name is not taken for ours."""
    from redis import Redis

    with Redis.from_url(redis_url) as client:
        client.set("asl:entry:memory:default/k", "[1]")
        assert "the value of 'k' is not a memory entry" in failed(redis_url, "redis")
        client.delete("asl:entry:memory:default/k")
        client.lpush("asl:entry:memory:default/k", 1)
        assert "cannot be used" in failed(redis_url, "redis")


def test_a_table_that_is_not_there(dynamodb_url: str) -> None:
    """So is a table without which nothing can be kept."""
    url = dynamodb_url.replace("dynamodb://memory", "dynamodb://other")
    assert "'dynamodb://other" in failed(url, "dynamodb")


def test_a_dynamodb_that_is_down(unused_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the table, and no key of the account."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "geheim")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sehr-geheim")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    url = f"dynamodb://t?region=eu-central-1&endpoint=http://127.0.0.1:{unused_port}"
    assert "'dynamodb://t' cannot be used" in failed(url, "dynamodb")


@pytest.fixture
def unused_port() -> int:
    """A port of loopback at which nobody listens."""
    return free_port()


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ("mysql://host/db", "no memory has URLs of mysql://"),
        ("redi://host", "did you mean 'redis'"),
        ("redis://host:port", "no URL of a Redis server"),
        ("redis://:ge/heim@host", "no URL of a Redis server"),
        ("redis://host/main", "no URL of a Redis server"),
        ("redis://host/0/1", "no URL of a Redis server"),
        ("redis://host/-1", "no URL of a Redis server"),
        ("redis://host/0?colour=red", "no URL of a Redis server"),
        ("rediss://host/0?ssl_cert_reqs=maybe", "no URL of a Redis server"),
        ("dynamodb://", "is not dynamodb://TABLE"),
        ("dynamodb://t?colour=red", "is not dynamodb://TABLE"),
        ("dynamodb://t?region=eu-central-1&endpoint=nowhere", "cannot be used"),
        ({"redis": 5}, "memory is the path of a file, a URL"),
        ({"redsi": "m.db"}, "unknown memory backend 'redsi' (did you mean 'redis'"),
        ({7: "m.db"}, "unknown memory backend 7 (there are memory, file,"),
        ("", "memory is the path of a file, a URL"),
    ],
)
def test_invalid_memory_is_refused(memory: Any, message: str) -> None:
    """Before anything runs, with what it should be."""
    with pytest.raises(asl.AslError, match=re.escape(message)):
        asl.run({"StartAt": "A", "States": {"A": USES}}, memory=memory)


@pytest.mark.parametrize(("module", "url"), [("redis", "redis://h"), ("boto3", "dynamodb://t")])
def test_a_library_that_is_missing_is_named(
    module: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has the line that installs it."""
    monkeypatch.setattr("asl.core.environment.find_spec", lambda name: None)
    with pytest.raises(asl.AslError, match=f"needs '{module}': pip install"):
        bind_memory(url)


def test_no_library_is_loaded_before_it_is_used(tmp_path: Path) -> None:
    """A memory in a file needs neither."""
    import subprocess
    import sys

    code = "import asl, sys; asl.run({'StartAt':'A','States':{'A':{'Type':'Succeed'}}}, memory='m')"
    code += "; print([each for each in ('redis', 'boto3') if each in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_an_agents_file_says_where_the_memory_is(
    redis_port: int, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the password from outside, which nothing shows."""
    from asl.agents.file import load_bindings

    monkeypatch.setenv("THE_PASSWORD", "geheim")
    (tmp_path / "agents.yaml").write_text(
        "memory:\n"
        f"  redis: 'redis://:${{env:THE_PASSWORD}}@127.0.0.1:{redis_port}/0'\n"
        "  file: kept.db\n"
        "agents: {A: {echo: true}}\n"
    )
    given = load_bindings(tmp_path / "agents.yaml")
    assert "geheim" not in repr(given)
    for backend in ("redis", "file"):
        for expected in ([], ["a cat"]):
            document = {**REMEMBERS, "Memory": {"Backend": backend}}
            result = asl.run(document, agents=given.agents, memory=given.memory)
            assert result.output["n"] == expected, result.cause
    assert (tmp_path / "kept.db").exists()


def test_a_strange_password_does_not_break_the_url(
    tmp_path: Path, unused_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is quoted where it is put in, and shown nowhere."""
    from asl.agents.file import load_bindings

    monkeypatch.setenv("THE_PASSWORD", "ge/heim@x:?#")
    file = f"memory: {{redis: 'redis://:${{env:THE_PASSWORD}}@127.0.0.1:{unused_port}/0'}}\n"
    (tmp_path / "agents.yaml").write_text(file)
    given = load_bindings(tmp_path / "agents.yaml")
    memory: Any = bind_memory(given.memory)["redis"]
    assert memory.client.connection_pool.connection_kwargs["password"] == "ge/heim@x:?#"
    assert failed(given.memory["redis"], "redis").count("heim") == 0


@pytest.mark.parametrize(
    ("section", "found"),
    [
        ("{redsi: x}", "the name must be memory, file, redis, dynamodb or custom, not 'redsi'"),
        ("{redsi: x}", "did you mean 'redis'?"),
        ("{redis: 5}", "AGENTS-01"),
        ("{redis: 'redis://:${env:NOT_THERE}@h'}", "AGENTS-06: the environment has no variable"),
        ("{redis: 'redis://:${PASSWORD}@h'}", "AGENTS-07"),
        ("{custom: nowhere_at_all:x}", "AGENTS-04: cannot import"),
    ],
)
def test_a_wrong_memory_in_an_agents_file(section: str, found: str, tmp_path: Path) -> None:
    """It is a fault at its place."""
    from asl.agents.file import InvalidAgents, load_bindings

    (tmp_path / "agents.yaml").write_text(f"agents: {{A: {{echo: true}}}}\nmemory: {section}\n")
    if "AGENTS-07" in found:
        from asl.agents.file import check_agents
        from asl.core.document import read_value

        (warning,) = check_agents(read_value(tmp_path / "agents.yaml"))
        assert (warning.code, warning.pointer) == ("AGENTS-07", "/memory/redis")
        return
    with pytest.raises(InvalidAgents) as refusal:
        load_bindings(tmp_path / "agents.yaml")
    assert "agents.yaml:2:" in str(refusal.value)
    assert found in str(refusal.value)


@pytest.mark.parametrize("backend", ["redis", "dynamodb"])
def test_a_recovery_writes_to_a_server_once(
    backend: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """What was written before the process died is in the journal, and not written again."""
    url = request.getfixturevalue(f"{backend}_url")
    calls = 0

    def once(parameters: Json) -> Json:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt
        return "done"

    write = {"Write": {"Key": "k", "Value": [1], "Merge": True}}
    states = {
        "W": {"Type": "Pass", "Memory": write, "Next": "A"},
        "A": {"Type": "Task", "Agent": "Once", "End": True},
    }
    document = {"StartAt": "W", "Memory": {"Backend": backend}, "States": states}
    with asl.open_store(tmp_path / "s.db", agents={"Once": once}, memory=url) as store:
        with pytest.raises(KeyboardInterrupt):
            store.run(document, {}, name="e")
        assert store.resume("e").output == "done"
    entry = bind_memory(url)[backend].get("memory:default", "k", 0)
    assert entry is not None
    assert entry.value == [1]


@pytest.mark.parametrize("backend", ["redis", "dynamodb"])
def test_many_executions_at_once_use_a_server(backend: str, request: pytest.FixtureRequest) -> None:
    """On one event loop, none waits for another, and none is lost."""
    url = request.getfixturevalue(f"{backend}_url")
    write = {"Write": {"Key": "k", "Value.$": "States.Array($.n)", "Merge": True}}
    state = {"Type": "Pass", "Memory": write, "End": True}
    program = asl.compile({"StartAt": "W", "States": {"W": state}})

    async def all_of_them() -> None:
        await asyncio.gather(*(asl.arun(program, {"n": n}, memory=url) for n in range(8)))

    asyncio.run(all_of_them())
    entry = bind_memory(url)[backend].get("memory:default", "k", 0)
    assert entry is not None
    assert sorted(entry.value) == list(range(8))


def test_a_server_that_dies_fails_the_next_state(tmp_path: Path) -> None:
    """The error can be caught; a server that comes back is used again."""
    binary = shutil.which("redis-server") or shutil.which("valkey-server")
    if binary is None:
        pytest.skip("no redis-server is installed here; .ci/run installs it where it can")
    port = free_port()
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    memory = bind_memory(f"redis://127.0.0.1:{port}")
    caught = [{"ErrorEquals": ["States.MemoryNotConfigured"], "Next": "Down"}]
    task = {"Type": "Task", "Agent": "A", "Memory": {"Write": {"Key": "k"}}, "Catch": caught}
    states = {"A": {**task, "Next": "Up"}, "Up": {"Type": "Succeed"}, "Down": {"Type": "Succeed"}}
    document = {"StartAt": "A", "Memory": {"Backend": "redis"}, "States": states}

    def run() -> str:
        return asl.run(document, agents={"A": {"return": 1}}, memory=memory).visited[-1]

    for _ in range(2):
        with server(command, "Ready to accept connections", tmp_path):
            assert run() == "Up"
        assert run() == "Down"
