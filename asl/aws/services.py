"""Tasks of integrations: one operation, and for `.sync` the job that it starts."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from asl.agents.aws_lambda import function_failure
from asl.aws.catalog import ActionRow, JobPolling, job_status, pick
from asl.aws.operations import Operation, Reply
from asl.core.errors import StateError
from asl.core.json_text import read_data
from asl.core.values import Json, compact
from asl.effects.runtime import RuntimeContext
from asl.engine.agent import Call
from asl.engine.exception_mapping import is_cancellation
from asl.states.errors import RaisedError

__all__ = ["ActionService", "FunctionService", "JobService"]

FIRST_PAUSE: Final = 1.0
"""Seconds before the first look at a job; doubled up to `LONGEST_PAUSE`."""
LONGEST_PAUSE: Final = 30.0
MAX_FAILURES: Final = 5
"""Failed looks at a job in a row after which the task fails."""


async def _perform(operation: Operation, parameters: Json, call: Call) -> Reply:
    reply: Reply = await call.performer.reach(operation, parameters, call)
    return reply


class ActionService:
    """An action that one operation performs (protocol `asl.effects.service_agent.Service`).

    Args:
        operation: The operation.
        action: Its row.
        lookup: The operation that finds an id; None without one.
        metadata: Whether the result has the metadata of the response.
    """

    def __init__(
        self,
        operation: Operation,
        action: ActionRow,
        lookup: Operation | None = None,
        *,
        metadata: bool,
    ) -> None:
        self.operation = operation
        self.action = action
        self.lookup = lookup
        self.metadata = metadata

    async def serve(self, runtime: RuntimeContext, payload: Json, call: Call) -> Json:
        """Perform the action and return its result.

        Raises:
            RaisedError: The service refuses the request, or the response reports a failure.
        """
        parameters = payload if type(payload) is dict else {}
        if self.lookup is not None and self.action.lookup is not None:
            cluster = {"ClusterId": parameters.get("ClusterId")}
            listed = await _perform(self.lookup, cluster, call)
            parameters = self.action.lookup.request(parameters, listed.fields)
        reply = await _perform(self.operation, self.action.prepare(parameters, call), call)
        result = self.action.shape(reply.fields)
        if self.metadata and isinstance(result, dict):
            return dict(sorted({**result, **reply.metadata}.items()))
        return result


class JobService:
    """An action with `.sync`: it ends with the job that it starts (protocol `Service`).

    The job is looked at on the clock of the execution. When the task times out or its execution
    ends, the job is stopped. An execution in a store continues with the job after a crash.

    Args:
        start: Starts the job.
        job: The row of the job.
        describe: Describes the job.
        stop: Stops the job; None if the service cannot.
        parsed: Whether `Input` and `Output` of a described execution are parsed (`.sync:2`).
    """

    def __init__(
        self,
        start: ActionService,
        job: JobPolling,
        describe: Operation,
        stop: Operation | None,
        *,
        parsed: bool,
    ) -> None:
        self.start = start
        self.job = job
        self.describe = describe
        self.stop = stop
        self.parsed = parsed

    async def serve(self, runtime: RuntimeContext, payload: Json, call: Call) -> Json:
        """Start the job, wait for its end, and return its description.

        Raises:
            RaisedError: States.TaskFailed for a job that fails; its description is the cause.
        """
        started = await self._started(runtime, payload, call)
        runtime.advance(call.at, "Submitted", {"output": started})
        sent = payload if type(payload) is dict else {}
        begun = started if type(started) is dict else {}
        try:
            succeeded, item = await self._end(runtime, self.job.request(sent, begun), call)
        except BaseException as stop:  # raised again: a cancelled state stops its job first
            over = call.deadline is not None and runtime.now() >= call.deadline
            if is_cancellation(stop) and (over or runtime.is_over()):
                await self._stop(sent, begun, call)
            raise
        result = self._result(item)
        if not succeeded:
            raise RaisedError("States.TaskFailed", compact(result))
        return result

    async def _started(self, runtime: RuntimeContext, payload: Json, call: Call) -> Json:
        """Start the job, unless an earlier process has started it for this attempt."""
        calls, key = runtime.persistence.calls, f"{call.at.key}!job"
        known = calls.recorded_value(key)
        if known is not None and known[0] == call.token:
            return known[1]
        started = await self.start.serve(runtime, payload, call)
        await calls.record(call.at, key, [call.token, started])
        return started

    async def _end(self, runtime: RuntimeContext, request: Json, call: Call) -> tuple[bool, Any]:
        """Return whether the job succeeded, and its last description."""
        pause, failures = FIRST_PAUSE, 0
        item: Any = {}
        while True:
            await runtime.pause(pause)
            try:
                reply = await _perform(self.describe, request, call)
            except RaisedError as error:
                if self.job.gone and "NotFound" in str(error.name):
                    return True, item
                failures += 1
                if failures == MAX_FAILURES:
                    raise
            else:
                failures, item = 0, pick(reply.fields, self.job.item) or {}
                succeeded = job_status(self.job, item)
                if succeeded is not None:
                    return succeeded, item
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _stop(self, sent: dict[str, Json], started: dict[str, Json], call: Call) -> None:
        """Stop the job; its task has failed in any case."""
        if self.stop is not None and self.job.stop is not None:
            with suppress(StateError):
                await _perform(self.stop, self.job.stop[1](sent, started), call)

    def _result(self, item: dict[str, Json]) -> Json:
        if self.parsed:
            texts = {
                name: read_data(str(item[name])) for name in ("Input", "Output") if name in item
            }
            return {**item, **texts}
        return {self.job.name: item} if self.job.name else item


class FunctionService:
    """A Lambda function, called by its ARN or by `lambda:invoke` (protocol `Service`).

    Args:
        operation: The operation Invoke.
        arn: The ARN of the function in the resource; None for `lambda:invoke`.
    """

    def __init__(self, operation: Operation, arn: str | None) -> None:
        self.operation = operation
        self.arn = arn

    async def serve(self, runtime: RuntimeContext, payload: Json, call: Call) -> Json:
        """Call the function; return its result, or the service's response.

        Raises:
            RaisedError: The function fails, or the service refuses the request.
        """
        parameters = payload
        if self.arn is not None:
            parameters = {"FunctionName": self.arn, "Payload": compact(payload)}
        elif type(payload) is dict and "Payload" in payload:
            parameters = {**payload, "Payload": compact(payload["Payload"])}
        reply = await _perform(self.operation, parameters, call)
        text = reply.fields.pop("Payload", "")
        try:
            result = read_data(text) if text else ""
        except ValueError:
            result = text
        if reply.fields.pop("FunctionError", None) is not None:
            raise function_failure(text, result)
        if self.arn is not None:
            return result
        return dict(sorted({**reply.fields, "Payload": result, **reply.metadata}.items()))
