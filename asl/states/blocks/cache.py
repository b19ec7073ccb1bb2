"""Cache and CacheResult: an answer that is there is not asked for again (Specification 8.4)."""

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from math import inf
from typing import Final, NamedTuple

from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json, compact
from asl.expr.frame import Frame
from asl.expr.times import parse_duration
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Attempt, Block, Perform, given

__all__ = ["CACHE", "CACHE_RESULT", "CACHE_TTL", "use_cache"]

SCOPES: Final = ("execution", "workflow", "global")


class _Plan(NamedTuple):
    """How one call is cached."""

    key: Json
    ttl: Json
    scope: str


def use_cache(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the look-up before a call, and what keeps its result."""
    plan_of = _planned(compiler)

    async def perform(attempt: Attempt) -> Json:
        frame = attempt.frame
        plan = plan_of(attempt.data, frame)
        if plan is None:
            return await inner(attempt)
        place = {"namespace": _namespace(plan.scope, attempt), "key": _key(plan.key, attempt)}
        found = await frame.host.serve(frame, "memory", {"do": "recall", **place})
        if found:
            frame.note("CacheHit", {"scope": plan.scope, "key": place["key"]})
            return found[0]
        result = await inner(attempt)
        kept = {"do": "keep", **place, "value": result, "ttl": plan.ttl}
        await frame.host.serve(frame, "memory", kept)
        return result

    return perform


def _planned(compiler: Compiler) -> Callable[[Json, Frame], _Plan | None]:
    block, state = compiler.within("Cache"), compiler.name
    if "Cache" in compiler.state:
        fields = given(block, ("Enabled", "Key", "TTL", "Scope"))
    else:
        fields = given(compiler, ("CacheResult", "IdempotencyKey", "CacheTTL"))

    def plan(data: Json, frame: Frame) -> _Plan | None:
        found = fields(data, frame)
        if "Cache" not in compiler.state:
            names = {"CacheResult": "Enabled", "IdempotencyKey": "Key", "CacheTTL": "TTL"}
            found = {"Enabled": False} | {names[field]: value for field, value in found.items()}
        if found.get("Enabled", True) is not True:
            return None
        scope = found.get("Scope", "workflow")
        if scope not in SCOPES:
            cause = f"state '{state}': Cache.Scope is one of {', '.join(SCOPES)}, not {scope!r}"
            raise StateError("States.Runtime", cause)
        return _Plan(found.get("Key"), _lifetime(found.get("TTL", "never"), state), scope)

    return plan


def _lifetime(ttl: Json, state: str) -> Json:
    try:
        seconds = parse_duration(ttl, allow_never=True)
    except ExpressionFault as fault:
        raise StateError("States.InvalidTTL", f"state '{state}': {fault}") from None
    return "never" if seconds == inf else ttl


def _key(key: Json, attempt: Attempt) -> str:
    """Return the key that is given, else one made of agent and parameters."""
    if key is not None:
        return key if type(key) is str else compact(key)
    text = compact([attempt.target.name, attempt.payload])
    return sha256(text.encode()).hexdigest()


def _namespace(scope: str, attempt: Attempt) -> str:
    if scope == "global":
        return f"cache:agent:{attempt.target.name}"
    whose = attempt.frame.execution_id if scope == "execution" else attempt.frame.workflow
    return f"cache:{scope}:{whose}:{attempt.target.state}"


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    key = node.value["Cache"].get("Key")
    if type(key) is str and not key.startswith("{%") and not node.open(key):
        yield Finding(
            "V-CACHE-02",
            f"the key {key!r} is the same for every input",
            node.at("Cache", "Key"),
            "compute it: Key.$",
        )


CACHE = Block("Cache", _check)
CACHE_RESULT = Block("CacheResult")
CACHE_TTL = Block("CacheTTL")
