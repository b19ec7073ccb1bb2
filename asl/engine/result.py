"""The result of an execution."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from textwrap import shorten
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from asl.core.errors import AslError, StateError
from asl.core.values import Json, deep_copy, excerpt
from asl.engine.aws_events import export_event
from asl.engine.checkpoints import Checkpoint
from asl.engine.events import ENDINGS, Event, needs_state_name
from asl.engine.execution import Execution
from asl.engine.history import HistoryExpander
from asl.engine.pending_callback import PendingCallback
from asl.engine.progress import progress_report
from asl.engine.records import BROKEN, FAILED, NOTED, each_record
from asl.engine.usage import totals_to_json
from asl.engine.visited_states import names_before_checkpoints, visited_names
from asl.states.approval_request import ApprovalRequest
from asl.states.effects import Record

__all__ = ["ExecutionFailed", "OpenRequests", "Result"]


class ExecutionFailed(AslError):
    """Error of an execution that did not succeed; `result` is its result."""

    def __init__(self, result: "Result") -> None:
        both = " ".join(filter(None, (result.error, result.cause and f"({result.cause})")))
        super().__init__(
            f"the execution {result.name!r} is {result.status}" + (f": {both}" if both else "")
        )
        self.result = result

    @property
    def error(self) -> str | None:
        """The error name, None without one."""
        return self.result.error

    @property
    def cause(self) -> str | None:
        """The cause of the error, None without one."""
        return self.result.cause


class OpenRequests(NamedTuple):
    """Open approval requests, and tasks that wait for the answer to their token."""

    asked: "Sequence[ApprovalRequest]" = ()
    tasks: "Sequence[PendingCallback]" = ()


NO_WAITS: Final = OpenRequests()


class Result:
    """The result of an execution (Specification 1.3); events are computed on access.

    `status` is `SUCCEEDED`, `FAILED`, `TIMED_OUT`, `ABORTED` or `PAUSED`. `output` is None unless
    it succeeded. `error` and `cause` are None if the workflow gave none. `started` has the results
    of executions that states started, in order, without interrupted ones.
    """

    # As with an execution: slots for attributes of every result, and no `__init__`.
    __slots__ = ("__dict__", "_failure", "_flat", "ended", "execution", "status", "value")
    execution: Execution
    progress_report: str
    ended: float
    value: Json
    """The output, shared with the execution's data and never changed."""

    started: "tuple[Result, ...]" = ()
    deliveries: "Mapping[str, Json]" = MappingProxyType({})
    """Delivery of the events of the document by channel: the numbers `delivered`, `failed` and
    `dropped`, and the first `error`."""
    checkpoints: "Sequence[Checkpoint]" = ()
    """Saved checkpoints, oldest first; `asl.resume` continues from one."""
    waits: OpenRequests = NO_WAITS
    """Content of `pending` and `pending_callbacks`."""
    wake: float | None = None
    """Epoch second at which the wait of a `PAUSED` execution is over; None for none."""
    needs: "Sequence[str]" = ()
    """Missing bindings of a `PAUSED` execution, a sentence on each."""

    def init(
        self,
        execution: Execution,
        records: list[Any],
        status: str,
        ended: float,
        output: Json = None,
        failure: StateError | None = None,
    ) -> Self:
        """Set the attributes that every result has, and return it."""
        self.execution = execution
        self._flat = records
        self.status = status
        self.ended = ended
        self.value = output
        self._failure = failure
        return self

    @property
    def records(self) -> Iterator[Record]:
        """The records of the history, in order (`asl.engine.records`)."""
        self.execution.complete(self._flat)
        return each_record(self._flat)

    @property
    def id(self) -> str:
        """Id of the execution, in AWS's form."""
        return self.execution.id

    @property
    def name(self) -> str:
        """Name of the execution."""
        return self.execution.name

    @property
    def ok(self) -> bool:
        """Whether the execution succeeded."""
        return self.status == "SUCCEEDED"

    @property
    def pending(self) -> list[dict[str, Json]]:
        """Open approval requests of a `PAUSED` execution, as approvers see them."""
        return [asked.view for asked in self.waits.asked]

    @property
    def pending_callbacks(self) -> list[dict[str, Json]]:
        """Tasks of a `PAUSED` execution in a store that wait for the answer to their token."""
        return [task.view for task in self.waits.tasks]

    @cached_property
    def output(self) -> Json:
        """A copy of the output, None without one."""
        return deep_copy(self.value)

    @property
    def error(self) -> str | None:
        """The error name, None without one."""
        return None if self._failure is None else self._failure.name

    @cached_property
    def cause(self) -> str | None:
        """The cause; for an error of the engine it names the state and its entry event."""
        failure = self._failure
        if failure is None or not needs_state_name(failure):
            return None if failure is None else failure.cause
        record = self.origin
        if record is None:
            return failure.cause
        _, _, frame, visit, step, *_ = record
        return self._expander().cause(failure, frame, visit, step.name)

    @property
    def origin(self) -> Record | None:
        """The record of the state that raised the error of the execution."""
        return next(
            (
                record
                for record in self.records
                if record[0] in (FAILED, BROKEN) and record[5] is self._failure and record[4]
            ),
            None,
        )

    @cached_property
    def visited(self) -> list[str]:
        """Names of the visited states of the top machine, in order."""
        return visited_names(self.execution, self.records)

    def checkpoints_to_json(self) -> list[dict[str, Json]]:
        """Return the checkpoints as JSON objects with the names of the specification.

        Each also has the `visited` states before it (except in an item of a distributed Map) and,
        with a budget, its report.
        """
        before = names_before_checkpoints(self.execution, self.records)
        return [
            {
                **each.to_json(),
                **each.budget(self.execution),
                **({"visited": before[each.id]} if each.id in before else {}),
            }
            for each in self.checkpoints
        ]

    @cached_property
    def events(self) -> list[Event]:
        """The whole history, in order."""
        expander = HistoryExpander(self.execution)
        events = [expander.start()]
        for record in self.records:
            events.extend(expander.feed(record))
        if self.status in ENDINGS:
            events.append(expander.end(self.status, self.ended, self.end_details()))
        return events

    def history(self) -> dict[str, Json]:
        """Return the whole history in the form of AWS's `GetExecutionHistory`."""
        return {"events": [export_event(event) for event in self.events]}

    @property
    def elapsed(self) -> float:
        """Seconds from start to end on the execution's clock."""
        return self.ended - self.execution.started

    @property
    def usage(self) -> dict[str, Json]:
        """Reported usage: `cost`, `tokens`, and both by state and by model.

        With a budget also `currency`, `byCategory`, `byTag` and `byAttribution`, and `reserved`:
        the highest sum of reservations for concurrent calls.
        """
        execution = self.execution
        found = {
            "cost": float(execution.usage.cost),
            "tokens": execution.usage.tokens,
            "byState": totals_to_json(execution.by_state),
            "byModel": totals_to_json(execution.by_model),
        }
        return found if execution.ledger is None else found | execution.ledger.report()

    @property
    def progress(self) -> dict[str, Json]:
        """The `percentage` of the workflow, and the latest progress of `states`."""
        return progress_report(self.events)

    @property
    def failed_items(self) -> list[dict[str, Json]]:
        """Distributed Maps with failed items, in the order of their ends.

        Each has `state`, `path`, `failed` (number of items), `total` if known, and `failures`:
        index, error and cause of the first ones.
        """
        return [
            {
                "state": record[4].name,
                "path": [*record[2].place, record[4].name],
                **record[6]["itemCounts"],
                "failures": record[6]["failures"],
            }
            for record in self.records
            if record[0] == NOTED and "itemCounts" in record[6]
        ]

    @property
    def feedback(self) -> list[dict[str, Json]]:
        """Feedback requests; answer them with `asl.give_feedback`."""
        asked = (event for event in self.events if event.type == "FeedbackRequested")
        return [event.details for event in asked]

    def raise_for_status(self) -> Self:
        """Return the result itself if the execution succeeded.

        Raises:
            ExecutionFailed: The execution failed, timed out, was aborted or is paused.
        """
        if self.ok:
            return self
        raise ExecutionFailed(self)

    def to_json(self) -> dict[str, Json]:
        """Return the result as a JSON object, without events."""
        found = {
            "status": self.status,
            "output": self.output,
            "error": self.error,
            "cause": self.cause,
            "visited": self.visited,
            "usage": self.usage,
            "elapsed": self.elapsed,
        }
        if self.status == "PAUSED":
            found["pending"] = self.pending
            if self.waits.tasks:
                found["pending_callbacks"] = self.pending_callbacks
        if failed := self.failed_items:
            found["failed_items"] = failed
        absent = ("error", "cause") if self.ok else ("output",)
        return {
            key: value
            for key, value in found.items()
            if key not in absent and not (key in ("error", "cause") and value is None)
        }

    def __repr__(self) -> str:
        if self.status == "PAUSED":
            return f"<Result PAUSED pending={[each['requestId'] for each in self.pending]}>"
        if self.ok:
            return f"<Result {self.status} output={excerpt(self.value, 400)}>"
        cause = self.cause if self.cause is None else shorten(self.cause, 400, placeholder="...")
        return f"<Result {self.status} error={self.error!r} cause={cause!r}>"

    def _expander(self) -> HistoryExpander:
        expander = HistoryExpander(self.execution)
        expander.start()
        for record in self.records:
            for _ in expander.feed(record):
                pass
        return expander

    def end_details(self) -> dict[str, Json]:
        """Return the details of the history's last event."""
        if self.ok:
            return {"output": self.value}
        both = {"error": self.error, "cause": self.cause}
        return {key: value for key, value in both.items() if value is not None}
