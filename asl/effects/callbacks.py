"""Task tokens: states that wait for one, activities, and the `sendTask...` calls."""

from __future__ import annotations

from collections.abc import Mapping

from asl.core.errors import NotJson, StateError
from asl.core.values import Json, copy_result
from asl.effects.caller import Caller
from asl.effects.runtime import RuntimeContext
from asl.effects.service_agent import refusal
from asl.effects.task_tokens import TaskDoesNotExist, TaskTimedOut, TokenError, TokenWait
from asl.engine.agent import Agent, Call, TaskTokenApi
from asl.states.errors import RaisedError
from asl.states.numbers import MAX_SECONDS

__all__ = ["ActivityService", "CallbackAgent", "TaskAnswerService", "visible_output"]


class CallbackAgent(Agent):
    """A handler that passes a request on, and the wait for the answer to its token."""

    needs_loop = True

    def __init__(self, caller: Caller, handler: Agent) -> None:
        self.caller = caller
        self.handler = handler

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Call the handler, ignore its own answer, and return the answer to the token.

        Raises:
            RaisedError: States.Timeout; no answer can come.
        """
        assert call is not None
        caller = self.caller
        with caller.runtime.open_token(call) as wait:
            taken = await caller.reach(self.handler, payload, call)
            caller.runtime.advance(call.at, "Submitted", visible_output(taken, caller.limit))
            if not (wait.answer.done() or self._can_end(call)):
                raise RaisedError("States.Timeout", _unanswered(call))
            return await _answered(wait, call)

    def _can_end(self, call: Call) -> bool:
        """Return whether an answer can come, or the wait has a limit."""
        limited = call.limited or self.caller.runtime.deadline is not None
        return (
            limited
            or self.handler.takes_call
            or self.caller.runtime.current_services().answerable()
        )


class ActivityService:
    """An activity whose workers poll for its tasks (protocol `Service`)."""

    def __init__(self, activity: str) -> None:
        self.activity = activity

    async def serve(self, runtime: RuntimeContext, payload: Json, call: Call) -> Json:
        """Offer the task to the workers and return the answer."""

        def begun(worker: str | None) -> None:
            call.heartbeat()
            runtime.advance(call.at, "Started", {} if worker is None else {"workerName": worker})

        with runtime.open_token(call) as wait:
            runtime.current_services().task_token_service.offer(self.activity, wait, payload, begun)
            return await _answered(wait, call)


class TaskAnswerService:
    """The `sendTask...` calls of AWS's SDK from a state (protocol `Service`)."""

    def __init__(self, action: str) -> None:
        self.action = action

    async def serve(self, runtime: RuntimeContext, payload: Json, call: Call) -> Json:
        """Answer a token of the run, or of another execution in its store.

        Raises:
            RaisedError: The token is invalid, unknown or closed, as AWS names it.
        """
        services = runtime.current_services()
        given: Mapping[str, Json] = payload if type(payload) is dict else {}
        token = given.get("TaskToken", "")
        desk: TaskTokenApi = services.task_token_service
        if services.child_store is not None and not services.task_token_service.is_open(token):
            desk = services.child_store.tokens
        try:
            self._answer(desk, token, given)
            if runtime.suspension is not None:
                runtime.suspension.wake([token])
        except TaskDoesNotExist as error:
            if not runtime.has_service("tokens"):
                raise _refused(call, error) from error
            request = {"action": self.action, **given}
            await self._answer_elsewhere(services.service("tokens"), request, call)
        except TokenError as error:
            raise _refused(call, error) from error
        return {}

    def _answer(self, desk: TaskTokenApi, token: str, given: Mapping[str, Json]) -> None:
        if self.action == "sendTaskSuccess":
            desk.send_task_success(token, given.get("Output", ""))
        elif self.action == "sendTaskFailure":
            desk.send_task_failure(token, given.get("Error"), given.get("Cause"))
        else:
            desk.send_task_heartbeat(token)

    async def _answer_elsewhere(self, agent: Agent, request: Json, call: Call) -> None:
        """Answer the token of an execution that this process does not hold."""
        try:
            await call.performer.reach(agent, request, call)
        except StateError as error:
            if error.name not in _CLOSED:
                raise
            raise refusal(call, "Sfn", error.name, error.cause or "") from error


_CLOSED = (TaskDoesNotExist.__name__, TaskTimedOut.__name__)
"""Refusals of a token that is not open."""


def _refused(call: Call, error: TokenError) -> RaisedError:
    return refusal(call, "Sfn", type(error).__name__, str(error))


async def _answered(wait: TokenWait, call: Call) -> Json:
    from asyncio import timeout

    try:
        async with timeout(MAX_SECONDS):
            return await wait.answer
    except TimeoutError:
        raise RaisedError("States.Timeout", _unanswered(call)) from None


def _unanswered(call: Call) -> str:
    return (
        f"state '{call.state_name}': no one can answer the task token {call.token}. Answer it by "
        "send_task_success or send_task_failure of asl.TaskTokens (passed as tokens=...) or "
        "of the handler's call.tokens, mock the state, or give it TimeoutSeconds"
    )


def visible_output(taken: Json, limit: int) -> dict[str, Json]:
    """Return a handler's own answer as event details; it has no other use."""
    try:
        return {"output": copy_result(taken, limit, "")}
    except (NotJson, StateError):
        return {}
