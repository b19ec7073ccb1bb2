"""Tools that cannot be held to a policy of hosts or files, which is found before anything runs.

What is known only later (computed lists of tools, the tools of a server by their own names, the
boxes of an agent) the broker refuses at the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.effects.services import Services
from asl.engine.agent import Agent
from asl.engine.execution import Execution
from asl.engine.tools import ToolListing
from asl.expr.templates import is_dynamic
from asl.states.blocks.tool_policy import ToolPolicy, overlay, tool_categories
from asl.states.machines import scoped_states

__all__ = ["enforcement_gap", "require_enforceable"]

WHICH: Final = (
    *("Allowed", "Denied", "AllowedCategories", "DeniedCategories"),
    *("Sandboxed", "Sandbox"),
)
"""The fields that say which tools may be used, and how."""
BOUNDS: Final = ("FileSystem", "Domains", "Network")
"""The fields that say what they may reach."""
ANY_TOOL: Final = "\N{REPLACEMENT CHARACTER}"
"""The name of a tool that is meant only where all tools of a server are."""


class _Reaches(NamedTuple):
    """What a tool reaches that cannot be seen from here, as `asl.engine.agent.Agent` says it."""

    keeps_hosts: bool
    opens_files: bool


def enforcement_gap(
    tool: str, agent: Agent | _Reaches, policies: Sequence[ToolPolicy]
) -> str | None:
    """Return why a tool cannot be held to the hosts and files of policies, None if it can."""
    if not agent.keeps_hosts and any(each.hosts is not None for each in policies):
        return (
            f"tool {tool!r}: nobody could see which hosts it connects to: run it in a sandbox "
            "without network"
        )
    if agent.opens_files and any(each.files is not None for each in policies):
        return (
            f"tool {tool!r}: 'FileSystem' cannot limit which files it opens: run it in a "
            "sandbox 'docker' or 'wasm', whose 'Mounts' are all that it sees"
        )
    return None


def require_enforceable(execution: Execution, services: Services) -> None:
    """Raise StateError if a state may use a tool that cannot be held to its policies."""
    boxes = {name: box for name, box in services.boxes.items() if isinstance(box, ToolListing)}
    document = execution.program.document
    outer = [level.policy for level in execution.rights]
    if services.policy is not None:
        outer += [level.policy for level in services.policy.levels]
    for name, state, scopes in scoped_states(document, (document,)):
        if "Agent" not in state and "Agents" not in state:
            continue
        own = _policies(state, scopes)
        if own is None:
            continue
        for bound, box in boxes.items():
            why = _refusal(bound, box, [*outer, *own])
            if why is not None:
                hint = "deny it to the state, or change its policy"
                raise StateError("States.Permissions", f"state {name!r}: {why}; or {hint}")


def _policies(
    state: Mapping[str, Json], scopes: tuple[Mapping[str, Json], ...]
) -> list[ToolPolicy] | None:
    """Return the policies around a state, None if it is computed which tools they mean."""
    found = []
    for document in scopes:
        own = state.get("Tools") if document is scopes[-1] else None
        block = overlay(_block(document.get("DefaultTools")), _block(own))
        if block is None:
            continue
        known = _known(block)
        if known is None:
            return None
        try:
            found.append(ToolPolicy(known, tool_categories(document)))
        except ValueError:
            return None  # which is an error of the state
    return found


def _block(value: Json) -> Mapping[str, Json] | None:
    return value if type(value) is dict else None


def _known(block: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """Return the fields of a block that matter here; None if it is computed which tools it means.

    Of computed bounds it is enough that there are some.
    """
    which = {name: block[name] for name in WHICH if name in block}
    if _is_computed(which) or any(f"{name}.$" in block for name in WHICH):
        return None
    bounds: dict[str, Json] = {}
    for name in BOUNDS:
        value = block.get(name, block.get(f"{name}.$"))
        if value is not None and _is_computed({name: value}):
            value = {"DeniedDomains": [""]} if name == "Network" else {"Denied": [""]}
        if type(value) is dict:
            bounds[name] = value
    return {**which, **bounds}


def _is_computed(value: Json) -> bool:
    return is_dynamic(value) or "{%" in compact(value)


def _refusal(bound: str, box: ToolListing, policies: list[ToolPolicy]) -> str | None:
    """Return why a tool, or a tool of a server, cannot be held to policies."""
    for names in _names(box, policies):
        if any(each.refusal(names) is not None for each in policies):
            continue
        sandboxes = [each.sandbox for each in policies if each.sandbox is not None]
        agent = _confined(sandboxes[-1]) if sandboxes else box.agent
        why = enforcement_gap(bound if box.server else names[0], agent, policies)
        if why is not None:
            return why
    return None


def _names(box: ToolListing, policies: list[ToolPolicy]) -> Iterator[tuple[str, ...]]:
    """Yield the names of the tools of a box, as far as they are known."""
    if box.names:
        yield box.names
        return
    server = f"{box.server}/"
    yield f"{server}{ANY_TOOL}", ANY_TOOL
    for policy in policies:
        for pattern in policy.block.get("Allowed", ()):
            if pattern.startswith(server) and "*" not in pattern:
                yield pattern, pattern.removeprefix(server)


def _confined(sandbox: Mapping[str, Any]) -> _Reaches:
    """Return what a tool reaches in a sandbox: a process sees the files of this machine."""
    return _Reaches(
        keeps_hosts=sandbox.get("Network", False) is not True,
        opens_files=sandbox.get("Environment", "process") == "process",
    )
