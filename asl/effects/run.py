"""One execution from start to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from os import urandom
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from asl.core.errors import AslError, StateError
from asl.core.profile import NO_QUOTAS
from asl.core.values import Json, copy_foreign, fits
from asl.effects.agent_caller import AgentCaller
from asl.effects.budget_gate import LedgerGate, shared_budgets_of
from asl.effects.clock import Clock
from asl.effects.delivery import Delivery, delivery_of
from asl.effects.local import LocalEffects
from asl.effects.runtime import Listener, RuntimeContext
from asl.effects.services import Services
from asl.effects.threads import run_in_thread
from asl.effects.tool_enforcement import require_enforceable
from asl.engine.agent import Find
from asl.engine.document_blocks import computed_blocks, document_block
from asl.engine.events import Event
from asl.engine.execution import DEFAULT_IDENTITY, Execution, Identity
from asl.engine.frame import Frame
from asl.engine.interpreter import begin, interpret
from asl.engine.journal import Journal
from asl.engine.ledger import Ledger
from asl.engine.live_history import count_events, open_live_history
from asl.engine.pools import shared_names
from asl.engine.result import OpenRequests, Result
from asl.engine.resume_point import ResumePoint
from asl.engine.usage import UNSPENT, ExecutionSpending
from asl.program import Program
from asl.states.blocks.budget_limits import BudgetLimits
from asl.states.effects import Record
from asl.states.errors import ExecutionTimeout, Suspension
from asl.states.map_data import Bucket

if TYPE_CHECKING:
    from asyncio import Task

__all__ = ["drawn_name", "execute", "uncancel"]


async def execute(
    program: Program,
    data: Json,
    find: Find,
    clock: Clock,
    identity: Identity = DEFAULT_IDENTITY,
    foreign: bool = False,
    buckets: Mapping[str, Bucket] = MappingProxyType({}),
    listener: Listener | None = None,
    in_event_loop: bool = False,
    services: Services | None = None,
    parent: RuntimeContext | None = None,
    within: Frame | None = None,
    counted: ExecutionSpending = UNSPENT,
    begins: Callable[[Execution], object] | None = None,
    journal: Journal | None = None,
    past: ResumePoint | None = None,
) -> Result:
    """Run *program* on *data*; a failed workflow is a result, not an exception.

    Pass the parameters after *identity* by name; enforcing that would cost each call time.

    Args:
        program: The compiled workflow.
        data: The input.
        find: Returns the agent of a target.
        clock: Clock of the execution.
        identity: Identity of the execution.
        foreign: Whether input and output belong to user code: the input is copied, the output is
            checked against the size limit of the profile.
        buckets: Buckets that a distributed Map may use, by name.
        listener: Receives every event as it happens. Its method `of`, if any, returns the listener
            of this execution, whose method `within`, if any, returns that of an execution that a
            state starts.
        in_event_loop: Whether the caller awaits on an event loop; otherwise one is requested on
            demand.
        services: Services of the run.
        parent: Runtime context of the parent execution.
        within: Machine of the parent whose budget applies as well.
        counted: Part of the spending that the parent has counted.
        begins: Receives the execution at its start.
        journal: Journal to record in and continue from; None without a store.
        past: Point to resume from without a journal.

    Raises:
        NotJson: The input of user code is not a JSON value.
    """
    if foreign:
        data = copy_foreign(data)
    history: list[Any] = []
    runtime = RuntimeContext().init(execute, clock, buckets, in_event_loop)
    caller = AgentCaller().init(runtime, find, program.profile.max_payload)
    effects = LocalEffects().init(runtime, caller, history.extend)
    frame = begin(program, data, effects, identity, drawn_name, history)
    execution, now = frame.execution, runtime.now
    began = execution.started
    if begins is not None:
        begins(execution)
    limited = program.profile.quotas is not NO_QUOTAS
    if program.timeout is not None or identity.limit is not None or limited:
        runtime.deadline = execution.deadline
        if in_event_loop and runtime.deadline is not None:
            runtime.keep_time()
    delivery = None
    if listener is not None or program.has_channels:
        listener, delivery = _listened(execution, listener, services)
    if services is not None or parent is not None:
        _share(effects, frame, services, parent)
    if journal is not None or past is not None:
        _go_on(effects, frame, journal, past)
    if limited:
        _count_events(execution)
    status, output, failure, cut = "SUCCEEDED", None, None, False
    try:
        if services is not None and services.boxes and not _has_begun(execution):
            require_enforceable(execution, services)
        if program.settle is not None:
            _settled(execution, services)
        if program.budgeted or within is not None or services is not None:
            limits = _watch(effects, frame, past, within)
            if limits is not None:
                await _join(effects, frame, limits, within, counted)
        output = await interpret(frame)
        if execution.counter is not None:
            execution.counter.check()
    except BaseException as stop:
        cut = not (runtime.expired or isinstance(stop, _ENDS))
        if cut:
            raise
        status, failure = _come_to(effects, frame, stop)
    finally:
        ended = now()
        if ended < began:  # a clock was set back
            ended = began
        if execution.ledger is not None:
            goes_on = status == "PAUSED" or (cut and journal is not None)
            if not goes_on:
                execution.ledger.close(ended)
        # Breaks the cycle of history, frames and execution.
        execution.emit = effects.record = _ended
        execution.history = []
        if services is not None or runtime.holds:
            await _close(runtime, services, cut)
    if status == "TIMED_OUT":
        runtime.persistence.execution.record_position(frame, failed=False)
    elif foreign and (excess := _excess(output, caller.limit, services)) is not None:
        status, output, failure = "FAILED", None, excess
    result = Result().init(execution, history, status, ended, output, failure)
    if runtime.checkpoints:
        result.checkpoints = runtime.checkpoints
    if services is not None and services.started and parent is None:
        result.started = tuple(services.results())
    if status == "PAUSED":
        asked, tasks = [each for _, each in runtime.pending], [each for _, each in runtime.awaited]
        result.waits = OpenRequests(asked, tasks)
        result.wake = runtime.wake
    elif listener is not None:
        listener(
            open_live_history(execution).expander.end(
                result.status, result.ended, result.end_details()
            )
        )
    if delivery is not None:
        await _delivered(delivery, runtime, clock)
        result.deliveries = delivery.report()
    return result


def _count_events(execution: Execution) -> None:
    """Apply the quota of the history; events from before this process count as well."""
    goes_on = _has_begun(execution)
    count_events(execution)
    if execution.counter is not None and goes_on:
        execution.counter.recount()


def _has_begun(execution: Execution) -> bool:
    """Return whether another process has worked on the execution."""
    return execution.read_earlier_records is not None or bool(execution.history)


def _share(
    effects: LocalEffects,
    frame: Frame,
    services: Services | None,
    parent: RuntimeContext | None,
) -> None:
    """Give an execution the services of its run."""
    execution = frame.execution
    if services is not None:
        runtime = effects.runtime
        runtime.services, runtime.middleware = services, services.middleware
        if services.middleware:
            effects.direct = None
        if services.prices is not None:
            execution.prices = services.prices
        if services.map_runs is not None:
            execution.map_runs = services.map_runs
        if services.map_item is not None and parent is None:
            frame.index, frame.item, frame.source = services.map_item
    if parent is not None:
        effects.runtime.start_within(parent)


def _go_on(
    effects: LocalEffects, frame: Frame, journal: Journal | None, past: ResumePoint | None
) -> None:
    """Attach the journal and restore the last recorded position."""
    if journal is not None:
        _keep(effects, frame, journal)
    if past is not None:
        past.resume(frame, frame.execution.history)
        effects.runtime.checkpoints = tuple(past.checkpoints)


def _keep(effects: LocalEffects, frame: Frame, journal: Journal) -> None:
    """Perform each effect once, and record its answer in a journal."""
    from asl.effects.journaled.effects import journal_effects

    frame.effects = journal_effects(effects, journal, frame)


_ENDS = (StateError, Suspension, ExecutionTimeout)
"""Exceptions that end an execution but not its caller."""


def _come_to(
    effects: LocalEffects, frame: Frame, stop: BaseException
) -> tuple[str, StateError | None]:
    """Return the status and the error of the execution for an exception.

    Any exception after the deadline is the cancellation by the deadline.
    """
    if isinstance(stop, StateError):
        effects.runtime.persistence.execution.record_position(frame, failed=True)
        return "FAILED", stop
    if isinstance(stop, Suspension):
        effects.suspend(frame)
        return "PAUSED", None
    if effects.runtime.expired:
        uncancel()
    return "TIMED_OUT", StateError("States.Timeout", None)


async def _close(runtime: RuntimeContext, services: Services | None, cut: bool) -> None:
    """Close agents and detached executions; the first one of a run ends all."""
    try:
        if services is not None and runtime.first is None:
            await services.settle(cut)
    finally:
        if runtime.holds:
            await runtime.close()


def _listened(
    execution: Execution, listener: Listener | None, services: Services | None
) -> tuple[Listener | None, Delivery | None]:
    """Connect *listener* and the channels of the document to the events of an execution.

    Returns:
        The combined listener (None without any) and the channels.
    """
    own = execution.listener = None if listener is None else _listener_of(execution, listener)
    delivery = _delivery(execution, services)
    if own is None and delivery is None:
        return None, None
    return _listening(execution, own, delivery), delivery


def _listening(execution: Execution, own: Listener | None, delivery: Delivery | None) -> Listener:
    """Connect the listeners to the events of an execution, and return the combined one."""
    if delivery is not None:
        own = _both(own, delivery.listen)
    assert own is not None
    execution.emit = _told(execution, own)
    execution.emit(())
    return own


def _excess(output: Json, limit: int, services: Services | None) -> StateError | None:
    """Return the error of an execution whose output is too large, None for any other."""
    if not fits(output, limit):
        text = f"the output is larger than {limit} bytes or nested without end"
        return StateError("States.DataLimitExceeded", text)
    if services is not None and services.check_output is not None:
        try:
            services.check_output(output)
        except StateError as error:
            return error
    return None


def _watch(
    effects: LocalEffects,
    frame: Frame,
    past: ResumePoint | None,
    within: Frame | None,
) -> BudgetLimits | None:
    """Open the ledger of an execution and return its limits; None if no limit applies.

    Raises:
        StateError: The limits of the document are invalid.
    """
    execution, services = frame.execution, effects.runtime.services
    borrows = within is not None and within.execution.ledger is not None
    ceiling = (
        None if borrows or services is None or services.policy is None else services.policy.budget
    )
    if not (execution.program.budgeted or borrows or ceiling is not None):
        return None
    budget = execution.program.budget
    limits = BudgetLimits("", {}) if budget is None else budget(execution.input, frame)
    ledger = execution.ledger = Ledger(execution, limits)
    if ceiling is not None:
        ledger.apply_ceiling(ceiling)
    if past is not None and past.ledger is not None:
        ledger.restore(past.ledger)
    effects.caller.budget_gate = LedgerGate(effects.caller, ledger, effects.decide)
    effects.runtime.persistence.execution.restore_ledger(ledger)
    return limits


async def _join(
    effects: LocalEffects,
    frame: Frame,
    limits: BudgetLimits,
    within: Frame | None,
    counted: ExecutionSpending,
) -> None:
    """Let an execution spend from the budgets of others, too.

    Raises:
        StateError: A pool is empty.
    """
    execution, services = frame.execution, effects.runtime.current_services()
    ledger = execution.ledger
    assert ledger is not None  # it was opened
    around = None if within is None else within.execution.ledger
    if limits.windows or limits.pool is not None:
        budgets = services.shared_budgets or shared_budgets_of(effects.runtime.clock)
        lenders = () if around is None or within is None else around.accounts(within)
        async with budgets.held(shared_names(limits, execution), starts=True):
            ledger.join(budgets, services.pools, lenders, frame.now)
    if around is not None and within is not None:
        ledger.attach_parent(around, within, counted, frame.now)
    ledger.show_limit()


def _delivery(execution: Execution, services: Services | None) -> Delivery | None:
    """Open the channels of the document, if it has any that can be opened (`_settled`)."""
    if not execution.program.has_channels:
        return None
    try:
        opens = execution.program.may_open_channels
        delivery = execution.delivery = delivery_of(
            partial(document_block, execution), {} if services is None else services.sinks, opens
        )
    except AslError:
        if execution.program.settle is None:
            raise
        return None
    return delivery


def _settled(execution: Execution, services: Services | None) -> None:
    """Compute the blocks of the document.

    Raises:
        StateError: A computed value is invalid, or a channel has no sink.
    """
    if computed_blocks(execution):
        try:
            delivery_of(
                partial(document_block, execution), {} if services is None else services.sinks
            )
        except AslError as error:
            raise StateError("States.Runtime", f"the workflow: Events: {error}") from None


def _both(one: Listener | None, other: Listener) -> Listener:
    """Return a listener that calls both, or the only one."""
    if one is None:
        return other
    first = one

    def listen(event: Event) -> None:
        first(event)
        other(event)

    return listen


async def _delivered(delivery: Delivery, runtime: RuntimeContext, clock: Clock) -> None:
    """Wait for the channels, for a limited time."""
    if not delivery.has_threads:
        return
    if not runtime.in_event_loop:
        delivery.close()
        return
    clock.real_begins()
    try:
        await run_in_thread(await runtime.event_loop(), delivery.close)
    finally:
        clock.real_ends()


def drawn_name() -> str:
    """Return a unique name."""
    return urandom(16).hex()


def _ended(record: Record) -> None:
    """Ignore a record."""


def _listener_of(execution: Execution, listener: Listener) -> Listener:
    """Return the listener of this execution, which may differ between executions."""
    if not hasattr(listener, "of"):
        return listener
    own: Listener = listener.of(execution)
    return own


def _told(execution: Execution, listener: Listener) -> Callable[[Record], None]:
    history, follower = execution.history, open_live_history(execution)

    def emit(record: Record) -> None:
        if execution.read_earlier_records is not None and execution.program.tracks_progress:
            follower.expander.load_progress(execution.read_earlier_records([]))
        history.extend(record)
        for event in follower.new_events():
            listener(event)

    return emit


def uncancel() -> None:
    """Undo the cancellation that ended an execution at its deadline."""
    from asyncio import current_task

    task: Task[object] | None = current_task()
    if task is not None:
        task.uncancel()
