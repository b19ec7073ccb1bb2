"""Claim checks: payloads over a limit lie in a bucket of the user, by their content.

Worker and clients have the same bucket; what Temporal stores is the hash of the payload.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from typing import Final

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    DataConverter,
    ExternalStorage,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from asl.core.errors import StateError
from asl.core.values import Json, measure
from asl.states.map_data import Bucket

__all__ = ["LARGE", "BucketDriver", "check_size", "with_claim_checks"]

LARGE: Final = 256 * 1024
"""Size in bytes from which on a payload lies in the bucket."""
MAX_INLINE: Final = 1_500_000
"""Maximum size of a value without a bucket; Temporal refuses payloads of 2 MB."""
KEY: Final = "key"


class BucketDriver(StorageDriver):
    """Payloads in a bucket, each under the hash of its content.

    Args:
        bucket: The bucket.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def name(self) -> str:
        """Return the name in references."""
        return "asl.bucket"

    async def store(
        self, context: StorageDriverStoreContext, payloads: Sequence[Payload]
    ) -> list[StorageDriverClaim]:
        """Store payloads and return their keys."""
        return [await asyncio.to_thread(self._put, each) for each in payloads]

    def _put(self, payload: Payload) -> StorageDriverClaim:
        content = payload.SerializeToString()
        key = f"payloads/{sha256(content).hexdigest()}"
        with closing(self._bucket.create(key)) as created:
            created.write(content)
        return StorageDriverClaim({KEY: key})

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """Return the payloads of keys.

        Raises:
            ObjectFault: One is missing.
        """
        return [await asyncio.to_thread(self._get, each.claim_data[KEY]) for each in claims]

    def _get(self, key: str) -> Payload:
        with closing(self._bucket.open(key)) as opened:
            return Payload.FromString(opened.read())


def with_claim_checks(converter: DataConverter, bucket: Bucket) -> DataConverter:
    """Return a data converter whose large payloads lie in a bucket."""
    storage = ExternalStorage(drivers=[BucketDriver(bucket)], payload_size_threshold=LARGE)
    return replace(converter, external_storage=storage)


def check_size(value: Json, what: str, has_bucket: bool) -> None:
    """Check that a value fits into a history.

    Args:
        value: The value.
        what: What it is, for the message.
        has_bucket: Whether large payloads lie in a bucket.

    Raises:
        StateError: `States.DataLimitExceeded`; it does not.
    """
    if has_bucket:
        return
    size = measure(value, MAX_INLINE)
    if size > MAX_INLINE:
        raise StateError(
            "States.DataLimitExceeded",
            f"{what} takes more than {MAX_INLINE} bytes, which Temporal refuses: let large "
            "payloads lie in a bucket, with ?payloads=BUCKET in the address of the store of "
            "workers and clients",
        )
