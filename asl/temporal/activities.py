"""The activities of a worker: calls of agents and resources, and requests of its memory."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from inspect import isawaitable
from typing import Any, Final, cast

import orjson
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from asl.bindings import Bindings, ResolvedBindings, bind
from asl.compiler import compile_workflow
from asl.core.errors import StateError
from asl.core.profile import DEFAULT
from asl.core.values import Json, compact
from asl.documents.loading import resolve_profile
from asl.effects.checkpoints import store_checkpoint
from asl.effects.clock import Clock, WallClock
from asl.effects.delivery import sink_of
from asl.effects.rate_limits import CallTracking, RateLimiter
from asl.effects.run import execute
from asl.effects.runtime import find_bucket
from asl.effects.tool_registry import ToolRegistry
from asl.engine.exception_mapping import describe_exception
from asl.engine.frame import Frame
from asl.engine.journal_values import write_error
from asl.engine.result import Result
from asl.program import Program
from asl.states.blocks.tool_policy import ToolHook
from asl.states.blocks.tools import CompileRules
from asl.states.calls import Target
from asl.states.errors import RaisedError
from asl.states.items.dataset import Dataset
from asl.states.items.pages import read_page
from asl.states.map_data import ObjectFault
from asl.temporal.budgets.activities import BudgetActivities
from asl.temporal.budgets.call_counts import CallCounts
from asl.temporal.calls import (
    CallOutcome,
    RemoteFrame,
    identity_of_call,
    read_options,
    read_target,
)
from asl.temporal.machines import MachineFinder
from asl.temporal.payloads import (
    BINDING,
    BOUND,
    CALL,
    CHECKPOINT,
    FOREIGN_TOKEN,
    ITEMS,
    MACHINE,
    MEMORY,
    MISSING,
    NOTIFY,
    OBJECT,
    SEND,
    CallMessage,
    MemoryMessage,
    NoticeMessage,
    ObjectMessage,
    TargetMessage,
    unpack_call,
)
from asl.temporal.sizes import check_size
from asl.temporal.token_sender import send_token_answer

__all__ = ["AgentActivities"]

BEAT: Final = 3.0
"""Seconds between two signs of life to the server."""
EXECUTIONS: Final = 1000
"""Number of executions whose tool calls a worker counts."""


class AgentActivities:
    """The activities of a worker.

    Args:
        bindings: What it performs, as for `asl.run`.
        budgets: The shared budgets; None to count tool calls of this process alone.
    """

    def __init__(self, bindings: Bindings, budgets: BudgetActivities | None = None) -> None:
        self._bindings = bindings
        self._budgets = budgets
        self._clock = WallClock()
        self._rates: OrderedDict[str, RateLimiter] = OrderedDict()
        """Counts of tool calls by execution."""
        self._machines: dict[str, MachineFinder] = {}
        """Registered state machines by task queue."""

    @property
    def all(self) -> list[Callable[..., Any]]:
        """All activities, for a worker."""
        return [
            self.call,
            self.await_binding,
            self.is_bound,
            self.remember,
            self.read_items,
            self.write_object,
            self.save_checkpoint,
            self.find_machine,
            self.answer_token,
            self.send_events,
            self.notify,
        ]

    # Calls

    @activity.defn(name=CALL)
    async def call(self, text: str) -> str:
        """Call an agent or a resource, and return its answer with the events of the call.

        Raises:
            ApplicationError: It failed; the type is the name of the error, or `BindingMissing`.
        """
        message = unpack_call(text)
        bound = self._bind(message)
        self.check_binding(message, bound)
        with _beating():
            outcome = _outcome(await self.perform(message, bound), message["name"])
        if "error" in outcome:
            raise _failure(outcome)
        return compact(outcome)

    @activity.defn(name=BINDING)
    async def await_binding(self, text: str) -> None:
        """Return if this worker can perform a call; else the server tries again later.

        Raises:
            ApplicationError: It has no binding.
        """
        message = unpack_call(text)
        self.check_binding(message, self._bind(message))

    @activity.defn(name=BOUND)
    async def is_bound(self, text: str) -> bool:
        """Return whether this worker has a binding."""
        return self.has_binding(json.loads(text))

    def has_binding(self, message: TargetMessage) -> bool:
        """Return whether this worker has a binding."""
        try:
            bind(self._bindings).find(Target(message["kind"], message["name"], message["state"]))
        except StateError:
            return False
        return True

    def check_binding(self, message: CallMessage, bound: ResolvedBindings) -> None:
        """Check that this worker can perform a call.

        Raises:
            ApplicationError: It has no binding.
        """
        if message["optional"]:
            return
        try:
            bound.find(read_target(message))
        except StateError as error:
            if error.name == "States.AgentNotFound":
                raise ApplicationError(
                    error.cause or "", type=MISSING, category=ApplicationErrorCategory.BENIGN
                ) from None
            raise _failure_of(error) from None

    async def perform(self, message: CallMessage, bound: ResolvedBindings) -> Result:
        """Return the result of the execution of a call."""
        if self._budgets is None:
            return await self.execution(message, bound, self._clock, in_event_loop=True)
        counts = CallCounts(self._budgets.client, activity.info().workflow_id or "")
        bound.services.shared_budgets = counts
        try:
            return await self.execution(message, bound, self._clock, in_event_loop=True)
        finally:
            await counts.close()

    def execution(
        self, message: CallMessage, bound: ResolvedBindings, clock: Clock, *, in_event_loop: bool
    ) -> Coroutine[Any, Any, Result]:
        """Return an execution of the call alone, to be awaited or driven."""
        return execute(
            _program_of(message),
            message,
            bound.find,
            clock,
            identity_of_call(message, _read_hooks),
            buckets=bound.buckets,
            in_event_loop=in_event_loop,
            services=bound.services,
        )

    def _bind(self, message: CallMessage) -> ResolvedBindings:
        program = _program_of(message)
        bound = bind(self._bindings, program)
        tools = bound.services.tools = ToolRegistry(bound.services.boxes)
        tracking = CallTracking(*message["tracking"])
        tools.countings[id(program.document)] = tracking, program.document
        tools.rates = self._rates_of(message["execution"])
        if "memory" not in bound.services.memory:  # the next call may run elsewhere
            del bound.services.memory_service.memories["memory"]
        return bound

    def _rates_of(self, execution: str) -> RateLimiter:
        """Return the counts of the tool calls of an execution in this worker."""
        found = self._rates.pop(execution, None) or RateLimiter(is_alone=False)
        self._rates[execution] = found
        if len(self._rates) > EXECUTIONS:
            self._rates.popitem(last=False)
        return found

    # Memory

    @activity.defn(name=MEMORY)
    async def remember(self, text: str) -> str:
        """Perform a request of a memory.

        Raises:
            ApplicationError: The memory is not bound, or the request fails.
        """
        message: MemoryMessage = json.loads(text)
        services = bind(self._bindings).services
        memory = services.memory_service
        if "memory" not in services.memory:
            del memory.memories["memory"]
        try:
            found = await asyncio.to_thread(
                memory.perform,
                message["request"],
                message["settings"],
                message["state"],
                message["now"],
            )
        except StateError as error:
            raise _failure_of(error) from None
        return compact(found)

    # Items and results of distributed Maps

    @activity.defn(name=ITEMS)
    async def read_items(self, text: str) -> str:
        """Return a page of items, or `unmapped` with the reason if they are in no bucket."""
        request: dict[str, Json] = json.loads(text)
        buckets = bind(self._bindings).buckets
        dataset = Dataset.of_request(request, partial(find_bucket, buckets))
        if not dataset.is_mapped:
            return compact({"unmapped": read_page(dataset, 0, 0)["fault"]})
        page = await asyncio.to_thread(read_page, dataset, request["skip"], request["bytes"])
        return compact(page)

    @activity.defn(name=OBJECT)
    async def write_object(self, text: str) -> str:
        """Write an object of a bucket.

        Raises:
            ApplicationError: The bucket is not mapped, or the write fails.
        """
        message: ObjectMessage = json.loads(text)

        def write() -> None:
            bucket = find_bucket(bind(self._bindings).buckets, message["bucket"])
            with bucket.create(message["key"]) as file:
                file.write(message["text"].encode())

        try:
            await asyncio.to_thread(write)
        except (ObjectFault, OSError) as error:
            raise _failure_of(StateError("States.ResultWriterFailed", str(error))) from None
        return "null"

    # Checkpoints

    @activity.defn(name=CHECKPOINT)
    async def save_checkpoint(self, text: str) -> str:
        """Save a checkpoint in its storage.

        Raises:
            ApplicationError: The storage is not bound, or it fails.
        """
        storages = bind(self._bindings).services.storages
        try:
            await asyncio.to_thread(store_checkpoint, storages, json.loads(text))
        except StateError as error:
            raise _failure_of(error) from None
        return "null"

    # Registered state machines

    @activity.defn(name=MACHINE)
    async def find_machine(self, arn: str) -> str:
        """Return a registered state machine (`FoundMachine`), or null, as JSON text.

        Raises:
            StoreError: The registry does not answer.
        """
        queue = activity.info().task_queue
        if queue not in self._machines:
            self._machines[queue] = MachineFinder(activity.client(), queue)
        return compact(await self._machines[queue].find(arn))

    # Task tokens

    @activity.defn(name=FOREIGN_TOKEN)
    async def answer_token(self, text: str) -> str:
        """Answer a task token of another workflow.

        Raises:
            ApplicationError: No task has it, or the task is closed.
        """
        info = activity.info()
        key = f"{info.workflow_run_id}/{info.activity_id}"
        try:
            await send_token_answer(activity.client(), info.task_queue, json.loads(text), key)
        except StateError as error:
            raise _failure_of(error) from None
        return "null"

    # Channels

    @activity.defn(name=SEND)
    async def send_events(self, text: str) -> None:
        """Send events to their channels; a sink that fails or is missing gets none."""
        events: list[Json] = json.loads(text)
        sinks = self._bindings.get("sinks") or {}

        def send() -> None:
            for event, channel in events:
                with suppress(Exception):  # user code, without confirmation
                    sink_of(channel["name"], channel, sinks)(event, channel)

        await asyncio.to_thread(send)

    @activity.defn(name=NOTIFY)
    async def notify(self, text: str) -> bool:
        """Notify people of a request; return whether there are channels.

        Raises:
            ApplicationError: A channel failed.
        """
        message: NoticeMessage = json.loads(text)
        services, failures = bind(self._bindings).services, []
        channels, details = services.channels, message["details"]
        if services.request_link is not None:
            details["link"] = services.request_link(message["request"]["requestId"])
        for channel in channels:
            try:
                sent = channel(message["kind"], message["request"], details)
                if isawaitable(sent):
                    await sent
            except Exception as error:  # user code: the others are sent
                failures.append(describe_exception(error))
        if failures:
            raise ApplicationError("; ".join(failures), non_retryable=True)
        return bool(channels)


def _failure_of(error: StateError) -> ApplicationError:
    """Return the failure of an activity for an error of a state."""
    return _failure(CallOutcome(error=write_error(error), reports=[]))


def _failure(outcome: CallOutcome) -> ApplicationError:
    """Return the failure of an activity, with its outcome as JSON text."""
    _, name, cause = outcome["error"]
    return ApplicationError(
        cause or "",
        compact(outcome),
        type=name or "States.TaskFailed",
        non_retryable=True,
        category=ApplicationErrorCategory.BENIGN,  # the execution reports it, not the log
    )


@contextmanager
def _beating() -> Iterator[None]:
    """Tell the server regularly that the call goes on.

    Raises:
        ApplicationError: The workflow has ended meanwhile: no failure for the log.
    """
    loop = asyncio.get_running_loop()
    planned: asyncio.TimerHandle

    def beat() -> None:
        nonlocal planned
        activity.heartbeat()
        planned = loop.call_later(BEAT, beat)

    planned = loop.call_later(BEAT, beat)
    try:
        yield
    except asyncio.CancelledError:
        details = activity.cancellation_details()
        if details is None or not details.not_found:
            raise
        ended = "the execution has ended"
        raise ApplicationError(ended, category=ApplicationErrorCategory.BENIGN) from None
    finally:
        planned.cancel()


def _outcome(result: Result, name: str) -> CallOutcome:
    """Return the outcome of a call of an agent, which fits into an answer of the server."""
    if result.status == "PAUSED":
        cause = (
            f"the call of {name!r} waits for an answer from outside, which a call on Temporal can "
            "do for consent to tools and for budgets only: let a state of its own wait"
        )
        return CallOutcome(error=write_error(RaisedError("States.Runtime", cause)), reports=[])
    if not result.ok:  # it failed before the agent
        error = RaisedError(result.error or result.status, result.cause)
        return CallOutcome(error=write_error(error), reports=[])
    outcome = cast("CallOutcome", result.output)
    try:
        check_size(compact(outcome), f"the answer of {name!r}")
    except StateError as error:  # before Temporal refuses it and calls the agent again
        return CallOutcome(error=write_error(error), reports=[])
    return outcome


def _program_of(message: CallMessage) -> Program:
    """Return the program of the execution of a call: a state that calls what the message says."""
    target = {"Agent" if message["kind"] == "agent" else "Resource": message["name"]}
    state = {"Type": "Task", **target, "End": True}
    document = {
        **message["document"],
        "StartAt": message["state"],
        "States": {message["state"]: state},
    }
    return _program(compact(document), message["profile"], message["workflow"])


def _read_hooks(blocks: Mapping[str, Json]) -> Mapping[str, ToolHook]:
    """Return the compiled hooks of a tool policy."""
    return {name: _hook(name, compact(block)) for name, block in blocks.items()}


@lru_cache(maxsize=1024)
def _hook(name: str, written: str) -> ToolHook:
    block = orjson.loads(written)
    document = {
        "QueryLanguage": block.pop("QueryLanguage"),
        "DefaultTools": {"Hooks": {name: block}},
        "StartAt": "Hook",
        "States": {"Hook": {"Type": "Succeed"}},
    }
    compile_rules: CompileRules | None = compile_workflow(document, DEFAULT, "hook").tools
    assert compile_rules is not None  # there are DefaultTools
    return compile_rules({}, cast("Frame", None)).hooks[name]


@lru_cache(maxsize=1024)
def _program(document: str, profile: str, workflow: str) -> Program:
    program = compile_workflow(
        orjson.loads(document), resolve_profile(profile), workflow.rpartition(":")[2]
    )
    step = program.machine.start
    step.work, step.call, step.finish = _work, None, None
    return program


def _work(message: Mapping[str, Json], frame: Frame) -> Coroutine[Any, Any, Json]:
    """Return the outcome of the call that a message describes."""
    call = cast("CallMessage", message)
    at = RemoteFrame().begin(frame, call)
    return at.outcome(read_target(call), call["payload"], read_options(call, frame.now))
