"""Python handlers as AWS Lambda runs them: `handler(event, context)`.

An exception is an error by the name of its class, with the JSON text that the runtime of Lambda
writes as its cause (AWS, recorded); the result is what `json.dumps` makes of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from traceback import extract_tb, format_list
from types import SimpleNamespace
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from asl.agents.function import FunctionAgent, LambdaSettings, second_name
from asl.core.errors import StateError, cause_for
from asl.core.values import Json, plain_copy
from asl.engine.agent import Agent, AgentWrapper, Call
from asl.engine.exception_mapping import (
    bounded_text,
    exception_message,
    is_cancellation,
    is_control_flow,
)
from asl.states.calls import Target, is_function
from asl.states.errors import RaisedError

__all__ = [
    "LambdaContext",
    "LambdaHandler",
    "cause_text",
    "function_failure",
    "lambda_handler",
    "request_id",
    "with_context",
]

LONGEST: Final = 900.0
"""Seconds that a Lambda function may take at most (AWS, quotas)."""
ARN: Final = "arn:aws:lambda:us-east-1:123456789012:function:"
"""How the ARN of a function begins that is known by its name only."""
CLIENT: Final = (
    *("installation_id", "app_title", "app_version_name", "app_version_code", "app_package_name"),
)
"""The attributes of a client in a client context."""
SHOWN: Final = (
    *("aws_request_id", "log_group_name", "log_stream_name", "function_name"),
    *("memory_limit_in_mb", "function_version", "invoked_function_arn", "client_context"),
    "identity",
)
"""The attributes in the text of a context, as Lambda's Python runtime writes it."""
OWN: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""Where the frames of a traceback are that no handler has made."""
NO_TYPE: Final = "The cause could not be determined because Lambda did not return an error type."
"""AWS's words for a failure without a name."""


class LambdaContext:
    """The second argument of a handler, with the attributes that Lambda documents.

    It has those of `asl.Call`, too.
    """

    def __init__(self, call: Call, arn: str, settings: LambdaSettings) -> None:
        self.call = call
        function, _, qualifier = arn.partition(":function:")[2].partition(":")
        self._now = call.performer.now
        started = self._now()
        limit = started + (settings.timeout or LONGEST)
        day = datetime.fromtimestamp(started, UTC).strftime("%Y/%m/%d")
        instance = uuid5(NAMESPACE_URL, f"{call.execution_id}:{arn}").hex
        self.function_name = function
        self.function_version = qualifier if qualifier.isdigit() else "$LATEST"
        self.invoked_function_arn = arn
        self.memory_limit_in_mb = str(settings.memory)  # a text, as Lambda's own
        self.aws_request_id = request_id(call)
        self.log_group_name = f"/aws/lambda/{function}"
        self.log_stream_name = f"{day}/[{self.function_version}]{instance}"
        self.identity = SimpleNamespace(cognito_identity_id=None, cognito_identity_pool_id=None)
        self.client_context = _client_context(call.client_context)
        self._deadline = limit if call.deadline is None else min(limit, call.deadline)

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds that are left before the function or its state times out."""
        left: float = self._deadline - self._now()
        return max(0, round(left * 1000))

    def log(self, message: object) -> None:
        """Print a message, as it goes to the log stream in Lambda."""
        print(message)

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self.call, name)
        except AttributeError:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=self) from None

    def __repr__(self) -> str:
        shown = ",".join(f"{name}={getattr(self, name)}" for name in SHOWN)
        return f"LambdaContext([{shown}])"


def _client_context(value: Json) -> Any:
    """Return the client context with the attributes that Lambda's Python runtime gives it."""
    if type(value) is not dict:
        return None
    client = value.get("client")
    if type(client) is dict:
        client = SimpleNamespace(**{name: client.get(name) for name in CLIENT})
    return SimpleNamespace(custom=value.get("custom"), env=value.get("env"), client=client)


class LambdaHandler(Agent):
    """A Python function that is called as Lambda calls a handler.

    Args:
        function: The function; one that takes a single argument gets the event alone, and one
            whose second argument is named `call` gets the call of the interpreter.
        arn: The ARN of the Lambda function.
        settings: Its configuration.
    """

    __slots__ = (
        *(
            "answer",
            "arn",
            "blocking",
            "function",
            "needs_loop",
            "waits_outside",
            "second",
            "settings",
        ),
    )
    enforces_hosts = is_auditable = takes_call = True

    def __init__(self, function: FunctionAgent, arn: str, settings: LambdaSettings) -> None:
        self.function = function.function
        self.arn = arn
        self.settings = settings
        self.second = second_name(self.function)
        self.blocking = self.waits_outside = function.blocking
        self.needs_loop = not function.blocking
        answer: Any = self._returned if function.blocking else self._awaited
        self.answer = answer  # type: ignore[method-assign]  # plain or async, as the function is

    def _returned(self, payload: Json, call: Call) -> Json:
        try:
            return _marshalled(self.function(*self._arguments(payload, call)), call)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # foreign code: what it raises is its failure
            failure = _failure(error, call)
            raise failure from cause_for(failure, error)

    async def _awaited(self, payload: Json, call: Call) -> Json:
        try:
            return _marshalled(await self.function(*self._arguments(payload, call)), call)
        except BaseException as error:  # foreign code: what it raises is its failure
            if is_control_flow(error) or is_cancellation(error):
                raise
            failure = _failure(error, call)
            raise failure from cause_for(failure, error)

    def _arguments(self, payload: Json, call: Call) -> tuple[Any, ...]:
        if self.second is None:
            return (payload,)
        if self.second == "call":
            return (payload, call)
        return (payload, LambdaContext(call, self.arn, self.settings))


