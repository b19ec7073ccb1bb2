"""Buckets: one contract for folders, object stores and dictionaries; nothing outside is reached."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.buckets import as_bucket, bind_buckets
from asl.core.errors import AslError
from asl.states.map_data import Bucket, ObjectFault

pytestmark = pytest.mark.quick


def folder(tmp_path: Path) -> Bucket:
    return as_bucket("b", tmp_path)


def store(tmp_path: Path) -> Bucket:
    return as_bucket("b", f"local://{tmp_path}")


def dictionary(tmp_path: Path) -> Bucket:
    return as_bucket("b", {})


every_kind = pytest.mark.parametrize("make", [folder, store, dictionary])
Make = Callable[[Path], Bucket]


def write(bucket: Bucket, key: str, content: bytes) -> None:
    with bucket.create(key) as file:
        file.write(content)


def read(bucket: Bucket, key: str) -> bytes:
    with bucket.open(key) as file:
        return file.read()


@every_kind
def test_what_is_written_is_read(make: Make, tmp_path: Path) -> None:
    """An object has its content from the moment its file is closed; a later one replaces it."""
    bucket = make(tmp_path)
    write(bucket, "a/b/c.txt", b"one")
    assert read(bucket, "a/b/c.txt") == b"one"
    write(bucket, "a/b/c.txt", b"2")
    assert read(bucket, "a/b/c.txt") == b"2"


@every_kind
def test_objects_are_listed_in_the_order_of_their_keys(make: Make, tmp_path: Path) -> None:
    """Whatever the folders: `a-b` stands before `a/b`, because `-` stands before `/`."""
    bucket = make(tmp_path)
    keys = ["a/b", "a-b", "a.b", "a/a/z", "z", "a0"]
    for key in keys:
        write(bucket, key, key.encode())
    listed = list(bucket.objects(""))
    assert [each.key for each in listed] == sorted(keys)
    assert [each.size for each in listed] == [len(key) for key in sorted(keys)]
    assert all(each.etag.startswith('"') and each.etag.endswith('"') for each in listed)
    assert all(isinstance(each.modified, int) for each in listed)


@every_kind
@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("a", ["a-b", "a/b", "a/c/d"]),
        ("a/", ["a/b", "a/c/d"]),
        ("a/c", ["a/c/d"]),
        ("a/c/d", ["a/c/d"]),
        ("b", []),
        ("a/b/", []),
        ("none/at/all", []),
    ],
)
def test_a_prefix_is_a_text_not_a_folder(
    make: Make, prefix: str, found: list[str], tmp_path: Path
) -> None:
    """A listing has the keys that begin with the prefix."""
    bucket = make(tmp_path)
    for key in ("a-b", "a/b", "a/c/d", "c"):
        write(bucket, key, b"")
    assert [each.key for each in bucket.objects(prefix)] == found


@every_kind
def test_a_missing_object_is_named(make: Make, tmp_path: Path) -> None:
    """With its bucket, as AWS writes it."""
    with pytest.raises(ObjectFault, match=r"S3://b/rows\.csv does not exist"):
        make(tmp_path).open("rows.csv")


@pytest.mark.parametrize("make", [folder, dictionary])
def test_a_near_miss_is_named(make: Make, tmp_path: Path) -> None:
    """A key that may have been meant is proposed."""
    bucket = make(tmp_path)
    write(bucket, "in/rows.csv", b"")
    with pytest.raises(ObjectFault, match=r"did you mean 'in/rows\.csv'"):
        bucket.open("in/row.csv")


@every_kind
@pytest.mark.parametrize(
    "key",
    ["", "/etc/passwd", "../up", "a/../../up", "a/..", ".", "a/./b", "a//b", "a\\..\\b", "nul\0"],
)
def test_a_key_does_not_lead_out(make: Make, key: str, tmp_path: Path) -> None:
    """Neither for reading nor for writing."""
    bucket = make(tmp_path)
    with pytest.raises(ObjectFault):
        bucket.open(key)
    with pytest.raises(ObjectFault):
        bucket.create(key)


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_link_does_not_lead_out_of_a_folder(linked: str, tmp_path: Path) -> None:
    """What it points to can be neither read, nor listed, nor written."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("s")
    if linked == "file":
        (inside / "link").symlink_to(outside / "secret")
        key = "link"
    else:
        (inside / "link").symlink_to(outside)
        key = "link/secret"
    bucket = as_bucket("b", inside)
    for act in (bucket.open, bucket.create):
        with pytest.raises(ObjectFault, match="leads out of the bucket"):
            act(key)
    assert list(bucket.objects("")) == []
    assert list(bucket.objects("link/")) == []
    assert (outside / "secret").read_text() == "s"


