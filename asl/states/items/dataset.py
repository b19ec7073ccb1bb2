"""The data of a distributed Map: which files there are, opened one after the other, read lazily."""

import re
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import chain, islice
from typing import BinaryIO, cast

from asl.core.diagnostics import did_you_mean
from asl.core.errors import StateError
from asl.core.values import Json, excerpt
from asl.states.items import READERS, DataFault, DataFormat, Reader
from asl.states.items.base import MAX_ITEM, CountedFile, GzipReader, parse_json
from asl.states.items.csv_file import read_csv
from asl.states.map_data import Bucket, ObjectFault

__all__ = ["Dataset"]

_ACTION = re.compile(r"arn:[^:]*:states:[^:]*:[^:]*:s3:(getObject|listObjectsV2)")
_URI = re.compile(r"[sS]3://([^/]+)/(.+)")
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_DELIMITERS = {"COMMA": ",", "PIPE": "|", "SEMICOLON": ";", "SPACE": " ", "TAB": "\t"}
MAX_EMPTY = 5_000
"""Files in succession that may hold no items; opening each takes some 50 microseconds."""
LISTED = 256
"""Bytes that an entry of a listing takes besides its texts, roughly."""
MAX_MANIFEST = 16 * 1024 * 1024
"""Bytes of a file that lists other files."""


