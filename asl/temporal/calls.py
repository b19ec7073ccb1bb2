"""What an agent needs of its call, and what comes back, as JSON.

The workflow writes a call, and a worker performs it with a frame that shows the same: key, attempt,
token, limits, blocks, rights and what is left of the budget. Events and usage within the call come
back with its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NotRequired, Self, TypedDict, cast

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.agent_caller import AgentCaller
from asl.effects.local import LocalEffects
from asl.effects.memory_service import memory_settings
from asl.effects.policy_levels import (
    ReadHooks,
    policy_levels_of,
    read_levels,
    root_execution,
    write_levels,
)
from asl.engine.agent import Call
from asl.engine.execution import Identity
from asl.engine.frame import Frame
from asl.engine.journal_values import read_error, write_error
from asl.engine.usage import CallUsage, usage_of_failure
from asl.states.blocks.memory import MemoryAccess
from asl.states.blocks.progress import Milestone, ProgressPlan, ReportedProgress
from asl.states.blocks.streaming import StreamPlan
from asl.states.calls import CallOptions, CallPart, Target
from asl.states.errors import BudgetOverrun, Suspension
from asl.temporal.budgets.call_accounts import (
    WORKFLOW_EVENTS,
    count_begun,
    count_used,
    open_ledger,
    write_ledger,
)
from asl.temporal.payloads import CallMessage, TurnOutcome
from asl.temporal.turns import WorkerTurn

__all__ = [
    "CallOutcome",
    "RemoteFrame",
    "apply_outcome",
    "identity_of_call",
    "read_options",
    "read_target",
    "write_call",
]

_OF_DOCUMENT: Final = ("Metadata", "QueryLanguage")
"""Parts of the document that a call needs: the definitions of its agents."""


class CallOutcome(TypedDict):
    """What a call comes back with."""

    answer: NotRequired[Json]
    error: NotRequired[Json]
    """The error in the form of `write_error`, instead of the answer."""
    usage: NotRequired[dict[str, Json]]
    """Usage reported with the error."""
    overrun: NotRequired[bool]
    """Whether the error is that of a limit around the state, which the agent cannot handle."""
    lost: NotRequired[bool]
    """Whether the usage of the failed call is unknown."""
    reports: list[Json]
    """Events and usage within the call, in order."""
    progress: NotRequired[Json]
    unshown: NotRequired[str]
    """Streamed text that may not be shown yet."""
    turn: NotRequired[TurnOutcome]
    """What the call waits for, instead of an answer."""


# In the workflow


def write_call(target: Target, payload: Json, call: Call) -> CallMessage:
    """Return the message with a call.

    Raises:
        StateError: A computed policy is invalid.
    """
    frame, caller = call.at, cast("AgentCaller", call.performer)
    execution = frame.execution
    outer = root_execution(execution)
    rights = policy_levels_of(caller.runtime, frame, call.tool_rules)
    document = {name: outer.program.document[name] for name in _OF_DOCUMENT
                if name in outer.program.document}  # fmt: skip
    if memory := memory_settings(frame):
        document["Memory"] = dict(memory)
    return CallMessage(
        kind=target.kind,
        name=target.name,
        state=target.state,
        helper=target.is_helper,
        optional=target.optional,
        payload=payload,
        options=_write_options(call.options, frame.now),
        key=frame.visit_key,
        retries=frame.retries,
        redrives=execution.redrives,
        entered=frame.entered,
        progress=_write_progress(frame),
        rights=write_levels(rights),
        budget=frame.remaining_budgets(),
        ledger=write_ledger(frame),
        tracking=list(caller.runtime.current_services().tools.tracking_of(outer.program.document)),
        document=document,
        profile=execution.program.profile.name,
        execution=execution.name,
        workflow=execution.workflow_id,
        express=execution.express,
        requestor=frame.requestor,
    )


def _write_options(options: CallOptions | None, now: float) -> dict[str, Json]:
    if options is None:
        return {}
    return {
        "timeout": options.timeout,
        "heartbeat": options.heartbeat,
        "elapsed": None if options.start is None else now - options.start,
        "state": options.state,
        "credentials": options.credentials,
        "part": None if options.part is None else list(options.part),
        "blocks": {
            name: _write_block(name, value)
            for name, value in options.blocks.items()
            if name not in ("tools", "turn")
        },
    }


def _write_block(name: str, value: Json) -> Json:
    return list(value) if name in ("memory", "progress", "stream") else value


def _write_progress(frame: Frame) -> Json:
    known = frame.progress
    if known is None or known.visit != frame.visit:
        return None
    return [known.update, list(known.reached)]


def apply_outcome(outcome: CallOutcome, call: Call) -> Json:
    """Record what happened within a call, and return its answer, None if it waits for requests.

    Raises:
        StateError: It failed.
    """
    frame, caller = call.at, cast("AgentCaller", call.performer)
    now = caller.now()
    excess: StateError | BudgetOverrun | None = None
    for kind, *report in outcome["reports"]:
        if kind == "usage":
            frame.account(*report)
        elif kind == "begun":
            count_begun(frame, *report)
        elif kind == "used":
            try:
                count_used(frame, *report)
            except (StateError, BudgetOverrun) as error:  # raised after the other reports
                excess = excess or error
        else:
            event, details, time = report
            frame.now = max(frame.now, min(time, now))
            frame.note(event, details)
    frame.now = now
    calls = caller.persistence.calls
    if (progress := outcome.get("progress")) is not None:
        update, reached = progress
        frame.progress = ReportedProgress(frame.visit, update, tuple(reached))
        calls.record_progress(frame)
    if "unshown" in outcome:
        frame.partial_answer = outcome["unshown"]
        calls.record_unshown_text(frame, frame.partial_answer)
    if isinstance(excess, BudgetOverrun) and outcome.get("overrun"):
        raise excess
    if "error" in outcome:
        raise _read_failure(outcome)
    return outcome.get("answer")


def _read_failure(outcome: CallOutcome) -> StateError:
    error = read_error(outcome["error"])
    error.usage, error.lost = outcome.get("usage"), outcome.get("lost", False)
    return error


# In the worker


def read_target(message: CallMessage) -> Target:
    """Return the target of a call."""
    return Target(
        message["kind"],
        message["name"],
        message["state"],
        is_helper=message["helper"],
        optional=message["optional"],
    )


def identity_of_call(message: CallMessage, read_hooks: ReadHooks) -> Identity:
    """Return the identity of the execution that calls.

    Args:
        message: The call.
        read_hooks: Compiles the hooks of its tool policies.
    """
    return Identity(
        name=message["execution"],
        workflow_id=message["workflow"],
        express=message["express"],
        requestor=message["requestor"],
        redrives=message["redrives"],
        rights=read_levels(message["rights"], read_hooks),
    )


def read_options(message: CallMessage, now: float) -> CallOptions | None:
    """Return the limits and blocks of a call.

    Args:
        message: The call.
        now: Epoch seconds of its worker's clock.
    """
    written = message["options"]
    if not written:
        return None
    part = written["part"]
    options = CallOptions(
        written["timeout"],
        written["heartbeat"],
        written["state"],
        written["credentials"],
        None if part is None else CallPart(part[0], part[1], now),
    )
    elapsed = written["elapsed"]
    options.start = None if elapsed is None else now - elapsed
    options.blocks = {name: _read_block(name, value) for name, value in written["blocks"].items()}
    return options


def _read_block(name: str, value: Json) -> object:
    if name == "memory":
        return MemoryAccess(*value)
    if name == "stream":
        return StreamPlan(*value)
    if name == "progress":
        milestones, *others = value
        return ProgressPlan(tuple(Milestone(*each) for each in milestones), *others)
    return value


class RemoteFrame(Frame):
    """The machine of a call as its agent sees it, and the events within the call."""

    path = ""
    visit_key = ""
    retries = 0
    scopes = []  # never changed
    budget: Mapping[str, dict[str, Json]]
    reports: list[Json]
    turn: WorkerTurn

    def begin(self, frame: Frame, message: CallMessage) -> Self:
        """Set the attributes of a call that the execution *frame* performs, and return it."""
        self.init(frame.execution, frame.effects, frame.step, None, frame.now)
        self.visit_key, self.path = message["key"], message["key"].rpartition("/")[0]
        self.retries, self.entered = message["retries"], message["entered"]
        self.budget, self.reports = message["budget"], []
        self.turn = WorkerTurn(message.get("turn"))
        if (progress := message["progress"]) is not None:
            self.progress = ReportedProgress(self.visit, progress[0], tuple(progress[1]))
        if message["ledger"] is not None:
            open_ledger(self, frame, self.reports, message["name"], message["ledger"])
        return self

    def note(self, event: str, details: dict[str, Json]) -> None:
        """Collect an event for the workflow, unless the workflow records it."""
        if event not in WORKFLOW_EVENTS:
            self.reports.append(["note", event, details, self.now])

    def account(self, state: str, result: Json) -> CallUsage:
        """Count reported usage, and collect it for the workflow."""
        self.reports.append(["usage", state, usage_of_failure(result)])
        return self.execution.account(state, result)

    def remaining_budgets(self) -> dict[str, dict[str, Json]]:
        """Return the remaining amounts of limits at the start of the call."""
        return {name: dict(each) for name, each in self.budget.items()}

    async def outcome(self, target: Target, payload: Json, options: CallOptions | None) -> Json:
        """Call the agent; its failure is data."""
        found: CallOutcome = {"reports": self.reports}
        caller = cast("LocalEffects", self.effects).caller
        caller.runtime.persistence = self.turn.persistence
        reported: dict[str, Json] | None = None
        try:
            agent = caller.find(target)
            found["answer"] = await caller.ask_agent(self, target, payload, options, agent, None)
            reported = usage_of_failure(found["answer"])
        except Suspension:
            waiting = self.turn.outcome
            if waiting is None:
                raise
            found["turn"] = waiting
            if waiting["budget"]:  # its events will be recorded again
                self.reports[:] = [each for each in self.reports if each[0] != "note"]
        except BudgetOverrun as overrun:
            found["error"], found["overrun"] = write_error(overrun.error), True
        except StateError as error:
            found["error"] = write_error(error)
            reported = None if error.usage is None else dict(error.usage)
            if reported is not None:
                found["usage"] = reported
            if error.lost:
                found["lost"] = True
        if reported is not None:  # the workflow counts it with the answer
            own = ["usage", target.state, usage_of_failure(reported)]
            last = max((at for at, each in enumerate(self.reports) if each == own), default=None)
            if last is not None:
                del self.reports[last]
        if self.progress is not None:
            found["progress"] = [self.progress.update, list(self.progress.reached)]
        if self.partial_answer is not None:
            found["unshown"] = self.partial_answer
        return found
