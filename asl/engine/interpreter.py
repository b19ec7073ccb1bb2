"""The one loop that runs every machine: the workflow, each branch, each iteration.

It walks the longest stretch of pure states synchronously, awaits only where a state reaches the
world, and owns Retry and Catch. It awaits nothing but host methods and knows no clock, no event
loop and no randomness of its own, so that any host can drive it.
"""

from asl.core.errors import StateError
from asl.core.values import Json, measure
from asl.engine.frame import Frame
from asl.engine.records import BROKEN, CAUGHT, ENTERED, EXITED, FAILED, RETRIED, STRETCH
from asl.program import Catcher, Retrier, Step

__all__ = ["interpret"]

MAX_DELAY = 99_999_999.0
"""Seconds that an uncapped back-off may reach."""

TICK = 10_000
"""Pure states between two calls of `host.tick`: an endless loop of them stays cancellable."""


async def interpret(frame: Frame) -> Json:
    """Run the machine of *frame* from where it stands; return its output or raise StateError."""
    emit = frame.execution.emit
    limit = frame.execution.program.profile.max_transitions
    step: Step | None = frame.step
    data = frame.data
    try:
        while step is not None:
            if step.work is not None:
                data, step = await _perform(frame, step, data)
                continue
            first, given, variables = step, data, frame.variables
            visit, visited = frame.visit, 0
            frame.draws = 0
            frame.entered = frame.now
            try:
                for visited in range(1, TICK + 1):
                    choose = step.choose
                    if choose is not None:
                        step, data = choose(data, frame)
                    else:
                        transform = step.transform
                        if transform is None:
                            visited -= 1
                            break
                        data = transform(data, frame)
                        step = step.next
                    if step is None:
                        break
            finally:
                frame.visit = visit + visited
                emit((STRETCH, frame.now, frame, visit, first, given, variables, visited, step))
            if frame.visit > limit:
                raise StateError("States.Runtime", f"a machine made more than {limit} transitions")
            if visited == TICK:
                frame.step, frame.data = step or first, data
                await frame.host.tick(frame)
    except StateError as error:
        visit = frame.visit if step is None or step.work else frame.visit - 1
        emit((BROKEN, frame.now, frame, visit, step, error))
        raise
    return data


async def _perform(frame: Frame, step: Step, data: Json) -> tuple[Json, Step | None]:
    """Run one state that reaches the world, with its retriers and catchers."""
    emit = frame.execution.emit
    visit, variables = frame.visit, frame.variables
    frame.step, frame.data = step, data
    frame.entered = frame.now
    frame.draws = frame.retries = 0
    frame.attempts = None
    emit((ENTERED, frame.now, frame, visit, step, data, variables))
    next_step = step.next
    work = step.work
    assert work is not None
    answered: tuple[Json] | None = None
    while True:
        failure = None
        try:
            result = await work(data, frame)
            if frame.execution.program.profile.checks_every_state:
                _check_size(frame, step, result)
            output = result if step.finish is None else step.finish(data, result, frame)
        except StateError as error:
            failure = error
        if failure is None:
            answered = (result,)
            break
        emit((FAILED, frame.now, frame, visit, step, failure))
        delay = _retry_delay(frame, step.retriers, failure)
        if delay is not None:
            emit((RETRIED, frame.now, frame, visit, step, failure, delay, frame.retries))
            await frame.host.sleep_until(frame, frame.now + delay)
            continue
        catcher = _catcher(step.catchers, failure)
        if catcher is None:
            raise failure
        error_output = {"Error": failure.name or "", "Cause": failure.cause or ""}
        output, next_step = catcher.output(data, error_output, frame), catcher.next
        emit((CAUGHT, frame.now, frame, visit, step, failure, next_step))
        break
    emit(
        (
            EXITED, frame.now, frame, visit, step,
            answered, output, variables, frame.variables, next_step,
        )
    )  # fmt: skip
    frame.visit = visit + 1
    return output, next_step


def _check_size(frame: Frame, step: Step, result: Json) -> None:
    limit = frame.execution.program.profile.max_payload
    if measure(result, limit) > limit:
        raise StateError(
            "States.DataLimitExceeded",
            f"The state/task '{step.name}' returned a result with a size exceeding the maximum "
            "number of bytes service limit.",
        )


def _retry_delay(
    frame: Frame, retriers: tuple[Retrier, ...], error: StateError
) -> float | None:
    """Return the seconds to wait before the state runs again, None if it does not.

    The first retrier that matches decides, even when it is exhausted; each one has its own
    counter for the visit (Specification 4.3).
    """
    for index, retrier in enumerate(retriers):
        if retrier.matches(error):
            attempts = frame.attempts = frame.attempts or {}
            done = attempts.get(index, 0)
            if done >= retrier.max_attempts:
                return None
            attempts[index] = done + 1
            frame.retries += 1
            return _delay(retrier, done + 1, frame)
    return None


def _delay(retrier: Retrier, attempt: int, frame: Frame) -> float:
    most = MAX_DELAY if retrier.max_delay is None else retrier.max_delay
    try:
        delay = min(most, retrier.interval * retrier.backoff_rate ** (attempt - 1))
    except OverflowError:
        delay = most
    if retrier.jitter == "FULL":
        return delay * frame.entropy() / 2**128
    if retrier.jitter == "DECORRELATED":
        previous = min(most, 3.0 ** (attempt - 1) * retrier.interval)
        spread = 3 * previous - retrier.interval
        return min(most, retrier.interval + spread * frame.entropy() / 2**128)
    return delay


def _catcher(catchers: tuple[Catcher, ...], error: StateError) -> Catcher | None:
    return next((catcher for catcher in catchers if catcher.matches(error)), None)
