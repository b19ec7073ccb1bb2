"""Resumption of executions from a checkpoint of their result."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Unpack

from asl.bindings import (
    Bindings,
    bind,
    refuse_running_loop,
    refuse_unknown,
    resolve_clock,
    takes_bindings,
)
from asl.core.document import Document, Loadable
from asl.core.errors import AslError
from asl.documents.compiling import prepare, resolve_program
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
    """Resume an execution from a checkpoint of its result; blocks the caller.

    The execution keeps its id, and its usage so far counts. A virtual clock continues at the end
    of the execution. Bindings of the first run are not kept: pass them again.

    Args:
        result: Result of an execution that failed, timed out or was aborted.
        checkpoint: Name of a checkpoint (the latest of that name) or its id.
        document: Changed document to resume with, None for the same one. Needs `force`, and the
            state at which the checkpoint resumes.
        force: Whether a changed document is accepted; False by default.
        clock: `"wall"` (default), `"virtual"` or a clock object.
        **bindings: `agents`, `resources` and all other bindings of `asl.run`.

    Returns:
        The result of the resumed execution.

    Raises:
        CheckpointNotFound: The result has no such checkpoint.
        CheckpointExpired: The checkpoint is older than its `TTL`.
        CheckpointIncompatible: The document has changed, or the checkpoint was saved in a branch
            or an iteration.
        NotResumable: The execution succeeded, is running or is paused.
        AslError: An argument is invalid.
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
    """Resume from a checkpoint on the running asyncio event loop; see `asl.resume`."""
    refuse_unknown(aresume, bindings)
    chosen = _clock_after(result, clock)
    in_event_loop = isinstance(chosen, WallClock)
    work = await prepare(
        _resumption, document, result, checkpoint, force, chosen, in_event_loop, bindings
    )
    return await (work if in_event_loop else run_apart(work, chosen))


def _clock_after(result: Result, clock: str | Clock) -> Clock:
    """Return the clock of a resumed execution; a virtual one starts at the end of *result*."""
    return VirtualClock(result.ended) if clock == "virtual" else resolve_clock(clock)


def _resumption(
    document: Document | Loadable | None,
    result: Result,
    checkpoint: str,
    force: bool,
    clock: Clock,
    in_event_loop: bool,
    bindings: Bindings,
) -> Coroutine[Any, Any, Result]:
    """Check that an execution can be resumed; return the coroutine that resumes it."""
    if not isinstance(result, Result):
        raise AslError(f"resume() needs a Result, got {type(result).__name__}")
    execution, now = result.execution, clock.now()
    program = execution.program
    if document is not None:
        program = replace(resolve_program(document, program.profile, False), name=program.name)
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
