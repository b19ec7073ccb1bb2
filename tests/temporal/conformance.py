"""The conformance cases as workflows of Temporal, each agent call an activity.

`python -m tests.temporal.conformance [PATTERN]` runs the cases whose ids contain the pattern. The
server skips time; a call runs on a virtual clock of its own, then the server's time follows. The
history of each case is replayed afterwards.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from temporalio import workflow
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDReusePolicy
from temporalio.plugin import SimplePlugin
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

import asl
from asl.agents.scripted import ScriptedAgent
from asl.bindings import ResolvedBindings
from asl.conformance import Case, CaseResult, judge
from asl.conformance.case import CHECK_FACTS, NAME
from asl.conformance.local import _Broken, _called, _facts, _refused, _taking, _written
from asl.conformance.scripted_tokens import ScriptedTaskTokens
from asl.core.diagnostics import InvalidDocument
from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json, is_number
from asl.dialects import load
from asl.dialects.registry import BUILT_IN
from asl.effects.budget_gate import ProcessBudgets
from asl.effects.clock import EPOCH_2024, VirtualClock
from asl.effects.driver import Driver
from asl.effects.services import Services
from asl.engine.agent import Find
from asl.engine.memory import ProcessMemory
from asl.engine.result import Result
from asl.executions.execution_start import ExecutionStart
from asl.executions.redrive import prepare_rewind
from asl.executions.store import Store
from asl.expr.times import parse_duration, parse_epoch
from asl.temporal import activities, claims, remote, workflow_store
from asl.temporal import workflow as workflows
from asl.temporal.activities import AgentActivities
from asl.temporal.budgets.activities import BudgetActivities
from asl.temporal.budgets.client import BudgetClient
from asl.temporal.payloads import (
    EXECUTION,
    CallMessage,
    StartMessage,
    TargetMessage,
    pack,
    start_message,
)
from asl.temporal.remote import CallGate
from asl.temporal.workflow import ExecutionWorkflow
from asl.temporal.workflow_store import WorkflowClock, execution_number
from tests.bundled import SHARED, bundled
from tests.temporal.servers import find_binary

TOLERANCE: Final = 0.75
"""Seconds by which times may differ: the server works in real time between its timers."""
GRID: Final = 0.05
"""Seconds to which the clock of a case is rounded, without the real time between its timers."""
PAUSES: Final = ("ExecutionPaused", "ExecutionResumed")
"""Events of a workflow that waits for time alone."""
EXCEPTIONS: Final[Mapping[str, str]] = {
    r"activities/function-wins|nested/(mock|handler-wins)|task-tokens/(mock|events-mock)": (
        "the workflow itself performs activities, tokens and executions: no binding replaces them"
    ),
    r"task-tokens/.*-by-a-state": "the execution that answers would be a workflow of its own",
    r"debate/(agent|arbiter)-not-found": "a call waits for a worker with the binding",
    r"approval/(in-map-all|nested-maps)|workflow/paused-in-map": "requests have another order",
    r"distributed/progress-again|progress/(map-failed|parallel-milestones)|streaming/map$|"
    r"debate/in-a-branch-events": ("events of calls at the same time have another order"),
    r"map/failure-lowest": "of failures at the same time the first to arrive counts",
    r"wait/seconds-path-longest|task-tokens/nobody": "the server of the tests cannot wait so long",
    r"retry/(many-attempts|huge-backoff)|execution/timeout-unretried|debate/simultaneous-fails|"
    r"distributed-map/siblings-are-stopped|checkpoint/resume-timed-out": (
        "the server of the tests stops its time after many or cancelled timers"
    ),
}
"""Patterns of the ids of cases that end otherwise on Temporal, with the reason."""
LIMIT: Final = 8.0
"""Real seconds of a case."""
CLOSING: Final = 2.0
"""Real seconds in which a worker stops unless a call hangs."""
CACHE: Final = Path(__file__).parents[2] / ".pytest_cache/d/cases"
"""The parsed cases of earlier test runs."""
QUEUE: Final = "cases"
GIVEN: Final = ("workflows", "prices", "pools")
"""Bindings that the start of an execution gives to its workflow."""


@dataclass
class Current:
    """The case that runs."""

    case: Case
    origin: float
    """Start of the case's clock in epoch seconds."""
    again: Mapping[str, Json] = field(default_factory=dict)
    """How it resumes from a checkpoint; empty for its first run."""
    flows: list[CaseWorkflow] = field(default_factory=list)


