"""Services of a run for its states, each called as an agent."""

from __future__ import annotations

from typing import Protocol

from asl.core.values import Json
from asl.effects.runtime import RuntimeContext
from asl.engine.agent import Agent, Call
from asl.states.errors import RaisedError

__all__ = ["Service", "ServiceAgent", "refusal", "uuid_of"]


class Service(Protocol):
    """A service of the run. It records itself when it has accepted a request."""

    async def serve(self, runtime: RuntimeContext, payload: Json, call: Call) -> Json:
        """Return the answer to a call of the execution of *runtime*."""
        ...


class ServiceAgent(Agent):
    """The agent of a service.

    Args:
        service: Answers the calls.
        keeps_time: Whether it applies the timeout itself.
    """

    is_internal = needs_loop = True

    def __init__(self, service: Service, *, keeps_time: bool = False) -> None:
        self.service = service
        self.applies_timeout = keeps_time


def refusal(call: Call, service: str, code: str, message: str) -> RaisedError:
    """Return the error of a request that AWS refuses (recorded).

    Args:
        call: The call.
        service: `StepFunctions` for the optimized integration, `Sfn` for that of AWS's SDK.
        code: AWS's error code without `Exception`.
        message: AWS's message.
    """
    request = uuid_of(call, "request")
    if service == "Sfn":
        details = f"Service: Sfn, Status Code: 400, Request ID: {request}"
    else:
        details = (
            f"Service: AWSStepFunctions; Status Code: 400; Error Code: {code}; "
            f"Request ID: {request}; Proxy: null"
        )
    return RaisedError(f"{service}.{code}Exception", f"{message} ({details})")


def uuid_of(call: Call, what: str) -> str:
    """Return an id that is the same when the call is repeated.

    Args:
        call: The call.
        what: Distinguishes several ids of a call.
    """
    from hashlib import sha256  # loads OpenSSL

    digits = sha256(f"{call.token}\n{what}".encode()).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
