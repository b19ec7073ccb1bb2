"""Payloads over a limit are objects of a bucket; without one they are named errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, PayloadCodec
from temporalio.testing import WorkflowEnvironment

import asl
from asl.core.errors import AslError
from asl.core.values import Json
from asl.stores.errors import StoreError
from asl.temporal import claim_check, claims, sizes
from asl.temporal.addresses import parse_address
from asl.temporal.claim_check import data_converter
from tests.temporal.servers import Server, find_binary, run
from tests.temporal.test_size import CALL, map_of

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class _Inverted(PayloadCodec):
    """An encryption for tests."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"inverted"}, data=_inverse(each.SerializeToString()))
            for each in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload.FromString(_inverse(each.data)) for each in payloads]


def _inverse(data: bytes) -> bytes:
    return data.translate(bytes(range(255, -1, -1)))


CONVERTER = replace(DataConverter.default, payload_codec=_Inverted())


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """The host and port of a development server."""
    binary = find_binary("temporal")
    options = {"dev_server_existing_path": binary, "dev_server_log_level": "error"}
    env = run(WorkflowEnvironment.start_local(**options))
    yield env.client.service_client.config.target_host
    run(env.shutdown())


@pytest.fixture
def address(target: str) -> str:
    """The address of an empty store."""
    return f"temporal://{target}/default?queue={uuid4().hex[:8]}"


