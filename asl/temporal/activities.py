"""The activity that calls an agent or a resource, with the bindings of its worker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import orjson
from temporalio import activity
from temporalio.exceptions import ApplicationError

from asl.bindings import Bindings, bind
from asl.compiler import compile_workflow
from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.documents.loading import resolve_profile
from asl.effects.clock import WallClock
from asl.effects.run import execute
from asl.engine.execution import Identity
from asl.engine.result import Result
from asl.program import Program
from asl.temporal.payloads import CALL, CallMessage
from asl.temporal.sizes import check_size

__all__ = ["AgentActivities"]

BEAT: Final = 3.0
"""Seconds between two signs of life to the server."""


class AgentActivities:
    """The activities of a worker.

    Args:
        bindings: What it performs, as for `asl.run`.
    """

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._clock = WallClock()

    @activity.defn(name=CALL)
    async def call(self, message: CallMessage) -> dict[str, Json]:
        """Call an agent or a resource in an execution of its state alone.

        Returns:
            `answer`, the result of the agent.

        Raises:
            ApplicationError: It failed; the type is the name of the error.
        """
        beat = asyncio.create_task(_beat())
        try:
            result = await self._run(message)
        finally:
            beat.cancel()
            with suppress(asyncio.CancelledError):
                await beat
        if not result.ok:
            raise ApplicationError(
                result.cause or "",
                {"cost": result.usage["cost"], "tokens": result.usage["tokens"]},
                type=result.error or result.status,
                non_retryable=True,
            )
        try:
            check_size(result.output, f"the answer of {message['name']!r}")
        except StateError as error:  # before Temporal refuses it and calls the agent again
            raise ApplicationError(error.cause or "", type=error.name, non_retryable=True) from None
        return {"answer": result.output}

    async def _run(self, message: CallMessage) -> Result:
        program = _program(compact(_document(message)), message["profile"], message["workflow"])
        bound = bind(self._bindings, program)
        return await execute(
            program,
            message["payload"],
            bound.find,
            self._clock,
            Identity(name=message["execution"].rpartition(":")[2]),
            foreign=True,
            buckets=bound.buckets,
            in_event_loop=True,
            services=bound.services,
        )


async def _beat() -> None:
    """Tell the server regularly that the call goes on."""
    while True:
        activity.heartbeat()
        await asyncio.sleep(BEAT)


def _document(message: CallMessage) -> Mapping[str, Any]:
    """Return a document with the state of a call alone."""
    name = message["name"].removesuffix(".waitForTaskToken")
    target = {"Agent" if message["kind"] == "agent" else "Resource": name}
    state = {"Type": "Task", **target, **message["fields"], "End": True}
    return {
        **message["document"],
        "StartAt": message["state"],
        "States": {message["state"]: state},
    }


@lru_cache(maxsize=1024)
def _program(document: str, profile: str, workflow: str) -> Program:
    return compile_workflow(orjson.loads(document), resolve_profile(profile), workflow)
