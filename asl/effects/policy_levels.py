"""The rights of a call: all enclosing tool policies, which apply together (8.9).

They are those of the parent execution, of the document, of the included documents around the state,
and of the state, over the `DefaultTools` of its document. So rights only shrink.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.rate_limits import CallTracking, tracking_of
from asl.effects.runtime import RuntimeContext
from asl.effects.tool_registry import PolicyLevel
from asl.engine.execution import Execution
from asl.engine.frame import Frame
from asl.states.blocks.tool_policy import ToolHook, ToolPolicy, ToolRules

__all__ = [
    "ReadHooks",
    "needs_consent",
    "policy_levels_of",
    "read_levels",
    "root_execution",
    "write_levels",
]


def root_execution(execution: Execution) -> Execution:
    """Return the execution that contains a machine's: a distributed Map has its own for each
    iteration.
    """
    while (parent := getattr(execution, "parent", None)) is not None:
        execution = parent
    return execution


def policy_levels_of(
    runtime: RuntimeContext, frame: Frame, own: ToolRules | None = None
) -> tuple[PolicyLevel, ...]:
    """Return all policies that bind a state of a machine, outermost first.

    Raises:
        StateError: A computed field is invalid.
    """
    execution = root_execution(frame.execution)
    program = execution.program
    outer: tuple[PolicyLevel, ...] = execution.rights
    default: ToolRules | None = None
    if program.tools is not None:
        if execution.default_tools is None:
            execution.default_tools = program.tools(execution.input, frame)
        default = execution.default_tools
    scopes: list[tuple[ToolRules | None, Mapping[str, Json]]] = [(default, program.document)]
    for scope in (each for each in frame.scopes if each.has_tools):
        rules = None if scope.tools is None else scope.tools(execution.input, frame)
        scopes.append((rules, scope.document))
    room = runtime.current_services().tools
    counts = room.tracking_of(program.document)
    levels = []
    for number, (below, document) in enumerate(scopes):
        above = own if number == len(scopes) - 1 else None
        if below is None and above is None:
            continue
        try:
            policy = room.policy(below, above, document)
        except ValueError as fault:
            cause = f"state '{frame.step.name}': Tools: {fault}"
            raise StateError("States.Runtime", cause) from None
        hooks = {
            name: (hook, each.data)
            for each in (below, above)
            if each is not None
            for name, hook in each.hooks.items()
        }
        levels.append(PolicyLevel(policy, hooks, execution.workflow, counts))
    return (*outer, *levels)


def needs_consent(runtime: RuntimeContext, frame: Frame, own: ToolRules | None) -> bool:
    """Return whether any tool call of an agent may need consent.

    Args:
        runtime: Runtime context of the execution.
        frame: The machine.
        own: Rules of its state.
    """
    execution, services = root_execution(frame.execution), runtime.services
    operator = None if services is None else services.policy
    levels = () if operator is None else operator.levels
    if own is not None or execution.program.tools is not None or execution.rights or frame.scopes:
        levels = (*levels, *policy_levels_of(runtime, frame, own))
    return any(level.policy.consents for level in levels)


ReadHooks: TypeAlias = Callable[[Mapping[str, Json]], Mapping[str, ToolHook]]
"""Compiles the blocks of hooks by `Before` and `After`."""


def write_levels(levels: tuple[PolicyLevel, ...]) -> Json:
    """Return the policies of an execution as JSON, for when it continues without its parent."""
    return [
        [
            level.policy.block,
            level.policy.categories,
            level.workflow,
            bool(level.hooks),
            list(level.tracking),
            {name: [hook.block, data] for name, (hook, data) in level.hooks.items()},
        ]
        for level in levels
    ]


def read_levels(written: Json, read_hooks: ReadHooks | None = None) -> tuple[PolicyLevel, ...]:
    """Return stored policies.

    Args:
        written: The policies.
        read_hooks: Compiles their hooks; None where hooks cannot run, so that a policy with hooks
            allows no tool.
    """
    levels = []
    for block, categories, workflow, hooked, *more in written:
        hooks: dict[str, tuple[ToolHook, Json]] = {}
        if hooked and read_hooks is not None:
            data = {name: data for name, (_, data) in more[1].items()}
            compiled = read_hooks({name: hook for name, (hook, _) in more[1].items()})
            hooks = {name: (hook, data[name]) for name, hook in compiled.items()}
        elif hooked:
            block = {**block, "Allowed": []}
        tracking = CallTracking(*more[0]) if more else tracking_of(block)
        levels.append(PolicyLevel(ToolPolicy(block, categories), hooks, workflow, tracking))
    return tuple(levels)
