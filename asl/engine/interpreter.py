"""The interpreter: one loop that runs every machine (the workflow, each branch, each iteration).

It runs the longest stretch of pure states synchronously, awaits only effects
(`asl.states.effects.Effects`) and agents that these have called, and applies Retry and Catch. It
has no clock, event loop or randomness of its own, so that any runtime can drive it.
"""

from collections.abc import Callable
from typing import Any

from asl.core.errors import StateError, cause_for, too_large
from asl.core.values import Json, measure
from asl.engine.events import needs_state_name
from asl.engine.execution import DEFAULT_IDENTITY, FAIR, Execution, Identity
from asl.engine.frame import Frame
from asl.engine.live_history import open_live_history
from asl.engine.records import AGAIN, BROKEN, CAUGHT, EXITED, FAILED, RETRIED, STRETCH
from asl.program import Program, Retrier, Step
from asl.states.effects import ABSENT, Effects
from asl.states.errors import CallbackError

__all__ = ["UNFINISHED", "begin", "interpret", "run_pure_states"]

MAX_DELAY = 99_999_999.0
"""Maximum back-off in seconds without `MaxDelaySeconds`."""

TICK = 10_000
"""Number of pure states between two calls of `Effects.yield_`, which keep an endless loop
cancellable."""
EFFECT = 400
"""Steps of work that an effect counts as, in addition to its evaluations."""
SERIES = FAIR // EFFECT
"""Number of effects after which a machine yields to others, regardless of its work."""
_TICK = range(1, TICK + 1)
_ONE = range(1, 2)

UNFINISHED: Json = object()


def begin(
    program: Program,
    data: Json,
    effects: Effects[Frame],
    identity: Identity = DEFAULT_IDENTITY,
    draw: Callable[[], str] = str,
    history: list[Any] | None = None,
) -> Frame:
    """Return the top machine of a new execution at its first state, for `interpret`.

    Args:
        program: The compiled workflow.
        data: The input; never changed.
        effects: Performs the effects of its states, and takes its records.
        identity: Identity of the execution; it starts now by default.
        draw: Returns a name for an execution without one.
        history: List to which the effects append records, for a `Result`; None for no history.
    """
    began = identity.started
    if began is None:
        began = effects.runtime.now()
    execution = Execution().init(program, data, began, [] if history is None else history,
                                 identity, draw)  # fmt: skip
    execution.emit = effects.record
    return Frame().init(execution, effects, program.machine.start, data, began)


def run_pure_states(frame: Frame) -> Json:
    """Run a machine of pure states without a coroutine and without records; return its output.

    Returns UNFINISHED after `TICK` states: `interpret` continues from there.
    """
    step, data = frame.step, frame.data
    execution = frame.execution
    for visited in _TICK:
        transform = step.transform
        if transform is not None:
            data, following = transform(data, frame), step.next
        else:
            assert step.choose is not None
            following, data = step.choose(data, frame)
        tired = execution.work is not None and execution.count_work()
        if following is None:
            return data
        step = following
        if tired:
            frame.visit = visited
            break
    else:
        frame.visit = TICK
    frame.step, frame.data = step, data
    if frame.execution.counter is not None:
        frame.execution.counter.left -= 2 * frame.visit
    return UNFINISHED


async def interpret(frame: Frame) -> Json:
    """Run a machine from its current state and return its output.

    Raises:
        StateError: The machine fails.
    """
    execution, data = frame.execution, frame.data
    step: Step | None = frame.step
    visit, visited = frame.visit, 0
    emit, program = execution.emit, execution.program
    limit, checks_size = program.profile.max_transitions, program.profile.checks_every_state
    effects, direct, counter = frame.effects, frame.effects.direct, execution.counter
    performed, most = 0, program.profile.max_effects
    pause = most if most < SERIES else SERIES
    between, ahead, tired = None, _TICK, False
    if program.after_transition is not None and frame.parent is None:
        between, ahead = program.after_transition, _ONE
    try:
        while step is not None:
            if tired:
                await effects.yield_(frame)
                tired = False
            first, given = step, data
            variables, visited = frame.variables, 0
            if counter is not None:
                limit = min(program.profile.max_transitions, visit + counter.room())
            if between is not None:
                frame.step, frame.data = step, data
                await between(frame)
            try:
                for visited in ahead if visit + TICK <= limit else _up_to(limit, visit, ahead):
                    transform = step.transform
                    if transform is not None:
                        data = transform(data, frame)
                        step = step.next
                    else:
                        choose = step.choose
                        if choose is None:
                            visited -= 1
                            break
                        step, data = choose(data, frame)
                    if step is None:
                        break
                    if execution.work is not None and execution.count_work():
                        tired = True
                        break
            finally:
                frame.visit = visit = visit + visited
                # With a hook between states, the next one is not entered yet.
                emit((STRETCH, frame.now, frame, visit, None if between and visited else step,
                      first, given, variables, execution.usage, visited, data,
                      frame.variables))  # fmt: skip
            if step is None:
                break
            frame.step, frame.data = step, data
            if checks_size:
                _check_size(frame, data)
            if visit >= limit:
                raise _too_long(frame)
            work, call, finish = step.work, step.call, step.finish
            if work is None or (between and visited):
                tired = tired or between is None or visit % TICK == 0
                continue
            frame.entered, variables = frame.now, frame.variables
            while True:
                if tired:
                    await effects.yield_(frame)
                if performed == pause:
                    pause = await _next_pause(frame, performed)
                performed += 1
                answer = ABSENT
                try:
                    if (
                        call is None
                        or direct is None
                        or (asked := direct.begin(frame, step, data)) is None
                    ):
                        output = await work(data, frame)
                    else:
                        try:
                            output = await asked
                        except BaseException as error:  # user code; other exceptions propagate
                            blamed = direct.map_error(frame, call, error)
                            raise blamed from cause_for(blamed, error)
                        output = direct.accept_answer(frame, call, output)
                    if checks_size:
                        _check_size(frame, output)
                    answer = output
                    goto = step.next if step.route is None else step.route(data, answer, frame)
                    if finish is not None:
                        output = finish(data, answer, frame)
                        if checks_size:
                            _check_size(frame, output)
                except StateError as error:
                    failure = error
                    tired = execution.work is not None and execution.count_work()
                else:
                    tired = execution.work is not None and execution.count_work()
                    emit((EXITED, frame.now, frame, visit, step,
                          answer, output, variables, frame.variables, goto))  # fmt: skip
                    data, step = output, goto
                    break
                caught = await _recovered(frame, step, failure, answer)
                if caught is not None:
                    data, step = caught
                    break
            frame.visit = visit = visit + 1
    except StateError as error:
        _broken(frame, step, data, error, visited)
        raise
    return data


