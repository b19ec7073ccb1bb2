"""Executions that Workflow states start and wait for (Specification 6.13)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from asl.core.diagnostics import did_you_mean
from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.amounts import NOTHING, spending
from asl.engine.execution import Identity, Usage, execution_id
from asl.engine.result import Result
from asl.hosts.life import MAX_NESTED
from asl.hosts.rights import rights_of
from asl.hosts.run import Listener, execute
from asl.program import Program
from asl.states.errors import Raised
from asl.states.host import Child

if TYPE_CHECKING:
    from asl.engine.frame import Frame
    from asl.engine.journal import Journal
    from asl.hosts.local import LocalHost
    from asl.hosts.services import Services

__all__ = ["Begun", "run_child"]


def _nothing() -> None:
    """Let others at what is kept nowhere, or guarded by whoever has started it."""


class Begun(NamedTuple):
    """An execution that is to go on, from its start or from where it is kept."""

    program: Program
    data: Json
    started: float | None = None
    """When it was started, None for now."""
    journal: Journal | None = None
    """Where it is kept, None for nowhere."""
    result: Result | None = None
    """What it has come to, None for one that is to be run."""
    redrives: int = 0
    redriven: float | None = None
    """How often it went on after its end, and when it last did."""
    leave: Callable[[], object] = _nothing
    """Lets others at it; called when it runs no more."""

    def run(
        self,
        host: LocalHost,
        at: Any,
        name: str,
        workflow_id: str,
        *,
        express: bool = False,
        limit: float | None = None,
        listener: Listener | None = None,
        within: Frame | None = None,
        counted: Usage | None = None,
    ) -> Coroutine[Any, Any, Result]:
        """Run it for the machine *at*, on the clock and with the agents of that one's *host*."""
        services = host.serving()
        return execute(
            self.program,
            self.data,
            services.find,
            host.clock,
            Identity(
                name=name,
                workflow_id=workflow_id,
                express=express,
                requestor=at.requestor,
                started=self.started,
                limit=limit,
                redrives=self.redrives,
                redriven=self.redriven,
                rights=rights_of(host, at),
            ),
            buckets=host.buckets,
            listener=listener,
            in_event_loop=True,
            services=services,
            parent=host,
            journal=self.journal,
            within=within,
            counted=counted,
        )


async def run_child(host: LocalHost, at: Any, child: Child) -> Json:
    """Run an execution of another workflow; return its output.

    Raises the error that it failed with, and Suspended while it waits for people.
    """
    await host.event_loop()
    host.insist_on_time()
    if host.depth >= MAX_NESTED:
        message = f"executions start one another more than {MAX_NESTED} deep"
        raise StateError("States.Runtime", message)
    services = host.serving()
    begun = host.begin_child(at, child, lambda: _registered(services, child.workflow))
    result = begun.result
    if result is None:
        result = await _executed(host, at, child, begun)
        if begun.journal is not None:
            begun.journal.put_result(result)
    at.now = host.now()
    if result.status == "PAUSED":
        if begun.journal is None:  # nobody will go on with it
            at.execution.absorb(at.step.name, result.execution.spent)
        host.wait_for(result)
    _absorb(host, at, child, result, found=begun.result is not None)
    if result.ok:
        return result.value
    raise _failure(at.step.name, child, result)


def _registered(services: Services, id: str) -> Program:
    """Return a workflow that the run may start; its name is the one that it is asked for by."""
    known = services.workflows or {}
    if id not in known:
        hint = did_you_mean(id, known)
        raise StateError(
            "States.WorkflowNotFound",
            f"no workflow {id!r} is registered{f' ({hint})' if hint else ''}: run with "
            f"workflows={{{id!r}: DOCUMENT}}, or --workflow {id}=FILE on the command line",
        )
    return replace(known[id], name=id)


async def _executed(host: LocalHost, at: Any, child: Child, begun: Begun) -> Result:
    """Run it as a task of its own."""
    counted = host.counted(child)
    workflow_id = f"{at.execution.home}:stateMachine:{child.workflow}"
    work = begun.run(
        host,
        at,
        child.name,
        workflow_id,
        limit=child.timeout,
        listener=at.listening(),
        within=at,
        counted=None if counted is None else counted.usage,
    )
    return await host.serving().start(execution_id(workflow_id, child.name, False), work)


def _absorb(host: LocalHost, at: Any, child: Child, result: Result, found: bool) -> None:
    """Count what it has spent; raises as a call of an agent does where that exceeds a limit.

    One that was *found* at its end, as another process left it, has borrowed nothing here.
    """
    spent = result.execution.spent
    used = at.execution.absorb(at.step.name, spent, host.counted(child))
    if not result.ok:  # it may be redriven
        host.count(child, spent)
    if host.meter is not None:
        ledger = result.execution.ledger
        if ledger is not None:
            ledger.give_back()
        assumed = NOTHING if ledger is None else ledger.assumed
        host.used(at, spending(used))
        host.meter.ledger.absorb(at, used, assumed, found)


def _failure(state: str, child: Child, result: Result) -> StateError:
    """Return the error of a child that has not succeeded: its own."""
    if result.status == "TIMED_OUT":
        limit = "" if child.timeout is None else f" within {child.timeout:g} s"
        cause = f"state '{state}': the execution {child.name!r} did not end{limit}"
        return Raised("States.Timeout", cause)
    if result.status == "ABORTED" and result.error is None:
        cause = result.cause or f"the execution {child.name!r} was stopped"
        return Raised("States.TaskFailed", cause)
    return Raised(result.error, result.cause)