def lambda_handler(
    function: FunctionAgent, target: Target, settings: LambdaSettings | None
) -> Agent:
    """Return a function as the handler of the Lambda function that a state calls."""
    settings = settings or LambdaSettings()
    handler = LambdaHandler(function, _arn(function.function, target.name), settings)
    return LimitedHandler(handler, settings.timeout) if settings.timeout else handler


def with_context(
    function: Callable[..., Any], settings: LambdaSettings | None
) -> Callable[[Json, Call], Any]:
    """Return a function of the call for one that takes a Lambda context."""
    settings = settings or LambdaSettings()
    return lambda payload, call: function(
        payload, LambdaContext(call, _arn(function, call.target.name), settings)
    )


def _arn(function: Callable[..., Any], name: str) -> str:
    if is_function(name):
        return name
    return ARN + str(getattr(function, "__name__", type(function).__name__))


class LimitedHandler(AgentWrapper):
    """A handler that times out as the function is configured."""

    def __init__(self, handler: Agent, seconds: float) -> None:
        super().__init__(handler)
        self.needs_loop, self.blocking = True, False
        self.seconds = seconds

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Return the answer; raises RaisedError("Sandbox.Timedout") after its limit."""
        assert call is not None
        from asyncio import timeout

        asked = call.performer.reach(self.agent, payload, call)
        try:
            async with timeout(self.seconds) as limit:
                return await asked
        except TimeoutError:
            if not limit.expired():
                raise
        text = (
            f"RequestId: {request_id(call)} Error: Task timed out after {self.seconds:.2f} seconds"
        )
        cause = {"errorType": "Sandbox.Timedout", "errorMessage": text}
        raise RaisedError("Sandbox.Timedout", cause_text(cause, call))


def request_id(call: Call) -> str:
    """Return the request id of a call: the same whenever the call is repeated."""
    return str(uuid5(NAMESPACE_URL, f"{call.idempotency_key}:{call.attempt}"))


def function_failure(body: str, value: Json) -> RaisedError:
    """Return the failure that a function answers with, as Step Functions reports it.

    Args:
        body: The text of the answer.
        value: What it says, None where it is no JSON.
    """
    name = value.get("errorType") if isinstance(value, dict) else None
    if isinstance(name, str) and name:
        return RaisedError(bounded_text(name), bounded_text(body))
    text = f"{NO_TYPE} Returned payload: {body}" if body else NO_TYPE
    return RaisedError("Lambda.Unknown", bounded_text(text))


def _exit_status(error: BaseException) -> int:
    """Return the status with which a process ends by an exception."""
    if not isinstance(error, SystemExit):
        return 1
    return error.code if isinstance(error.code, int) else int(error.code is not None)


def _failure(error: BaseException, call: Call) -> StateError:
    """Return what an exception of a handler is to its state."""
    if isinstance(error, StateError):  # an error by name, which only this interpreter knows
        return error
    if not isinstance(error, Exception):  # it ends the process of the function
        status = _exit_status(error)
        text = f"RequestId: {request_id(call)} Error: Runtime exited"
        text += f" with error: exit status {status}" if status else " without providing a reason"
        cause: Json = {"errorType": "Runtime.ExitError", "errorMessage": text}
        return RaisedError("Runtime.ExitError", cause_text(cause, call))
    name = type(error).__name__
    frames = extract_tb(error.__traceback__)
    while frames and frames[0].filename.startswith(OWN):
        del frames[0]
    # Tuples have no columns, which Lambda does not mark either.
    lines = [(each.filename, each.lineno or 0, each.name, each.line) for each in frames]
    return RaisedError(name, _cause(name, exception_message(error), format_list(lines), call))


def _cause(name: str, message: str, trace: list[str], call: Call) -> str:
    """Return the cause of a failure in the form of Lambda's Python runtime."""
    fields = {"errorMessage": message, "errorType": name, "requestId": request_id(call)}
    return cause_text({**fields, "stackTrace": trace}, call)


def cause_text(cause: Json, call: Call) -> str:
    """Write a cause as the state shows it (AWS, recorded).

    The function's own text has blanks; the integration `lambda:invoke` writes it anew.
    """
    separators = (",", ":") if call.target.invokes else None
    return bounded_text(json.dumps(cause, ensure_ascii=False, separators=separators))


def _marshalled(value: Any, call: Call) -> Json:
    """Return a result as its JSON text says it; raises RaisedError("Runtime.MarshalError")."""
    plain = plain_copy(value)
    if plain is not None:
        return plain
    try:
        text = json.dumps(value, default=_number, allow_nan=False, ensure_ascii=False)
        text.encode()  # which half of a surrogate pair does not survive
    except (TypeError, ValueError, RecursionError) as error:
        message = f"Unable to marshal response: {error}"
        cause = _cause("Runtime.MarshalError", message, [], call)
        raise RaisedError("Runtime.MarshalError", cause) from None
    return json.loads(text)


def _number(value: object) -> int | float:
    """Return a decimal number as JSON has it; raises TypeError for anything else."""
    if isinstance(value, Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
