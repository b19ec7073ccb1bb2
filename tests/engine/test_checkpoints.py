"""Checkpoints in one process: resumed from a result, kept in storages of the caller."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.engine.checkpoints import CheckpointNames, definition_hash
from asl.stores.checkpoint_folder import CheckpointFolder

DOCUMENT = {
    "StartAt": "Save",
    "States": {
        "Save": {"Type": "Checkpoint", "Name": "n", "Storage": "vault", "Next": "B"},
        "B": {"Type": "Task", "Agent": "Flaky", "End": True},
    },
}
BOOM = {"Flaky": {"raise": {"Error": "Boom"}}}
LUCK = {"Flaky": {"echo": True}}


def test_resume_leaves_the_first_result_unchanged() -> None:
    """Each resume begins at the same past, and has a result of its own."""
    failed = asl.run(DOCUMENT, {"x": 1}, agents=BOOM, checkpoints={"vault": {}})
    before = [event.to_json() for event in failed.events]
    results = [
        asl.resume(failed, "n", agents=LUCK, checkpoints={"vault": {}}, clock="virtual")
        for _ in range(2)
    ]
    assert [result.output for result in results] == [{"x": 1}, {"x": 1}]
    assert [event.to_json() for event in failed.events] == before
    assert [event.id for event in results[0].events] == list(range(1, len(results[0].events) + 1))


def test_aresume_on_a_running_event_loop() -> None:
    """As `arun` does; `resume` refuses to block the loop."""

    async def go(clock: str) -> Any:
        failed = await asl.arun(DOCUMENT, {}, agents=BOOM, checkpoints={"vault": {}})
        with pytest.raises(asl.AslError, match="arun"):
            asl.resume(failed, "n")
        return await asl.aresume(failed, "n", agents=LUCK, clock=clock)

    for clock in ("wall", "virtual"):
        assert asyncio.run(go(clock)).status == "SUCCEEDED"


def test_a_folder_takes_checkpoints(tmp_path: Path) -> None:
    """By a path; names of any length and with any character, each a file of its own."""
    name = "a/../b " * 100
    states = {**DOCUMENT["States"], "Save": {**DOCUMENT["States"]["Save"], "Name": name}}  # type: ignore[index]
    result = asl.run({**DOCUMENT, "States": states}, agents=LUCK, checkpoints={"vault": tmp_path})
    (file,) = tmp_path.iterdir()
    assert CheckpointFolder(tmp_path)[result.checkpoints[0].id]["name"] == name
    assert len(file.name) < 255
    with pytest.raises(KeyError):
        CheckpointFolder(tmp_path)["other"]


def test_a_folder_that_cannot_be_written_fails_the_state(tmp_path: Path) -> None:
    """With `States.TaskFailed`, which can be caught."""
    (tmp_path / "file").write_text("")
    result = asl.run(DOCUMENT, agents=LUCK, checkpoints={"vault": tmp_path / "file"})
    assert result.error == "States.TaskFailed"
    assert "the checkpoint 'n' cannot be saved" in str(result.cause)


def test_invalid_checkpoint_storage_is_refused() -> None:
    """A folder or a mapping."""
    with pytest.raises(asl.AslError, match="a folder or a mapping"):
        asl.run(DOCUMENT, checkpoints={"vault": 5})


def test_an_unknown_storage_has_a_hint() -> None:
    """The nearest name that is registered."""
    result = asl.run(DOCUMENT, checkpoints={"valut": {}})
    assert result.error == "States.Runtime"
    assert "did you mean 'valut'?" in str(result.cause)


@given(st.lists(st.sampled_from(["a", "a-2", "a-2-2", "auto-1", None])))
def test_checkpoint_ids_are_unique(wanted: list[str | None]) -> None:
    """Whatever the names are, and in whichever process they are taken."""
    names, known = CheckpointNames(), []
    for name in wanted:
        id, called = names.new("exec", name)
        names.take(id, called)
        known.append((id, called))
        assert CheckpointNames(known).new("exec", name) == names.new("exec", name)
    assert len({id for id, _ in known}) == len(known)


@given(st.dictionaries(st.text(), st.recursive(st.integers() | st.text(), st.lists)))
def test_definition_hash_ignores_order_of_members(document: dict[str, Any]) -> None:
    """The hash is that of the canonical JSON."""
    turned = dict(reversed(document.items()))
    assert definition_hash(turned) == definition_hash(document)
    assert definition_hash({**document, "StartAt": "\0other"}) != definition_hash(document)
