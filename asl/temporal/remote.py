"""Agents, resources and the memory as activities."""

from __future__ import annotations

import json
from asyncio import CancelledError, Semaphore
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Unpack, cast

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    TimeoutError,
    TimeoutType,
    is_cancelled_exception,
)

from asl.core.errors import AslError, StateError, mark_usage_unknown
from asl.core.values import Json, compact
from asl.effects.agent_caller import AgentCaller
from asl.effects.aws_services import aws_service_agent
from asl.effects.memory_service import memory_settings
from asl.effects.services import Services
from asl.effects.task_tokens import read_output
from asl.engine.agent import Agent, Call, CallbackHandler, Find
from asl.engine.frame import Frame
from asl.states.calls import Target
from asl.states.errors import RaisedError, Suspension
from asl.states.map_data import Bucket, DeferredBucket
from asl.temporal.calls import CallOutcome, apply_outcome, write_call
from asl.temporal.payloads import (
    BINDING,
    BOUND,
    CALL,
    CHECKPOINT,
    FOREIGN_TOKEN,
    ITEMS,
    MACHINE,
    MEMORY,
    MISSING,
    NOTIFY,
    OBJECT,
    SEND,
    ForeignTokenMessage,
    MemoryMessage,
    NoticeMessage,
    TargetMessage,
    TokenMessage,
    TurnMessage,
    TurnOutcome,
    pack_call,
)
from asl.temporal.sizes import MAX_SIZE, check_length
from asl.temporal.turns import RemoteTurn

__all__ = [
    "CallGate",
    "RemoteActivities",
    "RemoteAgent",
    "RemoteBuckets",
    "RemoteNotifier",
    "RemoteRegistry",
    "RemoteService",
    "remote_agents",
    "remote_services",
    "send_remotely",
]

ATTEMPTS: Final = 3
"""Number of workers that a call may lose until it fails."""
HEARTBEAT: Final = timedelta(seconds=10)
"""Time without a sign of a worker after which it counts as lost."""
LONGEST: Final = timedelta(days=365)
"""Limit of a call without `TimeoutSeconds`."""
GRACE: Final = 10.0
"""Seconds beyond `TimeoutSeconds` after which Temporal ends a call that its worker does not end."""
MAX_IN_FLIGHT: Final = 500
"""Number of calls of a run at the same time; the server refuses more than 2,000."""
SERVICE_TIMEOUT: Final = timedelta(minutes=5)
"""Time of one request of a service; a lost one is repeated."""
MAX_OBJECT: Final = 1_400_000
"""Bytes after which a file of results is followed by another one, since a message carries it."""
LOOK: Final = timedelta(seconds=10)
"""Time in which a worker says whether it has a binding."""
LATEST: Final = timedelta(minutes=1)
"""Longest time between two searches for a worker with a binding."""


async def _execute(activity: str, argument: str, **options: Unpack[workflow.ActivityConfig]) -> Any:
    """Perform an activity and return its result.

    Raises:
        ActivityError: It failed.
        CancelledError: It was cancelled here.
    """
    try:
        return await workflow.execute_activity(activity, argument, **options)
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise CancelledError from None
        raise


class CallGate:
    """Admits the calls of a workflow: so many at the same time, and none while it leaves its run.

    Args:
        is_leaving: Returns whether the workflow continues as a new run, which makes the call.
    """

    def __init__(self, is_leaving: Callable[[], bool]) -> None:
        self.is_leaving = is_leaving
        self._window = Semaphore(MAX_IN_FLIGHT)

    async def __aenter__(self) -> None:
        await self._window.acquire()
        if self.is_leaving():
            self._window.release()
            raise Suspension

    async def __aexit__(self, *_: object) -> None:
        self._window.release()