CURRENT: list[Current] = []


class CaseClock(WorkflowClock):
    """The time of the workflow, as if it had started at the time of the case."""

    def __init__(self) -> None:
        super().__init__()
        self._start = workflow.info().start_time.timestamp()
        self.latest = CURRENT[-1].origin

    def now(self) -> float:
        """Return the time of the case."""
        passed = round(max(0.0, super().now() - self._start) // GRID * GRID, 3)
        self.latest = CURRENT[-1].origin + passed
        return self.latest


@workflow.defn(name=EXECUTION, sandboxed=False)
class CaseWorkflow(ExecutionWorkflow):
    """A workflow that ends where the case would pause."""

    answers: ScriptedTaskTokens | None = None
    result: Result | None = None

    @workflow.init
    def __init__(self, start: StartMessage) -> None:
        CURRENT[-1].flows.append(self)
        super().__init__(start)
        self._starter = None  # the case observes all executions
        scripts = CURRENT[-1].again.get("answers", CURRENT[-1].case.answers)
        if scripts:
            self.answers = ScriptedTaskTokens(scripts)

    @workflow.run
    async def run(self, start: StartMessage) -> Json:
        """Run the case."""
        return await super().run(start)

    async def _work(self) -> Result:
        while True:
            self._claim = self._new_claim()
            self.result = await self.store.executor.resume(
                self.name, self._bindings, True, None, self._claim
            )
            due = self.result.wake
            if due is None and not self.result.pending:
                due = self.store.seconds_until_due(self.name, self.result)
            if self.result.status != "PAUSED" or due is None:
                return self.result
            await self._wait(self._changes, self.result)


def case_agents(services: Services, gate: CallGate) -> Find:
    """Return the agents of the case, and add the people who answer."""
    flow = workflow.instance()
    if flow.answers is not None:
        services.suspension = None
        services.tokens = flow.answers
        services.approvals = _Decider(flow.answers)
    return _agents(services, gate)


_agents = remote.remote_agents


def _number(name: str, started: datetime) -> int:
    """Return the number of an execution by the time of the case: the server's may be far ahead."""
    return execution_number(name, datetime.fromtimestamp(CURRENT[-1].origin, UTC))


async def _find_no_token(*_: object) -> None:
    """Find no other execution: the server of the tests has no lists."""
    raise StateError("TaskDoesNotExist", "no other execution runs")


class _Decider(remote.Agent):
    """Answers requests by script."""

    needs_loop = takes_call = True

    def __init__(self, answers: ScriptedTaskTokens) -> None:
        self._answers = answers

    async def answer(self, payload: Json, call: Any) -> Json:
        return await self._answers.decide(payload, call)


class Calls(AgentActivities):
    """Activities on a virtual clock; the server's time follows."""

    def __init__(self, env: WorkflowEnvironment) -> None:
        super().__init__({})
        self._env = env
        self._sleeps: dict[asyncio.Task[None], float] = {}
        """Sleeps of the server for calls, with their seconds."""
        self.sent: dict[str, Json] = {}
        self.buckets: dict[str, dict[str, str]] = {}

    def begin(self, case: Case) -> None:
        """Bind the agents of a case, with memories and storages of its own."""
        request = case.request()
        self.memory = dict.fromkeys(("memory", *request.get("memory", ())), ProcessMemory())
        self.storages = {"file": {}, "elsewhere": {}, "broken": _Broken()}
        self.sent = {}
        self._budgets = ProcessBudgets()
        self.buckets = {name: dict(each) for name, each in request.get("buckets", {}).items()}
        self.bind(request)

    def bind(self, request: Mapping[str, Json]) -> None:
        """Bind the agents of a case, or of its resumption."""
        self._bindings = {
            "agents": _scripted(request.get("agents", {})),
            "resources": _scripted(request.get("resources", {})),
            "mocks": _scripted(request.get("mocks", {})),
            "tools": _scripted(request.get("tools", {})),
            "prices": request.get("prices"),
            "memory": self.memory,
            "buckets": self.buckets,
            "checkpoints": self.storages,
            "sinks": {"*": _taking(self.sent)},
        }

    def check_binding(self, message: CallMessage, bound: ResolvedBindings) -> None:
        """Let the call fail, as it does without a store."""

    def has_binding(self, message: TargetMessage) -> bool:
        """Let the call fail, as above."""
        return True

    async def perform(self, message: CallMessage, bound: ResolvedBindings) -> Result:
        """Run the call, then let the server's time pass."""
        clock = VirtualClock(CURRENT[-1].flows[0].store.clock.latest)
        clock.budgets = self._budgets  # type: ignore[attr-defined]  # as calls of one clock

        def run() -> Result:
            execution = self.execution(message, bound, clock, in_event_loop=False)
            return Driver(clock).drive(execution)

        result = await asyncio.to_thread(run)
        if clock.elapsed:  # a request that is cancelled would stop the server's time
            sleep = asyncio.create_task(self._env.sleep(clock.elapsed))
            self._sleeps[sleep] = clock.elapsed
            await asyncio.shield(sleep)
        return result

    async def end(self) -> None:
        """Return when no call of the case goes on."""
        going_on = [each for task, each in self._sleeps.items() if not task.done()]
        if going_on:
            await self._env.sleep(max(going_on))
            await asyncio.wait(self._sleeps)
        self._sleeps.clear()


def _scripted(scripts: Mapping[str, Json]) -> dict[str, Any]:
    """Return the agents of scripts; a sequence goes on from call to call."""
    return {
        name: script if "agent" in script else ScriptedAgent(script)
        for name, script in scripts.items()
    }


class CaseBudgets(BudgetActivities):
    """Shared budgets of a case, in one worker for all cases."""

    def __init__(self) -> None:
        super().__init__({})

    @property
    def client(self) -> BudgetClient:
        """The budgets of the case that runs."""
        client = super().client
        client._prefix = f"{CURRENT[-1].case.id} "
        return client


@asynccontextmanager
async def server() -> AsyncIterator[WorkflowEnvironment]:
    """Start the server that skips time, with the clock and the people of the cases."""
    changes = {
        (remote, "HEARTBEAT"): remote.LONGEST,  # the server's time jumps
        (workflows, "WorkflowClock"): CaseClock,
        (claims, "remote_agents"): case_agents,
        (workflow_store, "execution_number"): _number,
        (activities, "send_token_answer"): _find_no_token,
    }
    before = {(module, name): getattr(module, name) for module, name in changes}
    for (module, name), value in changes.items():
        setattr(module, name, value)
    binary = find_binary("temporal-test-server")
    try:
        env = await WorkflowEnvironment.start_time_skipping(test_server_existing_path=binary)
        async with env:
            yield env
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)


