"""The workflow that runs some children of a distributed Map, each as an execution of its own."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from asl.bindings import Bindings
from asl.compiler import compile_workflow
from asl.core.errors import AslError, StateError
from asl.core.values import Json
from asl.documents.loading import resolve_profile
from asl.effects.services import MapItem
from asl.engine.execution import ROLE, execution_id
from asl.engine.journal_values import write_error, write_spent
from asl.engine.result import Result
from asl.executions.execution_start import ExecutionStart
from asl.program import Program
from asl.states.errors import RaisedError
from asl.stores.executions import ENDED, ExecutionOrigin
from asl.temporal.claims import WorkflowClaim, continue_in_new_run, must_leave
from asl.temporal.payloads import SLICE, SliceMessage, pack, unpack
from asl.temporal.remote import CallGate
from asl.temporal.sizes import check_length
from asl.temporal.slices import read_item
from asl.temporal.workflow_store import SHORTEST, WorkflowClock, WorkflowStore

__all__ = ["SliceWorkflow"]


@workflow.defn(name=SLICE, sandboxed=False)
class SliceWorkflow:
    """Runs children of a distributed Map to their ends."""

    def __init__(self) -> None:
        self._clock = WorkflowClock()
        self._gate = CallGate(must_leave)

    @workflow.run
    async def run(self, message: SliceMessage) -> str:
        """Run the children and return their packed outcomes, in the order of the items.

        Raises:
            ApplicationError: The document has errors, the history cannot be continued, or the
                outcomes are too large.
        """
        try:
            children = self._open(message)
            await asyncio.gather(*(each.run() for each in children))
        except AslError as error:
            raise ApplicationError(str(error), type="States.Runtime", non_retryable=True) from None
        content = pack([each.content() for each in children])
        try:
            check_length(content, f"what {len(children)} items of a distributed Map lead to")
        except StateError as error:
            raise ApplicationError(error.cause or "", type=error.name, non_retryable=True) from None
        if any(each.outcome is None for each in children):
            continue_in_new_run({**message, "content": content})
        return content

    def _open(self, message: SliceMessage) -> list[_Child]:
        """Return the children: new ones, or those of an earlier run."""
        program = compile_workflow(
            unpack(message["document"]), resolve_profile(message["profile"]), message["workflow"]
        )
        items = [read_item(each) for each in unpack(message["items"])]
        known = unpack(message["content"]) if "content" in message else [None] * len(items)
        bindings: Bindings = json.loads(message.get("bindings", "{}"))
        children = []
        for (data, item), content in zip(items, known, strict=True):
            child = _Child(_name(message, item), item, self._clock, self._gate, bindings)
            if content is None:
                child.begin(program, data, message)
            else:
                child.resume(program, content)
            children.append(child)
        return children


class _Child:
    """A child in a store of its own, which keeps each look into it short.

    Args:
        name: Name of the execution, which is its id.
        item: The item.
        clock: The time of the workflow.
        gate: Admits the calls of the workflow.
        bindings: Bindings in the workflow.
    """

    def __init__(
        self,
        name: str,
        item: MapItem,
        clock: WorkflowClock,
        gate: CallGate,
        bindings: Bindings,
    ) -> None:
        self.name = name
        self.outcome: Json = None
        """Output, error and spending; None until the end."""
        self._item = item
        self._clock, self._gate, self._bindings = clock, gate, bindings
        self._store: WorkflowStore | None = None
        """Holds the execution until its end."""

    def begin(self, program: Program, data: Json, message: SliceMessage) -> None:
        """Create the execution."""
        self._store = store = WorkflowStore(self._clock)
        origin = ExecutionOrigin(message["workflow_id"], ROLE)
        new = ExecutionStart(self.name, program, data, message["express"], None, origin)
        store.executor.record(new)
        store.session.flush()

    def resume(self, program: Program, content: Json) -> None:
        """Take over what an earlier run returned as `content`."""
        if "outcome" in content:
            self.outcome = content["outcome"]
            return
        self._store = WorkflowStore(self._clock)
        self._store.reader.put_program(program)
        self._store.import_execution(content)

    def content(self) -> Json:
        """Return the outcome, or the execution for the next run."""
        if self._store is None:
            return {"outcome": self.outcome}
        return self._store.brief_export(self.name)

    async def run(self) -> None:
        """Run the child until it ends or the workflow leaves its run."""
        gate = self._gate
        while self._store is not None:
            claim = WorkflowClaim(self._clock.now, gate, item=self._item)
            result = await self._store.executor.resume(self.name, self._bindings, True, None, claim)
            if result.status in ENDED:
                self.outcome, self._store = _outcome(result), None
            elif gate.is_leaving():
                return
            else:
                await self._wait(self._store.seconds_until_due(self.name, result))

    async def _wait(self, seconds: float | None) -> None:
        """Return after a time, or when the workflow leaves its run."""
        timeout = None if seconds is None else timedelta(seconds=max(SHORTEST, seconds))
        with suppress(TimeoutError):
            await workflow.wait_condition(self._gate.is_leaving, timeout=timeout)


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