class RemoteAgent(Agent):
    """An agent or a resource that workers perform.

    Args:
        target: The agent or resource.
        gate: Admits the calls of the workflow.
        queue: Task queue of the workers that have it; None for that of the workflow.
    """

    needs_loop = takes_call = limits_itself = True

    def __init__(self, target: Target, gate: CallGate, queue: str | None = None) -> None:
        self._target = target
        self._gate = gate
        self._queue = queue

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Return the result of the activity.

        Raises:
            StateError: The agent failed, or was not reached.
            Suspension: The next run of the workflow makes the call.
        """
        assert call is not None
        if call.options is not None and call.options.start is None:
            call.options.start = call.performer.now()  # further calls of the attempt have the rest
        answer: Json = None
        timeout = None if call.options is None else call.options.timeout

        async def perform(known: TurnMessage | None) -> TurnOutcome | None:
            nonlocal answer
            message = write_call(self._target, payload, call)
            if known is not None:
                message["turn"] = known
            text = pack_call(message)
            check_length(text, f"the input of {self._target.name!r}")
            outcome = await self._outcome(text, timeout)
            answer = apply_outcome(outcome, call)
            return outcome.get("turn")

        await RemoteTurn(cast("AgentCaller", call.performer), call).run(perform)
        return answer

    async def _outcome(self, text: str, timeout: float | None) -> CallOutcome:
        """Return the outcome of a call once a worker has performed it.

        Raises:
            StateError: No worker completed it.
            Suspension: The next run of the workflow makes the call.
        """
        outcome: CallOutcome
        while True:
            try:
                async with self._gate:
                    outcome = json.loads(await self._performed(text, timeout))
                return outcome
            except ActivityError as error:
                cause = error.cause
                if isinstance(cause, ApplicationError) and cause.type == MISSING:
                    await self._await_binding(text)
                elif isinstance(cause, ApplicationError) and cause.details:
                    outcome = json.loads(cause.details[0])
                    return outcome
                else:
                    raise _lost(error, self._target) from None

    async def _performed(self, text: str, timeout: float | None) -> str:
        outcome: str = await _execute(
            CALL,
            text,
            task_queue=self._queue,
            start_to_close_timeout=(
                LONGEST if timeout is None else timedelta(seconds=timeout + GRACE)
            ),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RetryPolicy(
                maximum_attempts=ATTEMPTS,
                non_retryable_error_types=["TemporalTimeout:StartToClose", MISSING],
            ),
            summary=self._target.name[:200],
        )
        return outcome

    async def _await_binding(self, text: str) -> None:
        """Return when a worker has the binding of a call; the server looks for it."""
        await _execute(
            BINDING,
            text,
            task_queue=self._queue,
            start_to_close_timeout=LOOK,
            retry_policy=RetryPolicy(maximum_interval=LATEST),
            summary=self._target.name[:200],
        )


def _lost(error: ActivityError, target: Target) -> StateError:
    """Return the error of a call without an outcome."""
    cause = error.cause
    if isinstance(cause, TimeoutError) and cause.type is TimeoutType.START_TO_CLOSE:
        return mark_usage_unknown(RaisedError("States.Timeout", None))
    text = f"no worker completed the call of {target.name!r}: {cause or error}"
    return mark_usage_unknown(RaisedError("States.TaskFailed", text))


class RemoteService(Agent):
    """A service of the run that workers perform.

    Args:
        gate: Admits the requests of the workflow.
        activity: Type of the activity.
        write: Returns its input for a request and the machine that makes it, at a time.
    """

    needs_loop = takes_call = limits_itself = is_internal = True

    def __init__(
        self, gate: CallGate, activity: str, write: Callable[[Json, Frame, float], object]
    ) -> None:
        self._gate = gate
        self._activity = activity
        self._write = write

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Perform a request in an activity.

        Raises:
            StateError: It is not bound on the workers, or the request fails.
            Suspension: The next run of the workflow makes the request.
        """
        assert call is not None
        message = self._write(payload, call.at, call.performer.now())
        try:
            async with self._gate:
                found: str = await _execute(
                    self._activity,
                    compact(message),
                    start_to_close_timeout=SERVICE_TIMEOUT,
                    retry_policy=RetryPolicy(maximum_attempts=ATTEMPTS),
                )
        except ActivityError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.details:
                return apply_outcome(json.loads(cause.details[0]), call)
            text = f"{self._activity!r} fails: {cause or error}"
            raise RaisedError("States.TaskFailed", text) from None
        return json.loads(found)


def _memory_message(request: Json, frame: Frame, now: float) -> MemoryMessage:
    settings = dict(memory_settings(frame))
    return MemoryMessage(request=request, settings=settings, state=frame.step.name, now=now)


