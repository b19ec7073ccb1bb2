"""Child executions that may take only so long."""

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.runtime import RuntimeContext
from asl.engine.frame import Frame
from asl.engine.interpreter import interpret
from asl.engine.records import BROKEN

__all__ = ["interpret_in_time"]


async def interpret_in_time(runtime: RuntimeContext, frame: Frame) -> Json:
    """Run a child as `interpret` does; an execution of its own fails when its time is over.

    Raises:
        StateError: `States.Timeout` for that, or the error of the machine.
    """
    assert frame.parent is not None
    own = frame.parent.execution is not frame.execution
    end = frame.execution.deadline if own else None
    if end is None:
        return await interpret(frame)
    await runtime.event_loop()
    from asyncio import timeout

    try:
        async with timeout(max(0.0, end - runtime.now())) as limit:
            return await interpret(frame)
    except TimeoutError as late:
        if not limit.expired():
            raise
        error = StateError("States.Timeout", None)
        frame.now = runtime.now()
        frame.execution.emit((BROKEN, frame.now, frame, frame.visit, frame.step, error))
        raise error from late
