"""The host of executions that survive their process: each effect of its protocol, kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from asl.core.errors import StateError, lost
from asl.core.values import Json
from asl.engine.agent import Agent, Call, Messenger
from asl.engine.awaited import ACTIVITY, TOKEN, Awaited
from asl.engine.checkpoints import Checkpoint
from asl.engine.execution import UNSPENT, Spent
from asl.engine.journal import STARTED
from asl.engine.written import (
    read_spent,
    written_error,
    written_spending,
    written_spent,
)
from asl.hosts.agent_turn import DEADLINE, REQUESTS, TOLD, AgentTurn
from asl.hosts.callbacks import Polled
from asl.hosts.calling import Account
from asl.hosts.children import Begun
from asl.hosts.jobs import Ending, Job
from asl.hosts.kept import PATIENCE, KeptHost
from asl.hosts.kept_tasks import kept_agent
from asl.hosts.machine_log import MachineLog
from asl.hosts.services import Started
from asl.program import Program, Step
from asl.states.calls import Options, Request, Target
from asl.states.decisions import Asked
from asl.states.errors import Raised
from asl.states.forks import Fan, Joined
from asl.states.host import Child, Frame, Question, Saving

__all__ = ["DurableHost"]

UNHEARD = "!"
"""Ends the key of a request under which it is kept which notices could not be sent."""


def _counted(child: Child) -> str:
    """Return the key under which it is kept what of a child's spending is counted."""
    return f"!child.{child.name.rpartition('.')[2]}"


