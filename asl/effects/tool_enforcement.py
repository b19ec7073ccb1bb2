"""Tools that cannot be held to a policy for hosts or files, detected before the run.

Cases known only later (computed lists of tools, a server's own tool names, toolboxes of an agent)
are refused by the dispatcher at the call.
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
"""Fields that select tools."""
BOUNDS: Final = ("FileSystem", "Domains", "Network")
"""Fields that limit what tools reach."""
ANY_TOOL: Final = "\N{REPLACEMENT CHARACTER}"
"""Name that only matches patterns for all tools of a server."""


class _Reaches(NamedTuple):
    """The reach of a tool that the runtime cannot check, as attributes of
    `asl.engine.agent.Agent`.
    """

    enforces_hosts: bool
    opens_files: bool


def enforcement_gap(
    tool: str, agent: Agent | _Reaches, policies: Sequence[ToolPolicy]
) -> str | None:
    """Return why a tool cannot be held to the hosts and files of policies, None if it can."""
    if not agent.enforces_hosts and any(each.hosts is not None for each in policies):
        return (
            f"tool {tool!r}: its connections cannot be checked: run it in a sandbox without network"
        )
    if agent.opens_files and any(each.files is not None for each in policies):
        return (
            f"tool {tool!r}: 'FileSystem' cannot limit which files it opens: run it in a "
            "sandbox 'docker' or 'wasm', whose 'Mounts' are all that it sees"
        )
    return None


def require_enforceable(execution: Execution, services: Services) -> None:
    """Check that the tools of all states can be held to their policies.

    Raises:
        StateError: One cannot.
    """
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
    """Return the policies around a state, None if their tools are computed."""
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
            return None  # reported as an error of the state
    return found


def _block(value: Json) -> Mapping[str, Json] | None:
    return value if type(value) is dict else None


def _known(block: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """Return the relevant fields of a block, None if its tools are computed.

    Computed bounds only matter as being present.
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


def _refusal(bound: str, listing: ToolListing, policies: list[ToolPolicy]) -> str | None:
    """Return why a tool, or a tool of a server, cannot be held to policies."""
    for names in _names(listing, policies):
        if any(each.refusal(names) is not None for each in policies):
            continue
        sandboxes = [each.sandbox for each in policies if each.sandbox is not None]
        agent = _confined(sandboxes[-1]) if sandboxes else listing.agent
        why = enforcement_gap(bound if listing.server else names[0], agent, policies)
        if why is not None:
            return why
    return None


def _names(listing: ToolListing, policies: list[ToolPolicy]) -> Iterator[tuple[str, ...]]:
    """Yield the known names of the tools of a toolbox."""
    if listing.names:
        yield listing.names
        return
    server = f"{listing.server}/"
    yield f"{server}{ANY_TOOL}", ANY_TOOL
    for policy in policies:
        for pattern in policy.block.get("Allowed", ()):
            if pattern.startswith(server) and "*" not in pattern:
                yield pattern, pattern.removeprefix(server)


def _confined(sandbox: Mapping[str, Any]) -> _Reaches:
    """Return the reach of a tool in a sandbox; one of kind `process` sees the files of this
    machine.
    """
    return _Reaches(
        enforces_hosts=sandbox.get("Network", False) is not True,
        opens_files=sandbox.get("Environment", "process") == "process",
    )
