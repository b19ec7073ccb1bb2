"""Budgets of tool calls: reservation before, settlement after."""

from __future__ import annotations

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.caller import Caller
from asl.effects.tools.outcomes import ToolOutcome
from asl.effects.tools.policies import CallPolicies
from asl.effects.tools.tool_log import ToolLog
from asl.engine.agent import Call
from asl.engine.ledger import Ledger
from asl.engine.reservations import Reservation
from asl.engine.tools import ToolOffer
from asl.engine.usage import BROKEN, amounts_of, reported_usage
from asl.expr.agent_answers import USAGE_KEYS
from asl.states.errors import RaisedError

__all__ = ["ToolBudgets"]


class ToolBudgets:
    """Applies the ledger, if there is one, to the tool calls of one agent call."""

    def __init__(self, caller: Caller, call: Call, policies: CallPolicies, log: ToolLog) -> None:
        self.caller = caller
        self.outer = call
        self.policies = policies
        self.log = log

    def reservation(self, offer: ToolOffer) -> Reservation | None:
        """Return the reservation of a tool call, None without a ledger.

        Raises:
            RaisedError: A limit that fails the call of the agent does not allow it.
        """
        at = self.outer.at
        if self.caller.budget_gate is None:
            return None
        ledger = self.caller.budget_gate.ledger
        parent = self.outer.reservation or ledger.running.get(id(at))
        try:
            return ledger.tool(at, offer.names, self.policies.categories(offer), parent)
        except StateError as error:
            raise RaisedError(error.name, error.cause) from None

    async def begin(
        self, offer: ToolOffer, arguments: Json, outcome: ToolOutcome
    ) -> Reservation | None:
        """Reserve for a tool call, None without a limit.

        Raises:
            RaisedError: A limit does not allow it.
        """
        tool, at = offer.names[0], self.outer.at
        with self.log.record_refusal(tool, arguments, outcome):
            reservation = self.reservation(offer)
            if reservation is not None:
                assert self.caller.budget_gate is not None
                await self.caller.budget_gate.begin(reservation)
                own = reservation.accounts[-1]
                if own.call_limits and own.frame is at:
                    counts = {name: reservation.count(name) for name in own.call_limits}
                    outcome.used = {name: count for name, count in counts.items() if count}
                    self.caller.persistence.calls.record_usage(at, outcome.used)
        return reservation

    def count(self, reservation: Reservation | None, result: Json, outcome: ToolOutcome) -> None:
        """Count the usage that a tool reports, in the form of an agent's.

        Raises:
            RaisedError: A limit is exceeded.
        """
        if type(result) is not dict or USAGE_KEYS.isdisjoint(result):
            return
        at = self.outer.at
        used = reported_usage(result, at.execution.prices)
        outcome.details["usage"] = {"cost": float(used.cost), "tokens": used.tokens}
        at.account(self.outer.state_name, result)
        if reservation is not None:
            outcome.add(amounts_of(used))
            self.caller.persistence.calls.record_usage(at, amounts_of(used))
            self.ledger.use_tool(reservation, used)

    def count_interrupted(self, reservation: Reservation | None, outcome: ToolOutcome) -> None:
        """Count a tool call that was interrupted before its report."""
        if reservation is not None:
            at = self.outer.at
            assumed = self.ledger.use_tool(reservation, BROKEN)
            outcome.add(assumed)
            self.caller.persistence.calls.record_usage(at, assumed, bool(reservation.assumed))

    def end(self, reservation: Reservation | None) -> None:
        """Count the end of a tool call."""
        if reservation is not None:
            self.ledger.end_tool(reservation)
            assert self.caller.budget_gate is not None
            self.caller.budget_gate.ledger.waiting.wake()

    @property
    def ledger(self) -> Ledger:
        """The ledger of the execution."""
        assert self.caller.budget_gate is not None  # reservations imply a gate
        return self.caller.budget_gate.ledger
