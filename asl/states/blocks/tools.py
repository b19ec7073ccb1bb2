"""Tools, DefaultTools and ToolCategories: the tools of agents (Specification 8.9).

This module compiles blocks to rules; the dispatcher of a call applies them to every tool call
(`asl.effects.tools.dispatcher`).
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final, TypeAlias

from asl.core.values import Json, compact
from asl.expr.frame import ExpressionFrame
from asl.expr.templates import is_dynamic
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Attempt, Block, Perform
from asl.states.blocks.consent import REQUIRE_APPROVAL
from asl.states.blocks.tool_policy import ToolHook, ToolRules, parse_processors
from asl.states.calls import CallOptions

__all__ = [
    "DEFAULT_TOOLS",
    "TOOLS",
    "TOOL_CATEGORIES",
    "CompileRules",
    "compile_rules",
    "unsupported_sandbox_fields",
    "use_tools",
]

DEFAULT_ENVIRONMENT: Final = "process"
"""The environment of a sandbox that names none."""


def unsupported_sandbox_fields(
    block: Mapping[str, Json], node: Node | None
) -> Iterator[tuple[str, str]]:
    """Yield the settings of a sandbox that its environment cannot carry out, and why."""
    sandbox = block.get("Sandbox")
    if type(sandbox) is not dict or block.get("Sandboxed") is False:
        return
    kind = sandbox.get("Environment", DEFAULT_ENVIRONMENT)
    for field, why in _CANNOT.get(kind, ()) if type(kind) is str else ():
        if field in sandbox and why(sandbox[field]):
            message = (
                f"{field!r} of a sandbox {kind!r} cannot be carried out here: {why(sandbox[field])}"
            )
            yield f"/Sandbox/{field}", message


def _constant_reason(reason: str) -> Callable[[Json], str]:
    return lambda value: reason


def _fraction(value: Json) -> str:
    try:
        return "" if parse_processors(value).is_integer() else "a process has whole processors"
    except ValueError:
        return ""


_CANNOT: Final[Mapping[str, tuple[tuple[str, Callable[[Json], str]], ...]]] = {
    "vm": (("Environment", _constant_reason("there is no virtual machine")),),
    "process": (
        ("Image", _constant_reason("it runs the program that is there")),
        ("CPU", _fraction),
    ),
    "wasm": (
        ("Image", _constant_reason("it runs the module that the tool names")),
        ("CPU", _constant_reason("it has no share of processors")),
        ("Network", lambda value: "it has no network" if value is True else ""),
    ),
}
"""By environment: the fields that it cannot carry out, with why it cannot a value."""


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

CompileRules: TypeAlias = Callable[[Json, ExpressionFrame], ToolRules]
"""`(effective input, frame) -> rules`."""


def use_tools(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the tool rules of a call."""
    rules, always = compile_rules(compiler, "Tools"), _always(compiler.compiler_at("Tools"))
    if always is None:

        def told(attempt: Attempt) -> Awaitable[Json]:
            attempt.set_call_attribute("tools", rules(attempt.data, attempt.frame))
            return inner(attempt)

        return told
    shared = CallOptions(None, None)
    shared.blocks["tools"], shared.shared = always, True

    def perform(attempt: Attempt) -> Awaitable[Json]:
        if attempt.options is None:
            attempt.options = shared
        else:
            attempt.set_call_attribute("tools", always)
        return inner(attempt)

    return perform


def compile_rules(compiler: Compiler, name: str) -> CompileRules:
    """Compile a block: `Tools` of a state, or `DefaultTools` of a workflow."""
    block = compiler.compiler_at(name)
    always = _always(block)
    if always is not None:
        return lambda data, frame: always
    hooks = {each: _hook(compiler.compiler_at(name, "Hooks", each)) for each in HOOKS
             if each in block.state.get("Hooks", {})}  # fmt: skip
    if _is_constant(block):
        constant = _written(block)
        return lambda data, frame: ToolRules(constant, hooks, data, True)
    fields = [
        (field, value)
        for field in FIELDS
        if (value := block.template(field) or block.scalar(field)) is not None
    ]
    return lambda data, frame: ToolRules(
        {field: value(data, frame) for field, value in fields}, hooks, data, False
    )


def _always(block: Compiler) -> ToolRules | None:
    """Return the rules of a constant block without hooks, shared by all calls; else None."""
    if not _is_constant(block) or not block.state.get("Hooks", {}).keys().isdisjoint(HOOKS):
        return None
    return ToolRules(_written(block), {}, None, True)


def _written(block: Compiler) -> dict[str, Json]:
    return {field: block.state[field] for field in FIELDS if field in block.state}


def _hook(compiler: Compiler) -> ToolHook:
    agent = compiler.scalar("Agent")
    assert agent is not None  # the schema demands it
    language = "JSONata" if compiler.jsonata else "JSONPath"
    block = {**compiler.state, "QueryLanguage": language}
    return ToolHook(agent, compiler.template("Parameters"), block)


def _is_constant(block: Compiler) -> bool:
    written = {field: value for field, value in block.state.items() if field != "Hooks"}
    if block.jsonata:
        return "{%" not in compact(written)
    return not is_dynamic(written)


TOOLS = Block("Tools", missing=unsupported_sandbox_fields)
DEFAULT_TOOLS = Block("DefaultTools", missing=unsupported_sandbox_fields)
TOOL_CATEGORIES = Block("ToolCategories")
