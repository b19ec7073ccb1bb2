"""Cache and CacheResult: reuse of stored results (Specification 8.4)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from asl.core.diagnostics import Finding
from asl.core.values import Json, compact
from asl.expr.frame import ExpressionFrame
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Attempt, Block, Perform, compile_settings
from asl.states.effects import ServiceCall

__all__ = ["CACHE", "CACHE_RESULT", "CACHE_TTL", "use_cache"]

SCOPES: Final = ("execution", "workflow", "global")
_OF_RESULT: Final = ("CacheResult", "IdempotencyKey", "CacheTTL")
"""The fields of a state for `Enabled`, `Key` and `TTL` of a Cache."""


class _Plan(NamedTuple):
    """The key, lifetime and scope of a cached call."""

    key: Json
    ttl: Json
    scope: str


def use_cache(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the look-up before a call, and the storage of its result."""
    plan_of = _planned(compiler)

    async def perform(attempt: Attempt) -> Json:
        frame = attempt.frame
        plan = plan_of(attempt.data, frame)
        if plan is None:
            return await inner(attempt)
        place = {"namespace": _namespace(plan.scope, attempt), "key": _key(plan.key, attempt)}
        found = await frame.effects.call(frame, ServiceCall("memory", {"do": "recall", **place}))
        if found:
            frame.note("CacheHit", {"scope": plan.scope, "key": place["key"]})
            return found[0]
        result = await inner(attempt)
        kept = {"do": "keep", **place, "value": result, "ttl": plan.ttl}
        await frame.effects.call(frame, ServiceCall("memory", kept))
        return result

    return perform


def _planned(compiler: Compiler) -> Callable[[Json, ExpressionFrame], _Plan | None]:
    own = "Cache" in compiler.state
    enabled, key, ttl = ("Enabled", "Key", "TTL") if own else _OF_RESULT
    fields = compile_settings(
        compiler, "Cache" if own else "", (enabled, key, ttl, *(("Scope",) * own))
    )

    def plan(data: Json, frame: ExpressionFrame) -> _Plan | None:
        found = fields(data, frame)
        if not found.flag(enabled, absent=own):
            return None
        lifetime, scope = found.lifetime(ttl), found.choice("Scope", SCOPES)
        return _Plan(
            found.values.get(key), "never" if lifetime is None else lifetime, scope or "workflow"
        )

    return plan


def _key(key: Json, attempt: Attempt) -> str:
    """Return the given key, or a hash of agent and parameters."""
    if key is not None:
        return key if type(key) is str else compact(key)
    from hashlib import sha256

    text = compact([attempt.target.name, attempt.payload])
    return sha256(text.encode()).hexdigest()


def _namespace(scope: str, attempt: Attempt) -> str:
    if scope == "global":
        return f"cache:agent:{attempt.target.name}"
    whose = attempt.frame.execution_id if scope == "execution" else attempt.frame.workflow
    return f"cache:{scope}:{whose}:{attempt.target.state}"


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    yield from _check_key(node, "Cache", "Key")


def _check_key(node: Node, *path: str) -> Iterator[Finding]:
    *steps, field = path
    key = (node.value[steps[0]] if steps else node.value).get(field)
    if type(key) is str and not key.startswith("{%") and not node.open(key):
        message, hint = f"the key {key!r} is the same for every input", f"compute it: {field}.$"
        yield Finding("V-CACHE-02", message, node.at(*path), hint)


def _check_result(node: Node, field: str) -> Iterator[Finding]:
    if "Cache" in node.value:
        message = f"{field!r} has no effect next to 'Cache'"
        yield Finding("V-CACHE-04", message, node.at(field), at_key=True)
    else:
        yield from _check_key(node, "IdempotencyKey")


def _check_lifetime(node: Node, field: str) -> Iterator[Finding]:
    if "Cache" in node.value:
        message = f"{field!r} has no effect next to 'Cache'"
    elif {"CacheResult", "CacheResult.$"}.isdisjoint(node.value):
        message = f"{field!r} has no effect without 'CacheResult'"
    else:
        return
    yield Finding("V-CACHE-04", message, node.at(field), at_key=True)


CACHE = Block("Cache", _check)
CACHE_RESULT = Block("CacheResult", check_field=_check_result, scalar=True)
CACHE_TTL = Block("CacheTTL", check_field=_check_lifetime, scalar=True)
