"""The registry: the agents for the names in a document.

`asl.agents.adapters` makes an agent of a bound value. Names in `resources` may be patterns: `*`
matches any text.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from asl.agents.adapters import as_agent
from asl.agents.document_tool import DocumentTool
from asl.agents.tool import as_toolbox
from asl.core.diagnostics import did_you_mean
from asl.core.errors import StateError
from asl.engine.agent import Agent, CallbackHandler, Find, OpenAgents, open_agent
from asl.engine.definitions import AgentDefinition, NoDefinitions, is_answered_by_tools
from asl.engine.tools import ListTools
from asl.expr.text_matching import compile_glob
from asl.states.calls import Target, is_function

__all__ = ["AgentRegistry", "FileBindings"]

Bindings = Mapping[str, Any]
Offer = Callable[[Target], Agent | None]
"""Returns an agent for a target, None for none."""

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:"
"""The prefix of the ARN of a function that a request names without one."""


@dataclass(frozen=True, slots=True)
class FileBindings:
    """The bindings of an agents file; the first three as in `asl.run`, the others for their use."""

    agents: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    mocks: dict[str, Any] = field(default_factory=dict)
    tools: dict[str, Any] = field(default_factory=dict)
    servers: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict, repr=False)
    """As `asl.run` takes it; the places may hold secrets."""
    aws: dict[str, Any] = field(default_factory=dict)
    """Settings for calls of AWS's services; empty if they are not switched on."""

    def __or__(self, other: "FileBindings") -> "FileBindings":
        """Return the bindings of both; those of *other* win."""
        return FileBindings(
            *({**getattr(self, each.name), **getattr(other, each.name)} for each in fields(self))
        )


class _Found(dict[Target, Agent]):
    """The agents that have been found, by their targets."""

    def __init__(self, resolve: Find) -> None:
        self.resolve = resolve

    def __missing__(self, target: Target) -> Agent:
        agent = self[target] = self.resolve(target)
        return agent


class AgentRegistry:
    """Resolves targets for one execution.

    `mocks` are bound to the names of Task states and win over everything else. A resource is looked
    up by its whole name, then without integration pattern or alias, then in the patterns; the
    pattern with the most literal characters wins. Bound functions also serve `lambda:invoke`,
    unless that is bound itself. *services* offers agents for other resources, *fallback* for those
    that have no binding at all.
    """

    def __init__(
        self,
        agents: Bindings | None = None,
        resources: Bindings | None = None,
        mocks: Bindings | None = None,
        services: Offer | None = None,
        tools: Bindings | None = None,
        *,
        fallback: Offer | None = None,
        aws: bool = False,
        definitions: Mapping[str, AgentDefinition] = NoDefinitions,
    ) -> None:
        self.definitions = definitions
        """The agents that the documents of the run define."""
        self.aws = aws
        """Whether the rules of AWS also apply to other functions than Lambda functions."""
        self.find: Find = _Found(self._resolved).__getitem__
        """Return the agent for a target; raises StateError("States.AgentNotFound")."""
        held: OpenAgents = {}
        self.agents = _bound(agents, held)
        self.mocks = _bound(mocks, held)
        self.resources = _bound(resources, held)
        self.services = services
        self.fallback = fallback
        self.tools = _boxes(tools, held)
        """The listings of the tools of the run, by name."""
        patterns = [name for name in self.resources if "*" in name]
        patterns.sort(key=lambda pattern: pattern.count("*") - len(pattern))
        self.patterns: list[tuple[Callable[[str], bool], Agent]] = [
            (compile_glob(pattern), self.resources[pattern]) for pattern in patterns
        ]

    def without_mocks(self) -> "AgentRegistry":
        """Return the registry without mocks, for workflows with states of the same names."""
        return AgentRegistry(
            self.agents,
            self.resources,
            None,
            self.services,
            fallback=self.fallback,
            aws=self.aws,
            definitions=self.definitions,
        )

    def _resolved(self, target: Target) -> Agent:
        if self.mocks and target.state in self.mocks and not target.is_helper:
            return self.mocks[target.state].bound_to(target, aws=self.aws)
        definition = self.definitions.get(target.name) if target.kind == "agent" else None
        agent = self.agents.get(target.name) if target.kind == "agent" else self._resource(target)
        if (
            agent is None
            and definition is not None
            and is_answered_by_tools(definition, self.tools)
        ):
            agent = DocumentTool(definition)
        if agent is None:
            raise StateError("States.AgentNotFound", self._unknown(target))
        agent = agent.bound_to(target, aws=self.aws, definition=definition)
        by_token = target.kind == "resource" and target.pattern == ".waitForTaskToken"
        return CallbackHandler(agent) if by_token else agent

    def _resource(self, target: Target) -> Agent | None:
        """Return the agent of a resource, None without one."""
        other = None if self.fallback is None else self.fallback(target)
        found = self._bound_resource(target)
        if found is None and target.invokes and any(map(is_function, self.resources)):
            from asl.agents.lambda_service import LambdaService

            return LambdaService(partial(self._function, target.state), other)
        return other if found is None else found

    def _bound_resource(self, target: Target) -> Agent | None:
        names = (target.name, target.base)
        for name in names:
            if name in self.resources:
                return self.resources[name]
        offered = None if self.services is None else self.services(target)
        if offered is not None:
            return offered
        for matches, agent in self.patterns:
            if any(map(matches, names)):
                return agent
        return None

    def _function(self, state: str, name: str) -> Agent | None:
        """Return the handler of a function by its name, or by its whole or partial ARN."""
        if name.startswith("arn:"):
            return self._handler(Target("resource", name, state))
        name, colon, qualifier = name.rpartition("function:")[2].partition(":")
        bound = (arn for arn in self.resources if arn.endswith(f":function:{name}"))
        arn = next(bound, f"{FUNCTION}{name}")
        return self._handler(Target("resource", f"{arn}{colon}{qualifier}", state))

    def _handler(self, target: Target) -> Agent | None:
        agent = self._bound_resource(target)
        return None if agent is None else agent.bound_to(target, aws=self.aws)

    def _unknown(self, target: Target) -> str:
        kind = "agent" if target.kind == "agent" else "handler for resource"
        table = self.agents if target.kind == "agent" else self.resources
        text = f"state '{target.state}': no {kind} {target.name!r} is registered"
        hint = did_you_mean(target.name, table) or _advice(target)
        return f"{text} ({hint})" if hint else text


def _advice(target: Target) -> str | None:
    """Return the hint for an unbound resource; None for an agent."""
    if target.kind == "agent":
        return None
    if target.is_activity:
        return (
            f"bind its worker: resources={{{target.name!r}: ...}}, or pass a service "
            "for workers: tokens=asl.TaskTokens()"
        )
    if re.fullmatch(r"arn:[^:]*:states:[^:]*:[^:]*:(states|aws-sdk:sfn):start\w+", target.base):
        return "bind the workflows that it starts: workflows={NAME: document}"
    return f"bind a function: resources={{{target.base!r}: ...}}, where * matches any text"


def _bound(bindings: Bindings | None, open_agents: OpenAgents) -> dict[str, Agent]:
    if not bindings:
        return {}
    return {
        name: open_agent(as_agent(value, name), open_agents) for name, value in bindings.items()
    }


def _boxes(bindings: Bindings | None, open_agents: OpenAgents) -> dict[str, ListTools]:
    if not bindings:
        return {}
    return {name: as_toolbox(value, name).offers(open_agents) for name, value in bindings.items()}
