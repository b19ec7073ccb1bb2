"""The budget gate: calls wait, slow down and pause as the ledger demands (8.11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json, measure
from asl.effects.caller import Caller
from asl.effects.clock import Clock, WallClock
from asl.engine.agent import Call
from asl.engine.frame import Frame
from asl.engine.ledger import Ledger
from asl.engine.limits import Account, Spender
from asl.engine.pools import NOTHING_HELD, SharedBudgets
from asl.engine.reservations import Admission, Estimate, Pause, Reservation, apply_limits
from asl.engine.usage import LOST, UNUSED
from asl.expr.intrinsics.numeric import BYTES_PER_TOKEN
from asl.states.calls import CallOptions, Target
from asl.states.effects import RequestContent
from asl.states.errors import BudgetOverrun, Suspension

if TYPE_CHECKING:
    import asyncio

__all__ = ["LedgerGate", "ProcessBudgets", "shared_budgets_of"]


Decide: TypeAlias = Callable[[Frame, str, RequestContent], Awaitable[Json]]
"""Requests a decision about an execution: its machine, the key of the request, and the question."""


class LedgerGate:
    """Applies a ledger to the calls of agents (protocol `BudgetGate`)."""

    def __init__(self, caller: Caller, ledger: Ledger, decide: Decide) -> None:
        self.caller = caller
        self.ledger = ledger
        self.decide = decide
        self.deciding: asyncio.Future[None] | None = None
        """Pending decision of a handler on a budget request, None without one."""
        self.asked = False
        """Whether a budget request is open; one answer serves all machines."""

    async def call(
        self, frame: Frame, target: Target, payload: Json, options: CallOptions | None
    ) -> Json:
        """Call an agent under the ledger's terms.

        Raises:
            StateError: The call fails, or a limit of the state does not allow it.
            BudgetOverrun: A limit of an enclosing state or the workflow is exceeded.
        """
        caller, ledger = self.caller, self.ledger
        model, estimate, parent = None, None, None
        if options is not None:
            model, parent = options.blocks.get("model"), options.enclosing
            if "generation" in options.blocks:
                estimate = _estimate(payload, options)
        parent = parent or ledger.running.get(id(frame))
        call: Admission = None
        if not self.ledger.waiting.outermost or parent is not None:
            if ledger.shared_budgets is None:
                call = ledger.admit(frame, target.name, model, estimate, parent)
            else:
                call = await self._admit(frame, target, (model, estimate, parent))
        if type(call) is not Reservation:
            call = await self._admitted(frame, target, (model, estimate, parent), call)
        try:
            if call.applied is not None or call.delay:
                await self._begin(frame, call)
                if call.fallback_agent is not None:
                    target = Target("agent", call.fallback_agent, target.state)
                options = _revised(options, call)
            if parent is not None and options is not None:
                options.enclosing = call
            agent = caller.find(target)
            if call.entry and ledger.is_recoverable:
                await caller.persistence.calls.record_admission(frame)
            own: Account = call.accounts[-1]
            if (
                own.call_limits and own.frame is not None and own.frame is frame
            ):  # recorded with the answer
                counts = {name: call.count(name) for name in own.call_limits}
                caller.persistence.calls.record_usage(frame, counts)
            try:
                result = await caller.ask_agent(
                    frame, target, payload, options, agent, call.account
                )
            except Suspension:  # the call is repeated, and reports its usage then
                raise
            except BaseException as error:
                if (not isinstance(error, StateError) or error.lost) and not call.is_complete:
                    call.used = call.used._replace(fault=call.used.fault or LOST.fault)
                if call.used is not UNUSED:
                    try:
                        if isinstance(error, StateError):
                            await self._settle_held(frame, call, target, failed=True)
                        else:
                            self._settle(frame, call, target, failed=True)
                    except (StateError, BudgetOverrun):
                        if isinstance(error, StateError):
                            raise
                raise  # a cancellation takes precedence
            if ledger.shared_budgets is None:
                self._settle(frame, call, target)
            else:
                await self._settle_held(frame, call, target)
            return result
        finally:
            if call.reserved or call.is_reserved:
                ledger.release(call)
            self.ledger.waiting.wake()

    def _settle(
        self, frame: Frame, call: Reservation, target: Target, failed: bool = False
    ) -> None:
        try:
            self.ledger.settle(call, target.state, failed)
        finally:
            if call.counted:
                self.caller.persistence.calls.record_usage(frame, call.counted, bool(call.assumed))

    async def _settle_held(
        self, frame: Frame, call: Reservation, target: Target, failed: bool = False
    ) -> None:
        """Settle a call while no other execution changes the shared budgets."""
        async with self.ledger.held():
            self._settle(frame, call, target, failed)

    def take_late_answer(self, frame: Frame, call: Call) -> None:
        """Mark the usage of a cancelled call as complete."""
        reservation = call.reservation or self.ledger.running.get(id(frame))
        if reservation is not None:
            reservation.is_complete = True

    async def _admitted(
        self, frame: Frame, target: Target, terms: tuple[Any, ...], call: Admission
    ) -> Reservation:
        """Return the reservation of a call once it is admitted."""
        first, parent = call is not None, terms[-1]
        try:
            while not isinstance(call, Reservation):
                if isinstance(call, Pause):
                    await self._decision(frame, call)
                elif call is None:
                    await self._turn(parent, first)
                else:
                    await self._later(frame, parent)
                first, call = True, await self._admit(frame, target, terms)
            return call
        finally:
            if parent is not None:
                self.ledger.show(parent)
            self.ledger.waiting.wake()

    async def _admit(self, frame: Frame, target: Target, terms: tuple[Any, ...]) -> Admission:
        """Admit a call while no other execution changes the shared budgets."""
        async with self.ledger.held(starts=True):
            return self.ledger.admit(frame, target.name, *terms)

    async def begin(self, call: Reservation) -> None:
        """Reserve for a tool call, once it is admitted.

        Raises:
            StateError: A limit of the state does not allow it.
            BudgetOverrun: A limit of an enclosing state or the workflow does not allow it.
        """
        try:
            while True:
                async with self.ledger.held(starts=True):
                    begun = self.ledger.begin(call)
                if type(begun) is Reservation:
                    return
                if begun is None:
                    await self._turn(call.parent, True)
                else:
                    await self._later(call.frame, call.parent)
        finally:
            if call.parent is not None:
                self.ledger.show(call.parent)
            self.ledger.waiting.wake()

    # Waiting

    async def _later(self, frame: Spender, parent: Reservation | None) -> None:
        """Wait for a moment, in which a call of another execution may end."""
        budgets = self.ledger.shared_budgets
        assert budgets is not None  # with other executions
        if parent is None:
            await self.caller.runtime.pause(budgets.interval)
        else:
            parent.inner_calls += 1
            self.ledger.show(parent)
            try:
                await self.caller.runtime.pause(budgets.interval)
            finally:
                parent.inner_calls -= 1
        frame.now = self.caller.runtime.now()

    async def _turn(self, parent: Reservation | None, first: bool) -> None:
        """Wait until another call has ended.

        Args:
            parent: The call that encloses the waiting one.
            first: Whether it has waited before, and precedes those that have not.
        """
        loop = await self.caller.runtime.event_loop()
        turn = loop.create_future()
        waiting = self.ledger.waiting
        if parent is None:
            (waiting.outermost.appendleft if first else waiting.outermost.append)(turn)
        else:
            waiting.nested.append(turn)
            parent.inner_calls += 1
            self.ledger.show(parent)
        suspension = self.caller.runtime.current_services().suspension
        try:
            await (turn if suspension is None else suspension.await_branch(turn))
        except BaseException:
            waiting.wake()
            raise
        finally:
            if parent is not None:
                parent.inner_calls -= 1
                waiting.nested.remove(turn)

    async def _begin(self, frame: Frame, call: Reservation) -> None:
        entry = call.applied
        if entry is not None:
            words = {
                "when": entry.when,
                "model": entry.model,
                "agent": entry.agent,
                "action": entry.action,
                "notify": entry.notify,
            }
            details = {key: value for key, value in words.items() if value is not None}
            frame.note("FallbackApplied", details)
        if call.delay:
            await self.caller.runtime.pause(call.delay)

    # Approvals

    async def reconsider(self, frame: Frame, target: Target) -> None:
        """Wait for the decision on a limit that calls within a call have reached, if there is one.

        Args:
            frame: The machine of the call.
            target: Its agent.

        Raises:
            Suspension: There is none yet.
            StateError: A limit of the state does not allow further calls.
            BudgetOverrun: A limit of an enclosing state or the workflow does not allow them.
        """
        ledger = self.ledger
        parent = ledger.running.get(id(frame))
        call = Reservation(frame, target.name, ledger.accounts(frame), parent)
        pause = apply_limits(frame, call, ledger.workflow)
        if pause is not None:
            await self._decision(frame, pause)

    async def _decision(self, frame: Frame, pause: Pause) -> None:
        """Wait for the decision on a budget request.

        Raises:
            Suspension: There is none yet.
        """
        if self.asked:
            raise Suspension
        if self.deciding is not None:
            suspension = self.caller.runtime.current_services().suspension
            if suspension is not None:
                await suspension.await_branch(self.deciding)
                return
            from asyncio import shield

            await shield(self.deciding)  # cancelling this wait does not end it for other machines
            return
        if self.caller.runtime.in_event_loop:
            self.deciding = (await self.caller.runtime.event_loop()).create_future()
        try:
            question = RequestContent("budget", self.ledger.request(frame, pause), {})
            decision = await self.decide(frame, f"!budget.{self.ledger.decisions}", question)
        except Suspension:
            self.asked = True
            raise
        finally:
            if self.deciding is not None:
                self.deciding.set_result(None)
                self.deciding = None
        self.ledger.decide(pause, decision["record"])


def _revised(options: CallOptions | None, call: Reservation) -> CallOptions | None:
    """Return the options of a call with the model and quality of its fallback."""
    if call.model is None and not call.reduced:
        return options
    made = CallOptions(None, None) if options is None else options.copy()
    if call.model is not None:
        made.blocks["model"] = call.model
    if call.reduced:
        made.blocks["quality"] = "reduced"
    return made


def _estimate(payload: Json, options: CallOptions) -> Estimate | None:
    """Return upper bounds of a call whose state limits the length of the answer."""
    most = options.blocks["generation"].get("max_tokens")
    if most is None:
        return None
    prompt = -(-measure(payload, 2**62) // BYTES_PER_TOKEN)
    return Estimate(prompt + options.blocks.get("context", {}).get("tokens", 0), int(most))


class ProcessBudgets:
    """Shared budgets of all threads of the process (protocol `asl.engine.pools.SharedBudgets`)."""

    interval = 1.0

    def __init__(self) -> None:
        self.budgets: dict[str, Json] = {}
        self.lock = Lock()

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace a shared budget by the result of *make*."""
        with self.lock:
            self.budgets[name] = make(self.budgets.get(name))

    def held(
        self, names: Collection[str], *, starts: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """Return a context that does nothing: each change is one of all executions."""
        return NOTHING_HELD


_OF_PROCESS = ProcessBudgets()


def shared_budgets_of(clock: Clock) -> SharedBudgets:
    """Return the shared budgets of a clock; all wall clocks share the same ones."""
    if isinstance(clock, WallClock):
        return _OF_PROCESS
    budgets: SharedBudgets | None = getattr(clock, "budgets", None)
    if budgets is None:
        budgets = clock.budgets = ProcessBudgets()  # type: ignore[attr-defined]  # for this module
    return budgets
