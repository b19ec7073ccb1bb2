"""Services: what a run itself offers to its states, each reached as an agent."""

from __future__ import annotations

from typing import Protocol

from asl.core.values import Json
from asl.effects.runtime import RuntimeContext
from asl.engine.agent import Agent, Call
from asl.states.errors import RaisedError

__all__ = ["Service", "ServiceAgent", "refusal", "uuid_of"]


class Service(Protocol):
    """Something that the run itself offers. It says by itself when it has taken a request."""

    async def serve(self, runtime: RuntimeContext, payload: Json, call: Call) -> Json:
        """Return the answer to a call of the execution that *runtime* is of."""
        ...


class ServiceAgent(Agent):
    """The agent that a service is reached as.

    Args:
        service: Answers the calls.
        keeps_time: Whether it judges itself what comes in time.
    """

    own = needs_loop = True

    def __init__(self, service: Service, *, keeps_time: bool = False) -> None:
        self.service = service
        self.keeps_time = keeps_time


def refusal(call: Call, service: str, code: str, message: str) -> RaisedError:
    """Return the error of a request that AWS refuses, worded as by *service* (recorded).

    *service* is `StepFunctions` for the integration of its own, `Sfn` for that of AWS's SDK.
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
    """Return an id for something that a call brings about: the same when it is repeated."""
    from hashlib import sha256  # loads OpenSSL

    digits = sha256(f"{call.token}\n{what}".encode()).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
