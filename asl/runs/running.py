"""Runs of workflows: `asl.run` and `asl.arun`."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from asl.bindings import (
    NO_INPUT,
    Bindings,
    NoOptions,
    add_template_workflows,
    bind,
    check_input,
    check_name,
    refuse_running_loop,
    refuse_unknown,
    resolve_clock,
    takes_bindings,
)
from asl.core.document import Document, Loadable
from asl.core.profile import NO_QUOTAS, Profile
from asl.core.values import Json, copy_foreign
from asl.documents.compiling import prepare, resolve_program
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

if TYPE_CHECKING:
    from asl.aws import Integrations

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
    aws: Integrations | None = None,
    **unknown: Unpack[NoOptions],
) -> Result:
    """Run a workflow to its end and return the result; blocks the caller.

    A workflow that fails is a result, not an exception: see `result.status`, `result.error` and
    `result.raise_for_status()`. Without a store nothing is kept after the call.

    Args:
        workflow: A document (`asl.load`), its path, text or dict, or a compiled program.
        input: Execution input, copied; `{}` by default.
        profile: Rules of the language: `"default"`, `"aws"`, `"lenient"` or a `Profile`. Not
            allowed with a compiled program.
        clock: `"wall"` (default) for real time, `"virtual"` to skip waits, or a clock object.
        name: Name of the execution; random by default.
        express: Whether to run an express execution; False by default.
        requestor: Name of the user who starts the execution, None if unknown.
        ignore_blocks: Whether to run a document without its agent blocks, whose limits are then
            not enforced; False by default. Not allowed with a compiled program.
        agents: Handlers of Task states by `Agent`: a function `(parameters)` or
            `(parameters, call)`, plain or async, the name of one (`"module:function"`), or a
            script (`{"return": ...}`).
        resources: Handlers by `Resource`; names may be patterns with `*`.
        mocks: Handlers by the name of the Task state; they win over `agents` and `resources`.
        tools: Tools that agents may call (`call.tools`) as far as the document allows: handlers
            as above, `asl.Tool`s with a description and a schema, or MCP servers, whose tools are
            named `NAME/TOOL`.
        tokens: Task tokens (`asl.TaskTokens`) through which `.waitForTaskToken` and activities
            are answered from outside.
        workflows: Workflows that Workflow states and `startExecution` may start, by id or ARN.
        prices: Price of one token by model: a number or `{"input": ..., "output": ...}`.
        buckets: Buckets of distributed Maps by name: folders, URLs of object stores, or
            dictionaries.
        pools: Amount of money in each pool that budgets name.
        memory: Storage of Memory blocks and caches: the path of a file, the URL of a server
            (`redis://...`, `dynamodb://TABLE`), an `asl.Memory`, or a mapping with one of them
            for each backend that documents name. By default it ends with the run.
        approvals: Function `(request)` or `(request, call)`, plain or async, that answers
            approval requests: it returns an option, an answer object, or None to decide later.
            Without it an Approval state makes the execution `PAUSED`; `result.pending` lists its
            requests.
        notify: Receiver of approval requests, reminders and escalations: a function `(kind,
            request, details)`, plain or async, a channel such as `"console"`, `"jsonl:FILE"` or
            `"apprise:URL"`, or a list of them.
        request_link: URL of the page of a request for notifications:
            `https://host/requests/{request}`.
        listener: Plain function `(event)`, called with each event of the history as it happens.
            An object with a method `of(execution)` provides one for each execution.
        sinks: Receivers of the events that a document sends to its channels, by name or type of
            the channel, `"*"` for all others: a plain function `(event, channel)`,
            `"module:function"`, `"jsonl:FILE"` or `"stdout"`. They run in threads; their errors
            are counted in `result.deliveries`.
        checkpoints: Storages that Checkpoint states may name: folders, or mappings from an id to
            JSON, such as a dictionary.
        policy: The operator's limits for every document, as a file or a mapping: tools, hosts,
            files, and the images and folders of sandboxes.
        middleware: Async functions `(effect, proceed)` around each call, timer, request and child
            execution, the outermost first (`asl.Middleware`).
        aws: Calls of AWS's services for resources and buckets without a binding
            (`asl.aws.integrations()`); None, the default, for no call.

    Returns:
        The result: `status`, `output`, `error`, `cause`, `events`, `usage` and more.

    Raises:
        InvalidDocument: The document has errors; the exception carries the report.
        DocumentNotFound: No file exists at the path.
        NotJson: The input is not a JSON value.
        AslError: An argument is invalid, or an event loop is running (use `await asl.arun`).
        TypeError: A keyword argument is unknown.

    Example:
        >>> state = {"Type": "Task", "Agent": "Greeter", "End": True}
        >>> document = {"StartAt": "Greet", "States": {"Greet": state}}
        >>> asl.run(document, "Ada", agents={"Greeter": lambda name: f"Hi, {name}"}).output
        'Hi, Ada'
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
        "aws": aws,
    }
    chosen = resolve_clock(clock)
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
    """Run a workflow on the running asyncio event loop; arguments and errors as for `asl.run`.

    Cancelling the call cancels the execution and everything it started. With a virtual clock the
    execution has an event loop of its own, in a thread.

    Args:
        workflow: A document, its path, text or dict, or a compiled program.
        input: Execution input, copied; `{}` by default.
        profile: Rules of the language, as for `asl.run`.
        clock: `"wall"` (default), `"virtual"` or a clock object.
        name: Name of the execution; random by default.
        express: Whether to run an express execution; False by default.
        requestor: Name of the user who starts the execution, None if unknown.
        ignore_blocks: Whether to run a document without its agent blocks; False by default.
        **bindings: `agents`, `resources` and all other bindings of `asl.run`.

    Returns:
        The result of the execution; a workflow that fails is a result.

    Raises:
        InvalidDocument: The document has errors; the exception carries the report.
        NotJson: The input is not a JSON value.
        AslError: An argument is invalid.
    """
    refuse_unknown(arun, bindings)
    chosen = resolve_clock(clock)
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
    """Return the coroutine of a whole run."""
    workflow, bindings = add_template_workflows(workflow, bindings)
    program = resolve_program(workflow, profile, ignore_blocks)
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
