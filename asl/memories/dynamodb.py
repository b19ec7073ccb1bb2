"""A memory in a DynamoDB table, shared by all runs that name it.

The table has the texts `namespace` as partition key and `key` as sort key. Each item has its
`entry` as JSON, a number `order`, and `expires` in whole seconds for the table's time to live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from time import time_ns
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from asl.core.environment import require_extra
from asl.core.errors import AslError, StateError
from asl.engine.memory import MemoryEntry
from asl.memories.records import MemoryRecord, alive, latest

__all__ = ["DynamoMemory", "table_at"]

PATIENCE = 10.0
"""Seconds to wait for a connection, and for an answer."""
TRIES = 100
"""Maximum number of attempts of a change after concurrent changes."""


def table_at(url: str) -> DynamoMemory:
    """Return the memory at `dynamodb://TABLE?region=REGION&endpoint=URL`.

    Raises:
        AslError: The URL is invalid.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    unknown = options.keys() - {"region", "endpoint"}
    if unknown or not parts.netloc or parts.path.strip("/"):
        raise AslError(f"{url!r} is not dynamodb://TABLE?region=REGION&endpoint=URL")
    return DynamoMemory(parts.netloc, **options)


class DynamoMemory:
    """A memory in a table (protocol `asl.engine.memory.Memory`), with credentials from the
    environment.

    Raises:
        AslError: There is no region, or the extra `dynamodb` is not installed.
    """

    remote = True

    def __init__(
        self, table: str, *, region: str | None = None, endpoint: str | None = None
    ) -> None:
        require_extra("boto3", "dynamodb", "a memory in DynamoDB")
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        config = Config(
            connect_timeout=PATIENCE, read_timeout=PATIENCE, retries={"total_max_attempts": 3}
        )
        try:
            self.client = boto3.session.Session().client(
                "dynamodb", region_name=region, endpoint_url=endpoint, config=config
            )
        except (BotoCoreError, ValueError) as error:
            raise AslError(f"the table {table!r} cannot be used: {error}") from None
        self.table = table

    def __repr__(self) -> str:
        return f"DynamoMemory({self.table!r})"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert the errors of the table."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (BotoCoreError, ClientError, ValueError) as error:
            raise self._unusable(str(error)) from None

    def _unusable(self, reason: str) -> StateError:
        cause = f"the memory 'dynamodb://{self.table}' cannot be used: {reason}"
        return StateError("States.MemoryNotConfigured", cause)

    def get(self, namespace: str, key: str, now: float) -> MemoryEntry | None:
        """Return an entry, None without one."""
        with self._errors():
            return alive(self._record(namespace, key), now)

    def _record(self, namespace: str, key: str) -> MemoryRecord | None:
        found = self.client.get_item(
            TableName=self.table, Key=_place(namespace, key), ConsistentRead=True
        )
        return _read(found["Item"]) if "Item" in found else None

    def entries(self, namespace: str, now: float) -> list[MemoryEntry]:
        """Return all entries of a namespace, the latest first."""
        with self._errors():
            pages = self.client.get_paginator("query").paginate(
                TableName=self.table,
                ConsistentRead=True,
                KeyConditionExpression="#namespace = :namespace",
                ExpressionAttributeNames={"#namespace": "namespace"},
                ExpressionAttributeValues={":namespace": {"S": namespace}},
            )
            return latest((_read(item) for page in pages for item in page["Items"]), now)

    def change(
        self,
        namespace: str,
        key: str,
        now: float,
        make: Callable[[MemoryEntry | None], MemoryEntry | None],
    ) -> None:
        """Replace an entry by the result of *make*; repeated after a concurrent change.

        Raises:
            StateError: States.MemoryNotConfigured; concurrent changes prevent the change, or the
                table cannot be reached.
        """
        with self._errors():
            for _ in range(TRIES):
                known = self._record(namespace, key)
                entry = make(alive(known, now))
                if entry is None or self._put(namespace, entry, known):
                    return
        raise self._unusable(f"{key!r} is changed by others all the time")

    def _put(self, namespace: str, entry: MemoryEntry, known: MemoryRecord | None) -> bool:
        """Replace a known entry; return whether it was unchanged."""
        from botocore.exceptions import ClientError

        order = time_ns() if known is None else max(time_ns(), known.order + 1)
        item = _place(namespace, entry.key)
        item |= {"entry": {"S": MemoryRecord(entry, order).text()}, "order": {"N": str(order)}}
        if entry.expires is not None:
            item["expires"] = {"N": str(ceil(entry.expires))}
        condition: dict[str, Any] = {
            "ConditionExpression": "attribute_not_exists(#order)",
            "ExpressionAttributeNames": {"#order": "order"},
        }
        if known is not None:
            condition["ConditionExpression"] = "#order = :order"
            condition["ExpressionAttributeValues"] = {":order": {"N": str(known.order)}}
        try:
            self.client.put_item(TableName=self.table, Item=item, **condition)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            return False
        return True


def _place(namespace: str, key: str) -> dict[str, Any]:
    return {"namespace": {"S": namespace}, "key": {"S": key}}


def _read(item: Mapping[str, Any]) -> MemoryRecord:
    try:
        return MemoryRecord.read(item["key"]["S"], item["entry"]["S"])
    except KeyError as error:
        raise ValueError(f"an item has no {error}") from error
