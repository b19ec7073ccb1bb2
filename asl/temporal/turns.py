"""Requests for consent to tool calls within a call that a worker performs.

A worker cannot wait for people. Its call ends with the requests that are open, and with what its
tools and its model have answered; the workflow makes the requests, and then the call again with
the decisions and the answers, so that no tool is called twice.
"""

from __future__ import annotations

from asyncio import FIRST_COMPLETED, Task, create_task, gather
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import nullcontext
from typing import TypeAlias

from temporalio import workflow

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.agent_turn import DEADLINE, TOOL_CALL, RecordedTurn
from asl.effects.approval_process import ToolApprovalProcess
from asl.effects.persistence import (
    ConsentProcess,
    Persistence,
    TransientCalls,
    TransientChildren,
    TransientExecution,
    TransientRequests,
)
from asl.effects.tools.outcomes import ToolOutcome
from asl.engine.frame import Frame
from asl.engine.journal_values import read_error, write_error
from asl.states.approval_request import ApprovalRequest
from asl.states.effects import RequestContent
from asl.states.errors import RaisedError, Suspension
from asl.temporal.payloads import TurnMessage, TurnOutcome

__all__ = ["RemoteTurn", "WorkerTurn"]


# In the workflow

Perform: TypeAlias = Callable[[TurnMessage | None], Awaitable[TurnOutcome | None]]
"""Performs a call with what is known of its turn; returns what it waits for, None at its end."""


class RemoteTurn(RecordedTurn):
    """A call of an agent on workers, with its requests; a task waits for each request."""

    _values: Mapping[str, Json] = {}
    """Answers of tools and models so far, by name."""

    async def run(self, perform: Perform) -> None:
        """Perform a call until it waits for no request.

        Raises:
            Suspension: Approvers have to decide first, or the next run makes the call.
            StateError: The call fails.
        """
        self._decisions: dict[str, Json] = {}
        """Decision and error of decided requests, by name."""
        self._waits: dict[str, Task[Json]] = {}
        """Waits for the decisions on requests, by name."""
        try:
            await self._repeat(perform)
        except Suspension:
            await self._stop_waiting()
            if self._recorded_events or self._events:
                self._suspend()
            raise
        except StateError:
            await self._end()
            raise
        except BaseException:  # cancelled, or evicted: nothing may be awaited
            self._cancel_waits()
            raise
        await self._end()

    async def _repeat(self, perform: Perform) -> None:
        await self._recover()
        while (found := await perform(self._message())) is not None:
            self._recorded_events = {**self._recorded_events, **found["noted"]}
            self._values = {**self._values, **found["values"]}
            for name, value in found["values"].items():
                await self.record(name, value)
            if found["budget"]:
                await self._await_budget()
                continue
            self._check_place()
            for name, *question in found["requests"]:
                if name not in self._waits:
                    self._decisions.pop(name, None)
                    self._wait_for(name, self._consent(name, RequestContent(*question)))
            await self._await_decision(name for name, *_ in found["requests"])

    async def _await_budget(self) -> None:
        """Wait for the decision on a limit that the call has reached."""
        gate = self.caller.budget_gate
        if gate is not None:
            await gate.reconsider(self.at, self.call.target)

    def _check_place(self) -> None:
        """Check that people can see the requests of the execution.

        Raises:
            RaisedError: It is an item of a slice, for whose document nothing requires consent.
        """
        if self.caller.runtime.current_services().map_item is not None:
            text = (
                f"agent {self.call.target.name!r} uses a tool for which the operator's policy "
                "requires consent, which an item of a distributed Map cannot request: add "
                "RequireApproval to DefaultTools of the document"
            )
            raise RaisedError("States.Runtime", text)

    def _message(self) -> TurnMessage | None:
        """Return what workers have to know of the turn, None at its start."""
        if not (self._recorded_events or self._decisions):
            return None
        redriven = self.at.execution.redrives > 0
        return TurnMessage(
            noted={**self._recorded_events},
            values={**self._values},
            decisions=self._decisions,
            digests={
                name: asked.content_digest for name, asked in self._known().items() if redriven
            },
        )

    def _known(self) -> Mapping[str, ApprovalRequest]:
        """Return the requests of the turn by name."""
        return self.caller.persistence.requests.requests_of(self.key)

    async def _recover(self) -> None:
        """Continue a turn that was paused, once one of its requests is decided."""
        calls, options = self.caller.persistence.calls, self.call.options
        self._recorded_events = calls.begin_turn(self.at, self.key)
        if not self._recorded_events:
            return
        if options is not None and options.is_limited:
            calls.begin_attempt(self.call, options)
        self._values = calls.recorded_values(self.key)
        self._restore_usage()
        requests = self.caller.persistence.requests
        for name, asked in self._known().items():
            self._wait_for(name, requests.consent(asked, self._process))
        used, undecided = list[str](), list[str]()
        for name in self._waits:
            (used if name.rpartition(".")[0] in self._values else undecided).append(name)
        for each in used:  # tools were called after these decisions
            await self._await_decision([each])
        if undecided:
            await self._await_decision(undecided)

    def _restore_usage(self) -> None:
        """Count the usage of tools before the pause in the account of the visit."""
        gate, at = self.caller.budget_gate, self.at
        for name, value in self._values.items():
            if gate is not None and name.startswith(TOOL_CALL):
                outcome = ToolOutcome()
                outcome.read(value)
                gate.ledger.restore_tool_usage(at, outcome.used)
                self.caller.persistence.calls.record_usage(at, outcome.used)

    # Requests

    def _process(self, request: ApprovalRequest) -> ToolApprovalProcess:
        process = super()._process(request)
        process.parks = True  # no code of a user runs meanwhile
        return process

    def _wait_for(self, name: str, consent: Coroutine[object, object, Json]) -> None:
        """Start to wait for a decision, as a branch of the execution."""
        self._waits[name] = create_task(consent)
        suspension = self.caller.runtime.suspension
        if suspension is not None:
            suspension.enter()

    async def _await_decision(self, names: Iterable[str]) -> None:
        """Return when one of some requests is decided.

        Raises:
            Suspension: None can be decided now.
        """
        tasks = [self._waits[name] for name in names if name in self._waits]
        if not tasks:
            return
        suspension = self.caller.runtime.suspension
        with nullcontext() if suspension is None else suspension.idle():
            await workflow.wait(tasks, return_when=FIRST_COMPLETED)
        decided = [name for name, task in self._waits.items() if task.done()]
        suspended = [each for each in decided if not self._take(each)]
        if len(suspended) == len(decided):
            raise Suspension

    def _take(self, name: str) -> bool:
        """Take the decision on a request; return whether there is one."""
        task = self._waits.pop(name)
        self._leave()
        try:
            self._decisions[name] = [task.result(), None]
        except StateError as error:
            self._decisions[name] = [None, write_error(error)]
        except Suspension:
            return False
        return True

    def _leave(self) -> None:
        """Count the end of a wait."""
        suspension = self.caller.runtime.suspension
        if suspension is not None:
            suspension.leave()

    def _cancel_waits(self) -> list[Task[Json]]:
        """Cancel the waits for requests, and return them."""
        waits = [*self._waits.values()]
        self._waits.clear()
        for each in waits:
            each.cancel()
            self._leave()
        return waits

    async def _stop_waiting(self) -> None:
        await gather(*self._cancel_waits(), return_exceptions=True)

    async def _end(self) -> None:
        """End the turn; the agent may leave open requests."""
        await self._stop_waiting()
        self._withdraw()