class DurableHost(KeptHost):
    """Performs the effects of one execution that is kept in a journal."""

    def begin(self, at: Any, step: Step, data: Json) -> Awaitable[Json] | None:
        """Begin a call that needs nothing but its parameters; all others are left to the work."""
        if not (self.fresh and self.in_event_loop and self.meter is None):
            return None
        log, journal, shares = self._log(at), self.journal, self.shares
        if shares:
            if not (log.owes or self._is_free(log)):
                return None
        elif self.unshared == PATIENCE:
            return None
        else:
            self.unshared += 1
            self._prepare(at, log)
            journal.flush()
        try:
            asked = super().begin(at, step, data)
        except StateError:  # which the work keeps, where it is one of the call
            return None
        if asked is None:
            return None
        log.calling, log.aside = at.next_effect(log.path), {}
        if shares:
            self._prepare(at, log)
            if log.owes:
                return self._behind(log, journal.commit(True), asked)
            journal.commit_soon()
        journal.reached("effect.ready")
        return asked

    async def _behind(self, log: MachineLog, commit: Awaitable[None], asked: Any) -> Json:
        """Have a call answered when all that led to it is durable."""
        log.committing = True
        try:
            await commit
        except BaseException:
            asked.close()  # it is a coroutine that nobody will await
            raise
        log.committing = False
        self.journal.reached("effect.ready")
        return await asked

    def answered(
        self, at: Any, target: Target, answer: Json, account: Account | None = None
    ) -> Json:
        """Return a copy of an answer, which is kept here if the call was begun here."""
        log = self._log(at)
        key, log.calling = log.calling, None
        if key is None:
            return super().answered(at, target, answer, account)
        self.journal.reached("effect.done")
        try:
            result = super().answered(at, target, answer, account)
        except StateError as error:
            self._put(at, log, key, "call", None, error)
            raise
        self._put(at, log, key, "call", result, None)
        return result

    def blamed(
        self, at: Any, target: Target, error: BaseException, account: Account | None = None
    ) -> StateError:
        """Return the error that an exception is, which is kept here if the call was begun here."""
        log = self._log(at)
        key, log.calling = log.calling, None
        if log.committing:  # nobody was called yet
            raise error
        blamed = super().blamed(at, target, error, account)
        if key is not None:
            self._put(at, log, key, "call", None, blamed)
        return blamed

    def invoke(
        self,
        at: Frame,
        target: Target,
        payload: Json,
        options: Options | None = None,
        agent: Agent | None = None,
        account: Account | None = None,
    ) -> Coroutine[Any, Any, Json]:
        """Call an agent, once and for all."""
        given = (target, payload, options, agent, account)
        metered = self.meter is not None and agent is None and target.kind == "agent"
        return self._once(at, "call", super().invoke, *given, metered=metered)

    async def _in_time(self, agent: Agent, payload: Json, call: Call, options: Options) -> Json:
        """Call with the limits of the state; what an execution was started for began then.

        So did what is left of an attempt that has called before, maybe in an earlier process. A
        redrive begins anew.
        """
        started = self.journal.answers.get(call.at.key + STARTED)
        if started is not None and options.timeout is not None:
            options.began = max(started[1], self.execution.redriven or 0.0)
            call.deadline = options.began + options.timeout
        deadline = self.recorded(call.at.key + DEADLINE)
        if deadline is not None and options.timeout is not None:
            options.began, call.deadline = deadline - options.timeout, deadline
            if self.now() >= deadline:  # the agent is not called any more
                raise lost(Raised("States.Timeout", options.cause("answer", options.timeout)))
        if options.again:
            self._keep_beginning(call.at, call, options)
        return await super()._in_time(agent, payload, call, options)

    def _keep_beginning(self, at: Any, call: Call, options: Options) -> None:
        """Keep when an attempt began, or find it."""
        log = self._log(at)
        if options.began is None:
            options.began = self.now()
            if log.attempt is not None and log.attempt[:2] == (at.visit, at.retries):
                options.began = log.attempt[2]
                if options.timeout is not None:
                    call.deadline = options.began + options.timeout
        assert log.aside is not None
        log.aside["began"] = options.began

    async def tick(self, at: Frame) -> None:
        """Keep where a machine stands that computes for long: from here on it is later."""
        await super().tick(at)
        if at.step.work is None:
            log = self._log(at)
            log.stretch, log.began = log.records, True
            self._put_position(at, log)
            await self.journal.commit(self.shares)

    async def resolve(self, at: Frame, targets: Sequence[Target]) -> None:
        """Find every agent, once: who was there at first is called later, or fails then."""
        await self._once(at, "names", super().resolve, targets)

    async def sleep_until(self, at: Frame, when: float) -> None:
        """Return when the clock has reached *when*; what was awaited before is not again."""
        await self._once(at, "sleep", super().sleep_until, when)

    async def save(self, at: Any, saving: Saving) -> Json:
        """Save the execution, once; the checkpoint is durable with what follows it."""
        made: list[Checkpoint] = []

        async def perform(at: Any) -> Json:
            made.append(self.saved(at, saving))
            return made[0].record

        record = await self._once(at, "checkpoint", perform)
        return made[0].data if made else saving.leave(record)

    def saved(self, at: Any, saving: Saving) -> Checkpoint:
        """Return a new checkpoint, which is put into the journal."""
        checkpoint = super().saved(at, saving)
        self.journal.put_checkpoint(checkpoint)
        return checkpoint

    # Forks, and executions of their own

    def cut_off(self, at: Frame) -> None:
        """Ask nobody any more for the children of a fork that has failed."""
        super().cut_off(at)
        self.journal.cut_off(f"{at.key}[", self.now())

    async def fork(self, at: Frame, fan: Fan) -> Joined:
        """Run the children of *fan*, each from where it stood; what follows begins at the join.

        Those that may run together do, also where nobody waits: so they share their commits.
        """
        if fan.together:
            await self.event_loop()
        log, run, before = self._log(at), super().fork, self.kept
        joined: Joined | None = None

        async def join(at: Frame) -> None:
            nonlocal joined
            log.aside = None  # what the fork has to tell, it tells again
            log.forks = f"{at.key}[", fan.limit > 0
            joined = await run(at, fan)

        await self._once(at, "fork", join)
        if joined is None:  # it was over before: all children have what they need to end again
            now = at.now
            log.forks = f"{at.key}[", True
            joined = await run(at, fan)
            at.now = now
        log.weight += self.kept - before
        return joined

    async def start(self, at: Frame, child: Child) -> Json:
        """Run an execution of another workflow, which is kept beside this one."""
        return await self._once(at, "workflow", super().start, child)

    def begin_child(self, at: Frame, child: Child, find: Callable[[], Program]) -> Begun:
        """Begin it, or find it where an earlier process has begun it."""
        keeper = self.serving().keeper
        assert keeper is not None  # whoever keeps an execution keeps what it starts
        return keeper.child(self.journal, at.key, child, find)

    def begin_started(self, at: Frame, program: Program, child: Started) -> Begun | None:
        """Begin it once, or find it; None where another execution has its name."""
        keeper = self.serving().keeper
        assert keeper is not None
        return keeper.started(self.journal, at.key, program, child)

    def counted(self, child: Child) -> Spent:
        """Return what of a child's spending was counted before it went on."""
        written = self.journal.answers.get(_counted(child))
        return UNSPENT if written is None else read_spent(written)

    def count(self, child: Child, spent: Spent) -> None:
        """Keep what of a child's spending is counted."""
        self.journal.put_answer(_counted(child), written_spent(spent))

    # People

    async def ask(self, at: Frame, question: Question) -> Json:
        """Ask people, once; the request is durable before anybody sees it."""
        asked = self.request(at, question)
        journal = self.journal
        answer = journal.answers.pop(asked.key, None)
        known = journal.requests.pop(asked.key, None)
        if known is not None and self._is_replaced(known, asked):
            answer = known = None
        if known is not None:
            known.unheard = dict(journal.answers.pop(asked.key + UNHEARD, ()))
        if answer is None and known is not None:
            answer = journal.decision(known)  # it may have been given since the journal was read
        if answer is not None:
            return await self._decided(at, known or asked, answer)
        log = self._log(at)
        if known is None:
            self.insist_on_time()
            self._prepare(at, log)
            journal.put_request(asked)
            journal.reached("request.put")
            await journal.commit(self.shares)
        else:  # no position is taken: somebody else may answer just now
            asked = known
        before = asked.received
        try:
            decision = await self.inquire(at, asked)
        except StateError as error:
            self._put(at, log, asked.key, asked.kind, None, error)
            raise
        else:
            self._put(at, log, asked.key, asked.kind, decision, None)
            return decision
        finally:
            journal.put_request(asked, asked.received is not before)

    def _is_replaced(self, known: Asked, asked: Asked) -> bool:
        """Whether a redrive has changed what is asked; then no answer to the former counts."""
        if not self.execution.redrives or known.content_digest == asked.content_digest:
            return False
        self.journal.drop_request(known)
        return True

    def told(self, asked: Asked) -> None:
        """Keep which notices were sent: what the history says of them depends on it."""
        if asked.told in asked.unheard:
            self.journal.put_answer(asked.key + UNHEARD, list(asked.unheard.items()))
        self.journal.put_request(asked)

    def recorded_decision(self, asked: Asked) -> Json:
        """Take up the decision on a request that another process has recorded, None without one."""
        decided = self.journal.decision(asked)
        if decided is not None:
            self.journal.take_up(asked.id)
        return decided

    async def _decided(self, at: Any, asked: Asked, answer: Json) -> Json:
        """Give a decision that is there, and tell the history again what led to it."""
        from asl.hosts.asking import Asking

        asking = Asking(self, at, asked)
        asked.told = 2**62  # nobody needs to be told any more
        await asking.begin()
        over = await asking.catch_up(answer[1])
        if over is not None:
            return await asking.ended(over)
        if self.journal.take_up(asked.id):  # whoever has given it did not know what was spent
            at.now, decision = answer[1:3]
            at.seen_usage(None)
            self._put(at, self._log(at), asked.key, asked.kind, decision, None)
        else:
            decision = self._given(asked.kind, asked.key, answer, at)
        asking.decided(decision, at.now)
        return decision

    async def decide(self, at: Frame, key: str, question: Question) -> Json:
        """Ask people about the execution as a whole, once."""
        journal = self.journal
        answer, known = journal.answers.pop(key, None), journal.requests.pop(key, None)
        asked = known or Asked.make(at.execution_id, key, *question, self.now(), self._redrives(at))
        if answer is not None:
            if journal.take_up(asked.id):
                journal.put_answer(key, answer)
            return answer[2]
        if known is None:
            journal.put_request(asked)
            await journal.commit(self.shares)
        try:
            decision = await self.inquire(at, asked)
            journal.put_answer(key, [asked.kind, at.now, decision, None])
            return decision
        finally:
            journal.put_request(asked)

    # The turns of agents that need consent to their tool calls

    def begin_turn(self, turn: AgentTurn) -> Mapping[str, int]:
        """Return how many events of a turn the history has, by what they are about."""
        told = self.recorded(turn.key + TOLD)
        if told is None:
            return {}
        log = self._log(turn.at)
        log.records += told[0]
        assert log.aside is not None
        log.aside["advanced"] = told[0]
        noted: Mapping[str, int] = told[1]
        return noted

    def pause_turn(self, turn: AgentTurn, noted: Mapping[str, int]) -> None:
        """Write the events of a turn that is paused: its agent may do something else next time."""
        log, key = self._log(turn.at), turn.key + TOLD
        told = self.recorded(key)
        count = len(log.noted) + (0 if told is None else told[0])
        log.write_notes(self.journal)
        self.journal.put_answer(key, [count, dict(noted)])

    async def awaits_consent(self, turn: AgentTurn) -> bool:
        """Whether a turn was paused, and people have not decided since."""
        waiting: dict[str, list[Asked]] = {}
        for key, asked in self.journal.requests.items():
            use = key.rpartition(".")[0]
            if key.startswith(turn.key + REQUESTS) and self.recorded(use) is None:
                waiting.setdefault(use, []).append(asked)
        handler = self.services is not None and self.services.approvals is not None
        if not waiting or handler:
            return False
        undecided = [
            [each for each in asked if not self._is_decided(each)] for asked in waiting.values()
        ]
        if not all(undecided):
            return False
        for asked in (each for group in undecided for each in group):
            if await self._is_over(turn, asked):
                return False
        self.pending += tuple((each.key, each) for group in undecided for each in group)
        return True

    def _is_decided(self, asked: Asked) -> bool:
        answers = self.journal.answers
        return asked.key in answers or self.journal.decision(asked) is not None

    async def _is_over(self, turn: AgentTurn, asked: Asked) -> bool:
        """Whether the time for a decision is over; what is due until then happens."""
        from asl.hosts.asking import ToolAsking

        asking = ToolAsking(self, turn, asked)
        await asking.begin()
        return await asking.catch_up(self.now()) is not None

    async def consent(self, turn: AgentTurn, key: str, question: Question) -> Json:
        """Ask people for consent to a tool call, once; the request is durable beforehand."""
        from asl.hosts.asking import ToolAsking

        journal, asked = self.journal, self.request_by(turn.at, key, question)
        known, answer = journal.requests.get(key), journal.answers.get(key)
        if known is not None and self._is_replaced(known, asked):
            known = answer = None
        if known is None:
            journal.put_request(asked)
            journal.reached("request.put")
            await journal.commit(self.shares)
        else:
            asked = known
            asked.unheard = dict(journal.answers.get(key + UNHEARD, ()))
            answer = answer or journal.decision(asked)
            if answer is not None:
                if journal.take_up(asked.id):
                    journal.put_answer(key, answer)
                asked.told = 2**62  # no notification is needed any more
                return await ToolAsking(self, turn, asked).repeated(answer)
        before, asking = asked.received, ToolAsking(self, turn, asked)
        try:
            decision = await asking.decision()
        except StateError as error:
            journal.put_answer(key, [asked.kind, asking.time, None, written_error(error)])
            raise
        else:
            journal.put_answer(key, [asked.kind, asking.time, decision, None])
            return decision
        finally:
            journal.put_request(asked, asked.received is not before)

    def withdraw(self, turn: AgentTurn) -> None:
        """Close the requests of a turn that has ended: nothing depends on them any more."""
        self.journal.cut_off(turn.key + REQUESTS, self.now())
        super().withdraw(turn)

    def recorded(self, key: str) -> Json:
        """Return what was recorded within the effect under way, maybe by an earlier process."""
        return self.journal.answers.get(key)

    async def record(self, at: Frame, key: str, value: Json) -> None:
        """Record something within the effect under way, with what was spent by then."""
        log, journal = self._log(at), self.journal
        size = journal.put_answer(key, value)
        log.weight += size
        self.kept += size
        journal.put_spending(written_spending(self.execution))
        await journal.commit(self.shares)
        journal.reached("answer.put")

    # Task tokens

    async def receive(self, at: Frame, request: Request) -> Json:
        """Hand a request over, once; the answer to a task token may come while nobody runs."""
        return await self._once(at, "call", self._received, request)

    async def _received(self, at: Frame, request: Request) -> Json:
        task = self.journal.tasks.get(at.key)
        agent = self._answers(request.target, task)
        if isinstance(agent, Messenger | Polled):
            return await self._awaited(at, request, agent)
        return await super().receive(at, request)

    def _answers(self, target: Target, task: Awaited | None) -> Agent:
        """Return who answers: elsewhere the workers of an activity that nobody is bound to.

        The same holds for a task that was handed over before, by whomever.
        """
        try:
            return self.find(target)
        except StateError:
            if target.is_activity or (task is not None and task.taken is not None):
                return Polled(target.name)
            raise

    async def _awaited(self, at: Frame, request: Request, agent: Messenger | Polled) -> Json:
        options = request.options
        kind = TOKEN if isinstance(agent, Messenger) else ACTIVITY
        task = await self._opened(at, self._task(at, request, kind, self.now()))
        if options is not None:
            options.began = task.created
        kept = kept_agent(self, task, options, agent)
        try:
            with self._settling(task):
                return await super().invoke(at, request.target, request.payload, options, kept)
        finally:
            at.now = self.now() if kept.ended is None else kept.ended

    async def await_job(self, call: Call, job: Job) -> Ending:
        """Return the result of a job, or the answer to the token of its state, once and for all."""
        from asl.hosts.jobs import KeptJob

        request = Request(call.target, job.payload, job.options)
        task = self._task(call.at, request, TOKEN, job.began)
        task.beat = None  # a job need not give signs of life, but may
        task = await self._opened(call.at, task)
        with self._settling(task):
            return await KeptJob(self, task, job).ending(call)

    def detach(self, begun: Begun) -> None:
        """Let a job go on by itself: the state that has started it has ended without it."""
        keeper = self.serving().keeper
        assert keeper is not None
        keeper.detach(self.journal, begun.journal)

    @staticmethod
    def _task(at: Frame, request: Request, kind: str, created: float) -> Awaited:
        target, options = request.target, request.options
        limits = (None, None) if options is None else (options.timeout, options.heartbeat)
        return Awaited(
            at.token, at.key, kind, target.name, target.state, request.payload, created, *limits
        )

    async def _opened(self, at: Frame, task: Awaited) -> Awaited:
        """Return a task of the journal: the one that is there, or the new one, made durable."""
        known = self.journal.tasks.pop(at.key, None)
        if known is not None:
            return known
        self.journal.put_task(task)
        self.journal.reached("request.put")
        await self.journal.commit(self.shares)
        return task

    @contextmanager
    def _settling(self, task: Awaited) -> Iterator[None]:
        """Keep what became of a task when the block ends."""
        try:
            yield
        except StateError:
            task.status = "closed" if task.status == "open" else task.status
            raise
        finally:
            if task.outcome is not None:
                self.journal.take_up(task.token)
            elif task.status != "open":
                self.journal.put_outcome(task)
