"""Agents and resources as activities: what travels with a call, and what comes back."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, TimeoutType

from asl.core.errors import StateError, mark_usage_unknown
from asl.core.values import Json
from asl.effects.aws_services import aws_service_agent
from asl.effects.services import Services
from asl.engine.agent import Agent, Call, CallbackHandler, Find
from asl.states.calls import Target
from asl.states.errors import RaisedError, Suspension
from asl.temporal.payloads import CALL, CallMessage
from asl.temporal.sizes import check_size

__all__ = ["CallGate", "RemoteAgent", "remote_agents"]

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

    def __init__(
        self,
        target: Target,
        gate: CallGate,
        queue: str | None = None,
    ) -> None:
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
        async with self._gate:
            check_size(payload, f"the input of {self._target.name!r}")
            return await self._call(payload, call)

    async def _call(self, payload: Json, call: Call) -> Json:
        message = _message(self._target, payload, call)
        timeout = message["fields"].get("TimeoutSeconds")
        try:
            found = await workflow.execute_activity(
                CALL,
                message,
                task_queue=self._queue,
                start_to_close_timeout=(
                    LONGEST if timeout is None else timedelta(seconds=timeout + GRACE)
                ),
                heartbeat_timeout=HEARTBEAT,
                retry_policy=RetryPolicy(
                    maximum_attempts=ATTEMPTS,
                    non_retryable_error_types=["TemporalTimeout:StartToClose"],
                ),
                summary=self._target.name[:200],
            )
        except ActivityError as error:
            raise _state_error(error, self._target) from None
        call.usage = found.get("usage")
        return found["answer"]


def _message(target: Target, payload: Json, call: Call) -> CallMessage:
    """Return what an activity needs to call an agent.

    Raises:
        StateError: States.Runtime; a worker would ignore what the document says about the agent.
    """
    frame = call.at
    if call.options is not None and call.options.blocks:
        named = ", ".join(sorted(call.options.blocks))
        raise _not_performed(target, f"the block of the state or the document for: {named}")
    if target.kind == "agent" and call.performer.definition(call) is not None:
        raise _not_performed(target, "the definition of the agent in the document")
    options = call.options
    fields: dict[str, Json] = {}
    if options is not None:
        if options.timeout is not None:
            fields["TimeoutSeconds"] = options.timeout
        if options.heartbeat is not None:
            fields["HeartbeatSeconds"] = options.heartbeat
        if options.credentials is not None:
            fields["Credentials"] = options.credentials
    return CallMessage(
        kind=target.kind,
        name=target.name,
        state=target.state,
        key=frame.visit_key,
        attempt=frame.retries + 1,
        payload=payload,
        fields=fields,
        document={},
        profile=frame.execution.program.profile.name,
        execution=frame.execution_id,
        workflow=frame.workflow,
    )


def _not_performed(target: Target, what: str) -> StateError:
    cause = f"state {target.state!r}: workers of Temporal do not perform {what}"
    return StateError("States.Runtime", f"{cause}; run the document on another store")


def _state_error(error: ActivityError, target: Target) -> StateError:
    """Return the error of a state for a failed activity."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        usage = cause.details[0] if cause.details else None
        failure = RaisedError(cause.type or "States.TaskFailed", cause.message)
        if isinstance(usage, Mapping):
            failure.usage = usage
        return failure
    if isinstance(cause, TimeoutError) and cause.type is TimeoutType.START_TO_CLOSE:
        return mark_usage_unknown(RaisedError("States.Timeout", None))
    text = f"no worker completed the call of {target.name!r}: {cause or error}"
    return mark_usage_unknown(RaisedError("States.TaskFailed", text))


def remote_agents(services: Services, gate: CallGate) -> Find:
    """Return the function that finds the agents of an execution: activities, and AWS services that
    the execution performs itself, such as `startExecution`.

    Args:
        services: Services of the run.
        gate: Admits the calls.
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