async def run_cases(
    cases: Sequence[Case], on_result: Callable[[CaseResult], object] = lambda result: None
) -> list[CaseResult]:
    """Run cases one after the other, because the time of a server is one.

    Sometimes the server stops its time or fails after a case; the next one then runs on another.
    """
    found: list[CaseResult] = []
    again = True
    while len(found) < len(cases):
        async with server() as env, _working(env) as calls:
            for case in cases[len(found) :]:
                began = perf_counter()
                try:
                    seen = await asyncio.wait_for(_observed(env, calls, case), LIMIT)
                except (TimeoutError, RPCError) as error:
                    seen = {"crash": f"no end within {LIMIT:g} seconds: {error}"}
                    if again:
                        again = False
                        break
                except Exception as error:  # whatever a case does, the others run
                    last = traceback.extract_tb(error.__traceback__)[-1]
                    place = f"{last.filename}:{last.lineno}"
                    seen = {"crash": f"{type(error).__name__}: {error} ({place})"}
                expect = {
                    name: value for name, value in case.expect.items() if name not in CHECK_FACTS
                }
                if expect.get("status") != "PAUSED" and "events" in seen:
                    seen["events"] = [each for each in seen["events"] if not _is_pause(each)]
                ran = replace(case, expect=expect)
                result = judge(ran, _close(expect, seen), perf_counter() - began)
                found.append(result)
                on_result(result)
                again = True
                if "crash" in seen:
                    break
    return found