@pytest.fixture
def less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let histories take less, so that nothing in a test is large."""
    monkeypatch.setattr(sizes, "MAX_SIZE", 20_000)
    monkeypatch.setattr(claim_check, "LARGE", 2_000)
    monkeypatch.setattr(claims, "MAX_EVENTS", 14)


def large(size: int) -> str:
    """Return a text that can be compressed to half of its size at best."""
    return token_hex(size // 2)


STEPS: Any = {
    "StartAt": "Same",
    "States": {
        "Same": {
            "Type": "Task",
            "Agent": "same",
            "InputPath": "$.part",
            "ResultPath": "$.same",
            "Next": "Ask",
        },
        "Ask": {"Type": "Approval", "Prompt": "?", "ResultPath": "$.ask", "Next": "Each"},
        "Each": {
            **map_of({"Type": "Wait", "Seconds": 1, "End": True})["States"]["Each"],
            "ItemSelector": {"number.$": "$$.Map.Item.Value", "text.$": "$.part"},
            "ResultPath": "$.each",
            "Next": "Call",
        },
        "Call": {"Type": "Task", "Agent": "same", "End": True},
    },
}
del STEPS["States"]["Each"]["End"]
"""Large input, answers, items and contents of new runs."""


def test_large_payloads_go_to_the_bucket(address: str, tmp_path: Path, less: None) -> None:
    text, part = large(50_000), large(5_000)
    data: Json = {"z": 1, "a": 2, "text": text, "part": part, "items": [1] * 20}
    name = uuid4().hex
    place = f"{address}&payloads={quote(str(tmp_path))}&converter={__name__}:CONVERTER"
    with asl.open_store(place, agents={"same": lambda value: value}) as store:
        paused = store.run(STEPS, data, name=name)
        assert paused.status == "PAUSED"
        (request,) = store.pending(name)
        comment = large(50_000)
        store.answer(request["requestId"], "approve", by="ann", comment=comment)
        result = store.resume(name)
        assert result.ok, result.cause
        assert [*result.output][:3] == ["z", "a", "text"]
        assert result.output["same"] == part
        assert result.output["ask"]["comment"] == comment
        assert result.output["each"] == [{"number": 1, "text": part}] * 20
        server = Server(store.client.raw)  # type: ignore[attr-defined]
        runs = store.client.run(server.runs(name))  # type: ignore[attr-defined]
        assert len(runs) > 1
        assert max(each.bytes for each in runs) < 20_000
    objects = [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()]
    assert objects
    assert not any(text[:50].encode() in each for each in objects)
    with asl.open_store(address) as store, pytest.raises(StoreError, match="payloads=BUCKET"):
        store.result(name)


def test_input_and_output_that_temporal_refuses(address: str, tmp_path: Path) -> None:
    with asl.open_store(f"{address}&payloads={quote(str(tmp_path))}") as store:
        data = {"z": large(4_000_000), "a": 1}
        result = store.run({"StartAt": "P", "States": {"P": {"Type": "Succeed"}}}, data)
        assert result.output == data
        handle = store.client.raw.get_workflow_handle(result.name)  # type: ignore[attr-defined]
        output: Json = store.client.run(handle.result())  # type: ignore[attr-defined]
        assert [*output] == ["z", "a"]


def test_large_payloads_without_a_bucket_are_named_errors(address: str, less: None) -> None:
    with asl.open_store(address, agents={"text": lambda _: large(13_000)}) as store:
        with pytest.raises(StoreError, match=r"5\d{4} bytes.*payloads=BUCKET"):
            store.start(LOOP, large(50_000))
        rolled = store.run(LOOP, {"texts": []})
        assert (rolled.status, rolled.error) == ("FAILED", "States.DataLimitExceeded")
        assert "the execution, to continue it in a new run, takes" in str(rolled.cause)
        each = map_of(CALL | {"Agent": "text"}, ItemSelector={"text.$": "$.text"})
        few = store.run(each, {"items": [1] * 30, "text": "few"})
        assert "what 30 items of a distributed Map lead to takes" in str(few.cause)
        many = store.run(each, {"items": [1] * 30, "text": large(19_000)})
        assert "the input of 30 items takes" in str(many.cause)
        twice = {"Type": "Pass", "Parameters": {"a.$": "$", "b.$": "$"}, "End": True}
        ended = store.run({"StartAt": "P", "States": {"P": twice}}, large(12_000))
        assert "the output takes" in str(ended.cause)
        assert [*store.events(ended.name)][-1].type == "ExecutionFailed"
        for failed in (rolled, ended):
            found = store.client.describe(failed.name)  # type: ignore[attr-defined]
            assert (failed.error, found.status.name) == ("States.DataLimitExceeded", "FAILED")
        while len(listed := store.executions(status="FAILED")) < 4:
            pass
        errors = {each.name: each.error for each in listed}
        assert errors[rolled.name] == errors[ended.name] == "States.DataLimitExceeded"


LOOP: Any = {
    "StartAt": "Call",
    "States": {
        "Call": {
            "Type": "Task",
            "Agent": "text",
            "Parameters": {},
            "ResultPath": "$.text",
            "Next": "Add",
        },
        "Add": {
            "Type": "Pass",
            "Parameters": {"texts.$": "States.Array($.texts, $.text)"},
            "Next": "Call",
        },
    },
}
"""A loop whose data grow."""


def test_object_that_is_missing_or_changed(tmp_path: Path) -> None:
    codec = data_converter(str(tmp_path)).payload_codec
    assert codec is not None
    payload = Payload(metadata={"encoding": b"json/plain"}, data=large(claim_check.LARGE).encode())
    (claim,) = run(codec.encode([payload]))
    assert claim.ByteSize() < 200
    assert run(codec.decode([claim])) == [payload]
    (stored,) = (each for each in tmp_path.rglob("*") if each.is_file())
    stored.write_bytes(b"other")
    with pytest.raises(StoreError, match="was changed"):
        run(codec.decode([claim]))
    stored.unlink()
    with pytest.raises(StoreError, match="does not exist"):
        run(codec.decode([claim]))
    with pytest.raises(AslError, match="not a folder"):
        data_converter(str(tmp_path / "missing"))


def test_address_names_the_bucket() -> None:
    address = parse_address("temporal://host/ns?queue=q&payloads=s3%3A%2F%2Fbucket%2Fprefix")
    assert address.payloads == "s3://bucket/prefix"
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "wrong",
    [
        *("h:port", "h:99999", ":7233", "me:secret@h", "h/a/b"),
        *("h?queue=", "h?queue=a&queue=b", "h?other=x"),
    ],
)
def test_addresses_of_another_form(wrong: str) -> None:
    with pytest.raises(AslError, match="must have the form temporal://HOST:PORT/NAMESPACE"):
        parse_address(f"temporal://{wrong}")
