"""The front door for runs: whole workflows, states alone, and the mocks of other tools."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from asl.bindings import (
    NO_INPUT,
    Bindings,
    NoOptions,
    bind,
    check_input,
    check_name,
    clock_of,
    refuse_running_loop,
    refuse_unknown,
    takes_bindings,
)
from asl.core.document import Document, What
from asl.core.errors import AslError
from asl.core.profile import NO_QUOTAS, Profile
from asl.core.values import Json, detached
from asl.documents import document_of, prepare, profile_of, program_of, with_siblings
from asl.effects.clock import Clock, VirtualClock, WallClock
from asl.effects.driving import drive
from asl.effects.middleware import Middleware
from asl.effects.run import execute
from asl.engine.events import Event
from asl.engine.execution import ROLE, Identity
from asl.engine.memory import Memory
from asl.engine.result import Result
from asl.program import Program

if TYPE_CHECKING:
    import os

    from asl.effects.tokens import TaskTokens
    from asl.effects.trial import StateResult

__all__ = ["aresume", "arun", "give_feedback", "load_mocks", "resume", "run", "test_state"]


@takes_bindings
def run(
    workflow: Program | Document | What,
    input: Json = NO_INPUT,
    *,
    profile: str | Profile | None = None,
    clock: str | Clock = "wall",
    name: str | None = None,
    express: bool = False,
    requestor: str | None = None,
    ignore_blocks: bool = False,
    agents: Mapping[str, Any] | None = None,
    resources: Mapping[str, Any] | None = None,
    mocks: Mapping[str, Any] | None = None,
    tools: Mapping[str, Any] | None = None,
    tokens: TaskTokens | None = None,
    workflows: Mapping[str, Program | Document | What] | None = None,
    prices: Mapping[str, Any] | None = None,
    buckets: Mapping[str, Any] | None = None,
    pools: Mapping[str, Any] | None = None,
    memory: str | os.PathLike[str] | Memory | Mapping[str, Any] | None = None,
    approvals: Callable[..., object] | None = None,
    notify: str | Callable[..., object] | Iterable[Any] | None = None,
    request_link: str | None = None,
    listener: Callable[[Event], None] | None = None,
    sinks: Mapping[str, Any] | None = None,
    checkpoints: Mapping[str, Any] | None = None,
    policy: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    middleware: Sequence[Middleware] | None = None,
    **unknown: Unpack[NoOptions],
) -> Result:
    """Run a workflow to its end and return what it came to; blocks the caller.

    The names in the document are bound by `agents`, `resources`, `mocks`, `tools`, `workflows`,
    `buckets`, `pools`, `sinks` and `checkpoints`, each a mapping from names. What the run may use
    beside them are `tokens`, `prices`, `memory`, `approvals`, `notify`, `request_link`, `listener`,
    `policy` and `middleware`. A failed workflow is a result.

    Args:
        workflow: The document, its path or its text, or a program.
        input: The input, copied; `{}` if absent.
        profile: That of `compile`, for what is not compiled yet.
        clock: `"wall"`, `"virtual"` or a clock object.
        name: The name of the execution, a random one by default.
        express: Whether it is an express execution.
        requestor: Who starts it.
        ignore_blocks: That of `compile`, for what is not compiled yet.
        agents: Who answers for `Agent`: a function `(parameters)` or `(parameters, call)`, plain or
            async, `"module:function"`, or a script (`{"return": ...}`).
        resources: The same for `Resource`, with `*` in patterns.
        mocks: The same for Task states, by their names; they win.
        tools: What agents may use (`call.tools`) as far as the document lets them: agents as above,
            `Tool`s with a description and a schema, or MCP servers, whose tools are called
            `NAME/TOOL`.
        tokens: The desk where the outside answers `.waitForTaskToken` and activities.
        workflows: What Workflow states and `startExecution` may start, by id or ARN.
        prices: The price of one token by model, a number or `{"input": ..., "output": ...}`.
        buckets: The buckets of distributed Maps: folders, URLs of object stores, or dictionaries.
        pools: How much money there is in each pool that budgets name.
        memory: Where Memory blocks and caches keep their values: the path of a file, the URL of a
            server (`redis://...`, `dynamodb://TABLE`), an `asl.Memory`, or one of them for each
            backend that documents name. By default they end with the run.
        approvals: Who answers for people: a function `(request)` or `(request, call)`, plain or
            async, that returns an option, an answer object, or None for later. Without it an
            Approval makes the execution `PAUSED`, and `result.pending` says what is asked.
        notify: Who hears of requests, reminders and escalations: a function `(kind, request,
            details)`, plain or async, a channel such as `"console"`, `"jsonl:FILE"` or
            `"apprise:URL"`, or a list of them.
        request_link: The URL of the page of a request, which notifications show:
            `https://host/requests/{request}`.
        listener: A plain function that gets every event of the history as it happens; one with a
            method `of(execution)` returns one for each execution.
        sinks: Who takes the events that a document sends to its channels, by the name or the type
            of a channel, `"*"` for all others: a plain function `(event, channel)`,
            `"module:function"`, `"jsonl:FILE"` or `"stdout"`. It runs in a thread, and what it
            raises is counted in `result.deliveries`.
        checkpoints: The storages that a Checkpoint may name: folders, or anything that takes JSON
            by an id, such as a dictionary.
        policy: What the operator allows every document: tools, hosts, files, images and folders of
            sandboxes, in a file or a mapping.
        middleware: Async functions `(effect, proceed)` around each call, timer, request and child
            execution, the outermost first (`asl.Middleware`).

    Raises:
        InvalidDocument: The document has errors.
        NotJson: The input is no JSON value.
        AslError: There is other misuse.
    """
    refuse_unknown(run, unknown)
    refuse_running_loop()
    bindings: Bindings = {
        "agents": agents,
        "resources": resources,
        "mocks": mocks,
        "tools": tools,
        "tokens": tokens,
        "workflows": workflows,
        "prices": prices,
        "buckets": buckets,
        "pools": pools,
        "memory": memory,
        "approvals": approvals,
        "notify": notify,
        "request_link": request_link,
        "listener": listener,
        "sinks": sinks,
        "checkpoints": checkpoints,
        "policy": policy,
        "middleware": middleware,
    }
    chosen = clock_of(clock)
    work = _execution(
        workflow, input, profile, chosen, False, bindings, ignore_blocks,
        name, express, requestor,
    )  # fmt: skip
    return drive(work, chosen)


@takes_bindings
async def arun(
    workflow: Program | Document | What,
    input: Json = NO_INPUT,
    *,
    profile: str | Profile | None = None,
    clock: str | Clock = "wall",
    name: str | None = None,
    express: bool = False,
    requestor: str | None = None,
    ignore_blocks: bool = False,
    **bindings: Unpack[Bindings],
) -> Result:
    """Run a workflow on the running asyncio event loop; see `run`.

    Cancelling the call cancels the execution and all it has started. On a virtual clock the
    execution gets an event loop of its own, in a thread.
    """
    refuse_unknown(arun, bindings)
    chosen = clock_of(clock)
    in_event_loop = isinstance(chosen, WallClock)
    work = await prepare(
        _execution, workflow, input, profile, chosen, in_event_loop, bindings, ignore_blocks,
        name, express, requestor,
    )  # fmt: skip
    return await (work if in_event_loop else _in_thread(work, chosen))


async def _in_thread(work: Coroutine[Any, Any, Result], clock: Clock) -> Result:
    """Drive an execution on an event loop of its own, in a thread."""
    from asyncio import get_running_loop

    from asl.effects.threads import run_in_thread

    result: Result = await run_in_thread(get_running_loop(), drive, work, clock)
    return result


def _execution(
    workflow: Program | Document | What,
    data: Json,
    profile: str | Profile | None,
    clock: Clock,
    in_event_loop: bool,
    bindings: Bindings,
    ignore_blocks: bool,
    name: str | None,
    express: bool,
    requestor: str | None,
) -> Coroutine[Any, Any, Result]:
    """Return the whole run, not yet begun."""
    workflow, bindings = with_siblings(workflow, bindings)
    program = program_of(workflow, profile, ignore_blocks)
    check_name(name)
    if program.profile.quotas is not NO_QUOTAS:
        data = detached(data)
        check_input(data, program.profile)
    bound = bind(bindings, program, ignore_blocks=ignore_blocks)
    return execute(
        program,
        data,
        bound.find,
        clock,
        Identity(name, express=express, requestor=requestor),
        foreign=True,
        buckets=bound.buckets,
        listener=bound.listener,
        in_event_loop=in_event_loop,
        services=bound.services,
    )


@takes_bindings
def resume(
    result: Result,
    checkpoint: str,
    *,
    document: Document | What | None = None,
    force: bool = False,
    clock: str | Clock = "wall",
    **bindings: Unpack[Bindings],
) -> Result:
    """Go on with an execution from a checkpoint of its result; blocks the caller.

    The execution keeps its id, and what it has spent stays spent. A virtual clock goes on from the
    end of the execution. No binding is kept from the first run.

    Args:
        result: What the execution came to.
        checkpoint: The name of a checkpoint (the latest of that name) or its id.
        document: Another document, only with `force`, and only where that has the state.
        force: Whether another document may go on.
        clock: As for `run`; so are all others.

    Raises:
        CheckpointRefused: CheckpointNotFound, CheckpointExpired, CheckpointIncompatible, or
            NotResumable for an execution that did not fail.
    """
    refuse_unknown(resume, bindings)
    refuse_running_loop()
    chosen = _clock_after(result, clock)
    work = _resumption(document, result, checkpoint, force, chosen, False, bindings)
    return drive(work, chosen)


@takes_bindings
async def aresume(
    result: Result,
    checkpoint: str,
    *,
    document: Document | What | None = None,
    force: bool = False,
    clock: str | Clock = "wall",
    **bindings: Unpack[Bindings],
) -> Result:
    """Go on from a checkpoint on the running asyncio event loop; see `resume`."""
    refuse_unknown(aresume, bindings)
    chosen = _clock_after(result, clock)
    in_event_loop = isinstance(chosen, WallClock)
    work = await prepare(
        _resumption, document, result, checkpoint, force, chosen, in_event_loop, bindings
    )
    return await (work if in_event_loop else _in_thread(work, chosen))


def _clock_after(result: Result, clock: str | Clock) -> Clock:
    """Return the clock for an execution that goes on after its end."""
    return VirtualClock(result.ended) if clock == "virtual" else clock_of(clock)


def _resumption(
    document: Document | What | None,
    result: Result,
    checkpoint: str,
    force: bool,
    clock: Clock,
    in_event_loop: bool,
    bindings: Bindings,
) -> Coroutine[Any, Any, Result]:
    """Check whether an execution can go on from a checkpoint; return the run that does."""
    from dataclasses import replace

    from asl.engine.past import past_of

    if not isinstance(result, Result):
        raise AslError(f"what goes on is a Result, not {type(result).__name__}")
    execution, now = result.execution, clock.now()
    program = execution.program
    if document is not None:
        program = replace(program_of(document, program.profile, False), name=program.name)
    past = past_of(result, checkpoint, program, now, force)
    bound = bind(bindings, program)
    return execute(
        program,
        execution.input,
        bound.find,
        clock,
        Identity(
            name=execution.name,
            workflow_id=execution.workflow_id,
            express=execution.express,
            requestor=execution.requestor,
            started=execution.started,
            redrives=execution.redrives + 1,
            redriven=now,
        ),
        foreign=True,
        buckets=bound.buckets,
        listener=bound.listener,
        in_event_loop=in_event_loop,
        services=bound.services,
        past=past,
    )


def give_feedback(
    result: Result,
    feedback_id: str,
    answer: Json,
    *,
    memory: str | os.PathLike[str] | Memory | Mapping[str, Any],
    by: str = "anonymous",
    clock: str | Clock = "wall",
) -> dict[str, Json]:
    """Keep what somebody says about a result, and return it as it is kept.

    `feedback_id` is one of `result.feedback`; `result` comes from a run or from a store. It is kept
    in `memory` (what `run` takes by this name) under the namespace that the request calls `store`,
    where Memory blocks find it; of each person the latest answer.

    Raises AnswerRefused for an answer that does not fit, AslError for an unknown request.
    """
    from asl.core.errors import AslError
    from asl.engine.memory import MemoryEntry
    from asl.expr.times import format_timestamp
    from asl.memories import bound
    from asl.states.blocks.feedback import judged

    asked = {request["feedbackId"]: request for request in result.feedback}
    if feedback_id not in asked:
        from asl.core.diagnostics import did_you_mean

        hint = did_you_mean(feedback_id, asked)
        raise AslError(
            f"nobody asked for the feedback {feedback_id!r}" + (f" ({hint})" if hint else "")
        )
    request, now = asked[feedback_id], clock_of(clock).now()
    record: dict[str, Json] = {
        "feedbackId": feedback_id,
        "answer": judged(request, detached(answer)),
        "by": by,
        "answeredAt": format_timestamp(now),
    }
    if "question" in request:
        record["question"] = request["question"]
    entry = MemoryEntry(f"{feedback_id}/{by}", record, now, None)
    place = f"memory:{request['store']}"
    bound(memory)["memory"].change(place, entry.key, now, lambda known: entry)
    return record


def load_mocks(
    file: str | os.PathLike[str],
    case: str,
    *,
    machine: str | None = None,
    document: Program | Document | What | None = None,
) -> dict[str, Any]:
    """Read a test case of a mock configuration file of Step Functions Local, for `mocks=`.

    `machine` names the state machine where it is neither the only one, nor called like the
    document, nor the only one with such a case. With `document` the case may only mock Tasks that
    the document has. What is wrong raises AslError, a line with the place for each fault.
    """
    from asl.agents.mock_file import load_mocks as load

    if document is None:
        return dict(load(file, case, machine=machine))
    if isinstance(document, Program):
        steps = [step for each in document.machines.values() for step in each.steps.values()]
        states, name = {step.name: step.type for step in steps}, document.name
    else:
        from asl.checks.workflow import taken_apart
        from asl.core.profile import DEFAULT

        loaded = document_of(document)
        nodes = taken_apart(loaded.value, DEFAULT).nodes()
        states, name = {node.name: node.value.get("Type", "") for node in nodes}, loaded.name
    return dict(load(file, case, machine=machine, states=states, workflow=name))


def test_state(
    definition: Document | What,
    input: Json = NO_INPUT,
    *,
    state: str | None = None,
    mock: Mapping[str, Any] | None = None,
    context: Mapping[str, Json] | None = None,
    variables: Mapping[str, Json] | None = None,
    level: str = "INFO",
    reveal_secrets: bool = False,
    configuration: Mapping[str, Any] | None = None,
    agents: Mapping[str, Any] | None = None,
    resources: Mapping[str, Any] | None = None,
    profile: str | Profile = "aws",
    clock: str | Clock = "virtual",
    role: str | None = ROLE,
) -> StateResult:
    """Run one state alone, as AWS's TestState does; blocks the caller.

    `definition` is a state, or a document in which `state` names one, in a branch or a processor as
    well. `mock` answers instead of its work: `{"result": value}` or `{"errorOutput": {"error": ...,
    "cause": ...}}`; a Task without one asks `agents` and `resources`. `context` is the whole
    context object, `variables` are there before the state. `level` is `INFO`, or `DEBUG` or `TRACE`
    for what becomes of the data on the way. `configuration` has AWS's names: `retrierRetryCount`,
    `mapIterationFailureCount`, `errorCausedByState`, `mapItemReaderData`. `role` is the role that
    the context object names.

    A state that fails is a result. Raises InvalidTest for what AWS refuses to test, InvalidDocument
    for a definition with errors, and AslError for other misuse.
    """
    from asl.effects.trial import tested

    loaded, chosen_profile = document_of(definition), profile_of(profile)
    chosen = clock_of(clock)
    refuse_running_loop()
    return tested(
        loaded,
        input,
        state=state,
        mock=mock,
        context=context,
        variables=variables or {},
        level=level,
        reveal_secrets=reveal_secrets,
        configuration=configuration or {},
        profile=chosen_profile,
        find=bind({"agents": agents, "resources": resources}).find,
        clock=chosen,
        role=role,
    )


test_state.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for one of its own