def test_a_link_inside_a_folder_is_an_object(tmp_path: Path) -> None:
    """And a link to a folder above does not make the listing endless."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    (tmp_path / "sub" / "up").symlink_to(tmp_path)
    bucket = as_bucket("b", tmp_path)
    assert [each.key for each in bucket.objects("")] == ["one", "two"]
    assert read(bucket, "two") == b"1"


def test_a_deep_folder_is_listed(tmp_path: Path) -> None:
    """However deep it is; it is removed here, since few tools remove it."""
    place, depth = tmp_path, 1_200
    try:
        for _ in range(depth):
            place /= "a"
            place.mkdir()
        (place / "f").write_text("1")
        listed = [each.key for each in as_bucket("b", tmp_path).objects("")]
        assert listed == ["a/" * depth + "f"]
        (place / "f").unlink()
    finally:
        for folder in (place, *place.parents):
            if folder == tmp_path:
                break
            if folder.is_dir():
                folder.rmdir()


def test_a_folder_is_no_object(tmp_path: Path) -> None:
    """It cannot be opened."""
    (tmp_path / "sub").mkdir()
    for key in ("sub", "sub/"):
        with pytest.raises(ObjectFault, match="does not exist"):
            as_bucket("b", tmp_path).open(key)


def test_a_dictionary_takes_texts_and_bytes() -> None:
    """What is written stands in it as text."""
    mine: dict[str, str | bytes] = {"t": "é", "b": b"\xff"}
    bucket = as_bucket("b", mine)
    assert (read(bucket, "t"), read(bucket, "b")) == ("é".encode(), b"\xff")
    write(bucket, "new", "ü".encode())
    assert mine["new"] == "ü"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("/no/such/folder", "'b' is mapped to '/no/such/folder', which is not a folder"),
        (5, "'b' is mapped to int; a bucket is a folder, the URL of"),
        ({"key": 5}, "'b' must map keys to texts or bytes, got 5"),
        ({5: "x"}, "'b' must map keys to texts or bytes"),
        ("nonsense://x", "'b' is mapped to 'nonsense://x': .*not known"),
    ],
)
def test_invalid_bucket_is_refused(where: Any, message: str) -> None:
    """At once, and by its name."""
    with pytest.raises(AslError, match=message):
        as_bucket("b", where)


def test_nothing_is_no_bucket() -> None:
    """What is no mapping a run refuses."""
    assert bind_buckets(None) == {}


def test_an_object_of_the_protocol_is_a_bucket(tmp_path: Path) -> None:
    """So a store of one's own can be a bucket."""
    (tmp_path / "k").write_bytes(b"text")
    own = as_bucket("b", folder(tmp_path))
    with own.open("k") as file:
        assert file.read() == b"text"
    assert [each.key for each in own.objects("")] == ["k"]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs it."""
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(
        AslError, match=r"needs 'fsspec': pip install '(agent-state-language|\.)\[fsspec\]'"
    ):
        as_bucket("b", "s3://x")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may read anything")
def test_a_file_without_permission_fails_as_the_system_says(tmp_path: Path) -> None:
    """The reader turns it into a failure of the state."""
    (tmp_path / "x").write_text("")
    (tmp_path / "x").chmod(0)
    with pytest.raises(PermissionError):
        as_bucket("b", tmp_path).open("x")


class Given:
    """A bucket of a user, whose methods do what a test says."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def open(self, key: str) -> Any:
        return self._answer()

    def create(self, key: str) -> Any:
        return self._answer()

    def objects(self, prefix: str) -> Any:
        return self._answer()

    def _answer(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class GivenFile:
    """A file of such a bucket."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def read(self, size: int = -1) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def write(self, data: bytes) -> Any:
        return self.read()

    def close(self) -> None:
        pass


def processed(**fields: Any) -> dict[str, Any]:
    """A workflow of a distributed Map."""
    last = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    processor = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **last}
    state = {"Type": "Map", "ItemProcessor": processor, **fields, "End": True}
    return {"StartAt": "M", "States": {"M": state}}


PLACE = {"Bucket": "b", "Key": "k"}
USES = {
    "open": processed(
        ItemReader={
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSON"},
            "Parameters": PLACE,
        }
    ),
    "objects": processed(
        ItemReader={
            "Resource": "arn:aws:states:::s3:listObjectsV2",
            "Parameters": {"Bucket": "b", "Prefix": "k"},
        }
    ),
    "create": processed(
        ItemsPath="$.items",
        ResultWriter={
            "Resource": "arn:aws:states:::s3:putObject",
            "Parameters": {"Bucket": "b", "Prefix": "k"},
        },
    ),
}
"""A workflow for each method of a bucket."""


@pytest.mark.parametrize("method", USES)
@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (ValueError("no"), "the bucket 'b': ValueError: no"),
        (SystemExit(3), "the bucket 'b': SystemExit: 3"),
        (StopIteration(), "the bucket 'b': "),
        (GeneratorExit(), "the bucket 'b': GeneratorExit"),
        (3, "the bucket 'b': TypeError"),
        ([3], "the bucket 'b': TypeError"),
        ("text", "the bucket 'b': TypeError"),
    ],
)
def test_fault_of_a_bucket_of_the_user_fails_the_state(
    method: str, answer: Any, cause: str
) -> None:
    result = asl.run(USES[method], {"items": [1]}, buckets={"b": Given(answer)})
    assert result.error in ("States.ItemReaderFailed", "States.ResultWriterFailed")
    assert cause in str(result.cause)


@pytest.mark.parametrize("method", ["open", "create"])
@pytest.mark.parametrize("answer", [ValueError("no"), SystemExit(3)])
def test_fault_of_a_file_of_a_bucket_of_the_user_fails_the_state(method: str, answer: Any) -> None:
    buckets = {"b": Given(GivenFile(answer))}
    result = asl.run(USES[method], {"items": [1]}, buckets=buckets)
    assert result.error in ("States.ItemReaderFailed", "States.ResultWriterFailed")
    assert "the bucket 'b': " in str(result.cause)


@pytest.mark.parametrize("answer", [3, "text", None, b"[" * 10_000_000])
def test_file_of_a_bucket_gives_the_bytes_that_it_is_asked_for(answer: Any) -> None:
    result = asl.run(USES["open"], {}, buckets={"b": Given(GivenFile(answer))})
    assert result.error == "States.ItemReaderFailed"
    assert "the bucket 'b': " in str(result.cause)