# In the worker


class _WorkerCalls(TransientCalls):
    """The records of a turn in a worker: those of the workflow, and new ones for it."""

    key = ""
    """Key of the agent's effect."""

    def __init__(self, known: TurnMessage | None) -> None:
        self._known: Mapping[str, Json] = {} if known is None else known["values"]
        self._noted: Mapping[str, int] = {} if known is None else known["noted"]
        self.values: dict[str, Json] = {}
        """New values by name."""
        self.noted: Mapping[str, int] = self._noted
        """Number of the recorded events at a pause, by subject."""

    def recorded_value(self, key: str) -> Json:
        """Return the value recorded before the turn was paused, None without one."""
        return self._known.get(key.removeprefix(self.key))

    async def record(self, frame: Frame, key: str, value: Json) -> None:
        """Collect a value for the workflow, which has a deadline of its own."""
        name = key.removeprefix(self.key)
        if name != DEADLINE:
            self.values[name] = value

    def begin_turn(self, frame: Frame, key: str) -> Mapping[str, int]:
        """Return the number of events that the workflow has recorded, by subject."""
        self.key = key
        return self._noted

    def pause_turn(self, frame: Frame, key: str, noted: Mapping[str, int]) -> None:
        """Collect the number of events of a paused turn."""
        self.noted = noted


class _WorkerRequests(TransientRequests):
    """The requests of a turn in a worker: decided ones, and new ones for the workflow."""

    def __init__(self, calls: _WorkerCalls, known: TurnMessage | None) -> None:
        self._calls = calls
        self._decisions: Mapping[str, Json] = {} if known is None else known["decisions"]
        self._digests: Mapping[str, str] = {} if known is None else known["digests"]
        self.asked: list[Json] = []
        """Name, kind, body and plan of requests without a decision."""
        self.needs_budget = False
        """Whether a limit of the budget needs a decision."""

    async def consent(
        self, request: ApprovalRequest, new_process: Callable[[ApprovalRequest], ConsentProcess]
    ) -> Json:
        """Return the decision on a tool call.

        Raises:
            StateError: The decision fails the call.
            Suspension: The workflow has to request it.
        """
        name = request.key.removeprefix(self._calls.key)
        digest = request.content_digest
        if name in self._decisions and self._digests.get(name, digest) == digest:
            decision, error = self._decisions[name]
            if error is not None:
                raise read_error(error)
            return decision
        self.asked.append([name, request.kind, dict(request.body), dict(request.plan)])
        raise Suspension

    async def decide(
        self,
        frame: Frame,
        key: str,
        ask: Callable[[ApprovalRequest], Awaitable[Json]],
        new: Callable[[], ApprovalRequest],
    ) -> Json:
        """Raise Suspension: the workflow has to request a decision on its budget."""
        self.needs_budget = True
        raise Suspension

    def withdraw(self, within: str, now: float) -> None:
        """Drop the requests, because the turn has ended."""
        self.asked.clear()


class WorkerTurn:
    """What a worker knows of the turn of its call, and collects for the workflow.

    Args:
        known: What the workflow knows; None at the start of a turn.
    """

    def __init__(self, known: TurnMessage | None) -> None:
        self._calls = _WorkerCalls(known)
        self._requests = _WorkerRequests(self._calls, known)
        self.persistence = Persistence(
            False, TransientExecution(), self._calls, self._requests, TransientChildren()
        )
        """The persistence of the call."""

    @property
    def outcome(self) -> TurnOutcome | None:
        """What a suspended call waits for; None if that is no decision on a tool or a budget."""
        calls, requests = self._calls, self._requests
        if not (requests.asked or requests.needs_budget):
            return None
        noted = {**dict.fromkeys(calls.values, 0), **calls.noted}
        return TurnOutcome(
            requests=[] if requests.needs_budget else requests.asked,
            values=calls.values,
            noted=noted,
            budget=requests.needs_budget,
        )
