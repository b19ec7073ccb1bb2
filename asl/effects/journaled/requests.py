"""The approval requests of an execution in its journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.agent_turn import TOOL_CALL
from asl.effects.journaled.results import JournaledResults
from asl.effects.persistence import ConsentProcess
from asl.engine.frame import Frame
from asl.engine.journal_values import write_error
from asl.states.approval_request import ApprovalRequest

__all__ = ["FAILED_NOTICES", "JournaledRequests"]

FAILED_NOTICES = "!"
"""Suffix of a request's key under which failed notices are recorded."""


class JournaledRequests:
    """Records the requests of an execution in its journal (protocol `RequestPersistence`)."""

    def __init__(self, answers: JournaledResults) -> None:
        self.answers = answers
        self.journal, self.execution = answers.journal, answers.execution
        self.runtime = answers.runtime

    def record_notices(self, request: ApprovalRequest) -> None:
        """Record the notices that were sent, because events of the history depend on them."""
        if request.notices_sent in request.failed_notices:
            self.journal.put_answer(
                request.key + FAILED_NOTICES, list(request.failed_notices.items())
            )
        self.journal.put_request(request)

    def recorded_decision(self, request: ApprovalRequest) -> Json:
        """Return the decision recorded by another process and mark it as used; None without one."""
        decided = self.journal.decision(request)
        if decided is not None:
            self.journal.take_answer(request.id)
        return decided

    async def decide(
        self,
        frame: Frame,
        key: str,
        ask: Callable[[ApprovalRequest], Awaitable[Json]],
        new: Callable[[], ApprovalRequest],
    ) -> Json:
        """Return the decision on a request of the whole execution, requested once."""
        journal = self.journal
        answer, known = journal.answers.pop(key, None), journal.requests.pop(key, None)
        asked = known or new()
        if answer is not None:
            if journal.take_answer(asked.id):
                journal.put_answer(key, answer)
            return answer[2]
        if known is None:
            journal.put_request(asked)
            await journal.commit(self.answers.shares)
        try:
            decision = await ask(asked)
            journal.put_answer(key, [asked.kind, frame.now, decision, None])
            return decision
        finally:
            journal.put_request(asked)

    def is_replaced(self, known: ApprovalRequest, request: ApprovalRequest) -> bool:
        """Return whether a redrive has changed the request, which makes earlier answers invalid."""
        if not self.execution.redrives or known.content_digest == request.content_digest:
            return False
        self.journal.drop_request(known)
        return True

    async def awaits_consent(
        self, key: str, new_process: Callable[[ApprovalRequest], ConsentProcess]
    ) -> bool:
        """Return whether a turn was paused and has no decision since."""
        waiting: dict[str, list[ApprovalRequest]] = {}
        for name, asked in self.journal.requests.items():
            use = name.rpartition(".")[0]
            if name.startswith(key + TOOL_CALL) and self.journal.answers.get(use) is None:
                waiting.setdefault(use, []).append(asked)
        services = self.runtime.services
        handler = services is not None and services.approvals is not None
        if not waiting or handler:
            return False
        undecided = [
            [each for each in asked if not self._is_decided(each)] for asked in waiting.values()
        ]
        if not all(undecided):
            return False
        for asked in (each for group in undecided for each in group):
            if await self._is_over(new_process(asked)):
                return False
        self.runtime.pending += tuple((each.key, each) for group in undecided for each in group)
        return True

    def requests_of(self, key: str) -> Mapping[str, ApprovalRequest]:
        """Return the requests of the turn of a key, by the rest of their keys."""
        return {
            name.removeprefix(key): asked
            for name, asked in self.journal.requests.items()
            if name.startswith(key + TOOL_CALL)
        }

    def _is_decided(self, request: ApprovalRequest) -> bool:
        answers = self.journal.answers
        return request.key in answers or self.journal.decision(request) is not None

    async def _is_over(self, process: ConsentProcess) -> bool:
        """Apply the due notices; return whether the time for a decision is over."""
        await process.begin()
        return await process.catch_up(self.runtime.now()) is not None

    async def consent(
        self, request: ApprovalRequest, new_process: Callable[[ApprovalRequest], ConsentProcess]
    ) -> Json:
        """Request consent to a tool call, once; the request is durable before it is sent."""
        journal, key = self.journal, request.key
        known, answer = journal.requests.get(key), journal.answers.get(key)
        if known is not None and self.is_replaced(known, request):
            known = answer = None
        if known is None:
            journal.put_request(request)
            journal.on_fail_point("request.put")
            await journal.commit(self.answers.shares)
        else:
            request = known
            request.failed_notices = dict(journal.answers.get(key + FAILED_NOTICES, ()))
            answer = answer or journal.decision(request)
            if answer is not None:
                if journal.take_answer(request.id):
                    journal.put_answer(key, answer)
                request.notices_sent = 2**62  # no notification is needed any more
                return await new_process(request).recorded_decision(answer)
        before, consent = request.received, new_process(request)
        try:
            decision = await consent.decision()
        except StateError as error:
            journal.put_answer(key, [request.kind, consent.time, None, write_error(error)])
            raise
        else:
            journal.put_answer(key, [request.kind, consent.time, decision, None])
            return decision
        finally:
            journal.put_request(request, request.received is not before)

    def withdraw(self, within: str, now: float) -> None:
        """Close the requests whose keys begin with *within*, because nothing depends on them."""
        self.journal.cut_off(within, now)
