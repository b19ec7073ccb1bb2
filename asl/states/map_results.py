"""What becomes of the results of a distributed Map: kept, or written (`ResultWriter`).

Written results stand in files of one status each, in the order in which the children ended, and in
a manifest that lists the files; it is written last, so with a manifest the files are complete.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, Protocol, TypeAlias

import orjson

from asl.core.errors import StateError
from asl.core.values import Json, compact, excerpt
from asl.states.base import Compiler
from asl.states.effects import DistributedRun, StateFrame
from asl.states.map_data import Bucket, DeferredBucket, ObjectFault

__all__ = ["OpenResults", "Results", "compile_results"]

LARGEST = 5_000_000_000
"""Bytes after which a result file is followed by another one."""
LARGE = 1 << 13
"""Bytes that are gathered before they are written."""

_ARRAY = (b"[", b",\n", b"]\n")
_LINES = (b"", b"\n", b"\n")
"""The bytes before, between and after the values of a file."""


class Results(Protocol):
    """Takes what becomes of the children."""

    @property
    def held_results(self) -> Iterable[object]:
        """The results so far that are held in memory."""
        ...

    def add_output(self, child: StateFrame, output: Json) -> object:
        """Take the output of a child."""
        ...

    def add_failure(self, child: StateFrame, error: StateError) -> object:
        """Take the failure of a child."""
        ...

    def add_abort(self, child: StateFrame) -> object:
        """Take a child that was given up."""
        ...

    def value(self) -> Json:
        """Return the result of the Map."""
        ...

    def close(self) -> None:
        """Complete what is written; called when all children have ended, whatever happened."""
        ...

    def unsent_objects(self) -> Iterable[Json]:
        """Return the completed objects that a service has to write."""
        ...


OpenResults: TypeAlias = Callable[[DistributedRun], Results]
"""Opens the results of a run."""


def _succeeded(child: StateFrame, output: Json) -> dict[str, Json]:
    return {
        **child.describe(),
        "Output": compact(output),
        "OutputDetails": {"Included": True},
        "RedriveStatus": "NOT_REDRIVABLE",
        "RedriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
        "Status": "SUCCEEDED",
    }


def _unsuccessful(child: StateFrame, error: StateError | None) -> dict[str, Json]:
    """Return the record of a child that failed, or was aborted where there is no error."""
    record = {**child.describe(), "RedriveStatus": "REDRIVABLE"}
    if error is None:
        return {**record, "Status": "ABORTED"}
    if error.name is not None:
        record["Error"] = error.name
    if error.cause is not None:
        record["Cause"] = error.cause
    return {**record, "Status": "TIMED_OUT" if error.name == "States.Timeout" else "FAILED"}


_TRANSFORMED: Mapping[str, Callable[[StateFrame, Json], Iterable[Json]]] = {
    "NONE": lambda child, output: (_succeeded(child, output),),
    "COMPACT": lambda child, output: (output,),
    "FLATTEN": lambda child, output: output if type(output) is list else (output,),
}
"""The results of a successful child, by `Transformation`."""


class InlineResults:
    """Results that are the result of the Map, in the order of the items; failures are left out."""

    def __init__(self) -> None:
        self.values: dict[int, Json] = {}

    @property
    def held_results(self) -> Iterable[object]:
        """The results so far, in what holds them: small results take less than their places."""
        return (self.values,)

    def add_output(self, child: StateFrame, output: Json) -> None:
        self.values[child.index] = output

    def add_failure(self, child: StateFrame, error: StateError) -> None:
        """It is not in the result (Specification 6.3)."""

    def add_abort(self, child: StateFrame) -> None:
        """A failed Map has no result."""

    def value(self) -> Json:
        return [self.values[index] for index in sorted(self.values)]

    def close(self) -> None:
        """Nothing is open."""

    def unsent_objects(self) -> Iterable[Json]:
        """Nothing is written."""
        return ()


class InlineResultsWithFailures(InlineResults):
    """The same with failures in their places, as users measured AWS to do."""

    def add_failure(self, child: StateFrame, error: StateError) -> None:
        record = _unsuccessful(child, error)
        told = {key: record[key] for key in ("Status", "Error", "Cause") if key in record}
        self.values[child.index] = told


class FormattedResults(InlineResults):
    """Results in the form that a `WriterConfig` asks for; failed children are there as records."""

    def __init__(self, config: Mapping[str, Json]) -> None:
        super().__init__()
        self.lines = config.get("OutputType") == "JSONL"
        self.transformed = _TRANSFORMED[config.get("Transformation", "COMPACT")]

    def add_output(self, child: StateFrame, output: Json) -> None:
        self.values[child.index] = self.transformed(child, output)

    def add_failure(self, child: StateFrame, error: StateError) -> None:
        self.values[child.index] = (_unsuccessful(child, error),)

    def value(self) -> Json:
        shaped = [value for index in sorted(self.values) for value in self.values[index]]
        return "".join(f"{compact(value)}\n" for value in shaped) if self.lines else shaped


class BucketResults:
    """Results in files of a bucket; raises StateError("States.ResultWriterFailed")."""

    def __init__(
        self,
        run: DistributedRun,
        bucket: Bucket,
        name: str,
        prefix: str,
        config: Mapping[str, Json],
    ) -> None:
        self.run = run
        self.bucket = bucket
        self.name = name
        self.folder = f"{prefix}{'' if prefix.endswith('/') or not prefix else '/'}{run.id}/"
        kind = config.get("Transformation", "NONE")
        self.transformed = _TRANSFORMED[kind]
        self.compact = kind == "COMPACT"
        lines = config.get("OutputType") == "JSONL"
        self.succeeded = _Files(bucket, f"{self.folder}SUCCEEDED", lines)
        self.unsuccessful = _Files(bucket, f"{self.folder}FAILED", lines)
        self.given_up: list[Json] = []
        self.held_results = ()

    def add_output(self, child: StateFrame, output: Json) -> None:
        if self.compact:  # the same as below, without a detour
            self.succeeded.put(output)
        else:
            for value in self.transformed(child, output):
                self.succeeded.put(value)

    def add_failure(self, child: StateFrame, error: StateError) -> None:
        self.unsuccessful.put(_unsuccessful(child, error))

    def add_abort(self, child: StateFrame) -> None:
        # Nothing that can fail may happen while others are being stopped.
        self.given_up.append(_unsuccessful(child, None))

    def value(self) -> Json:
        return {
            "MapRunArn": self.run.arn,
            "ResultWriterDetails": {"Bucket": self.name, "Key": f"{self.folder}manifest.json"},
        }

    def unsent_objects(self) -> Iterable[Json]:
        """Yield the objects that a service has to write: bucket, key and text."""
        if isinstance(self.bucket, DeferredBucket):
            for key, text in self.bucket.take_writes():
                yield {"bucket": self.name, "key": key, "text": text}

    def close(self) -> None:
        for record in self.given_up:
            self.unsuccessful.put(record)
        manifest = {
            "DestinationBucket": self.name,
            "MapRunArn": self.run.arn,
            "ResultFiles": {
                "FAILED": self.unsuccessful.close(),
                "PENDING": [],
                "SUCCEEDED": self.succeeded.close(),
            },
        }
        with _writing(), self.bucket.create(f"{self.folder}manifest.json") as file:
            file.write(compact(manifest).encode())


class _Files:
    """The files of one status, one after the other: an array or lines in each."""

    def __init__(self, bucket: Bucket, name: str, lines: bool) -> None:
        self.bucket = bucket
        self.name = name
        self.extension = "jsonl" if lines else "json"
        self.before, self.between, self.after = _LINES if lines else _ARRAY
        self.largest = bucket.largest if isinstance(bucket, DeferredBucket) else LARGEST
        self.file: BinaryIO | None = None
        self.size = 0
        self.parts: list[bytes] = []
        self.gathered = 0
        """Bytes in `parts`: what is to be written next."""
        self.done: list[Json] = []
        self.failure: StateError | None = None
        """The first failed write: nothing more is written then."""

    def put(self, value: Json) -> None:
        """Add one value."""
        try:
            text = orjson.dumps(value)
        except orjson.JSONEncodeError:  # integers beyond 64 bits
            text = compact(value).encode()
        self.parts.append(text)
        self.gathered += len(text)
        if self.gathered > LARGE:
            self._write()

    def close(self) -> list[Json]:
        """Complete the last file; return what the manifest says of all of them."""
        if self.parts:
            self._write()
        self._end()
        return self.done

    def _write(self) -> None:
        with self._writing():
            if self.size > self.largest:
                self._end()
            mark = self.between
            if self.file is None:
                self.file, mark = self.bucket.create(self._key()), self.before
            self.size += self.file.write(mark + self.between.join(self.parts))
        self.parts, self.gathered = [], 0

    def _end(self) -> None:
        if self.file is not None:
            with self._writing(), self.file:
                self.size += self.file.write(self.after)
            self.done.append({"Key": self._key(), "Size": self.size})
            self.file, self.size = None, 0

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self.failure is not None:
            raise self.failure
        try:
            with _writing():
                yield
        except StateError as failure:
            self.failure = failure
            self.file = None  # a file that replaces another one only does so when it is closed
            raise

    def _key(self) -> str:
        return f"{self.name}_{len(self.done)}.{self.extension}"


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except (ObjectFault, OSError) as error:
        raise StateError("States.ResultWriterFailed", str(error)) from error


def compile_results(compiler: Compiler) -> Callable[[Json, StateFrame], OpenResults]:
    """Compile where the results of a run go: effective input to what opens them."""
    if "ResultWriter" not in compiler.state:
        kept = InlineResultsWithFailures if compiler.profile.aws else InlineResults
        return lambda effective, frame: lambda run: kept()
    writer = compiler.state["ResultWriter"]
    config = writer.get("WriterConfig", {})
    if "Resource" not in writer:
        return lambda effective, frame: lambda run: FormattedResults(config)
    arguments = compiler.compiler_at("ResultWriter").payload()

    def opened_by(effective: Json, frame: StateFrame) -> OpenResults:
        place = arguments(effective, frame)
        return lambda run: _written(run, frame, place, config)

    return opened_by


def _written(
    run: DistributedRun, frame: StateFrame, place: Json, config: Mapping[str, Json]
) -> Results:
    given = place if type(place) is dict else {}
    name, prefix = given.get("Bucket"), given.get("Prefix", "")
    if type(name) is not str or type(prefix) is not str:
        raise StateError(
            "States.ResultWriterFailed",
            f"ResultWriter needs 'Bucket' and 'Prefix' as texts, not {excerpt(place, 200)}",
        )
    try:
        bucket = frame.effects.runtime.bucket(name)
    except ObjectFault as fault:
        raise StateError("States.ResultWriterFailed", str(fault)) from None
    return BucketResults(run, bucket, name, prefix, config)
