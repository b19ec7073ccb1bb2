"""The registry: from the names in a document to the agents that answer.

Whatever a user binds to a name becomes an agent here: a callable, `module:function`, a script or
an agent object. `resources` takes patterns in which `*` stands for any run of characters.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from asl.agents.function import function_agent, named_function
from asl.agents.scripted import ScriptedAgent
from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError, StateError
from asl.engine.agent import Agent
from asl.expr.glob import compile_glob
from asl.states.host import Target

__all__ = ["Registry", "as_agent"]

Bindings = Mapping[str, Any]


class Registry:
    """Resolves targets for one execution.

    `mocks` go by the name of the Task state and win over everything else.
    """

    def __init__(
        self,
        agents: Bindings | None = None,
        resources: Bindings | None = None,
        mocks: Bindings | None = None,
    ) -> None:
        self.find = cache(self._resolved)
        """Return the agent for a target; raises StateError("States.AgentNotFound")."""
        self.agents = _bound(agents)
        self.mocks = _bound(mocks)
        self.resources = _bound(resources)
        self.patterns: list[tuple[Callable[[str], bool], Agent]] = [
            (compile_glob(pattern), agent)
            for pattern, agent in self.resources.items()
            if "*" in pattern
        ]

    def _resolved(self, target: Target) -> Agent:
        if self.mocks and target.state in self.mocks:
            return self.mocks[target.state]
        table = self.agents if target.kind == "agent" else self.resources
        agent = table.get(target.name)
        if agent is not None:
            return agent
        if target.kind == "resource":
            for matches, pattern_agent in self.patterns:
                if matches(target.name):
                    return pattern_agent
        raise StateError("States.AgentNotFound", _unknown(target, table))


def _unknown(target: Target, table: Bindings) -> str:
    kind = "agent" if target.kind == "agent" else "handler for resource"
    hint = did_you_mean(target.name, table)
    text = f"state '{target.state}': no {kind} {target.name!r} is registered"
    return f"{text} ({hint})" if hint else text


def _bound(bindings: Bindings | None) -> dict[str, Agent]:
    if not isinstance(bindings or {}, Mapping):
        raise AslError(f"bindings are a mapping from names to agents, not {bindings!r}")
    return {name: as_agent(value, name) for name, value in (bindings or {}).items()}


def as_agent(value: Any, name: str) -> Agent:
    """Turn what a user bound to *name* into an agent; raises AslError if it cannot be one."""
    if isinstance(value, str):
        return named_function(value)
    if isinstance(value, Mapping):
        return ScriptedAgent(value)
    if hasattr(value, "answer") and hasattr(value, "blocking"):
        agent: Agent = value
        return agent
    if callable(value):
        return function_agent(value)
    raise AslError(
        f"{name!r} is bound to {type(value).__name__}; an agent is a function, 'module:function', "
        "a script (an object with 'return', 'raise', ...) or an agent object"
    )
