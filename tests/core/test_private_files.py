"""Files that are replaced completely or not at all."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from asl.core.private_files import open_replacement

pytestmark = pytest.mark.quick


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk be full as soon as content is forced to it."""

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)


def test_content_appears_when_the_file_is_closed(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    with open_replacement(file) as stream:
        stream.write(b"new")
        stream.flush()
        assert file.read_text() == "old"
    stream.close()
    assert file.read_text() == "new"
    assert names(tmp_path) == ["a"]


def test_former_content_remains_after_an_exception(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    with suppress(KeyboardInterrupt), open_replacement(file) as stream:
        stream.write(b"new")
        raise KeyboardInterrupt
    assert file.read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_former_content_remains_if_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    fill_disk(monkeypatch)
    with pytest.raises(OSError, match="No space left"), open_replacement(file) as stream:
        stream.write(b"new")
    assert file.read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_content_after_a_failed_write_is_discarded(tmp_path: Path) -> None:
    """Some of it may be missing, even if later writes succeed."""
    stream = open_replacement(tmp_path / "a")
    with pytest.raises(TypeError):
        stream.write("text")  # type: ignore[arg-type]
    stream.write(b"more")
    stream.close()
    assert names(tmp_path) == []


def test_a_file_that_is_never_closed_is_discarded(tmp_path: Path) -> None:
    stream = open_replacement(tmp_path / "a")
    stream.write(b"half")
    del stream
    assert names(tmp_path) == []


def test_links_and_modes_remain(tmp_path: Path) -> None:
    file, link = tmp_path / "a", tmp_path / "l"
    file.write_text("old")
    file.chmod(0o664)
    link.symlink_to("a")
    with open_replacement(link, private=True) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", 0o664)


@pytest.mark.parametrize(("private", "mode"), [(True, 0o600), (False, 0o640)])
def test_mode_of_a_new_file(tmp_path: Path, private: bool, mode: int) -> None:
    before = os.umask(0o027)
    try:
        with open_replacement(tmp_path / "a", private=private) as stream:
            stream.write(b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_devices_are_written_in_place() -> None:
    with open_replacement(os.devnull) as stream:
        stream.write(b"x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator may write everywhere")
def test_a_file_in_a_read_only_folder_is_written_in_place(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    tmp_path.chmod(0o500)
    with open_replacement(file) as stream:
        stream.write(b"new")
    tmp_path.chmod(0o700)
    assert file.read_text() == "new"
