"""Runs of workflows."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Unpack

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
    with_siblings,
)
from asl.core.document import Document, Loadable
from asl.core.profile import NO_QUOTAS, Profile
from asl.core.values import Json, copy_foreign
from asl.documents.compiling import prepare, program_of
from asl.effects.clock import Clock, WallClock
from asl.effects.driver import drive
from asl.effects.middleware import Middleware
from asl.effects.run import execute
from asl.effects.task_tokens import TaskTokens
from asl.effects.threads import run_in_thread
from asl.engine.events import Event
from asl.engine.execution import Identity
from asl.engine.memory import Memory
from asl.engine.result import Result
from asl.program import Program

__all__ = ["arun", "run", "run_apart"]


@takes_bindings
def run(
    workflow: Program | Document | Loadable,
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
    workflows: Mapping[str, Program | Document | Loadable] | None = None,
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
    workflow: Program | Document | Loadable,
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
    return await (work if in_event_loop else run_apart(work, chosen))


async def run_apart(work: Coroutine[Any, Any, Result], clock: Clock) -> Result:
    """Drive an execution on an event loop of its own, in a thread."""
    from asyncio import get_running_loop

    result: Result = await run_in_thread(get_running_loop(), drive, work, clock)
    return result


def _execution(
    workflow: Program | Document | Loadable,
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
        data = copy_foreign(data)
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
