"""Claim checks: large payloads are objects of a bucket, histories hold their digests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    DataConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
)

from asl.buckets import as_bucket
from asl.states.map_data import Bucket, ObjectFault
from asl.stores.errors import StoreError

__all__ = ["ClaimCheck", "data_converter", "has_bucket"]

LARGE: Final = 128 * 1024
"""Size in bytes from which on a payload is stored in the bucket."""
ENCODING: Final = b"binary/asl-claim"
"""Encoding of a payload that names an object."""
NAME: Final = "payloads"
"""Name of the bucket in messages."""


class ClaimCheck(PayloadCodec, WithSerializationContext):
    """A codec that stores large payloads in a bucket, by the digests of their contents.

    Args:
        bucket: The bucket; None for one that stores none, and refuses to read them.
        inner: A codec, for example for encryption, whose results are stored.
    """

    def __init__(self, bucket: Bucket | None, inner: PayloadCodec | None) -> None:
        self.bucket = bucket
        self._inner = inner

    def with_context(self, context: SerializationContext) -> ClaimCheck:
        """Return the codec for one workflow or activity."""
        with_context = getattr(self._inner, "with_context", None)
        return self if with_context is None else ClaimCheck(self.bucket, with_context(context))

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Return payloads without large contents.

        Raises:
            StoreError: The bucket cannot be written.
        """
        encoded = [*payloads] if self._inner is None else await self._inner.encode(payloads)
        bucket = self.bucket
        if bucket is None:
            return encoded
        return [
            await asyncio.to_thread(_store, bucket, each) if each.ByteSize() > LARGE else each
            for each in encoded
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Return the payloads with the contents of the bucket.

        Raises:
            StoreError: An object is missing or damaged, or there is no bucket.
        """
        found = [
            await asyncio.to_thread(_load, self.bucket, each) if _is_claim(each) else each
            for each in payloads
        ]
        return found if self._inner is None else await self._inner.decode(found)


def _is_claim(payload: Payload) -> bool:
    return payload.metadata.get("encoding") == ENCODING


def _key(digest: str) -> str:
    return f"{digest[:2]}/{digest}"


def _store(bucket: Bucket, payload: Payload) -> Payload:
    """Store a payload and return the one that names it.

    An object that exists is written again: rules that delete by age see when it was used.
    """
    content = payload.SerializeToString(deterministic=True)
    digest = sha256(content).hexdigest()
    try:
        with bucket.create(_key(digest)) as file:
            file.write(content)
    except (ObjectFault, OSError) as error:
        raise StoreError(
            f"cannot store a payload of {len(content)} bytes in the bucket for payloads: {error}"
        ) from None
    return Payload(metadata={"encoding": ENCODING}, data=digest.encode())


def _load(bucket: Bucket | None, claim: Payload) -> Payload:
    digest = claim.data.decode()
    if bucket is None:
        raise StoreError(
            f"a payload is in a bucket, as the object {_key(digest)!r}: add payloads=BUCKET to the "
            "address of the store, as where the execution was started"
        )
    try:
        with bucket.open(_key(digest)) as file:
            content = file.read()
    except (ObjectFault, OSError) as error:
        raise StoreError(f"cannot read a payload from the bucket for payloads: {error}") from None
    if sha256(content).hexdigest() != digest:
        raise StoreError(f"the object {_key(digest)!r} of the bucket for payloads was changed")
    return Payload.FromString(content)


def data_converter(
    payloads: object = None, converter: DataConverter = DataConverter.default
) -> DataConverter:
    """Return a data converter for clients and workers that stores large payloads in a bucket.

    Args:
        payloads: The bucket: a folder, or the URL of an object store; None to store none.
        converter: A data converter whose codec comes first, for example to encrypt.

    Raises:
        AslError: There is no such bucket.
    """
    bucket = None if payloads is None else as_bucket(NAME, payloads)
    return replace(converter, payload_codec=ClaimCheck(bucket, converter.payload_codec))


def has_bucket(converter: DataConverter) -> bool:
    """Return whether large payloads go to a bucket."""
    codec = converter.payload_codec
    return isinstance(codec, ClaimCheck) and codec.bucket is not None
