"""The workflow that runs some children of a distributed Map, each as an execution of its own."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from asl.compiler import compile_workflow
from asl.core.errors import AslError
from asl.core.values import Json
from asl.documents.loading import resolve_profile
from asl.effects.services import MapItem
from asl.engine.execution import ROLE, execution_id
from asl.engine.journal_values import write_error, write_spent
from asl.engine.result import Result
from asl.program import Program
from asl.states.errors import RaisedError
from asl.stores.executions import ENDED, ExecutionOrigin
from asl.temporal.claims import WorkflowClaim, has_long_history
from asl.temporal.payloads import SLICE, SliceMessage, pack, unpack
from asl.temporal.remote import CallGate
from asl.temporal.slices import read_item
from asl.temporal.workflow_store import WorkflowClock, WorkflowStore

__all__ = ["SliceWorkflow"]


@workflow.defn(name=SLICE, sandboxed=False)
class SliceWorkflow:
    """Runs children of a distributed Map to their ends."""

    def __init__(self) -> None:
        self.store = WorkflowStore(WorkflowClock())
        self._gate = CallGate(has_long_history)

    @workflow.run
    async def run(self, message: SliceMessage) -> str:
        """Run the children and return their packed outcomes, in the order of the items.

        Raises:
            ApplicationError: The document has errors, or the history cannot be continued.
        """
        items = [read_item(each) for each in unpack(message["items"])]
        names = [_name(message, item) for _, item in items]
        try:
            outcomes = self._open(message, items, names)
            open_ones = [at for at, outcome in enumerate(outcomes) if outcome is None]
            runs = [self._child(names[at], items[at][1]) for at in open_ones]
            for at, outcome in zip(open_ones, await asyncio.gather(*runs), strict=True):
                outcomes[at] = outcome
        except AslError as error:
            raise ApplicationError(str(error), type="States.Runtime", non_retryable=True) from None
        if None in outcomes:
            self._continue_as_new(message, names, outcomes)
        return pack(outcomes)

    def _open(
        self, message: SliceMessage, items: list[tuple[Json, MapItem]], names: list[str]
    ) -> list[Json]:
        """Create the executions, or take over those of an earlier run; return the outcomes so
        far.
        """
        if "content" in message:
            outcomes, unfinished = unpack(message["content"])
            for line in unfinished:
                self.store.import_execution(line)
            return list(outcomes)
        program = compile_workflow(
            message["document"], resolve_profile(message["profile"]), message["workflow"]
        )
        for name, (data, _) in zip(names, items, strict=True):
            self._create(name, program, data, message)
        self.store.session.flush()
        return [None] * len(items)

    def _create(self, name: str, program: Program, data: Json, message: SliceMessage) -> None:
        origin = ExecutionOrigin(message["workflow_id"], ROLE)
        self.store.executor.record(name, program, data, message["express"], None, origin)

    async def _child(self, name: str, item: MapItem) -> Json:
        """Run a child to its end and return its outcome; None if the next run continues it."""
        store, gate = self.store, self._gate
        while True:
            claim = WorkflowClaim(store.clock.now, gate, item=item)
            result = await store.executor.resume(name, {}, True, None, claim)
            if result.status in ENDED:
                store.forget(name)
                return _outcome(result)
            if gate.is_leaving():
                return None
            await self._wait(store.seconds_until_due(name, result))

    async def _wait(self, seconds: float | None) -> None:
        """Return after a time, or when the workflow leaves its run."""
        timeout = None if seconds is None else timedelta(seconds=seconds)
        try:
            await workflow.wait_condition(self._gate.is_leaving, timeout=timeout)
        except TimeoutError:
            return

    def _continue_as_new(
        self, message: SliceMessage, names: list[str], outcomes: list[Json]
    ) -> None:
        """Continue the unfinished children in a new run."""
        unfinished = [
            self.store.brief_export(name)
            for name, outcome in zip(names, outcomes, strict=True)
            if outcome is None
        ]
        workflow.continue_as_new({**message, "content": pack([outcomes, unfinished])})


def _name(message: SliceMessage, item: MapItem) -> str:
    """Return the name of a child in the store, which is its id."""
    name = f"{message['run']}-{item.number}"
    return execution_id(message["workflow_id"], name, message["express"])


def _outcome(result: Result) -> Json:
    """Return the output, the error and the spending of a child as JSON."""
    error = None
    if not result.ok:
        timed_out = result.status == "TIMED_OUT"
        name = "States.Timeout" if timed_out else result.error
        error = write_error(RaisedError(name, None if timed_out else result.cause))
    spent = result.execution.spent
    has_spent = bool(spent.usage.tokens or spent.usage.cost)
    return [result.value, error, write_spent(spent) if has_spent else None]
