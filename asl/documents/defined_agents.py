"""Agents that a document defines itself, against what is bound to them."""

from collections.abc import Collection, Container, Iterator, Mapping
from typing import Final

from asl.checks import check
from asl.core.diagnostics import Finding, Report, Severity, place
from asl.core.document import Document
from asl.core.profile import Profile
from asl.core.values import Json
from asl.dialects import agent_definitions
from asl.engine.definitions import AgentDefinition, is_answered_by_tools, is_bound_tool

__all__ = ["check_bound", "check_definitions", "names_answered_by_tools", "unbound_code"]

_UNBOUND: Final = "AGENTS-11"
_UNSUPPORTED: Final = "AGENTS-10"


def names_answered_by_tools(document: Document, tools: Container[str]) -> list[str]:
    """Return the agents of a document that bound tools answer.

    Args:
        document: The document.
        tools: Names of the tools and servers that are bound.
    """
    defined = agent_definitions(document.composed_value)
    return [name for name, each in defined.items() if is_answered_by_tools(each, tools)]


def unbound_code(
    document: Mapping[str, Json], agents: Container[str]
) -> dict[str, AgentDefinition]:
    """Return the functions that a document names itself and nothing is bound to.

    Args:
        document: Value of the document.
        agents: Names of the agents that are bound.

    Returns:
        Definitions by the names of the agents.
    """
    defined = agent_definitions(document)
    return {
        name: each for name, each in defined.items() if each.code is not None and name not in agents
    }


def check_bound(
    document: Document,
    profile: Profile,
    *,
    agents: Mapping[str, Json],
    resources: Collection[str] | None,
    workflows: Collection[str] | None,
    tools: Collection[str],
    strict: bool = False,
    express: bool | None = None,
) -> tuple[Report, Report]:
    """Check a document, and what it asks of its agents.

    Args:
        document: The document.
        profile: The profile, such as `aws`.
        agents: The bound agents, as they are written in an agents file.
        resources: Names of the bound resources; None to check no names.
        workflows: Names of the bound workflows; None to check no names.
        tools: Names of the tools and servers that are bound.
        strict: Whether warnings are errors; False by default.
        express: Whether to check for an express execution; None for what the document says.

    Returns:
        The report of the document, and that of `check_definitions`.
    """
    answered = names_answered_by_tools(document, tools)
    code = unbound_code(document.composed_value, agents)
    report = check(
        document,
        profile,
        strict=strict,
        agents=[*agents, *answered, *code],
        resources=resources,
        workflows=workflows,
        express=express,
    )
    return report, check_definitions(document, agents, tools, strict=strict)


def check_definitions(
    document: Document,
    agents: Mapping[str, Json],
    tools: Container[str],
    *,
    strict: bool = False,
) -> Report:
    """Report what a document asks of its agents and does not get.

    Args:
        document: The document.
        agents: The agents of the agents files, as they are written there.
        tools: Names of the tools and servers that are bound.
        strict: Whether warnings are errors; False by default.

    Returns:
        Warnings with their places in the author's document: settings that are not passed to a
        model (AGENTS-10), tools and functions that nothing is bound to (AGENTS-11).
    """
    origins = document.composition.origins if document.composition is not None else {}
    home, _ = origins.get("", (document, ""))
    found = [
        finding._replace(
            severity=Severity.ERROR if strict else None,
            pointer="/Metadata" if home is document else finding.pointer,
        )
        for definition in agent_definitions(document.composed_value).values()
        for finding in _findings(definition, agents, tools)
    ]
    return place(home, dict.fromkeys(found))


def _findings(
    definition: AgentDefinition, agents: Mapping[str, Json], tools: Container[str]
) -> Iterator[Finding]:
    spec, name = agents.get(definition.name), definition.name
    if definition.code is not None and spec is None:
        message = f"the function {name!r} of the document is not called: nothing is bound to it"
        hint = f"allow it with --allow-code, or write {name}: {definition.code} into an agents file"
        yield Finding(_UNBOUND, message, definition.pointer, hint)
    yield from _tools(definition, spec, tools)
    if isinstance(spec, dict) and "model" in spec:
        for each in definition.unsupported:
            if "system" not in spec or not each.hint or "{system: ...}" not in each.hint:
                yield Finding(_UNSUPPORTED, each.message, each.pointer, each.hint)
        if str(spec["model"]).endswith(":*") and definition.model is None:
            hint = f"write it into the agents file: {spec['model'][:-1]}NAME"
            message = f"the document names no model for {name!r}"
            yield Finding(_UNSUPPORTED, message, definition.pointer, hint)


def _tools(definition: AgentDefinition, spec: Json, tools: Container[str]) -> Iterator[Finding]:
    """Yield the tools that an agent uses and that nothing is bound to."""
    if isinstance(spec, dict) and ("tools" in spec or "model" not in spec):
        return  # it has tools of its own, or none of the document's
    if spec is not None and not isinstance(spec, dict):
        return
    for each in definition.tools:
        if is_bound_tool(each.name, tools):
            continue
        server, slash, own = each.name.rpartition("/")
        what = f"the server {server!r}" if slash and own == "*" else f"the tool {each.name!r}"
        message = f"{definition.name!r} uses {what}, and nothing is bound to it"
        form = f"servers: {{{server}: ...}}" if slash else f"tools: {{{each.name}: ...}}"
        hint = f"bind it in an agents file: {form} (asl init --from writes one)"
        yield Finding(_UNBOUND, message, each.pointer, hint)