class Dataset:
    """The items that an `ItemReader` reads, *most* of them or all for 0; iterate once.

    None is read before it is asked for. `name` is where the last one came from, in AWS's words.
    What keeps the data from being read is a StateError("States.ItemReaderFailed").
    """

    length: int | None = None

    def __init__(
        self,
        reader: Mapping[str, Json],
        arguments: Json,
        bucket: Callable[[str], Bucket],
        most: int,
        longest: int,
        aws: bool,
        count: Callable[[int], object],
    ) -> None:
        config = reader.get("ReaderConfig", {})
        headers = config.get("CSVHeaders")
        given = config.get("CSVHeaderLocation") == "GIVEN"
        self.form = DataFormat(
            _DELIMITERS[config.get("CSVDelimiter", "COMMA")],
            tuple(headers) if given else None,
            config.get("ItemsPointer", ""),
            min(longest, MAX_ITEM),
            aws,
        )
        self.longest = longest
        self.reader = reader
        self.resource = reader["Resource"]
        self.config = config
        self.arguments = arguments
        self.bucket = bucket
        self.max_items = most
        self.aws = aws
        self.count = count
        """Takes the number of bytes of each piece that is read."""
        self.name = ""
        self.parts: Generator[Iterator[Json], None, None] = self._parts()

    def __iter__(self) -> Iterator[Json]:
        if self.max_items < 0:
            raise StateError("States.ItemReaderFailed", "field MaxItems must be positive")
        try:
            items = chain.from_iterable(self._checked_parts())
            yield from islice(items, self.max_items) if self.max_items else items
        except (DataFault, ObjectFault, OSError, EOFError, zlib.error) as fault:  # two for bad gzip
            raise self._failure(fault) from fault

    def close(self) -> None:
        """Read no more."""
        self.parts.close()

    @property
    def request(self) -> dict[str, Json]:
        """The dataset as JSON, for `of_request`."""
        return {
            "reader": dict(self.reader),
            "arguments": self.arguments,
            "most": self.max_items,
            "longest": self.longest,
            "aws": self.aws,
        }

    @classmethod
    def of_request(cls, request: Mapping[str, Json], bucket: Callable[[str], Bucket]) -> "Dataset":
        """Return the dataset that was written by `request`."""
        return cls(
            request["reader"],
            request["arguments"],
            bucket,
            request["most"],
            request["longest"],
            request["aws"],
            lambda size: None,
        )

    @property
    def is_mapped(self) -> bool:
        """Whether the data lies in a bucket that the user has mapped."""
        try:
            self.bucket(self._argument("Bucket"))
        except (DataFault, ObjectFault):
            return False
        return _ACTION.fullmatch(self.resource) is not None

    def take_items(self, answer: Json) -> None:
        """Take the items that a handler of the `Resource` has answered.

        These are an array, or what S3 answers: an object with the text as `Body`, or `Contents`.
        """
        self.name = self.resource
        self.parts = self._answered(answer)

    def _answered(self, answer: Json) -> Generator[Iterator[Json], None, None]:
        given = answer if type(answer) is dict else {"Contents": answer}
        if type(given.get("Body")) is str:
            yield self._reader()(BytesIO(given["Body"].encode()), self.form)
        elif type(given.get("Contents")) is list:
            yield iter(given["Contents"])
        else:
            forms = "an array, or an object with 'Body' (a text) or 'Contents' (an array)"
            raise DataFault(f"a handler answers {forms}, not {excerpt(answer, 200)}", "ItemReader")

    def _failure(self, fault: Exception) -> StateError:
        """Return what the state fails with: the file, the place in it, and what is wrong there."""
        message, place = str(fault), "the file"
        if isinstance(fault, DataFault):
            if self.aws and fault.aws is not None:
                return StateError("States.ItemReaderFailed", fault.aws)
            message, place = fault.message, fault.place or ""
        if isinstance(fault, ObjectFault):  # it says all there is
            return StateError("States.ItemReaderFailed", message)
        where = ", ".join(part for part in (self.name, place) if part)
        return StateError("States.ItemReaderFailed", f"{where}: {message}")

    def _checked_parts(self) -> Iterator[Iterator[Json]]:
        """Yield the items file by file.

        Nothing else can happen until there is an item, so DataFault is raised for too many files
        in succession without any.
        """
        empty = 0
        for part in self.parts:
            found = False
            for first in part:
                found = True
                yield chain((first,), part)
                break
            empty = 0 if found else empty + 1
            if empty > MAX_EMPTY:
                raise DataFault(
                    f"more than {MAX_EMPTY} files in succession hold no items", "the file"
                )

    def _parts(self) -> Generator[Iterator[Json], None, None]:
        """Yield the items file by file: each is opened when the one before is at its end."""
        action = _ACTION.fullmatch(self.resource)
        if action is None:
            known = "s3:getObject and s3:listObjectsV2 do, or a handler that is bound to it"
            raise DataFault(f"{self.resource!r} reads no items: {known}", "ItemReader")
        bucket = self._argument("Bucket")
        if action[1] == "listObjectsV2":
            prefix = self._argument("Prefix", "")
            if self.config.get("Transformation") == "LOAD_AND_FLATTEN":
                for each in self.bucket(bucket).objects(prefix):
                    yield from self._read(bucket, each.key)
            else:
                self.name = f"S3://{bucket}"
                yield self._listing(self.bucket(bucket), prefix)
            return
        key = self._argument("Key")
        match self.config.get("ManifestType", self._input_type()):
            case "ATHENA_DATA":
                yield from self._unloaded(bucket, key)
            case "S3_INVENTORY" | "MANIFEST":
                yield from self._inventory(bucket, key)
            case _:
                yield from self._read(bucket, key)

    def _argument(self, name: str, default: str | None = None) -> str:
        arguments = self.arguments if type(self.arguments) is dict else {}
        value = arguments.get(name, default)
        if type(value) is not str:
            hint = did_you_mean(name, arguments) if value is None else None
            given = "is missing" if value is None else f"is no text but {excerpt(value, 200)}"
            raise DataFault(f"{name!r} {given}{f' ({hint})' if hint else ''}", "ItemReader")
        return value

    def _input_type(self) -> str:
        return cast(str, self.config.get("InputType", "JSON"))

    def _listing(self, bucket: Bucket, prefix: str) -> Iterator[Json]:
        for each in bucket.objects(prefix):
            self.count(LISTED + len(each.key) + len(each.etag))
            yield {
                "Etag": each.etag,
                "Key": each.key,
                "LastModified": each.modified,
                "Size": each.size,
                "StorageClass": "STANDARD",
            }

    # One file

    def _read(self, bucket: str, key: str) -> Iterator[Iterator[Json]]:
        read = self._reader()
        with self._open(bucket, key) as file:
            yield read(file, self.form)

    def _reader(self) -> Reader:
        kind = self._input_type()
        if kind not in READERS:
            raise DataFault(f"this version reads {', '.join(READERS)}, not {kind}", "ItemReader")
        return READERS[kind]

    @contextmanager
    def _open(self, bucket: str, key: str) -> Iterator[BinaryIO]:
        self.name = f"S3://{bucket}/{key}"
        with self.bucket(bucket).open(key) as file:
            magic = file.read(4)
            file.seek(0)
            if magic == _ZSTD:
                raise DataFault("this version unpacks gzip, not zstd", "the file")
            if magic.startswith(_GZIP):
                yield cast(BinaryIO, GzipReader(file, self.count))
            else:
                yield cast(BinaryIO, CountedFile(file, self.count))

    # Files that list other files

    def _inventory(self, bucket: str, key: str) -> Iterator[Iterator[Json]]:
        """Yield the rows of the files that an S3 inventory lists."""
        manifest = parse_json(self._text(bucket, key), 1)
        try:
            kind, columns = manifest["fileFormat"], manifest["fileSchema"].split(",")
            holder = manifest["destinationBucket"].rpartition(":")[2]
            keys = [file["key"] for file in manifest["files"]]
        except (TypeError, KeyError, AttributeError) as error:
            raise DataFault(f"no manifest of an S3 inventory ({error!r})", "the file") from None
        if kind != "CSV":
            raise DataFault(f"this version reads inventories in CSV, not {kind}", "the file")
        form = DataFormat(headers=tuple(map(str.strip, columns)), longest=self.form.longest)
        for each in keys:
            with self._open(holder, each) as file:
                yield read_csv(file, form)

    def _unloaded(self, bucket: str, key: str) -> Iterator[Iterator[Json]]:
        """Yield the items of the files that Athena has unloaded: one URI a line."""
        for number, text in enumerate(BytesIO(self._text(bucket, key)), 1):
            line = text.decode("utf-8", "replace").rstrip("\r\n")
            uri = _URI.fullmatch(line.strip().strip('"'))
            if uri is None:
                raise DataFault(f"no URI of an object: {line[:200]!r}", f"line {number}")
            yield from self._read(uri[1], uri[2])

    def _text(self, bucket: str, key: str) -> bytes:
        with self._open(bucket, key) as file:
            text = file.read(MAX_MANIFEST + 1)
        if len(text) > MAX_MANIFEST:
            raise DataFault(f"a manifest of more than {MAX_MANIFEST} bytes", "the file")
        return text
