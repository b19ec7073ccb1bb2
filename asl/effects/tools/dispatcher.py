"""The tool dispatcher: checks every tool call of an agent against its policies, and performs it.

A call is bound by the policy of its state, over the `DefaultTools` of the document, and by those of
all parent executions. A tool may be an agent that uses tools under the same policies. Every call is
recorded as `ToolCalled`, or as `ToolRefused` if the tool was not reached.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from typing import Any, TypeVar

from asl.core.diagnostics import did_you_mean
from asl.core.errors import NotJson, StateError, cause_for, mark_usage_unknown
from asl.core.values import Json, compact, copy_result
from asl.effects.agent_turn import TOOL_CALL
from asl.effects.budget_gate import shared_budgets_of
from asl.effects.caller import Caller
from asl.effects.middleware import Effect, effect_of, perform
from asl.effects.rate_limits import NETWORK_REQUESTS, CountedCall
from asl.effects.time_limits import await_in_time, has_expired
from asl.effects.tools.audit_hook import enforce_bounds
from asl.effects.tools.blocking import BlockingTools, ThreadRequests
from asl.effects.tools.bounds import CallBounds
from asl.effects.tools.budgets import ToolBudgets
from asl.effects.tools.hooks import ToolHooks
from asl.effects.tools.outcomes import (
    ToolOutcome,
    call_ended,
    normalize_failure,
    rejection_failure,
    tool_failure,
)
from asl.effects.tools.policies import CallPolicies
from asl.effects.tools.tool_log import ToolLog
from asl.engine.agent import Agent, Call
from asl.engine.exception_mapping import is_cancellation, is_fault, unwrap_group
from asl.engine.frame import digest
from asl.engine.pools import SharedBudgets
from asl.engine.reservations import Reservation
from asl.engine.tools import ListTools, ToolOffer
from asl.engine.turns import OpenToolCall, PausableTurn, TurnPlace
from asl.states.calls import CallOptions, CallPart, Target
from asl.states.errors import BudgetOverrun, RaisedError

__all__ = ["ToolDispatcher"]

T = TypeVar("T")


class ToolDispatcher:
    """The tools of one call of an agent (protocol `asl.engine.tools.CallTools`)."""

    def __init__(self, caller: Caller, call: Call, real: bool) -> None:
        self.caller = caller
        self.outer = call
        self.real = real
        """Whether the agent runs outside of the event loop."""
        self.registry = caller.runtime.current_services().tools
        self.policies = CallPolicies(caller, call)
        self.log = ToolLog(caller, call, self.policies)
        self.accounts = ToolBudgets(caller, call, self.policies, self.log)
        self.hooks = ToolHooks(caller, call, self.policies, self.log)
        self.running_calls = 0
        self.request_counts: dict[str, int] = {}
        """Number of equal requests, by request."""
        self.thread_requests = ThreadRequests()
        """Unfinished requests of threads."""
        self.known_tools: dict[str, ToolOffer] = {}
        """Tools of the run by name, as found."""

    # Listing

    async def offer_tools(self, listings: list[ListTools] | None = None) -> list[ToolOffer]:
        """Return the usable tools of *listings*, or those that the document names."""
        if listings is None:
            names_tools = any(level.policy.allowed is not None for level in self.policies.levels)
            return await self._registered() if names_tools else []
        return [offer for box in listings for offer in await self._told(box) if self._may(offer)]

    async def select_tools(self, names: Sequence[str]) -> list[ToolOffer]:
        """Return the tools of the run that a document names."""
        wanted = [each for each in names if not each.startswith("!")]
        hidden = [each.removeprefix("!") for each in names if each.startswith("!")]
        boxes = [
            box
            for name, box in self.registry.boxes.items()
            if name not in hidden
            and any(each in ("*", name) or each.startswith(f"{name}/") for each in wanted)
        ]
        offers = await self.offer_tools(boxes)
        return [each for each in offers if _is_named(each, wanted) and not _is_named(each, hidden)]

    async def _told(self, listing: ListTools) -> list[ToolOffer]:
        await self.caller.runtime.event_loop()  # a server has to be queried
        hosts = [each for level in self.policies.levels if (each := level.policy.hosts) is not None]
        call = self._bare("", CallOptions(None, None))
        call.bounds = CallBounds("", hosts, (), None) if hosts else None
        call.sandbox = self.policies.sandbox
        self.caller.runtime.clock.real_begins()
        try:
            offers = await listing(call)
        finally:
            self.caller.runtime.clock.real_ends()
        for offer in offers:
            if offer.agent.has_resources:
                self.caller.runtime.close_later(offer.agent)
        return offers

    def _may(self, offer: ToolOffer) -> bool:
        return self.policies.refusal(offer.names) is None

    async def _registered(self) -> list[ToolOffer]:
        return await self.offer_tools(list(self.registry.boxes.values()))

    async def names(self) -> list[str]:
        """Return the names of the tools of the run that may be used."""
        return [offer.names[0] for offer in await self._registered()]

    async def call(self, name: str, arguments: Json = None) -> Json:
        """Use a tool of the run by its name.

        Raises:
            RaisedError: The tool fails or may not be used.
        """
        offer = await self._found(self.outer.hide(name), arguments)
        return await self.use(offer, {} if arguments is None else arguments)

    async def _found(self, name: Any, arguments: Json) -> ToolOffer:
        if not isinstance(name, str):
            name = repr(name)
        if name in self.known_tools:
            return self.known_tools[name]
        server, slash, own = name.rpartition("/")
        why = self.policies.refusal((name, own) if slash else (name,))
        if why is not None:
            cause = f"tool {name!r} {why}"
            self.log.refuse(name, arguments, "States.Permissions", cause)
            raise RaisedError("States.Permissions", cause)
        box = self.registry.boxes.get(name) or self.registry.boxes.get(server if slash else name)
        try:
            offers = [] if box is None else await self._in_time(name, lambda: self._told(box))
        except StateError as error:
            failure = normalize_failure(name, error)
            self.log.refuse(name, arguments, str(failure.name), str(failure.cause))
            raise failure from cause_for(failure, error)
        self.known_tools |= {offer.names[0]: offer for offer in offers}
        if name in self.known_tools:
            return self.known_tools[name]
        usable = [each for each in self.registry.boxes if self.policies.refusal((each,)) is None]
        hint = did_you_mean(name, usable)
        cause = f"there is no tool {name!r}" + (f" ({hint})" if hint else "")
        self.log.refuse(name, arguments, "Agent.ToolError", cause)
        raise RaisedError("Agent.ToolError", cause)

    # Calls

    async def use(self, offer: ToolOffer, arguments: Json) -> Json:
        """Use a tool that was offered.

        Raises:
            RaisedError: The tool fails or may not be used.
        """
        if self.thread_requests.over:
            raise call_ended(offer.name)
        if self.real and self.caller.runtime.in_event_loop:
            self._waits()
        try:
            return await self._used(offer, self.outer.hide(arguments))
        finally:
            if self.real:
                await self._goes_on()

    def _waits(self) -> None:
        """Release the agent's slot and let time pass while it waits for a tool."""
        self.running_calls += 1
        if self.running_calls == 1:
            self.caller.runtime.clock.real_ends()
            if self.outer.slot is not None:
                self.outer.slot.release()

    async def _goes_on(self) -> None:
        """Take a slot again before the agent continues."""
        self.running_calls -= 1
        if not self.running_calls:
            self.caller.runtime.clock.real_begins()
            if self.outer.slot is not None and not self.thread_requests.over:
                await self.outer.slot.take()

    async def _used(self, offer: ToolOffer, arguments: Json) -> Json:
        with self.log.record_refusal(offer.names[0], arguments):
            arguments = self.policies.prepare_arguments(offer, arguments)
        if self.outer.place is None:
            return await self._made(offer, arguments, ToolOutcome())
        turn, around = self.outer.place
        use = turn.begin(around)
        try:
            return await self._repeatable(offer, arguments, turn, use)
        finally:
            turn.end(use)

    async def _repeatable(
        self, offer: ToolOffer, arguments: Json, turn: PausableTurn, use: OpenToolCall
    ) -> Json:
        """Use a tool within a turn, unless it was used before the turn was paused."""
        tool = offer.names[0]
        name = f"{TOOL_CALL}{digest(*self._identity(tool, arguments, turn.number))[:24]}"
        known = turn.recorded_value(name)
        outcome = ToolOutcome(TurnPlace(turn, use), name)
        if known is not None:
            outcome.read(known)
            return await self._repeat(offer, arguments, outcome)
        try:
            outcome.result = await self._made(offer, arguments, outcome)
        except StateError as error:
            outcome.error = [str(error.name), str(error.cause)]
            await turn.record(name, outcome.to_json())
            raise
        await turn.record(name, outcome.to_json())
        return outcome.result

    async def _repeat(self, offer: ToolOffer, arguments: Json, outcome: ToolOutcome) -> Json:
        """Return the outcome of a tool call from before the turn was paused."""
        at = self.outer.at
        with suppress(RaisedError):  # its failure is part of the outcome
            await self._insist_on_consent(offer, arguments, outcome)
        if outcome.used and self.caller.budget_gate is not None:
            self.accounts.ledger.restore_tool_usage(at, outcome.used)
            self.caller.persistence.calls.record_usage(at, outcome.used)
        self.log.record_outcome(outcome, offer.names[0], arguments)
        if outcome.error is not None:
            raise RaisedError(*outcome.error)
        return outcome.result

    async def _made(self, offer: ToolOffer, arguments: Json, outcome: ToolOutcome) -> Json:
        """Use a tool.

        Raises:
            RaisedError: The tool fails or may not be used.
        """
        tool, rates = offer.names[0], self.registry.rates
        with self.log.record_refusal(tool, arguments, outcome):
            self.accounts.reservation(offer)
            agent, bounds = await self.policies.bound_agent(offer, arguments)
            counted = [offer.names]
            if bounds.named_hosts or agent.reaches_network:
                counted.append(NETWORK_REQUESTS)
            await self._insist_on_consent(offer, arguments, outcome)
            demands = list(self.policies.demands(counted))
            counts = await rates.begin(
                self.caller.runtime,
                self._shared_budgets,
                self.outer.at,
                tool,
                counted,
                self.policies.tracking,
                demands,
            )
        try:
            await self.hooks.before(tool, arguments, outcome)
            reservation = await self.accounts.begin(offer, arguments, outcome)
            return await self._performed(
                offer, agent, bounds, arguments, counts, reservation, outcome
            )
        finally:
            rates.end(counts)

    @property
    def _shared_budgets(self) -> SharedBudgets:
        """Return the storage of call counts for all executions."""
        runtime = self.caller.runtime
        return runtime.current_services().shared_budgets or shared_budgets_of(runtime.clock)

    async def _insist_on_consent(
        self, offer: ToolOffer, arguments: Json, outcome: ToolOutcome
    ) -> None:
        """Request consent if a policy requires it.

        Raises:
            RaisedError: The call is rejected.
        """
        if outcome.place is None:
            return
        (turn, use), tool = outcome.place, offer.names[0]
        rules = {
            rule.identity: rule
            for level in self.policies.levels
            for rule in level.policy.consents
            if rule.matches(offer.names)
        }
        assert use is not None  # a tool call is running
        for number, rule in enumerate(rules.values()):
            question = rule.question(self.outer.at, self.outer.target.name, tool, arguments)
            try:
                decision = await turn.request_decision(use, f"{outcome.name}.{number}", question)
            except StateError as error:
                raise RaisedError(error.name, error.cause) from None
            record = decision["record"]
            if record["approval"] != question.body["options"][0]:
                raise rejection_failure(tool, record)

    async def _performed(
        self,
        offer: ToolOffer,
        agent: Agent,
        bounds: CallBounds,
        arguments: Json,
        counts: CountedCall,
        reservation: Reservation | None,
        outcome: ToolOutcome,
    ) -> Json:
        tool, started, told = offer.names[0], self.caller.runtime.now(), outcome.details
        call = self._call(tool, arguments, bounds, counts, reservation, outcome)
        try:
            result = await self._answer(offer, agent, call, bounds, arguments)
            self.accounts.count(reservation, result, outcome)
            result = self.policies.clean_answer(offer, result)
            told["result"] = result
            await self.hooks.after(tool, arguments, result, reservation, outcome)
            return result
        except StateError as error:
            failure = normalize_failure(tool, error)
            told |= {"error": failure.name, "cause": failure.cause}
            if error.usage is not None:
                self.accounts.count(reservation, dict(error.usage), outcome)
            elif call.is_complete:
                self.accounts.count(reservation, dict(call.usage or {}), outcome)
            elif error.lost:
                self.accounts.count_interrupted(reservation, outcome)
            raise failure from cause_for(failure, error)
        except BaseException as stop:  # cancelled: recorded, and propagated
            if call.is_complete:
                with suppress(StateError, BudgetOverrun):
                    self.accounts.count(reservation, dict(call.usage or {}), outcome)
            elif self.log.pauses:
                raise
            elif told.keys().isdisjoint(("usage", "result")):
                self.accounts.count_interrupted(reservation, outcome)
            told["error"], told["cause"] = "States.Timeout", self.log.cancellation_cause(stop)
            raise
        finally:
            self.accounts.end(reservation)
            if NETWORK_REQUESTS in counts.names:
                told["network"] = True
            told["seconds"] = round(self.caller.runtime.now() - started, 6)
            outcome.time = self.caller.runtime.now()
            if not self.log.pauses:
                self.log.record_outcome(outcome, tool, arguments)

    async def _in_time(self, tool: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return an answer within the `Timeout` of the policies.

        Raises:
            RaisedError: The time is over.
        """
        limits = (each.policy.timeout for each in self.policies.levels)
        seconds = min((each for each in limits if each is not None), default=None)
        if seconds is None:
            return await ask()
        await self.caller.runtime.event_loop()
        from asyncio import timeout

        try:
            async with timeout(seconds) as limit:
                return await await_in_time(ask(), limit)
        except TimeoutError:
            if not has_expired(limit):
                raise
            text = f"tool {tool!r}: no answer within {seconds:g} s"
            raise mark_usage_unknown(RaisedError("Agent.ToolError", text)) from None

    async def _answer(
        self, offer: ToolOffer, agent: Agent, call: Call, bounds: CallBounds, arguments: Json
    ) -> Json:
        """Return the answer of the tool within its time limit.

        Raises:
            StateError: The tool fails.
        """
        tool, caller = offer.names[0], self.caller
        if agent.has_resources:
            caller.runtime.close_later(agent)
        watched = enforce_bounds(bounds) if bounds and agent.is_auditable else nullcontext()

        async def reach(effect: Effect) -> Json:
            with watched:
                answer = await caller.reach(agent, effect.payload, call)
            return copy_result(answer, caller.limit, tool)

        async def ask() -> Json:
            effect = effect_of(self.outer.at, "tool", tool, arguments)
            return await perform(caller.runtime.middleware, effect, reach, caller.limit)

        try:
            return await self._in_time(tool, ask)
        except NotJson as error:
            text = f"tool {tool!r}: it returned no JSON: {error}"
            raise mark_usage_unknown(RaisedError("Agent.ToolError", text)) from None
        except BaseException as raised:  # user code: any exception is its failure
            failure = unwrap_group(raised)
            if isinstance(failure, StateError):
                raise failure from cause_for(failure, raised.__cause__)
            if not is_fault(failure) and not self._cancelled_itself(failure):
                raise
            if bounds.latest_refusal is not None:
                raise bounds.latest_refusal from cause_for(bounds.latest_refusal, raised)
            raise tool_failure(tool, failure) from raised
        finally:
            call.end()

    def _cancelled_itself(self, failure: BaseException) -> bool:
        """Return whether a cancellation is the tool's own: nothing has cancelled its call."""
        runtime = self.caller.runtime
        return is_cancellation(failure) and not (runtime.in_event_loop and runtime.is_cancelled())

    def _call(
        self,
        tool: str,
        arguments: Json,
        bounds: CallBounds,
        counts: CountedCall,
        reservation: Reservation | None,
        outcome: ToolOutcome,
    ) -> Call:
        """Return the call that the tool receives: with the same rights, one level deeper."""
        outer = self.outer
        key = f"{outer.at.visit_key}/{digest(*self._identity(tool, arguments, self._number))[:24]}"
        options = CallOptions(
            None, None, part=CallPart(key, outer.attempt, self.caller.runtime.now())
        )
        rules = outer.tool_rules
        if rules is not None:
            options.blocks["tools"] = rules
        options.blocks["tool_depth"] = outer.tool_depth + 1
        options.blocks["tool_keys"] = [*outer.tool_keys, *counts.keys]
        options.enclosing = reservation
        if outcome.place is not None:
            options.blocks["turn"] = outcome.place
        call = self._bare(tool, options)
        call.deadline, call.bounds = outer.deadline, bounds if bounds else None
        return call

    def _identity(
        self, tool: str, arguments: Json, number: Callable[[str], int]
    ) -> tuple[str, str, int]:
        """Return the identity of a tool call: its caller, the request, and the number of the
        repetition.
        """
        caller, asked = self.outer.idempotency_key, f"{tool}\n{compact(arguments)}"
        return caller, asked, number(f"{caller}\n{asked}")

    def _number(self, request: str) -> int:
        self.request_counts[request] = number = self.request_counts.get(request, 0) + 1
        return number

    def _bare(self, tool: str, options: CallOptions) -> Call:
        """Return a call nested in that of the agent."""
        outer, caller = self.outer, self.caller
        call = Call(outer.at, Target("agent", tool, outer.state_name, is_helper=True), options)
        call.attach(caller, outer.heartbeat)
        return call

    # Refusals, threads and the end

    def refuse(self, tool: str, arguments: Json, error: str, cause: str) -> None:
        """Record that a tool was requested and not called."""
        self.log.refuse(tool, arguments, error, cause)

    def blocking_tools(self) -> BlockingTools:
        """Return the same tools for a plain function, which blocks in its thread."""
        return BlockingTools(self, self.thread_requests, self.caller.runtime)

    def end(self) -> None:
        """Cancel the running tool calls, because the call of the agent has ended."""
        self.thread_requests.end()


def _is_named(offer: ToolOffer, names: Iterable[str]) -> bool:
    """Return whether any of some names means a tool: its own, or that of its server."""
    meant = {"*", *offer.names, *((offer.server, f"{offer.server}/*") if offer.server else ())}
    return not meant.isdisjoint(names)