def _is_pause(event: Json) -> bool:
    """Return whether an event belongs to a pause, not to a resumption from a checkpoint."""
    return event["type"] in PAUSES and "checkpoint" not in event["details"]


@asynccontextmanager
async def _working(env: WorkflowEnvironment) -> AsyncIterator[Calls]:
    """Run a worker."""
    calls, budgets = Calls(env), CaseBudgets()
    worker = Worker(
        env.client,
        task_queue=QUEUE,
        workflows=[CaseWorkflow],
        activities=[*calls.all, *budgets.all],
        workflow_runner=UnsandboxedWorkflowRunner(),
        debug_mode=True,
        plugins=[SimplePlugin("budgets", run_context=budgets.serving)],
    )
    running = asyncio.create_task(worker.run())
    try:
        yield calls
    finally:
        stopping = asyncio.create_task(worker.shutdown())
        await asyncio.wait([stopping], timeout=CLOSING)
        running.cancel()


async def _observed(env: WorkflowEnvironment, calls: Calls, case: Case) -> dict[str, Json]:
    """Run a case, replay its history, and return its facts."""
    try:
        return await _executed(env, calls, case)
    except InvalidDocument as refusal:
        return _refused(refusal.report)


async def _executed(env: WorkflowEnvironment, calls: Calls, case: Case) -> dict[str, Json]:
    request = case.request()
    wanted = set(request["observe"])
    what = request.get("document")
    document = load(
        request["document_text"].encode() if what is None else what,
        name=_called(what, request.get("workflows", {})),
        dialect=request["dialect"],
        reading=request.get("reading"),
        files=request.get("files", {}),
        parameters=request.get("parameters"),
    )
    program = asl.compile(document, profile=request["profile"])
    origin = parse_epoch(request["clock"]) if "clock" in request else EPOCH_2024
    calls.begin(case)
    new = ExecutionStart(None, program, request["input"], requestor=request.get("requestor"))
    message = start_message(
        new,
        bindings={name: request[name] for name in GIVEN if name in request},
    )
    name = request.get("name", NAME)
    flow = await _run(env, calls, Current(case, origin), name, message)
    refusal = None
    for again in request.get("resume", ()):
        if flow.result is None:
            break
        origin = flow.store.clock.latest + parse_duration(again.get("after", 0))
        try:
            message = _restarted(flow, again, origin, calls.storages)
        except asl.CheckpointRefused as refused:
            refusal = refused.error
            break
        calls.bind({**request, **again})
        flow = await _run(env, calls, Current(case, origin, again), name, message)
    if flow.result is None:
        return {"crash": "the workflow was refused"}
    facts = _facts(flow.result, refusal, wanted)
    if "sent" in wanted:
        facts["sent"] = calls.sent
    if "objects" in wanted:
        facts["objects"] = list(_written(calls.buckets, request.get("buckets", {})))
    return facts


