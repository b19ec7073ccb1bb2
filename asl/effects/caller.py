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
"""Counts the usage that a raw result reports, by name of the state."""


class BudgetGate(Protocol):
    """Applies a ledger to calls of agents and tools."""

    @property
    def ledger(self) -> Ledger:
        """The ledger of the execution."""
        ...

    def call(
        self, frame: Frame, target: Target, payload: Json, options: CallOptions | None
    ) -> Coroutine[Any, Any, Json]:
        """Call an agent under the ledger's terms.

        Raises:
            StateError: The call fails, or a limit of the state does not allow it.
            BudgetOverrun: A limit of an enclosing state or the workflow is exceeded.
        """
        ...

    async def begin(self, call: Reservation) -> None:
        """Reserve for a tool call, once it is admitted.

        Raises:
            StateError: A limit of the state does not allow it.
            BudgetOverrun: A limit of an enclosing state or the workflow does not allow it.
        """
        ...

    async def reconsider(self, frame: Frame, target: Target) -> None:
        """Wait for the decision on a limit that calls within a call have reached, if there is one.

        Raises:
            Suspension: There is none yet.
            StateError: A limit of the state does not allow further calls.
            BudgetOverrun: A limit of an enclosing state or the workflow does not allow them.
        """
        ...

    def take_late_answer(self, frame: Frame, call: Call) -> None:
        """Mark the usage of a cancelled call as complete."""
        ...


class Caller(Performer, Protocol):
    """Calls the agents of one execution."""

    @property
    def runtime(self) -> RuntimeContext:
        """The runtime context of the execution."""
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
        frame: Frame,
        target: Target,
        payload: Json,
        options: CallOptions | None = None,
        agent: Agent | None = None,
        account: Account | None = None,
    ) -> Awaitable[Json]:
        """Call an agent; any exception becomes an error of the state."""
        ...

    def ask_agent(
        self,
        frame: Frame,
        target: Target,
        payload: Json,
        options: CallOptions | None,
        agent: Agent,
        account: Account | None,
    ) -> Awaitable[Json]:
        """Call an agent without the budget gate."""
        ...
