"""The protocols of the agent caller and the budget gate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeAlias

from asl.core.values import Json
from asl.effects.persistence import Persistence
from asl.effects.runtime import RuntimeContext
from asl.engine.agent import Agent, Call, Find, Performer
from asl.engine.frame import Frame
from asl.engine.ledger import Ledger
from asl.engine.reservations import Reservation
from asl.states.calls import CallOptions, Target

__all__ = ["Account", "BudgetGate", "Caller"]

Account: TypeAlias = Callable[[str, Json], object]
"""Counts the usage that a raw result reports, by the name of the state."""


class BudgetGate(Protocol):
    """Holds the calls of agents and tools against a ledger."""

    @property
    def ledger(self) -> Ledger:
        """What may be spent, and what is."""
        ...

    def call(
        self, at: Frame, target: Target, payload: Json, options: CallOptions | None
    ) -> Coroutine[Any, Any, Json]:
        """Call an agent on the terms of the ledger; raises StateError or BudgetOverrun."""
        ...

    async def begin(self, call: Reservation) -> None:
        """Reserve for the call of a tool, as soon as it may be made; raises as the ledger does."""
        ...

    def take_late_answer(self, at: Frame, call: Call) -> None:
        """Take note that the usage of a cancelled call is complete."""
        ...


class Caller(Performer, Protocol):
    """Calls the agents of one execution."""

    @property
    def runtime(self) -> RuntimeContext:
        """What the execution runs on."""
        ...

    @property
    def persistence(self) -> Persistence:
        """The persistence of the execution."""
        ...

    @property
    def budget_gate(self) -> BudgetGate | None:
        """Enforces budgets; None without limits."""
        ...

    @property
    def find(self) -> Find:
        """Returns the agent for a target; raises StateError("States.AgentNotFound")."""
        ...

    def invoke(
        self,
        at: Frame,
        target: Target,
        payload: Json,
        options: CallOptions | None = None,
        agent: Agent | None = None,
        account: Account | None = None,
    ) -> Awaitable[Json]:
        """Call an agent; whatever it raises becomes an error of the state."""
        ...

    def ask_agent(
        self,
        at: Frame,
        target: Target,
        payload: Json,
        options: CallOptions | None,
        agent: Agent,
        account: Account | None,
    ) -> Awaitable[Json]:
        """Call this agent, whatever limits the calls of agents."""
        ...