def _broken(frame: Frame, step: Step | None, data: Json, error: StateError, visited: int) -> None:
    """Record the failure of a machine; *visited* is the number of pure states just run."""
    if step is not None:
        frame.step, frame.data = step, data
        if visited and step.work is None:  # the failed state is counted already
            frame.visit -= 1
    frame.execution.emit((BROKEN, frame.now, frame, frame.visit, step, error))


async def _next_pause(frame: Frame, performed: int) -> int:
    """Yield to other machines; return the number of effects after which to yield again.

    Raises:
        StateError: States.Runtime; the machine has reached its maximum number of effects.
    """
    most = frame.execution.program.profile.max_effects
    if performed >= most:
        hint = "give its loop a counter, or raise the bound: --quota max_effects=N"
        raise StateError("States.Runtime", f"a machine made more than {most} attempts: {hint}")
    frame.execution.work_since_yield += EFFECT * SERIES
    await frame.effects.yield_(frame)
    return min(most, performed + SERIES)


def _up_to(limit: int, visit: int, numbers: range) -> range:
    """Return the states that may run in one go near the limit."""
    return range(1, 1 + min(len(numbers), limit - visit))


async def _recovered(
    frame: Frame, step: Step, failure: StateError, answer: Json
) -> tuple[Json, Step | None] | None:
    """Retry or catch a failed attempt of the current state; raise the error if neither applies.

    Returns:
        None if the state runs again (the back-off is over), else the output and the next state of a
        catcher.
    """
    emit, visit, data, variables = frame.execution.emit, frame.visit, frame.data, frame.variables
    emit((FAILED, frame.now, frame, visit, step, failure, answer))
    delay = _retry_delay(frame, step.retriers, failure)
    if delay is not None:
        emit((RETRIED, frame.now, frame, visit, step, failure, delay, frame.retries))
        await frame.effects.timer(frame, frame.now + delay)
        usage = frame.execution.usage
        emit((AGAIN, frame.now, frame, visit, step, data, variables, usage, frame.retries))
        return None
    for catcher in step.catchers:
        if catcher.matches(failure):
            output = catcher.output(data, _error_output(frame, failure), frame)
            emit((CAUGHT, frame.now, frame, visit, step, failure, catcher.next))
            emit(
                (EXITED, frame.now, frame, visit, step, ABSENT, output, variables,
                 frame.variables, catcher.next)
            )  # fmt: skip
            return output, catcher.next
    raise failure


def _error_output(frame: Frame, failure: StateError) -> Json:
    """Return a catcher's error output; AWS leaves missing parts of a callback null (recorded)."""
    if isinstance(failure, CallbackError) and frame.execution.program.profile.aws:
        return {"Error": failure.name, "Cause": failure.cause}
    return {"Error": failure.name or "", "Cause": _cause(frame, failure) or ""}


def _cause(frame: Frame, failure: StateError) -> str | None:
    """Return a cause in AWS's form: one of the engine names the state and its entry event."""
    if not (frame.execution.has_history and needs_state_name(failure)):
        return failure.cause
    return open_live_history(frame.execution).cause(failure)


def _too_long(frame: Frame) -> StateError:
    profile, counter = frame.execution.program.profile, frame.execution.counter
    if counter is not None and frame.visit < profile.max_transitions:
        return counter.error()
    cause = f"a machine made more than {profile.max_transitions} transitions"
    return StateError("States.Runtime", cause)


def _check_size(frame: Frame, value: Json) -> None:
    limit = frame.execution.program.profile.max_payload
    if measure(value, limit) > limit:
        frame.discard()
        raise too_large(frame.step.name)


def _retry_delay(frame: Frame, retriers: tuple[Retrier, ...], error: StateError) -> float | None:
    """Return the seconds to wait before the state runs again, None if it does not.

    The first matching retrier decides, even if it is exhausted; each one has its own counter for
    the visit (Specification 4.3).
    """
    for index, retrier in enumerate(retriers):
        if retrier.matches(error):
            done, previous = frame.attempts.get(index, (0, retrier.interval))
            if done >= retrier.max_attempts:
                return None
            delay = _delay(retrier, done + 1, previous, frame)
            frame.attempts[index] = done + 1, delay
            return delay
    return None


def _delay(retrier: Retrier, attempt: int, previous: float, frame: Frame) -> float:
    most = MAX_DELAY if retrier.max_delay is None else retrier.max_delay
    try:
        delay = min(most, retrier.interval * retrier.backoff_rate ** (attempt - 1))
    except OverflowError:
        delay = most
    if retrier.jitter == "FULL":
        return delay * frame.entropy() / 2**128
    if retrier.jitter == "DECORRELATED":
        spread = 3 * previous - retrier.interval
        return min(most, retrier.interval + spread * frame.entropy() / 2**128)
    return delay
