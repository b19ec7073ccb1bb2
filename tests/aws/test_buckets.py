"""Distributed Maps that read from and write to S3."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

import asl
from asl.aws import Integrations
from asl.aws.objects import BLOCK, S3Buckets

Json = Any
Client = Callable[[str], Any]
EACH = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
    "StartAt": "P",
    "States": {"P": {"Type": "Pass", "End": True}},
}


def distributed(reader: Json, **fields: Json) -> Json:
    state = {"Type": "Map", "ItemReader": reader, "ItemProcessor": EACH, "End": True, **fields}
    return {"StartAt": "M", "States": {"M": state}}


def reading(key: str, config: Json) -> Json:
    return {
        "Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": config,
        "Parameters": {"Bucket": "shop", "Key": key},
    }


@pytest.fixture
def s3(client: Client) -> Any:
    s3 = client("s3")
    s3.create_bucket(Bucket="shop")
    return s3


def test_read_csv(aws: Integrations, s3: Any) -> None:
    rows = "".join(f"{n},tea\n" for n in range(3))
    s3.put_object(Bucket="shop", Key="in/may.csv", Body=gzip.compress(f"n,name\n{rows}".encode()))
    reader = reading("in/may.csv", {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"})
    result = asl.run(distributed(reader), aws=aws)
    assert result.output == [{"n": str(n), "name": "tea"} for n in range(3)]


def test_read_in_blocks(aws: Integrations, s3: Any) -> None:
    lines = "".join(json.dumps({"n": n, "text": "x" * 1000}) + "\n" for n in range(2500))
    assert len(lines) > 2 * BLOCK
    s3.put_object(Bucket="shop", Key="lines.jsonl", Body=lines.encode())
    reader = {**reading("lines.jsonl", {"InputType": "JSONL"})}
    selector = {"n.$": "$$.Map.Item.Value.n"}
    result = asl.run(distributed(reader, ItemSelector=selector), aws=aws)
    assert [each["n"] for each in result.output] == [*range(2500)]


def test_list_objects(aws: Integrations, s3: Any) -> None:
    for key in ("in/a", "in/b", "out/c"):
        s3.put_object(Bucket="shop", Key=key, Body=b"x")
    listing = {
        "Resource": "arn:aws:states:::s3:listObjectsV2",
        "Parameters": {"Bucket": "shop", "Prefix": "in/"},
    }
    result = asl.run(distributed(listing), aws=aws)
    assert [(each["Key"], each["Size"]) for each in result.output] == [("in/a", 1), ("in/b", 1)]


def test_write_results(aws: Integrations, s3: Any) -> None:
    s3.put_object(Bucket="shop", Key="in.json", Body=b"[1, 2]")
    writer = {
        "Resource": "arn:aws:states:::s3:putObject",
        "Parameters": {"Bucket": "shop", "Prefix": "out"},
        "WriterConfig": {"Transformation": "COMPACT", "OutputType": "JSON"},
    }
    document = distributed(reading("in.json", {"InputType": "JSON"}), ResultWriter=writer)
    result = asl.run(document, aws=aws)
    place = result.output["ResultWriterDetails"]
    manifest = json.load(s3.get_object(**place)["Body"])
    (file,) = manifest["ResultFiles"]["SUCCEEDED"]
    assert json.load(s3.get_object(Bucket="shop", Key=file["Key"])["Body"]) == [1, 2]


def test_bound_buckets_win(aws: Integrations) -> None:
    reader = reading("in.json", {"InputType": "JSON"})
    result = asl.run(distributed(reader), aws=aws, buckets={"shop": {"in.json": "[7]"}})
    assert result.output == [7]


def test_missing_objects_and_buckets(aws: Integrations, s3: Any) -> None:
    result = asl.run(distributed(reading("none", {"InputType": "JSON"})), aws=aws)
    assert (result.error, result.cause) == (
        "States.ItemReaderFailed",
        "S3://shop/none does not exist",
    )
    listing = {"Resource": "arn:aws:states:::s3:listObjectsV2", "Parameters": {"Bucket": "other"}}
    result = asl.run(distributed(listing), aws=aws)
    assert result.error == "States.ItemReaderFailed"
    assert "S3://other/ cannot be used: " in str(result.cause)


def test_seek(aws: Integrations, s3: Any) -> None:
    """Readers of Parquet go to the end first."""
    s3.put_object(Bucket="shop", Key="k", Body=b"0123456789")
    with S3Buckets({}, aws.clients)["shop"].open("k") as file:
        assert file.seek(-2, 2) == 8
        assert file.read() == b"89"
        file.seek(1)
        assert file.read(3) == b"123"
        assert file.tell() == 4
