"""AWS resources served by the run: `startExecution`, activities, `sendTask...` (recorded)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from asl.core.json_text import read_data
from asl.core.lazy import lazy_pattern
from asl.core.values import Json, compact
from asl.effects.callbacks import ActivityService, TaskAnswerService
from asl.effects.child_execution import Job, JobAnswer, JobEnd, PreparedExecution, StartRequest
from asl.effects.child_runner import execute_child
from asl.effects.runtime import MAX_NESTED, Listener, RuntimeContext
from asl.effects.service_agent import ServiceAgent, refusal, uuid_of
from asl.effects.services import Services
from asl.engine.agent import Agent, Call
from asl.engine.execution import ARN, execution_id
from asl.engine.result import Result
from asl.expr.times import format_timestamp
from asl.program import Program
from asl.states.calls import Target
from asl.states.errors import RaisedError

__all__ = ["StartExecutionService", "aws_service_agent"]

MAX_STARTED = 100_000
"""Maximum number of executions that one run may start, in total."""

_WORKFLOW = lazy_pattern(r"(arn:[^:]*:states:[^:]*:[^:]*:stateMachine:([^:]+))(?::([^:]+))?")
_NAME = lazy_pattern(r"[^\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]{1,80}")


class _Child(NamedTuple):
    """An execution to start."""

    program: Program
    workflow_id: str
    qualifier: str | None
    """Version or alias in its ARN."""
    name: str
    id: str
    data: Json
    text: str
    """Input as JSON text."""


class StartExecutionService:
    """Starts executions of the workflows bound to the run (protocol `Service`)."""

    def __init__(self, services: Services, target: Target) -> None:
        self.services = services
        self.other = None if services.aws is None else services.aws(target)
        """Starts executions of other workflows; None to refuse them."""
        self.pattern = target.pattern
        self.sdk = ":aws-sdk:" in target.name
        self.express = target.base.endswith("startSyncExecution")

    async def serve(self, runtime: RuntimeContext, payload: Json, call: Call) -> Json:
        """Start an execution, and wait for its end if the integration pattern does.

        Raises:
            RaisedError: AWS refuses the request, or the execution failed.
        """
        services = self.services
        if self.other is not None and not await self._is_known(payload, call):
            return await call.performer.reach(self.other, payload, call)
        child = await self._child(payload, call)
        self._admit(runtime, child, call)
        awaited = self.express or self.pattern in (".sync", ".sync:2")
        workflow = child.workflow_id.rpartition(":stateMachine:")[2]
        listener = call.at.child_listener()  # while the state is running
        program = replace(child.program, name=workflow)
        request = StartRequest(
            child.id,
            child.workflow_id,
            child.name,
            child.data,
            self.express,
            awaited,
            call.at.requestor,
        )
        if not awaited and services.start_elsewhere is not None:
            if not await services.start_elsewhere(program, request):
                raise self._taken(child, call)
            return {"ExecutionArn": child.id, "StartDate": self._date(runtime.now())}
        begun = runtime.persistence.children.begin_by_name(call.at, program, request)
        if begun is None:
            raise self._taken(child, call)
        began = runtime.now() if begun.started is None else begun.started
        work = self._execution(runtime, child, begun, call, listener)
        execution = services.start(child.id, work)
        execution.add_done_callback(lambda _: begun.leave())
        started = {"ExecutionArn": child.id, "StartDate": self._date(began)}
        if self.express:
            ended = await execution
            if ended.status == "PAUSED":
                runtime.wait_for(ended, call.at.key)
            return self._described(child, ended)
        if not awaited:
            services.count(execution)
            services.leave(execution)
            return started
        runtime.advance(call.at, "Submitted", {"output": started})
        job = Job(execution, payload, call.options, began)
        try:
            result = await self._ending(runtime, child, job, call)
        except BaseException:  # interrupted with its parent; the exception propagates
            over = call.deadline is not None and runtime.now() >= call.deadline
            if begun.journal is not None and (over or runtime.is_over()):
                begun.journal.put_end("ABORTED", runtime.now(), None, None, None)
            raise
        if isinstance(result, JobAnswer):
            services.leave(execution)
            runtime.persistence.children.detach(begun)
            return result.value()
        if result.status == "PAUSED":
            runtime.wait_for(result, call.at.key)
        if not result.ok:
            raise RaisedError("States.TaskFailed", compact(self._described(child, result)))
        return self._described(child, result)

    async def _ending(self, runtime: RuntimeContext, child: _Child, job: Job, call: Call) -> JobEnd:
        """Wait for the end of an execution, or for the answer to its token."""
        if call.token not in child.text and call.token != child.name:
            return await job.execution
        self.services.count(job.execution)
        try:
            return await runtime.persistence.children.await_job(runtime.open_token, call, job)
        except BaseException:  # as for a caller that awaits the execution; the exception propagates
            from asyncio import wait

            job.execution.cancel()
            await wait({job.execution})
            raise

    async def _execution(
        self,
        runtime: RuntimeContext,
        child: _Child,
        prepared: PreparedExecution,
        call: Call,
        listener: Listener | None,
    ) -> Result:
        """Run an execution on the clock and the event loop of its parent."""
        if prepared.result is not None:
            return prepared.result
        at, id = call.at, child.workflow_id
        result = await execute_child(
            prepared, runtime, at, child.name, id, express=self.express, listener=listener
        )
        if prepared.journal is not None:
            prepared.journal.put_result(result, call.deadline)
            await prepared.journal.commit(True)
        return result

    async def _child(self, payload: Json, call: Call) -> _Child:
        given: Mapping[str, Json] = payload if type(payload) is dict else {}
        arn, name = given.get("StateMachineArn"), given.get("Name")
        if type(arn) is not str:
            raise self._refused(call, "Validation", _missing("stateMachineArn"))
        program, workflow_id, qualifier = await self._workflow(arn, call)
        if name is None:
            name = uuid_of(call, "execution")
        elif type(name) is not str or not _NAME.fullmatch(name):
            raise self._refused(call, "InvalidName", f"Invalid Name: '{name}'")
        data, text = self._input(given.get("Input"), call)
        id = execution_id(workflow_id, name, self.express)
        return _Child(program, workflow_id, qualifier, name, id, data, text)

    async def _workflow(self, arn: str, call: Call) -> tuple[Program, str, str | None]:
        """Find the workflow of an ARN: by the whole ARN, without its qualifier, or by its name."""
        form = _WORKFLOW.fullmatch(arn)
        found = await self._found(arn, call)
        if found is not None:
            return found, *((form[1], form[3]) if form else (f"{ARN}:stateMachine:{arn}", None))
        if form is None:
            raise self._refused(call, "InvalidArn", f"Invalid Arn: '{arn}'")
        raise self._refused(
            call, "StateMachineDoesNotExist", f"State Machine Does Not Exist: '{arn}'"
        )

    async def _found(self, arn: str, call: Call) -> Program | None:
        """Return the workflow of an ARN, None if it is neither bound nor registered."""
        workflows = self.services.workflows or {}
        form = _WORKFLOW.fullmatch(arn)
        for key in (arn,) if form is None else (arn, form[1], form[2]):
            if key in workflows:
                return workflows[key]
        registered, elsewhere = self.services.registered_program, self.services.registered_elsewhere
        if form is None or registered is None:
            return None
        return registered(arn) if elsewhere is None else await elsewhere(arn, call)

    async def _is_known(self, payload: Json, call: Call) -> bool:
        """Return whether a request names a workflow of the run."""
        arn = payload.get("StateMachineArn") if type(payload) is dict else None
        return type(arn) is str and await self._found(arn, call) is not None

    def _input(self, value: Json, call: Call) -> tuple[Json, str]:
        """Return the input and its JSON text; a string is taken as JSON text."""
        if value is None:
            value = {}
        if type(value) is not str:
            return value, compact(value)
        try:
            return read_data(value), value
        except ValueError as fault:
            message = f"Invalid State Machine Execution Input: '{fault}'"
            raise self._refused(call, "InvalidExecutionInput", message) from None

    def _admit(self, runtime: RuntimeContext, child: _Child, call: Call) -> None:
        """Refuse a name that is in use, and too many executions."""
        taken = self.services.started
        if runtime.depth >= MAX_NESTED or len(taken) >= MAX_STARTED:
            raise self._refused(
                call,
                "ExecutionLimitExceeded",
                f"executions start one another more than {MAX_NESTED} deep, or more than "
                f"{MAX_STARTED} were started in one run",
            )
        if child.id in taken:
            raise self._taken(child, call)

    def _taken(self, child: _Child, call: Call) -> RaisedError:
        message = f"Execution Already Exists: '{child.id}'"
        return self._refused(call, "ExecutionAlreadyExists", message)

    def _refused(self, call: Call, code: str, message: str) -> RaisedError:
        return refusal(call, "Sfn" if self.sdk else "StepFunctions", code, message)

    def _described(self, child: _Child, result: Result) -> dict[str, Json]:
        """Return AWS's DescribeExecution of an execution that has ended."""
        parsed = self.pattern == ".sync:2" and result.ok
        found: dict[str, Json] = {
            "ExecutionArn": child.id,
            "Input": child.data if parsed else child.text,
            "InputDetails": {"Included": True},
            "Name": child.name,
            "StartDate": self._date(result.execution.started),
            "StateMachineArn": child.workflow_id,
            "Status": result.status,
            "StopDate": self._date(result.ended),
        }
        if result.ok:
            found["Output"] = result.value if parsed else compact(result.value)
            found["OutputDetails"] = {"Included": True}
        elif result.status == "FAILED":
            found |= {key.capitalize(): text for key, text in result.end_details().items()}
        if not self.express:
            found |= _redrive(result)
            if child.qualifier is not None:
                kind = "Version" if child.qualifier.isdecimal() else "Alias"
                found[f"StateMachine{kind}Arn"] = f"{child.workflow_id}:{child.qualifier}"
        return dict(sorted(found.items()))

    def _date(self, time: float) -> Json:
        """Return a time as text in AWS's SDK, else in milliseconds."""
        return format_timestamp(time) if self.sdk else round(time * 1000)


