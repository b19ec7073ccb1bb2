"""Executions that Workflow states start and wait for (Specification 6.13)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from asl.core.diagnostics import did_you_mean
from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.caller import Caller
from asl.effects.child_execution import PreparedExecution
from asl.effects.policy_levels import policy_levels_of
from asl.effects.runtime import MAX_NESTED, Listener, RuntimeContext
from asl.effects.services import Services
from asl.engine.execution import Execution, Identity, execution_id
from asl.engine.frame import Frame
from asl.engine.result import Result
from asl.engine.usage import UNSPENT, ExecutionSpending, amounts_of, subtract_amounts
from asl.program import Program
from asl.states.effects import ChildWorkflow
from asl.states.errors import BudgetOverrun, RaisedError

__all__ = ["execute_child", "run_child"]


def execute_child(
    prepared: PreparedExecution,
    runtime: RuntimeContext,
    frame: Frame,
    name: str,
    workflow_id: str,
    *,
    express: bool = False,
    limit: float | None = None,
    listener: Listener | None = None,
    within: Frame | None = None,
    counted: ExecutionSpending = UNSPENT,
    begins: Callable[[Execution], object] | None = None,
) -> Coroutine[Any, Any, Result]:
    """Run a prepared execution for the machine *frame*, with its clock and agents."""
    services = runtime.current_services()
    return runtime.execute(
        prepared.program,
        prepared.data,
        services.find,
        runtime.clock,
        Identity(
            name=name,
            workflow_id=workflow_id,
            express=express,
            requestor=frame.requestor,
            started=prepared.started,
            limit=limit,
            redrives=prepared.redrives,
            redriven=prepared.redriven,
            rights=policy_levels_of(runtime, frame),
            role=prepared.role,
        ),
        buckets=runtime.buckets,
        listener=listener,
        in_event_loop=True,
        services=services,
        parent=runtime,
        within=within,
        counted=counted,
        begins=begins,
        journal=prepared.journal,
    )


async def run_child(caller: Caller, frame: Frame, child: ChildWorkflow) -> Json:
    """Run an execution of another workflow and return its output.

    Raises:
        StateError: The execution failed, with its error.
        Suspension: The execution waits for approvals.
    """
    await caller.runtime.event_loop()
    caller.runtime.raise_if_expired()
    if caller.runtime.depth >= MAX_NESTED:
        message = f"executions start one another more than {MAX_NESTED} deep"
        raise StateError("States.Runtime", message)
    services = caller.runtime.current_services()
    begun = caller.persistence.children.begin_child(
        frame, child, lambda: _registered(services, child.workflow)
    )
    result = begun.result
    if result is None:
        result = await _executed(caller, frame, child, begun)
        if begun.journal is not None:
            begun.journal.put_result(result)
    frame.now = caller.runtime.now()
    try:
        caller.runtime.raise_if_ended(frame)
    except BaseException:  # the state was interrupted
        _leave(caller, frame, child, result.execution)
        raise
    if result.status == "PAUSED":
        _leave(caller, frame, child, result.execution)
        caller.runtime.wait_for(result, frame.key)
    _absorb(caller, frame, child, result.execution, result.ok, begun.result is not None)
    if result.ok:
        return result.value
    raise _failure(frame.step.name, child, result)


def _registered(services: Services, id: str) -> Program:
    """Return a workflow that the run may start, named as requested."""
    known = services.workflows or {}
    if id not in known:
        hint = did_you_mean(id, known)
        raise services.missing_binding(
            StateError(
                "States.WorkflowNotFound",
                f"no workflow {id!r} is registered{f' ({hint})' if hint else ''}: run with "
                f"workflows={{{id!r}: DOCUMENT}}, or --workflow {id}=FILE on the command line",
            )
        )
    return replace(known[id], name=id)


async def _executed(
    caller: Caller, frame: Frame, child: ChildWorkflow, prepared: PreparedExecution
) -> Result:
    """Run a child as a task; count its spending if it is interrupted."""
    made: list[Execution] = []
    workflow_id = f"{frame.execution.home}:stateMachine:{child.workflow}"
    work = execute_child(
        prepared,
        caller.runtime,
        frame,
        child.name,
        workflow_id,
        limit=child.timeout,
        listener=frame.child_listener(),
        within=frame,
        counted=caller.persistence.children.counted_spending(child),
        begins=made.append,
    )
    try:
        return await caller.runtime.current_services().start(
            execution_id(workflow_id, child.name, False), work
        )
    except BaseException:  # the spending until the interruption counts
        for execution in made:
            _leave(caller, frame, child, execution)
        raise


def _leave(caller: Caller, frame: Frame, child: ChildWorkflow, execution: Execution) -> None:
    """Count the spending of a child that has not ended and may never be resumed.

    A resumed child meets a limit that this exceeds.
    """
    if execution.spent == caller.persistence.children.counted_spending(child):
        return
    with suppress(StateError, BudgetOverrun):
        _absorb(caller, frame, child, execution)
    caller.persistence.execution.keep_spending()


def _absorb(
    caller: Caller,
    frame: Frame,
    child: ChildWorkflow,
    execution: Execution,
    done: bool = False,
    found: bool = False,
) -> None:
    """Count its spending since the last count.

    Args:
        caller: The agent caller.
        frame: Machine of the parent.
        child: The child workflow.
        execution: The child execution.
        done: Whether it has ended.
        found: Whether it was found ended, without accounts of this process.

    Raises:
        StateError: A limit is exceeded.
    """
    spent, before = execution.spent, caller.persistence.children.counted_spending(child)
    used = frame.execution.absorb(frame.step.name, spent, before)
    if not done:  # it may continue
        caller.persistence.children.record_counted(child, spent)
    if caller.budget_gate is not None:
        if execution.ledger is not None:
            execution.ledger.detach_parent()
        caller.persistence.calls.record_usage(frame, amounts_of(used))
        caller.budget_gate.ledger.absorb(
            frame, used, subtract_amounts(spent.assumed, before.assumed), found
        )


def _failure(state: str, child: ChildWorkflow, result: Result) -> StateError:
    """Return the error of a child that has not succeeded."""
    if result.status == "TIMED_OUT":
        limit = "" if child.timeout is None else f" within {child.timeout:g} s"
        cause = f"state '{state}': the execution {child.name!r} did not end{limit}"
        return RaisedError("States.Timeout", cause)
    if result.status == "ABORTED" and result.error is None:
        cause = result.cause or f"the execution {child.name!r} was stopped"
        return RaisedError("States.TaskFailed", cause)
    return RaisedError(result.error, result.cause)
