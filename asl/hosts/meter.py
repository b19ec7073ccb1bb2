"""How a host lets calls of agents wait, slow down and pause as the ledger says (8.11)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from asl.core.errors import StateError
from asl.core.values import Json, measure
from asl.engine.admission import LOST, UNKNOWN, UNUSED, Admission, Pause, Terms
from asl.engine.execution import Price
from asl.engine.ledger import Ledger
from asl.expr.intrinsics.agent import BYTES_PER_TOKEN
from asl.hosts.asking import Asking
from asl.hosts.local import LocalHost
from asl.states.blocks.budget import Amounts
from asl.states.calls import Options, Target
from asl.states.errors import Suspended
from asl.states.host import Question

if TYPE_CHECKING:
    import asyncio

    from asl.engine.frame import Frame

__all__ = ["BudgetAsking", "Meter"]

LATER = 1.0
"""Seconds after which it is looked again whether a call of another execution has ended."""


class Meter:
    """Stands between a host and its agents; calls that have to wait keep their order."""

    def __init__(self, host: LocalHost, ledger: Ledger) -> None:
        self.host = host
        self.ledger = ledger
        self.waiting: deque[asyncio.Future[None]] = deque()
        """The calls of the run that wait for others to end."""
        self.deciding: asyncio.Future[None] | None = None
        """While a handler decides for people."""
        self.asked = False
        """Whether people are asked; one answer serves all machines."""

    async def call(self, at: Any, target: Target, payload: Json, options: Options | None) -> Json:
        """Call an agent on the terms of the ledger; raises StateError or Exhausted."""
        host, ledger = self.host, self.ledger
        sizes = UNKNOWN
        if options is not None and "generation" in options.blocks:
            sizes = _sizes(payload, options, at.execution.prices)
        terms = None
        if not self.waiting or id(at) in ledger.calling:
            terms = ledger.admit(at, target.name, sizes)
        if type(terms) is not Terms:
            terms = await self._admitted(at, target, sizes, terms)
        try:
            if terms.applied is not None or terms.delay:
                await self._begin(at, terms)
                if terms.instead is not None:
                    target = Target("agent", terms.instead, target.state)
                options = _revised(options, terms)
            agent = host.find(target)
            if terms.entry and ledger.keeps:
                await host.admitted(at)
            try:
                result = await host.ask_agent(at, target, payload, options, agent, terms.account)
            except BaseException as error:
                if not isinstance(error, StateError) or error.lost:
                    terms.used = terms.used._replace(fault=terms.used.fault or LOST.fault)
                if terms.used is not UNUSED:
                    self._settle(at, terms, target, failed=True)
                raise
            self._settle(at, terms, target)
            return result
        finally:
            if terms.held or terms.inside is not None:
                ledger.release(terms)
            if self.waiting:
                self._next()

    def _settle(self, at: Any, terms: Terms, target: Target, failed: bool = False) -> None:
        try:
            self.ledger.settle(terms, target.state, failed)
        finally:
            if terms.counted:
                self.host.used(at, terms.counted)

    async def _admitted(self, at: Any, target: Target, sizes: Amounts, terms: Admission) -> Terms:
        """Return the terms of a call as soon as it may be made; *terms* are what it was told."""
        first = terms is not None
        try:
            while not isinstance(terms, Terms):
                if terms is None:
                    await self._turn(first)
                elif isinstance(terms, Pause):
                    await self._decision(at, terms)
                else:
                    await self.host.pause(LATER)
                    at.now = self.host.now()
                first, terms = True, self.ledger.admit(at, target.name, sizes)
            return terms
        finally:
            self._next()

    async def _begin(self, at: Frame, terms: Terms) -> None:
        entry = terms.applied
        if entry is not None:
            words = {
                "when": entry.when,
                "model": entry.model,
                "agent": entry.agent,
                "action": entry.action,
                "notify": entry.notify,
            }
            details = {key: value for key, value in words.items() if value is not None}
            at.note("FallbackApplied", details)
        if terms.delay:
            await self.host.pause(terms.delay)

    # Waiting

    async def _turn(self, first: bool) -> None:
        """Wait until another call has ended, in front of those that wait already or behind them."""
        loop = await self.host.event_loop()
        turn = loop.create_future()
        (self.waiting.appendleft if first else self.waiting.append)(turn)
        try:
            await turn
        except BaseException:
            self._next()
            raise

    def _next(self) -> None:
        while self.waiting:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    # People

    async def _decision(self, at: Frame, pause: Pause) -> None:
        """Return when people have decided; raises Suspended while they have not."""
        if self.asked:
            raise Suspended
        if self.deciding is not None:
            from asyncio import shield

            await shield(self.deciding)  # one that is cancelled here does not end it for the others
            return
        if self.host.in_event_loop:
            self.deciding = (await self.host.event_loop()).create_future()
        try:
            question = Question("budget", self.ledger.question(at, pause), {})
            decision = await self.host.decide(at, f"!budget.{self.ledger.questions}", question)
        except Suspended:
            self.asked = True
            raise
        finally:
            if self.deciding is not None:
                self.deciding.set_result(None)
                self.deciding = None
        self.ledger.decide(pause, decision["record"])


class BudgetAsking(Asking):
    """A request that no state makes, so that no history tells of it."""

    async def begin(self) -> None:
        """Tell people, and nobody else."""
        await self._tell("request", {})

    def decided(self, decision: Json, now: float) -> None:
        """Leave it to the ledger what comes of the decision."""
        self.at.now = now


def _revised(options: Options | None, terms: Terms) -> Options | None:
    """Return the options of a call with what the terms say about it."""
    if terms.model is None and not terms.reduced:
        return options
    made = Options(None, None) if options is None else options.copy()
    if terms.model is not None:
        made.blocks["model"] = terms.model
    if terms.reduced:
        made.blocks["quality"] = "reduced"
    return made


def _sizes(payload: Json, options: Options, prices: Mapping[str, Price]) -> Amounts:
    """Return what a call will use at most, where its state says how long the answer may be."""
    most = options.blocks["generation"].get("max_tokens")
    if most is None:
        return UNKNOWN
    given, made = -(-measure(payload, 2**62) // BYTES_PER_TOKEN), int(most)
    given += options.blocks.get("context", {}).get("tokens", 0)
    sizes: dict[str, Decimal | int] = {
        "MaxTokens": given + made,
        "MaxInputTokens": given,
        "MaxOutputTokens": made,
    }
    price = prices.get(options.blocks.get("model", ""))
    if price is not None:
        sizes["MaxCost"] = price.input * given + price.output * made
    return sizes
