"""Checkpoints in storages that are damaged, or fail."""

from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store

DOCUMENT = {
    "StartAt": "Save",
    "States": {
        "Save": {"Type": "Checkpoint", "Name": "c", "Storage": "s", "Next": "Fail"},
        "Fail": {"Type": "Fail", "Error": "Broken"},
    },
}


class Storage(dict[str, Any]):
    """A storage that returns, or raises, something else than what it got."""

    answer: Any = None

    def __getitem__(self, id: str) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def __delitem__(self, id: str) -> None:
        raise OSError("read-only")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (OSError("no disk"), "OSError: no disk"),
        (SystemExit(3), "SystemExit: 3"),
        (RecursionError(), "RecursionError"),
        (KeyError("x"), "has no checkpoint"),
        (None, "no checkpoint"),
        ([], "no checkpoint"),
        ({"variables": {}}, "no checkpoint"),
        ({"data": 1, "variables": 5}, "no checkpoint"),
        ({"data": object(), "variables": {}}, "object"),
    ],
)
def test_a_damaged_checkpoint_is_refused(answer: Any, says: str, tmp_path: Path) -> None:
    """The execution remains as it was."""
    storage = Storage()
    with Store(tmp_path / "runs.db", checkpoints={"s": storage}) as store:
        store.run(DOCUMENT, {}, name="e")
        storage.answer = answer
        with pytest.raises(asl.CheckpointRefused, match=says):
            store.resume("e", from_checkpoint="c")
        assert store.get("e").status == "FAILED"


@pytest.mark.parametrize("content", [b"", b"[", b"\xff", b"[" * 100_000, b"null"])
def test_a_damaged_file_of_a_checkpoint_is_refused(content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    with Store(tmp_path / "runs.db", checkpoints={"s": str(folder)}) as store:
        store.run(DOCUMENT, {}, name="e")
        (file,) = folder.iterdir()
        file.write_bytes(content)
        with pytest.raises(asl.CheckpointRefused, match="cannot return the checkpoint"):
            store.resume("e", from_checkpoint="c")


def test_deletion_names_a_checkpoint_that_remains(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db", checkpoints={"s": Storage()}) as store:
        store.run(DOCUMENT, {}, name="e")
        with pytest.raises(asl.AslError, match="storage 's': OSError: read-only"):
            store.delete("e")
        assert store.executions() == []
