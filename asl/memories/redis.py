"""A memory on a Redis server (or a compatible one), shared by all runs that name it.

Every value is a text of its own, `asl:entry:NAMESPACE/KEY`, which the server deletes when it
expires; `asl:keys:NAMESPACE` is the set of the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from asl.core.environment import require_extra
from asl.core.errors import AslError, StateError
from asl.engine.memory import MemoryEntry
from asl.memories.records import MemoryRecord, alive, latest

if TYPE_CHECKING:
    from redis.client import Pipeline

__all__ = ["RedisMemory"]

PATIENCE = 10.0
"""Seconds to wait for a connection, and for an answer."""
CHUNK = 1000
"""Number of keys read in one request."""
SHAPE = (
    "this is no URL of a Redis server: redis://:PASSWORD@HOST:PORT/DATABASE, "
    "with the special characters of a password quoted"
)
DATABASE = re.compile(r"(?:/[0-9]*)?")
FORGET = """
for at = 2, #KEYS do
  if redis.call('EXISTS', KEYS[at]) == 0 then redis.call('SREM', KEYS[1], ARGV[at - 1]) end
end
"""
"""Removes the keys of deleted values from the set of keys."""


class RedisMemory:
    """A memory on a server (protocol `asl.engine.memory.Memory`); connections are reused.

    Args:
        url: `redis://HOST:PORT/DATABASE`, `rediss://...` (TLS) or `unix://PATH`.

    Raises:
        AslError: The URL has another form, or the extra `redis` is not installed.
    """

    remote = True

    def __init__(self, url: str) -> None:
        require_extra("redis", "redis", "a memory in Redis")
        from redis import Redis, RedisError

        try:
            self.client = Redis.from_url(
                url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE
            )
            pool = self.client.connection_pool
            pool.connection_class(**pool.connection_kwargs)  # opens no connection yet
            parts = urlsplit(url)
        except (TypeError, ValueError, RedisError):  # which may show a part of the password
            raise AslError(SHAPE) from None
        if parts.scheme != "unix" and not DATABASE.fullmatch(parts.path):
            raise AslError(SHAPE)  # the library would take 0, or join the digits
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        if "@" in self.where:
            raise AslError(SHAPE)
        secret = parts.password
        self.secrets = () if secret is None else (secret, unquote(secret))

    def __repr__(self) -> str:
        return f"RedisMemory({self.where!r})"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert the errors of the server."""
        from redis.exceptions import RedisError

        try:
            yield
        except (RedisError, OSError, ValueError) as error:
            reason = str(error)
            for secret in self.secrets:
                reason = reason.replace(secret, "***")
            cause = f"the memory {self.where!r} cannot be used: {reason}"
            raise StateError("States.MemoryNotConfigured", cause) from None

    def get(self, namespace: str, key: str, now: float) -> MemoryEntry | None:
        """Return an entry, None without one."""
        with self._errors():
            return alive(_record(key, self.client.get(_place(namespace, key))), now)

    def entries(self, namespace: str, now: float) -> list[MemoryEntry]:
        """Return all entries of a namespace, the latest first."""
        with self._errors():
            return latest(self._records(namespace), now)

    def _records(self, namespace: str) -> Iterator[MemoryRecord]:
        client: Any = self.client
        keys = (each.decode() for each in client.smembers(_keys(namespace)))
        while chunk := list(islice(keys, CHUNK)):
            places = [_place(namespace, key) for key in chunk]
            found = [_record(*each) for each in zip(chunk, client.mget(places), strict=True)]
            if None in found:
                client.eval(FORGET, len(places) + 1, _keys(namespace), *places, *chunk)
            yield from (record for record in found if record is not None)

    def change(
        self,
        namespace: str,
        key: str,
        now: float,
        make: Callable[[MemoryEntry | None], MemoryEntry | None],
    ) -> None:
        """Replace an entry by the result of *make*; repeated after a concurrent change."""
        place = _place(namespace, key)

        def replace(pipe: Pipeline) -> None:
            known: Any = pipe.get(place)
            entry = make(alive(_record(key, known), now))
            order: Any = 0 if entry is None else pipe.incr("asl:order")
            pipe.multi()
            if entry is not None:
                left = None if entry.expires is None else max(1, int(1000 * (entry.expires - now)))
                pipe.set(place, MemoryRecord(entry, order).text(), px=left)
                pipe.sadd(_keys(namespace), key)

        with self._errors():
            self.client.transaction(replace, place)


def _place(namespace: str, key: str) -> str:
    return f"asl:entry:{quote(namespace, safe=':')}/{key}"


def _keys(namespace: str) -> str:
    return f"asl:keys:{namespace}"


def _record(key: str, text: Any) -> MemoryRecord | None:
    return None if text is None else MemoryRecord.read(key, text)
