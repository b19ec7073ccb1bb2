"""Tools, DefaultTools and ToolCategories: what an agent may do (Specification 8.9).

The document becomes rules here; the broker of a call holds every tool call against them
(`asl.effects.tools.dispatcher`).
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from asl.core.values import Json, compact
from asl.expr.frame import Frame
from asl.expr.templates import is_dynamic
from asl.states.base import Compiler
from asl.states.blocks.base import Attempt, Block, Perform
from asl.states.blocks.consent import REQUIRE_APPROVAL
from asl.states.blocks.policy import Hook, Rules
from asl.states.blocks.sandboxes import missing_of_sandbox
from asl.states.calls import Options

__all__ = [
    "DEFAULT_TOOLS",
    "TOOLS",
    "TOOL_CATEGORIES",
    "CompileRules",
    "compile_rules",
    "use_tools",
]

FIELDS = (
    "Allowed",
    "Denied",
    "AllowedCategories",
    "DeniedCategories",
    REQUIRE_APPROVAL,
    "RateLimits",
    "Sandboxed",
    "Sandbox",
    "Timeout",
    "Parameters",
    "Validation",
    "Domains",
    "Network",
    "FileSystem",
    "Audit",
)
"""The fields of a block apart from its hooks."""
HOOKS = ("Before", "After")

CompileRules: TypeAlias = Callable[[Json, Frame], Rules]
"""`(effective input, frame) -> rules`."""


def use_tools(compiler: Compiler, inner: Perform) -> Perform:
    """Compile what the call is told about its tools."""
    rules, always = compile_rules(compiler, "Tools"), _always(compiler.within("Tools"))
    if always is None:

        def told(attempt: Attempt) -> Awaitable[Json]:
            attempt.tell("tools", rules(attempt.data, attempt.frame))
            return inner(attempt)

        return told
    shared = Options(None, None)
    shared.blocks["tools"], shared.shared = always, True

    def perform(attempt: Attempt) -> Awaitable[Json]:
        if attempt.options is None:
            attempt.options = shared
        else:
            attempt.tell("tools", always)
        return inner(attempt)

    return perform


def compile_rules(compiler: Compiler, name: str) -> CompileRules:
    """Compile a block: `Tools` of a state, or `DefaultTools` of a workflow."""
    block = compiler.within(name)
    always = _always(block)
    if always is not None:
        return lambda data, frame: always
    hooks = {each: _hook(compiler.within(name, "Hooks", each)) for each in HOOKS
             if each in block.state.get("Hooks", {})}  # fmt: skip
    if _is_constant(block):
        constant = _written(block)
        return lambda data, frame: Rules(constant, hooks, data, True)
    fields = [
        (field, value)
        for field in FIELDS
        if (value := block.template(field) or block.scalar(field)) is not None
    ]
    return lambda data, frame: Rules(
        {field: value(data, frame) for field, value in fields}, hooks, data, False
    )


def _always(block: Compiler) -> Rules | None:
    """Return the rules of a block that are the same for all calls: no hook sees the data."""
    if not _is_constant(block) or not block.state.get("Hooks", {}).keys().isdisjoint(HOOKS):
        return None
    return Rules(_written(block), {}, None, True)


def _written(block: Compiler) -> dict[str, Json]:
    return {field: block.state[field] for field in FIELDS if field in block.state}


def _hook(compiler: Compiler) -> Hook:
    agent = compiler.scalar("Agent")
    assert agent is not None  # the schema demands it
    return Hook(agent, compiler.template("Parameters"))


def _is_constant(block: Compiler) -> bool:
    written = {field: value for field, value in block.state.items() if field != "Hooks"}
    if block.jsonata:
        return "{%" not in compact(written)
    return not is_dynamic(written)


TOOLS = Block("Tools", missing=missing_of_sandbox)
DEFAULT_TOOLS = Block("DefaultTools", missing=missing_of_sandbox)
TOOL_CATEGORIES = Block("ToolCategories")
