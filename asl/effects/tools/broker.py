"""The broker: every tool call of an agent passes by here, and is held against the policies (8.9).

A call is bound by the policy of its state, over the `DefaultTools` of the document, and by those of
all executions that have started this one. A tool may be an agent that uses tools: it is bound
by the same. Whatever becomes of a call stands in the history as `ToolCalled`, or as `ToolRefused`
where the tool was not reached.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import nullcontext, suppress
from functools import cached_property
from typing import Any, Final, TypeVar

from asl.core.diagnostics import did_you_mean
from asl.core.errors import NotJson, StateError, cause_for, lost
from asl.core.schemas import faults
from asl.core.values import Json, compact, fits, handed_over, received
from asl.effects.agent_turn import REQUESTS, AgentTurn, ToolUse, TurnPlace
from asl.effects.caller import Caller
from asl.effects.limits import has_passed, punctual
from asl.effects.middleware import Effect, effect_of, perform
from asl.effects.pools import shared_budgets_of
from asl.effects.rates import REQUESTS as NETWORK_REQUESTS
from asl.effects.rates import Counted, Counting, Demand, requests
from asl.effects.rights import rights_of, topmost
from asl.effects.toolroom import Level
from asl.effects.tools.bounds import CallBounds, watching
from asl.effects.tools.outcome import ToolOutcome
from asl.effects.tools.sanitizing import sanitized
from asl.effects.unenforceable import unenforceable
from asl.engine.agent import Agent, Call
from asl.engine.blame import alone, bounded_text, described, is_fault
from asl.engine.frame import digest
from asl.engine.ledger import Ledger
from asl.engine.pools import SharedBudgets
from asl.engine.reservations import Reservation
from asl.engine.tools import Offer, Offers
from asl.engine.usage import BROKEN, USAGE_KEYS, amounts_of, reported
from asl.states.blocks.policy import Hook, parse_size
from asl.states.blocks.verdicts import UnclearVerdict, is_verdict, rejection
from asl.states.calls import Options, Part, Target
from asl.states.errors import Exhausted, Raised

__all__ = ["Broker"]

T = TypeVar("T")

FINAL: Final = ("States.Permissions", "States.RateLimitExceeded", "States.BudgetExceeded")
"""The failures of a tool that keep their names; all others are `Agent.ToolError`."""
REJECTED: Final = "Agent.ToolRejected"
"""The failure of a tool call that people have rejected; the agent may go on without it."""
MAX_NESTED: Final = 16
"""How deep tools may use one another."""
MAX_TOLD: Final = 200
"""Calls of one agent call whose arguments and answers the history tells; of more only the names."""


class Broker:
    """The tools of one call of an agent (protocol `asl.engine.tools.Tools`)."""

    def __init__(self, caller: Caller, call: Call, real: bool) -> None:
        self.caller = caller
        self.outer = call
        self.real = real
        """Whether the agent is at work outside of the event loop."""
        self.room = caller.runtime.serving().tools
        self.under_way = 0
        self.told = 0
        self.made: dict[str, int] = {}
        """How often the same was asked for, by what was asked for."""
        self.tasks: set[Any] = set()
        """What threads have asked for and not got yet."""
        self.known: dict[str, Offer] = {}
        """The tools of the run that were found, by their names."""
        self.over = False
        """Whether nobody waits for the agent any more."""

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The policies, the outermost first."""
        own = rights_of(self.caller.runtime, self.outer.at, self.outer.tool_rules)
        operator = self.caller.runtime.serving().policy
        return own if operator is None else (*operator.levels, *own)

    # What there is

    async def offered(self, boxes: list[Offers] | None = None) -> list[Offer]:
        """Return what may be used of *boxes*, or of the tools that the document names."""
        if boxes is None:
            named = any(level.policy.allowed is not None for level in self.levels)
            return await self._registered() if named else []
        return [offer for box in boxes for offer in await self._told(box) if self._may(offer)]

    async def _told(self, box: Offers) -> list[Offer]:
        await self.caller.runtime.event_loop()  # a server has to be asked
        hosts = [each for level in self.levels if (each := level.policy.hosts) is not None]
        call = self._bare("", Options(None, None))
        call.bounds = CallBounds("", hosts, (), None) if hosts else None
        call.sandbox = self._sandbox
        self.caller.runtime.clock.real_begins()
        try:
            offers = await box(call)
        finally:
            self.caller.runtime.clock.real_ends()
        for offer in offers:
            if offer.agent.holds:
                self.caller.runtime.close_later(offer.agent)
        return offers

    def _may(self, offer: Offer) -> bool:
        return self._refusal(offer.names) is None

    def _refusal(self, names: tuple[str, ...]) -> str | None:
        refusals = (level.policy.refusal(names) for level in self.levels)
        return next((each for each in refusals if each is not None), None)

    async def _registered(self) -> list[Offer]:
        return await self.offered(list(self.room.boxes.values()))

    async def names(self) -> list[str]:
        """Return the names of the tools of the run that may be used."""
        return [offer.names[0] for offer in await self._registered()]

    async def call(self, name: str, arguments: Json = None) -> Json:
        """Use a tool of the run by its name; raises Raised, whatever goes wrong."""
        offer = await self._found(self.outer.hide(name), arguments)
        return await self.use(offer, {} if arguments is None else arguments)

    async def _found(self, name: Any, arguments: Json) -> Offer:
        if not isinstance(name, str):
            name = repr(name)
        if name in self.known:
            return self.known[name]
        server, slash, own = name.rpartition("/")
        why = self._refusal((name, own) if slash else (name,))
        if why is not None:
            cause = f"tool {name!r} {why}"
            self.refuse(name, arguments, "States.Permissions", cause)
            raise Raised("States.Permissions", cause)
        box = self.room.boxes.get(name) or self.room.boxes.get(server if slash else name)
        try:
            offers = [] if box is None else await self._in_time(name, lambda: self._told(box))
        except StateError as error:
            named = self._named(name, error)
            self.refuse(name, arguments, str(named.name), str(named.cause))
            raise named from cause_for(named, error)
        self.known |= {offer.names[0]: offer for offer in offers}
        if name in self.known:
            return self.known[name]
        usable = [each for each in self.room.boxes if self._refusal((each,)) is None]
        hint = did_you_mean(name, usable)
        cause = f"there is no tool {name!r}" + (f" ({hint})" if hint else "")
        self.refuse(name, arguments, "Agent.ToolError", cause)
        raise Raised("Agent.ToolError", cause)

    def refuse(
        self,
        tool: str,
        arguments: Json,
        error: str,
        cause: str,
        outcome: ToolOutcome | None = None,
    ) -> None:
        """Put it into the history that a tool was asked for and not used."""
        tool, arguments, cause = self.outer.hide([tool, arguments, cause])
        outcome = outcome or ToolOutcome(self.outer.place)
        outcome.event, outcome.told = "ToolRefused", {"error": error, "cause": cause}
        outcome.time = self.caller.runtime.now()
        self._tell(outcome, tool, arguments)

    def _give_up(self, tool: str, arguments: Json, stop: BaseException) -> None:
        """Put it into the history that a call was cancelled before the tool was reached."""
        if self._pauses:
            return
        self.refuse(tool, arguments, "States.Timeout", self._stopped(stop))

    def _stopped(self, stop: BaseException) -> str:
        state = self.outer.state_name
        return f"state '{state}': the call was given up ({type(stop).__name__})"

    # A call

    async def use(self, offer: Offer, arguments: Json) -> Json:
        """Use a tool that was offered; raises Raised, whatever goes wrong."""
        if self.over:
            raise _ended(offer.name)
        if self.real and self.caller.runtime.in_event_loop:
            self._waits()
        try:
            return await self._used(offer, self.outer.hide(arguments))
        finally:
            if self.real:
                await self._goes_on()

    def _waits(self) -> None:
        """Say that the agent waits for a tool: its place is free, and time may pass."""
        self.under_way += 1
        if self.under_way == 1:
            self.caller.runtime.clock.real_ends()
            if self.outer.slot is not None:
                self.outer.slot.give_back()

    async def _goes_on(self) -> None:
        """Say that the agent has what it has waited for, once it has a place again."""
        self.under_way -= 1
        if not self.under_way:
            self.caller.runtime.clock.real_begins()
            if self.outer.slot is not None and not self.over:
                await self.outer.slot.take()

    async def _used(self, offer: Offer, arguments: Json) -> Json:
        try:
            arguments = self._prepared(offer, arguments)
        except Raised as error:
            self.refuse(offer.names[0], arguments, str(error.name), str(error.cause))
            raise
        if self.outer.place is None:
            return await self._made(offer, arguments, ToolOutcome())
        turn, around = self.outer.place
        use = turn.begin(around)
        try:
            return await self._repeatable(offer, arguments, turn, use)
        finally:
            turn.end(use)

    async def _repeatable(
        self, offer: Offer, arguments: Json, turn: AgentTurn, use: ToolUse
    ) -> Json:
        """Use a tool within a turn, unless it was used before the turn was paused."""
        tool = offer.names[0]
        name = f"{REQUESTS}{digest(*self._identity(tool, arguments, turn.number))[:24]}"
        known = turn.recorded(name)
        outcome = ToolOutcome(TurnPlace(turn, use), name)
        if known is not None:
            outcome.read(known)
            return await self._repeat(offer, arguments, outcome)
        try:
            outcome.result = await self._made(offer, arguments, outcome)
        except StateError as error:
            outcome.error = [str(error.name), str(error.cause)]
            await turn.record(name, outcome.written())
            raise
        await turn.record(name, outcome.written())
        return outcome.result

    async def _repeat(self, offer: Offer, arguments: Json, outcome: ToolOutcome) -> Json:
        """Give the outcome that a tool call had before the turn was paused."""
        at: Any = self.outer.at
        with suppress(Raised):  # which is part of the outcome
            await self._insist_on_consent(offer, arguments, outcome)
        if outcome.used and self.caller.meter is not None:
            self._ledger.recall(at, outcome.used)
            self.caller.keeping.calls.used(at, outcome.used)
        self._tell(outcome, offer.names[0], arguments)
        if outcome.error is not None:
            raise Raised(*outcome.error)
        return outcome.result

    async def _made(self, offer: Offer, arguments: Json, outcome: ToolOutcome) -> Json:
        """Use a tool; raises Raised, whatever goes wrong."""
        tool, rates = offer.names[0], self.room.rates
        try:
            self._reservation(offer)
            agent, bounds = await self._bounded(offer, arguments)
            counted = [offer.names]
            if bounds.named or agent.reaches_network:
                counted.append(NETWORK_REQUESTS)
            await self._insist_on_consent(offer, arguments, outcome)
            demands = list(self._demands(counted))
            counts = await rates.begin(
                self.caller.runtime,
                self._tabs,
                self.outer.at,
                tool,
                counted,
                self._counting,
                demands,
            )
        except Raised as error:
            self.refuse(tool, arguments, str(error.name), str(error.cause), outcome)
            raise
        except BaseException as stop:
            self._give_up(tool, arguments, stop)
            raise
        try:
            await self._ask_before(tool, arguments, outcome)
            reservation = await self._begin(offer, arguments, outcome)
            return await self._performed(
                offer, agent, bounds, arguments, counts, reservation, outcome
            )
        finally:
            rates.end(counts)

    def _prepared(self, offer: Offer, arguments: Json) -> Json:
        """Return the arguments with the defaults; raises Raised for those that are wrong."""
        tool = offer.names[0]
        why = self._refusal(offer.names)
        if why is not None:
            raise Raised("States.Permissions", f"tool {tool!r} {why}")
        if self.outer.tool_depth >= MAX_NESTED:
            text = f"tool {tool!r}: tools use one another more than {MAX_NESTED} deep"
            raise Raised("Agent.ToolError", text)
        try:
            own = handed_over(received(arguments, self.caller.limit, tool), self.caller.limit, tool)
        except (NotJson, StateError) as error:
            text = f"tool {tool!r}: the arguments are wrong: {error}"
            raise Raised("Agent.ToolError", text) from None
        if type(own) is not dict:
            raise Raised("Agent.ToolError", f"tool {tool!r}: the arguments are an object")
        for level in self.levels:
            own = {**level.policy.arguments(offer.names), **own}
        self._judge(tool, "arguments", own, offer.input)
        for level in self.levels:
            for check in level.policy.checks(offer.names, "Input"):
                if "Schema" in check:
                    self._judge(tool, "arguments", own, check["Schema"])
        return own

    def _reservation(self, offer: Offer) -> Reservation | None:
        """Return the call of a tool for the ledger, if there is one.

        Raises Raised where a limit does not allow it and fails the call of the agent anyway.
        """
        at: Any = self.outer.at
        if self.caller.meter is None:
            return None
        ledger = self.caller.meter.ledger
        parent = self.outer.reservation or ledger.calling.get(id(at))
        try:
            return ledger.tool(at, offer.names, self._categories(offer), parent)
        except StateError as error:
            raise Raised(error.name, error.cause) from None

    def _categories(self, offer: Offer) -> set[str]:
        """Return the categories that a tool belongs to, of all documents around."""
        return {
            name
            for level in self.levels
            for name, matches in level.policy.tests.items()
            if matches(offer.names)
        }

    def _judge(self, tool: str, what: str, value: Json, schema: Json) -> None:
        wrong = faults(schema, value)
        if wrong:
            verb = "are" if what == "arguments" else "is"
            raise Raised("Agent.ToolError", f"tool {tool!r}: the {what} {verb} wrong: {wrong}")

    async def _bounded(self, offer: Offer, arguments: Json) -> tuple[Agent, CallBounds]:
        """Return who answers, and within which bounds; raises Raised for what cannot be bounded."""
        tool, agent = offer.names[0], offer.agent
        hosts = [level.policy.hosts for level in self.levels if level.policy.hosts is not None]
        files = [level.policy.files for level in self.levels if level.policy.files is not None]
        bounds = CallBounds(tool, hosts, files, agent.folder)
        if bounds:
            bounds.check(arguments)
        settings = self._sandbox(tool)
        if settings is not None:
            await self.caller.runtime.event_loop()
            self.caller.runtime.clock.real_begins()  # it asks whether what it needs is there
            try:
                agent = await agent.confined(settings, tool)
            finally:
                self.caller.runtime.clock.real_ends()
        why = unenforceable(tool, agent, [level.policy for level in self.levels])
        if why is not None:
            raise Raised("States.Permissions", why)
        return agent, bounds

    def _sandbox(self, tool: str) -> Mapping[str, Json] | None:
        """Return the settings of the sandbox that a tool needs, None for none; raises Raised."""
        needed = [each.policy.sandbox for each in self.levels if each.policy.sandbox is not None]
        if any(each != needed[-1] for each in needed):
            text = f"tool {tool!r}: it would need several sandboxes at once"
            raise Raised("States.Permissions", text)
        if not needed:
            return None
        operator = self.caller.runtime.serving().policy
        if operator is not None and (refusal := operator.refusal(needed[-1])) is not None:
            raise Raised("States.Permissions", f"tool {tool!r}: {refusal}")
        return needed[-1]

    @property
    def _tabs(self) -> SharedBudgets:
        """Where calls are counted for all executions."""
        runtime = self.caller.runtime
        return runtime.serving().tabs or shared_budgets_of(runtime.clock)

    @cached_property
    def _counting(self) -> dict[str, Counting]:
        """What has to be known of the calls of the workflows around: there may be limits."""
        at: Any = self.outer.at
        own = topmost(at.execution)
        found = {own.workflow: self.room.counting(own.program.document)}
        return found | {level.workflow: level.counting for level in self.levels}

    async def _insist_on_consent(self, offer: Offer, arguments: Json, outcome: ToolOutcome) -> None:
        """Ask people where a policy requires their approval; raises Raised where they reject."""
        if outcome.place is None:
            return
        (turn, use), tool = outcome.place, offer.names[0]
        rules = {
            rule.identity: rule
            for level in self.levels
            for rule in level.policy.consents
            if rule.matches(offer.names)
        }
        assert use is not None  # a tool call is under way
        for number, rule in enumerate(rules.values()):
            question = rule.question(self.outer.at, self.outer.target.name, tool, arguments)
            try:
                decision = await turn.ask(use, f"{outcome.name}.{number}", question)
            except StateError as error:
                raise Raised(error.name, error.cause) from None
            record = decision["record"]
            if record["approval"] != question.body["options"][0]:
                raise Raised(REJECTED, _rejected(tool, record))

    def _demands(self, counted: list[tuple[str, ...]]) -> Iterator[Demand]:
        """Yield the limits that a call is subject to."""
        for level in self.levels:
            for limit in level.policy.limits:
                if limit.matches(counted[0]):
                    yield Demand(level.workflow, limit, self.outer.tool_keys)
            most = level.policy.requests
            if most is not None and NETWORK_REQUESTS in counted:
                yield Demand(level.workflow, requests(most), self.outer.tool_keys)

    async def _performed(
        self,
        offer: Offer,
        agent: Agent,
        bounds: CallBounds,
        arguments: Json,
        counts: Counted,
        reservation: Reservation | None,
        outcome: ToolOutcome,
    ) -> Json:
        tool, started, told = offer.names[0], self.caller.runtime.now(), outcome.told
        call = self._call(tool, arguments, bounds, counts, reservation, outcome)
        try:
            result = await self._answer(offer, agent, call, bounds, arguments)
            self._count(reservation, result, outcome)
            result = self._cleaned(offer, result)
            told["result"] = result
            await self._ask_after(tool, arguments, result, reservation, outcome)
            return result
        except StateError as error:
            named = self._named(tool, error)
            told |= {"error": named.name, "cause": named.cause}
            if error.usage is not None:
                self._count(reservation, dict(error.usage), outcome)
            elif call.answered:
                self._count(reservation, dict(call.usage or {}), outcome)
            elif error.lost:
                self._lose(reservation, outcome)
            raise named from cause_for(named, error)
        except BaseException as stop:  # cancelled: the record says so, and it flies on
            if call.answered:
                with suppress(StateError, Exhausted):
                    self._count(reservation, dict(call.usage or {}), outcome)
            elif self._pauses:
                raise
            elif told.keys().isdisjoint(("usage", "result")):
                self._lose(reservation, outcome)
            told["error"], told["cause"] = "States.Timeout", self._stopped(stop)
            raise
        finally:
            self._end(reservation)
            if NETWORK_REQUESTS in counts.names:
                told["network"] = True
            told["seconds"] = round(self.caller.runtime.now() - started, 6)
            outcome.time = self.caller.runtime.now()
            if not self._pauses:
                self._tell(outcome, tool, arguments)

    @property
    def _pauses(self) -> bool:
        """Whether the turn is being paused: what is cut off now goes on later."""
        return self.outer.place is not None and self.outer.place.turn.pausing

    async def _in_time(self, tool: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what is answered within the `Timeout` of the policies; raises Raised."""
        limits = (each.policy.timeout for each in self.levels)
        seconds = min((each for each in limits if each is not None), default=None)
        if seconds is None:
            return await ask()
        await self.caller.runtime.event_loop()
        from asyncio import timeout

        try:
            async with timeout(seconds) as limit:
                return await punctual(ask(), limit)
        except TimeoutError:
            if not has_passed(limit):
                raise
            text = f"tool {tool!r}: no answer within {seconds:g} s"
            raise lost(Raised("Agent.ToolError", text)) from None

    async def _answer(
        self, offer: Offer, agent: Agent, call: Call, bounds: CallBounds, arguments: Json
    ) -> Json:
        """Have the tool answer in time; raises StateError."""
        tool, caller = offer.names[0], self.caller
        if agent.holds:
            caller.runtime.close_later(agent)
        watched = watching(bounds) if bounds and agent.watched else nullcontext()

        async def reach(effect: Effect) -> Json:
            return await caller.reach(agent, effect.payload, call)

        async def ask() -> Json:
            effect = effect_of(self.outer.at, "tool", tool, arguments)
            with watched:
                answer = await perform(caller.runtime.middleware, effect, reach)
            return received(answer, caller.limit, tool)

        try:
            return await self._in_time(tool, ask)
        except NotJson as error:
            text = f"tool {tool!r}: it returned no JSON: {error}"
            raise lost(Raised("Agent.ToolError", text)) from None
        except BaseException as raised:  # foreign code: anything it raises is its failure
            failure = alone(raised)
            if isinstance(failure, StateError):
                raise failure from cause_for(failure, raised.__cause__)
            if not is_fault(failure):
                raise
            if bounds.refusal is not None:
                raise bounds.refusal from cause_for(bounds.refusal, raised)
            raise Raised("Agent.ToolError", _said(tool, failure)) from raised
        finally:
            call.end()

    def _call(
        self,
        tool: str,
        arguments: Json,
        bounds: CallBounds,
        counts: Counted,
        reservation: Reservation | None,
        outcome: ToolOutcome,
    ) -> Call:
        """Return the call as the tool sees it: within the same rights, and one deeper."""
        outer = self.outer
        key = f"{outer.at.visit_key}/{digest(*self._identity(tool, arguments, self._number))[:24]}"
        options = Options(None, None, part=Part(key, outer.attempt, self.caller.runtime.now()))
        rules = outer.tool_rules
        if rules is not None:
            options.blocks["tools"] = rules
        options.blocks["tool_depth"] = outer.tool_depth + 1
        options.blocks["tool_keys"] = [*outer.tool_keys, *counts.keys]
        options.within = reservation
        if outcome.place is not None:
            options.blocks["turn"] = outcome.place
        call = self._bare(tool, options)
        call.deadline, call.bounds = outer.deadline, bounds if bounds else None
        return call

    def _identity(
        self, tool: str, arguments: Json, number: Callable[[str], int]
    ) -> tuple[str, str, int]:
        """Return what names a tool call: by whom it is made, what is asked, and how often."""
        caller, asked = self.outer.idempotency_key, f"{tool}\n{compact(arguments)}"
        return caller, asked, number(f"{caller}\n{asked}")

    def _number(self, asked: str) -> int:
        self.made[asked] = number = self.made.get(asked, 0) + 1
        return number

    def _bare(self, tool: str, options: Options) -> Call:
        """Return a call within the one of the agent."""
        outer, caller = self.outer, self.caller
        call = Call(outer.at, Target("agent", tool, outer.state_name, aside=True), options)
        call.attach(caller, outer.heartbeat)
        return call

    def _cleaned(self, offer: Offer, result: Json) -> Json:
        """Return the answer as the agent may see it; raises Raised for one that is wrong."""
        tool = offer.names[0]
        for level in self.levels:
            for check in level.policy.checks(offer.names, "Output"):
                if check.get("Sanitize") is True:
                    result = sanitized(result)
                if "MaxSize" in check:
                    most = _size(check["MaxSize"])
                    if not fits(result, most):
                        text = f"tool {tool!r}: the answer is larger than {most} bytes"
                        raise Raised("Agent.ToolError", text)
                if "Schema" in check:
                    self._judge(tool, "answer", result, check["Schema"])
        return result

    def _named(self, tool: str, error: StateError) -> Raised:
        """Return the failure of a tool by the name that the specification has for it."""
        if error.name in FINAL:
            return error if isinstance(error, Raised) else Raised(error.name, error.cause)
        if error.name == "Agent.ToolError" and str(error.cause).startswith(f"tool {tool!r}:"):
            return Raised(error.name, error.cause)
        return Raised("Agent.ToolError", bounded_text(f"tool {tool!r}: {error}"))

    # Hooks

    async def _ask_before(self, tool: str, arguments: Json, outcome: ToolOutcome) -> None:
        """Ask the hooks whether a call may be made; raises Raised where one has it blocked."""
        request = {"tool": tool, "arguments": arguments, "state": self.outer.state_name}
        for level in self.levels:
            if "Before" not in level.hooks:
                continue
            try:
                answer = await self._hooked(
                    level.hooks["Before"],
                    "toolRequest",
                    request,
                    self.outer.reservation,
                    outcome,
                )
                if (reason := _rejection(answer)) is not None:
                    raise StateError("States.Permissions", reason)
            except StateError as error:
                cause = f"tool {tool!r}: the hook before it has blocked it: {error.cause or error}"
                kept = error.name if error.name == "States.BudgetExceeded" else FINAL[0]
                self.refuse(tool, arguments, str(kept), cause, outcome)
                raise Raised(kept, cause) from error
            except BaseException as stop:
                self._give_up(tool, arguments, stop)
                raise

    async def _ask_after(
        self,
        tool: str,
        arguments: Json,
        result: Json,
        reservation: Reservation | None,
        outcome: ToolOutcome,
    ) -> None:
        """Show the hooks what was answered; raises Raised where one fails or rejects it."""
        state = self.outer.state_name
        response = {"tool": tool, "arguments": arguments, "result": result, "state": state}
        for level in reversed(self.levels):
            if "After" in level.hooks:
                try:
                    answer = await self._hooked(
                        level.hooks["After"], "toolResponse", response, reservation, outcome
                    )
                    if is_verdict(answer) and (reason := _rejection(answer)) is not None:
                        raise StateError("Agent.ToolError", reason)
                except StateError as error:
                    if error.name == "States.BudgetExceeded":
                        raise
                    cause = f"tool {tool!r}: the hook after it has failed: {error}"
                    raise Raised("Agent.ToolError", cause) from error

    async def _hooked(
        self,
        given: tuple[Hook, Json],
        name: str,
        shown: Json,
        reservation: Reservation | None,
        outcome: ToolOutcome,
    ) -> Json:
        """Call a hook within the call of *reservation*.

        Without parameters of its own it gets what it is shown.
        """

        hook, data = given
        at, caller = self.outer.at, self.caller
        data = {**data, name: shown} if type(data) is dict else {name: shown}
        agent = str(hook.agent(data, at))
        payload = {name: shown} if hook.parameters is None else hook.parameters(data, at)
        target = Target("agent", agent, self.outer.state_name, aside=True)
        options = Options(None, None)
        if self.outer.tool_rules is not None:
            options.blocks["tools"] = self.outer.tool_rules
        options.blocks["tool_depth"] = self.outer.tool_depth + 1
        options.within = reservation
        if outcome.place is not None:
            options.blocks["turn"] = outcome.place
        # Within the effect that calls the agent: what it answers is part of that.
        return await caller.invoke(at, target, payload, options)

    # What is told and counted

    async def _begin(
        self, offer: Offer, arguments: Json, outcome: ToolOutcome
    ) -> Reservation | None:
        """Reserve for a tool, where anything limits it; raises Raised."""
        tool, at = offer.names[0], self.outer.at
        try:
            reservation = self._reservation(offer)
            if reservation is not None:
                assert self.caller.meter is not None
                await self.caller.meter.begin(reservation)
                own = reservation.accounts[-1]
                if own.counted and own.frame is at:
                    counts = {name: reservation.count(name) for name in own.counted}
                    outcome.used = {name: count for name, count in counts.items() if count}
                    self.caller.keeping.calls.used(at, outcome.used)
            return reservation
        except StateError as error:
            self.refuse(tool, arguments, str(error.name), str(error.cause), outcome)
            raise Raised(error.name, error.cause) from None
        except BaseException as stop:
            self._give_up(tool, arguments, stop)
            raise

    def _count(self, reservation: Reservation | None, result: Json, outcome: ToolOutcome) -> None:
        """Count what a tool has used, as that of an agent; raises where that exceeds a budget."""
        if type(result) is not dict or USAGE_KEYS.isdisjoint(result):
            return
        at: Any = self.outer.at
        used = reported(result, at.execution.prices)
        outcome.told["usage"] = {"cost": float(used.cost), "tokens": used.tokens}
        at.account(self.outer.state_name, result)
        if reservation is not None:
            outcome.add(amounts_of(used))
            self.caller.keeping.calls.used(at, amounts_of(used))
            self._ledger.use_tool(reservation, used)

    def _lose(self, reservation: Reservation | None, outcome: ToolOutcome) -> None:
        """Count a tool that broke off before it said what it had used."""
        if reservation is not None:
            at: Any = self.outer.at
            assumed = self._ledger.use_tool(reservation, BROKEN)
            outcome.add(assumed)
            self.caller.keeping.calls.used(at, assumed)

    def _end(self, reservation: Reservation | None) -> None:
        if reservation is not None:
            self._ledger.end_tool(reservation)
            assert self.caller.meter is not None
            self.caller.meter.ledger.waiting.wake()

    @property
    def _ledger(self) -> Ledger:
        assert self.caller.meter is not None  # where there are reservation
        return self.caller.meter.ledger

    def _tell(self, outcome: ToolOutcome, tool: str, arguments: Json) -> None:
        shown: dict[str, Json] = {"tool": tool[:200]}
        levels = {level.policy.level for level in self.levels} or {"standard"}
        self.told += 1
        if self.told <= MAX_TOLD and levels & {"standard", "full"} and arguments is not None:
            shown["arguments"] = arguments
        shown |= outcome.told
        if "result" in shown and (self.told > MAX_TOLD or "full" not in levels):
            del shown["result"]
        at: Any = self.outer.at
        if outcome.place is None:
            at.now = outcome.time
            at.note(outcome.event, shown)
        else:
            outcome.place.turn.note(outcome.name, outcome.event, shown, outcome.time)

    # Threads

    def blocking(self) -> _Blocking:
        """Return the same for a plain function, which waits in its thread."""
        return _Blocking(self, self.caller.runtime.in_event_loop)

    def end(self) -> None:
        """Give up what is still under way: nobody waits for the agent any more."""
        self.over = True
        for task in list(self.tasks):
            task.cancel()


class _Blocking:
    """The tools of a plain function: each method returns when it is done."""

    def __init__(self, broker: Broker, threaded: bool) -> None:
        self._broker = broker
        self._threaded = threaded

    def call(self, name: str, arguments: Json = None) -> Json:
        """Use a tool of the run by its name; raises Raised, whatever goes wrong."""
        if self._broker.over:
            raise _ended(name)
        return self._done(self._broker.call(name, arguments))

    def names(self) -> list[str]:
        """Return the names of the tools of the run that may be used."""
        return self._done(self._broker.names())  # type: ignore[no-any-return]

    def _done(self, work: Coroutine[Any, Any, Any]) -> Any:
        if not self._threaded:  # there are no tools, so nothing waits
            try:
                work.send(None)
            except StopIteration as done:
                return done.value
            raise AssertionError("a tool of a function without a thread")
        from asyncio import run_coroutine_threadsafe

        asked = run_coroutine_threadsafe(work, self._broker.caller.runtime.loop)
        self._broker.tasks.add(asked)
        if self._broker.over:  # since it was asked
            asked.cancel()
        try:
            return asked.result()
        finally:
            self._broker.tasks.discard(asked)


def _ended(tool: str) -> Raised:
    """Return the failure of a tool that is asked for when nobody waits for the agent any more."""
    return Raised("Agent.ToolError", f"tool {tool!r}: the call of the agent has ended")


def _rejection(answer: Json) -> str | None:
    """Return why a hook rejects a call: an answer that is no verdict does, too."""
    if type(answer) is bool:  # whether the call is valid
        return None if answer else "it says so"
    try:
        return rejection(answer)
    except UnclearVerdict as unclear:
        return f"a hook answers with {unclear.wanted}, not with {unclear.found}"


def _rejected(tool: str, record: Mapping[str, Json]) -> str:
    """Return what an agent is told of a call that people have rejected."""
    said = f": {record['comment']}" if record["comment"] else ""
    who, option = record["approver"], record["approval"]
    return f"tool {tool!r}: {who} has rejected the call ({option!r}){said}"


def _said(tool: str, error: BaseException) -> str:
    return f"tool {tool!r}: {described(error)}"


def _size(value: Json) -> int:
    try:
        return parse_size(value)
    except ValueError as fault:
        raise StateError("States.Runtime", f"Validation: {fault}") from None
