"""The agent blocks (Specification 8): what an agent may spend, see, say and do."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType

from asl.core.values import Json
from asl.expr.frame import Evaluate, Frame
from asl.program import Finish
from asl.states.base import Compiler
from asl.states.blocks.audit import AUDIT, record_call
from asl.states.blocks.base import Attempt, Block, Perform, Wrap, make_parameters
from asl.states.blocks.budget import BUDGET
from asl.states.blocks.cache import CACHE, CACHE_RESULT, CACHE_TTL, use_cache
from asl.states.blocks.context import CONTEXT, show_context
from asl.states.blocks.events import EVENTS, REAL_TIME
from asl.states.blocks.feedback import FEEDBACK
from asl.states.blocks.guardrails import GUARDRAILS, guard_input, guard_output
from asl.states.blocks.idempotency import IDEMPOTENCY_KEY, IDEMPOTENT, tell_key
from asl.states.blocks.memory import MEMORY, read_memory, use_memory
from asl.states.blocks.metadata import METADATA, tell_metadata
from asl.states.blocks.model import GENERATION, MODEL, choose_model, tell_generation
from asl.states.blocks.progress import (
    PROGRESS,
    follow_progress,
    progress_goes_to,
    store_progress,
)
from asl.states.blocks.reasoning import (
    REASONING,
    demand_reasoning,
    store_reasoning,
    trace_goes_to,
)
from asl.states.blocks.streaming import STREAMING, show_guarded, tell_stream
from asl.states.blocks.tools import DEFAULT_TOOLS, TOOL_CATEGORIES, TOOLS, use_tools

__all__ = [
    "AGENT_BLOCKS",
    "BLOCKS",
    "DOCUMENT_BLOCKS",
    "STATE_BLOCKS",
    "details_of",
    "inserts_of",
    "reads_memory",
    "wraps_of",
]

BLOCKS: Mapping[str, Block] = MappingProxyType(
    {
        each.name: each
        for each in (
            BUDGET,
            GUARDRAILS,
            REASONING,
            MODEL,
            GENERATION,
            METADATA,
            IDEMPOTENT,
            IDEMPOTENCY_KEY,
            CACHE,
            CACHE_RESULT,
            CACHE_TTL,
            MEMORY,
            STREAMING,
            PROGRESS,
            AUDIT,
            EVENTS,
            REAL_TIME,
            FEEDBACK,
            TOOLS,
            DEFAULT_TOOLS,
            TOOL_CATEGORIES,
            CONTEXT,
        )
    }
)
"""The blocks that this version executes."""
AGENT_BLOCKS: tuple[str, ...] = tuple(each.name for each in BLOCKS.values() if each.of_agents)
"""The fields that shape the call of an agent and mean nothing to a resource (6.1)."""
STATE_BLOCKS: tuple[str, ...] = (*AGENT_BLOCKS, "Events")
"""The blocks of a state."""
DOCUMENT_BLOCKS: tuple[str, ...] = tuple(each.name for each in BLOCKS.values() if each.of_documents)
"""The blocks of a document. `Metadata` and `Observability` have no effect there anyway."""


def settle_destinations(compiler: Compiler, inner: Perform) -> Perform:
    """Compile what says where blocks put something into the output, where that is computed."""
    found = [each(compiler) for each in (trace_goes_to, progress_goes_to)]
    computed = [each for each in found if each.computed]
    if not computed:
        return inner

    def perform(attempt: Attempt) -> Awaitable[Json]:
        for each in computed:
            each.settle(attempt.data, attempt.frame)
        return inner(attempt)

    return perform


_WRAPS: tuple[tuple[tuple[str, ...], Wrap], ...] = (
    (("Streaming",), tell_stream),
    (("Model",), choose_model),
    (("Generation",), tell_generation),
    (("Metadata",), tell_metadata),
    (("Idempotent", "IdempotencyKey"), tell_key),
    (("Reasoning",), demand_reasoning),
    (("Guardrails",), guard_output),
    (("Streaming",), show_guarded),
    (("Context",), show_context),
    (("Cache", "CacheResult"), use_cache),
    (("Guardrails",), guard_input),
    ((), make_parameters),
    (("Tools",), use_tools),
    (("Reasoning", "Progress", "Streaming"), settle_destinations),
    (("Memory",), lambda compiler, inner: use_memory(compiler, inner, inserts_of(compiler))),
    (("Audit",), record_call),
    (("Progress", "Streaming"), follow_progress),
    (("Memory",), read_memory),
)
"""What blocks do around a call, from the call outwards (Specification 3.1)."""


_INSERTS: tuple[tuple[str, Callable[[Compiler], Finish | None]], ...] = (
    ("Reasoning", store_reasoning),
    ("Progress", store_progress),
    (
        "Streaming",
        lambda compiler: None if "Progress" in compiler.state else store_progress(compiler),
    ),
)
"""What blocks put into the output of a state, in this order (step 13 of Specification 3.1)."""


_SHAPING: frozenset[str] = frozenset(
    name for fields, _ in _WRAPS for field in fields for name in (field, f"{field}.$")
)
"""The fields of which one stands where anything is done around a call."""


def wraps_of(state: Mapping[str, Json]) -> Iterator[Wrap]:
    """Yield what the blocks of a Task do around its call, from the call outwards."""
    if "Agent" not in state or _SHAPING.isdisjoint(state):
        return
    present = {field for fields, _ in _WRAPS for field in fields if _stands(field, state)}
    for fields, wrap in _WRAPS if present else ():
        if not fields or not present.isdisjoint(fields):
            yield wrap


def _stands(field: str, state: Mapping[str, Json]) -> bool:
    return field in state or (BLOCKS[field].scalar and f"{field}.$" in state)


def reads_memory(state: Mapping[str, Json]) -> bool:
    """Whether the parameters of a Task depend on what is remembered."""
    return "Agent" in state and "Read" in state.get("Memory", {})


def inserts_of(compiler: Compiler) -> tuple[Finish, ...]:
    """Compile what the blocks of a state put into its output."""
    found = (
        compile_insert(compiler)
        for field, compile_insert in _INSERTS
        if field in compiler.state and "Resource" not in compiler.state
    )
    return tuple(each for each in found if each is not None)


def details_of(compiler: Compiler) -> Evaluate | None:
    """Compile what the blocks of a Task add to the event of its call."""
    if "Agent" not in compiler.state:
        return None
    metadata = compiler.template("Metadata")
    if metadata is None:
        return None
    effective, besides = compiler.input(), metadata

    def details(raw: Json, frame: Frame) -> Json:
        return {"metadata": besides(effective(raw, frame), frame)}

    return details
