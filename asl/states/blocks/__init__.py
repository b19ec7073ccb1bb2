"""The agent blocks (Specification 8): budgets, guardrails, memory, tools and others."""

from collections.abc import Iterator, Mapping

from asl.core.lazy import LazyTable, load_object
from asl.core.values import Json
from asl.expr.frame import Evaluate, ExpressionFrame
from asl.program import Finish
from asl.states.base import Compiler
from asl.states.blocks.base import Block, Wrap

__all__ = [
    "AGENT_BLOCKS",
    "BLOCKS",
    "DOCUMENT_BLOCKS",
    "STATE_BLOCKS",
    "compile_details",
    "compile_inserts",
    "find_wraps",
    "reads_memory",
]

BLOCKS: Mapping[str, Block] = LazyTable(
    {
        "Budget": "asl.states.blocks.budget:BUDGET",
        "Guardrails": "asl.states.blocks.guardrails:GUARDRAILS",
        "Reasoning": "asl.states.blocks.reasoning:REASONING",
        "Model": "asl.states.blocks.call_settings:MODEL",
        "Generation": "asl.states.blocks.call_settings:GENERATION",
        "Metadata": "asl.states.blocks.call_settings:METADATA",
        "Idempotent": "asl.states.blocks.call_settings:IDEMPOTENT",
        "IdempotencyKey": "asl.states.blocks.call_settings:IDEMPOTENCY_KEY",
        "Cache": "asl.states.blocks.cache:CACHE",
        "CacheResult": "asl.states.blocks.cache:CACHE_RESULT",
        "CacheTTL": "asl.states.blocks.cache:CACHE_TTL",
        "Memory": "asl.states.blocks.memory:MEMORY",
        "Streaming": "asl.states.blocks.streaming:STREAMING",
        "Progress": "asl.states.blocks.progress:PROGRESS",
        "Audit": "asl.states.blocks.audit:AUDIT",
        "Events": "asl.states.blocks.events:EVENTS",
        "RealTime": "asl.states.blocks.events:REAL_TIME",
        "Feedback": "asl.states.blocks.feedback:FEEDBACK",
        "Tools": "asl.states.blocks.tools:TOOLS",
        "DefaultTools": "asl.states.blocks.tools:DEFAULT_TOOLS",
        "ToolCategories": "asl.states.blocks.tools:TOOL_CATEGORIES",
        "Context": "asl.states.blocks.context:CONTEXT",
    }
)
"""The blocks that this version executes, each loaded when a document has it."""
DOCUMENT_BLOCKS: tuple[str, ...] = (
    *("Budget", "Memory", "Progress", "Events", "RealTime", "DefaultTools", "ToolCategories"),
)
"""The blocks of a document. `Metadata` and `Observability` have no effect there anyway."""
AGENT_BLOCKS: tuple[str, ...] = tuple(
    name for name in BLOCKS if name not in ("Events", "RealTime", "DefaultTools", "ToolCategories")
)
"""The fields for calls of agents, without effect on a resource (6.1)."""
STATE_BLOCKS: tuple[str, ...] = (*AGENT_BLOCKS, "Events")
"""The blocks of a state."""


_WRAPS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("Streaming",), "asl.states.blocks.streaming:request_stream"),
    (("Model",), "asl.states.blocks.call_settings:choose_model"),
    (("Generation",), "asl.states.blocks.call_settings:pass_generation"),
    (("Metadata",), "asl.states.blocks.call_settings:pass_metadata"),
    (("Idempotent", "IdempotencyKey"), "asl.states.blocks.call_settings:pass_idempotency_key"),
    (("Reasoning",), "asl.states.blocks.reasoning:demand_reasoning"),
    (("Guardrails",), "asl.states.blocks.guardrails:guard_output"),
    (("Streaming",), "asl.states.blocks.streaming:show_guarded"),
    (("Context",), "asl.states.blocks.context:show_context"),
    (("Cache", "CacheResult"), "asl.states.blocks.cache:use_cache"),
    (("Guardrails",), "asl.states.blocks.guardrails:guard_input"),
    ((), "asl.states.blocks.base:make_parameters"),
    (("Tools",), "asl.states.blocks.tools:use_tools"),
    (("Progress", "Streaming"), "asl.states.blocks.progress:evaluate_progress_path"),
    (("Reasoning",), "asl.states.blocks.reasoning:evaluate_trace_path"),
    (("Memory",), "asl.states.blocks.memory:use_memory"),
    (("Audit",), "asl.states.blocks.audit:record_call"),
    (("Progress", "Streaming"), "asl.states.blocks.progress:follow_progress"),
    (("Memory",), "asl.states.blocks.memory:read_memory"),
)
"""The wraps of blocks around a call, from the innermost outwards (Specification 3.1)."""


_INSERTS: tuple[tuple[str, str], ...] = (
    ("Reasoning", "asl.states.blocks.reasoning:store_reasoning"),
    ("Progress", "asl.states.blocks.progress:store_progress"),
    ("Streaming", "asl.states.blocks.progress:store_streamed_progress"),
)
"""The insertions of blocks into an output, in order (step 13 of Specification 3.1)."""


_SHAPING: frozenset[str] = frozenset(
    name for fields, _ in _WRAPS for field in fields for name in (field, f"{field}.$")
)
"""The fields with wraps; without any of them a call is not wrapped."""


def find_wraps(state: Mapping[str, Json]) -> Iterator[Wrap]:
    """Yield the wraps of a Task's blocks, from the innermost outwards."""
    if "Agent" not in state or _SHAPING.isdisjoint(state):
        return
    present = {field for fields, _ in _WRAPS for field in fields if _is_present(field, state)}
    for fields, place in _WRAPS if present else ():
        if not fields or not present.isdisjoint(fields):
            yield load_object(place)


def _is_present(field: str, state: Mapping[str, Json]) -> bool:
    return field in state or (BLOCKS[field].scalar and f"{field}.$" in state)


def reads_memory(state: Mapping[str, Json]) -> bool:
    """Return whether the parameters of a Task depend on its memory."""
    return "Agent" in state and "Read" in state.get("Memory", {})


def compile_inserts(compiler: Compiler) -> tuple[Finish, ...]:
    """Compile the insertions of a state's blocks into its output."""
    found = (
        load_object(place)(compiler)
        for field, place in _INSERTS
        if field in compiler.state and "Resource" not in compiler.state
    )
    return tuple(each for each in found if each is not None)


def compile_details(compiler: Compiler) -> Evaluate | None:
    """Compile the details that the blocks of a Task add to the event of its call."""
    if "Agent" not in compiler.state:
        return None
    metadata = compiler.template("Metadata")
    if metadata is None:
        return None
    effective, besides = compiler.input(), metadata

    def details(raw: Json, frame: ExpressionFrame) -> Json:
        return {"metadata": besides(effective(raw, frame), frame)}

    return details