def _page_message(request: Json, frame: Frame, now: float) -> Json:
    """Return a request for items, for a page that is no larger than an answer may be."""
    return {**request, "bytes": min(MAX_SIZE, frame.execution.program.profile.max_payload) // 2}


def _request(request: Json, frame: Frame, now: float) -> Json:
    return request


def _token_message(request: Json, frame: Frame, now: float) -> ForeignTokenMessage:
    answer = TokenMessage(token=request["TaskToken"], given=now)
    match request["action"]:
        case "sendTaskSuccess":
            answer["output"] = compact(read_output(request.get("Output", "")))
        case "sendTaskFailure":
            answer["failure"] = [request.get("Error"), request.get("Cause")]
        case _:
            answer["heartbeat"] = True
    parent = workflow.info().parent
    return ForeignTokenMessage(
        answer=answer, starter=None if parent is None else parent.workflow_id
    )


def remote_services(gate: CallGate) -> Mapping[str, Agent]:
    """Return the services of a run that workers perform.

    Args:
        gate: Admits the requests of the workflow.
    """
    return {
        "memory": RemoteService(gate, MEMORY, _memory_message),
        "items": RemoteService(gate, ITEMS, _page_message),
        "objects": RemoteService(gate, OBJECT, _request),
        "checkpoints": RemoteService(gate, CHECKPOINT, _request),
        "tokens": RemoteService(gate, FOREIGN_TOKEN, _token_message),
    }


class RemoteBuckets(Mapping[str, Bucket]):
    """The buckets of the workers: of any name, for new objects."""

    def __init__(self) -> None:
        self._buckets: dict[str, Bucket] = {}

    def __getitem__(self, name: str) -> Bucket:
        return self._buckets.setdefault(name, DeferredBucket(name, MAX_OBJECT))

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class RemoteRegistry:
    """Asks workers for registered state machines.

    Args:
        gate: Admits the requests of the workflow.
    """

    def __init__(self, gate: CallGate) -> None:
        self._gate = gate

    async def find(self, arn: str) -> str:
        """Return a registered state machine as JSON text; see the activity.

        Raises:
            StateError: The registry does not answer.
            Suspension: The next run of the workflow asks.
        """
        try:
            async with self._gate:
                found: str = await _execute(
                    MACHINE,
                    arn,
                    start_to_close_timeout=SERVICE_TIMEOUT,
                    retry_policy=RetryPolicy(maximum_attempts=ATTEMPTS),
                )
        except ActivityError as error:
            raise RaisedError("States.TaskFailed", f"{error.cause or error}") from None
        return found


class RemoteActivities:
    """Decides who performs the tasks of activities: workers with a binding, or those that poll.

    Args:
        gate: Admits the requests of the workflow.
        names: ARNs of the activities that earlier runs of the workflow let workers poll for.

    Attributes:
        names: ARNs of the activities whose workers poll.
    """

    def __init__(self, gate: CallGate, names: Iterable[str]) -> None:
        self._gate = gate
        self.names = set(names)

    async def is_polled(self, target: Target, is_open: bool) -> bool:
        """Return whether workers that poll perform an activity: the first worker asked lacks it.

        Args:
            target: The activity.
            is_open: Whether its task waits for a worker or its answer already.

        Raises:
            Suspension: The next run of the workflow asks.
        """
        if target.name not in self.names and (is_open or not await self._is_bound(target)):
            self.names.add(target.name)
        return target.name in self.names

    async def _is_bound(self, target: Target) -> bool:
        if not workflow.patched("polled-activities"):
            return True
        message = TargetMessage(kind=target.kind, name=target.name, state=target.state)
        try:
            async with self._gate:
                found: bool = await _execute(
                    BOUND, compact(message), start_to_close_timeout=SERVICE_TIMEOUT
                )
        except ActivityError as error:
            raise RaisedError("States.TaskFailed", f"{error.cause or error}") from None
        return found


class RemoteNotifier:
    """Notifies people of requests by the channels of workers, unless these have none."""

    def __init__(self) -> None:
        self._has_channels = True

    async def __call__(self, kind: str, request: dict[str, Json], details: dict[str, Json]) -> None:
        """Notify people of a request.

        Raises:
            AslError: A channel failed.
        """
        if not self._has_channels:
            return
        message = NoticeMessage(kind=kind, request=request, details=details)
        try:
            self._has_channels = await _execute(
                NOTIFY,
                compact(message),
                start_to_close_timeout=SERVICE_TIMEOUT,
                retry_policy=RetryPolicy(maximum_attempts=ATTEMPTS),
            )
        except ActivityError as error:
            cause = error.cause
            text = cause.message if isinstance(cause, ApplicationError) else str(cause or error)
            raise AslError(text) from None


async def send_remotely(events: list[Json]) -> None:
    """Send events to their channels by the sinks of a worker; without confirmation."""
    with suppress(ActivityError):
        await _execute(
            SEND,
            compact(events),
            start_to_close_timeout=SERVICE_TIMEOUT,
            retry_policy=RetryPolicy(maximum_attempts=ATTEMPTS),
        )


def remote_agents(services: Services, gate: CallGate) -> Find:
    """Return the function that finds the agents of an execution: activities, and AWS services that
    the execution performs itself, such as `startExecution`.

    Args:
        services: Services of the run.
        gate: Admits the calls of the workflow.
    """
    found: dict[Target, Agent] = {}

    def find(target: Target) -> Agent:
        if target not in found:
            agent = None if target.kind != "resource" else aws_service_agent(services, target)
            agent = (agent or RemoteAgent(target, gate)).bound_to(target, aws=False)
            by_token = target.kind == "resource" and target.pattern == ".waitForTaskToken"
            found[target] = CallbackHandler(agent) if by_token else agent
        return found[target]

    return find
