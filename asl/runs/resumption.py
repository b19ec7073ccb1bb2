"""Resumption of executions from a checkpoint of their result."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Unpack

from asl.bindings import (
    Bindings,
    bind,
    clock_of,
    refuse_running_loop,
    refuse_unknown,
    takes_bindings,
)
from asl.core.document import Document, Loadable
from asl.core.errors import AslError
from asl.documents.compiling import prepare, program_of
from asl.effects.clock import Clock, VirtualClock, WallClock
from asl.effects.driver import drive
from asl.effects.run import execute
from asl.engine.execution import Identity
from asl.engine.result import Result
from asl.engine.resume_point import find_resume_point
from asl.runs.running import run_apart

__all__ = ["aresume", "resume"]


@takes_bindings
def resume(
    result: Result,
    checkpoint: str,
    *,
    document: Document | Loadable | None = None,
    force: bool = False,
    clock: str | Clock = "wall",
    **bindings: Unpack[Bindings],
) -> Result:
    """Go on with an execution from a checkpoint of its result; blocks the caller.

    The execution keeps its id, and what it has spent stays spent. A virtual clock goes on from the
    end of the execution. No binding is kept from the first run.

    Args:
        result: What the execution came to.
        checkpoint: The name of a checkpoint (the latest of that name) or its id.
        document: Another document, only with `force`, and only where that has the state.
        force: Whether another document may go on.
        clock: As for `run`; so are all others.

    Raises:
        CheckpointRefused: CheckpointNotFound, CheckpointExpired, CheckpointIncompatible, or
            NotResumable for an execution that did not fail.
    """
    refuse_unknown(resume, bindings)
    refuse_running_loop()
    chosen = _clock_after(result, clock)
    work = _resumption(document, result, checkpoint, force, chosen, False, bindings)
    return drive(work, chosen)


@takes_bindings
async def aresume(
    result: Result,
    checkpoint: str,
    *,
    document: Document | Loadable | None = None,
    force: bool = False,
    clock: str | Clock = "wall",
    **bindings: Unpack[Bindings],
) -> Result:
    """Go on from a checkpoint on the running asyncio event loop; see `resume`."""
    refuse_unknown(aresume, bindings)
    chosen = _clock_after(result, clock)
    in_event_loop = isinstance(chosen, WallClock)
    work = await prepare(
        _resumption, document, result, checkpoint, force, chosen, in_event_loop, bindings
    )
    return await (work if in_event_loop else run_apart(work, chosen))


def _clock_after(result: Result, clock: str | Clock) -> Clock:
    """Return the clock for an execution that goes on after its end."""
    return VirtualClock(result.ended) if clock == "virtual" else clock_of(clock)


def _resumption(
    document: Document | Loadable | None,
    result: Result,
    checkpoint: str,
    force: bool,
    clock: Clock,
    in_event_loop: bool,
    bindings: Bindings,
) -> Coroutine[Any, Any, Result]:
    """Check whether an execution can go on from a checkpoint; return the run that does."""
    if not isinstance(result, Result):
        raise AslError(f"what goes on is a Result, not {type(result).__name__}")
    execution, now = result.execution, clock.now()
    program = execution.program
    if document is not None:
        program = replace(program_of(document, program.profile, False), name=program.name)
    past = find_resume_point(result, checkpoint, program, now, force)
    bound = bind(bindings, program)
    return execute(
        program,
        execution.input,
        bound.find,
        clock,
        Identity(
            name=execution.name,
            workflow_id=execution.workflow_id,
            express=execution.express,
            requestor=execution.requestor,
            started=execution.started,
            redrives=execution.redrives + 1,
            redriven=now,
        ),
        foreign=True,
        buckets=bound.buckets,
        listener=bound.listener,
        in_event_loop=in_event_loop,
        services=bound.services,
        past=past,
    )