def _redrive(result: Result) -> dict[str, Json]:
    if not result.ok:
        return {"RedriveCount": 0, "RedriveStatus": "REDRIVABLE"}
    return {
        "RedriveCount": 0,
        "RedriveStatus": "NOT_REDRIVABLE",
        "RedriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
    }


def _missing(field: str) -> str:
    return (
        f"1 validation error detected: Value null at '{field}' failed to satisfy constraint: "
        "Member must not be null"
    )


OWN: Final = lazy_pattern(r"arn:[^:]*:states:[^:]*:[^:]*:(?:aws-sdk:sfn|states):(\w+)")
STARTS: Final = ("startExecution", "startSyncExecution")
ANSWERS: Final = ("sendTaskSuccess", "sendTaskFailure", "sendTaskHeartbeat")


def aws_service_agent(services: Services, target: Target) -> Agent | None:
    """Return the agent of an AWS resource that the run serves itself; None for other resources."""
    if target.is_activity:
        return None if services.tokens is None else ServiceAgent(ActivityService(target.name))
    own = OWN.fullmatch(target.base)
    if own is None:
        return None
    can_start = services.workflows is not None or services.registered_program is not None
    if own[1] in STARTS and can_start:
        return ServiceAgent(StartExecutionService(services, target))
    if own[1] in ANSWERS:
        return ServiceAgent(TaskAnswerService(own[1]))
    return None
