"""What a run offers to its own states: task tokens to answer, activities, workflows to start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from asl.engine.agent import Agent, Call, Find
from asl.program import Program
from asl.states.host import Raised, Target

if TYPE_CHECKING:
    from asl.hosts.local import LocalHost
    from asl.hosts.tokens import TaskTokens

__all__ = ["Service", "Services", "host_of", "refusal"]

_OWN = re.compile(r"arn:[^:]*:states:[^:]*:[^:]*:(?:aws-sdk:sfn|states):(\w+)")
_STARTS = ("startExecution", "startSyncExecution")
_ANSWERS = ("sendTaskSuccess", "sendTaskFailure", "sendTaskHeartbeat")


class Services:
    """The services of one run.

    `tokens` is the desk that the caller gave, `workflows` are the programs that states may start,
    by name or ARN; both None if the caller gave none. `find` resolves the targets of the executions
    that are started: they have the agents and resources of the run, and none of its mocks.
    """

    def __init__(
        self, tokens: TaskTokens | None = None, workflows: Mapping[str, Program] | None = None
    ) -> None:
        self.tokens = tokens
        self.workflows = workflows
        self.find: Find

    def agent(self, target: Target) -> Agent | None:
        """Return what serves a resource that nobody else is bound to, if there is such a thing."""
        if target.is_activity:
            from asl.hosts.callbacks import Polled

            return None if self.tokens is None else Polled(target.name)
        own = _OWN.fullmatch(target.base)
        if own is None:
            return None
        if own[1] in _STARTS and self.workflows is not None:
            from asl.hosts.nested import Start

            return Start(self, target)
        if own[1] in _ANSWERS:
            from asl.hosts.callbacks import Answer

            return Answer(own[1])
        return None

    def programs(self) -> Iterator[Program]:
        """Yield the workflows that states may start."""
        yield from (self.workflows or {}).values()


class Service:
    """Something that the run itself offers, reached as an agent.

    It says by itself when it has taken a request, and an exception in it is no failure of a task.
    """

    blocking = False
    needs_loop = True
    real = False
    holds = False
    direct = None
    takes_call = False

    async def close(self) -> None:
        """It holds nothing."""


def host_of(call: Call) -> LocalHost:
    """Return the host that performs a call."""
    return cast("LocalHost", call.at.host)


def refusal(call: Call, service: str, code: str, message: str) -> Raised:
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
    return Raised(f"{service}.{code}Exception", f"{message} ({details})")


def uuid_of(call: Call, what: str) -> str:
    """Return an id for something that a call brings about: the same when it is repeated."""
    from hashlib import sha256

    digits = sha256(f"{call.token}\n{what}".encode()).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
