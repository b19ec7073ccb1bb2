"""Idempotent and IdempotencyKey: a key by which an agent knows a repeated call (8.4)."""

from asl.core.values import Json, compact
from asl.states.base import Compiler
from asl.states.blocks.base import Attempt, Block, Perform, settings

__all__ = ["IDEMPOTENCY_KEY", "IDEMPOTENT", "tell_key"]


def tell_key(compiler: Compiler, inner: Perform) -> Perform:
    """Compile what passes the written key on; without one the call has that of its visit."""
    fields = settings(compiler, "", ("Idempotent", "IdempotencyKey"))

    async def perform(attempt: Attempt) -> Json:
        found = fields(attempt.data, attempt.frame)
        if found.flag("Idempotent", absent=True):
            key = found.values.get("IdempotencyKey")
            if key is not None:
                attempt.tell("idempotency_key", key if type(key) is str else compact(key))
        return await inner(attempt)

    return perform


IDEMPOTENT = Block("Idempotent", scalar=True)
IDEMPOTENCY_KEY = Block("IdempotencyKey", scalar=True)