async def _run(
    env: WorkflowEnvironment, calls: Calls, current: Current, name: str, message: StartMessage
) -> CaseWorkflow:
    """Run a workflow to its end, replay its history, and return it."""
    CURRENT[:] = [current]
    handle = await env.client.start_workflow(
        EXECUTION,
        message,
        id=name,
        task_queue=QUEUE,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    )
    with suppress(WorkflowFailureError):  # its failure is data
        await handle.result()
    await calls.end()
    flow = current.flows[0]
    if flow.result is not None:
        await _replay(handle)
    return flow


def _restarted(
    flow: CaseWorkflow, again: Mapping[str, Json], now: float, storages: Mapping[str, Any]
) -> StartMessage:
    """Return the message that continues an ended execution from a checkpoint."""
    with Store("memory:", clock=VirtualClock(now), checkpoints=storages) as store:
        name = store.import_execution(flow.content())
        given = store._given({})
        other = again.get("document")
        program = None if other is None else asl.compile(other)
        restart = prepare_rewind(store.reader, again["from"], program, again.get("force"), given)
        store._executor.restart(name, restart)
        (content,) = store.export([name])
    return StartMessage(content=pack(content))


async def _replay(handle: WorkflowHandle[Any, Any]) -> None:
    replayer = Replayer(
        workflows=[CaseWorkflow],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    await replayer.replay_workflow(await handle.fetch_history())


def _close(expected: Json, seen: Json) -> Json:
    """Return what was seen with the expected times where they are close."""
    if type(expected) is dict and expected.keys() == {"$partial"}:
        return _close(expected["$partial"], seen)
    if type(expected) is dict and type(seen) is dict:
        return {key: _close(expected.get(key), value) for key, value in seen.items()}
    if type(expected) is list and type(seen) is list:
        others = [*expected, *([None] * len(seen))]
        return [_close(other, value) for other, value in zip(others, seen, strict=False)]
    return expected if _is_close(expected, seen) else seen


def _is_close(expected: Json, seen: Json) -> bool:
    if is_number(expected) and is_number(seen):
        return 0 < abs(expected - seen) < TOLERANCE and not float(seen).is_integer()
    if type(expected) is str and type(seen) is str:
        try:
            times = [parse_epoch(each) for each in (expected, seen)]
        except ExpressionFault:
            return False
        return abs(times[0] - times[1]) < TOLERANCE
    return False


def is_exception(case: Case) -> bool:
    """Return whether a case ends otherwise on Temporal."""
    return any(re.match(pattern, case.id) for pattern in EXCEPTIONS)


def executable(pattern: str = "") -> list[Case]:
    """Return the cases that can run on Temporal, and whose file or id has a pattern."""
    return [
        case
        for case in bundled()
        if re.search(pattern, f"{case.file} {case.id}")
        and not CHECK_FACTS.issuperset(case.observe)
        and case.dialect in BUILT_IN
    ]


def main(pattern: str = "") -> int:
    """Run cases and print the failures that are no exceptions as they come."""
    logging.disable(logging.CRITICAL)  # failed activities
    if CACHE.exists():
        os.environ.setdefault(SHARED, str(CACHE))

    seen = list[CaseResult]()

    def show(result: CaseResult) -> None:
        seen.append(result)
        if len(seen) % 100 == 0:
            print(f"{len(seen)} cases, {perf_counter() - began:.0f} s", flush=True)
        if result.outcome == "failed" and not is_exception(result.case):
            place = result.case.file.rpartition("/")[2]
            print(result.case.id, place, *result.reasons[:2], sep="\n    ", flush=True)

    began = perf_counter()
    asyncio.run(run_cases(executable(pattern), show))
    failed = [each.case for each in seen if each.outcome == "failed"]
    others = [each for each in failed if not is_exception(each)]
    right = f"{len(seen) - len(failed)} of {len(seen)} right"
    print(f"{right}, {len(others)} no exceptions, {perf_counter() - began:.0f} s")
    return bool(others)


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # without waiting for calls that hang
