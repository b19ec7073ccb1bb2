"""Run, check and test Agent State Language and Amazon States Language documents.

    import asl

    program = asl.compile(asl.load("review.asl.json"))
    result = asl.run(program, {"code": "x"}, agents={"Reviewer": review})
    print(result.status, result.output)

Importing this package is cheap: what a call needs is loaded by that call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from asl.core.errors import (
    AslError,
    DocumentNotFound,
    InvalidDocument,
    InvalidTest,
    NotJson,
    StateError,
)

if TYPE_CHECKING:
    import os
    from decimal import Decimal

    from asl.agents.registry import Registry
    from asl.core.diagnostics import Diagnostic, Report, Severity
    from asl.core.document import Document, What
    from asl.core.profile import Profile
    from asl.core.values import Json
    from asl.engine.agent import Call
    from asl.engine.history import Event
    from asl.engine.result import Result
    from asl.executions import (
        ExecutionBusy,
        ExecutionExists,
        ExecutionNotFound,
        RequestNotFound,
        Store,
    )
    from asl.hosts.clock import Clock, VirtualClock, WallClock
    from asl.hosts.services import Services
    from asl.hosts.tokens import TaskTokens
    from asl.hosts.trial import StateResult
    from asl.program import Program
    from asl.states.decisions import AnswerRefused
    from asl.states.objects import Bucket

__version__ = "0.1.0"

__all__ = [
    "AnswerRefused",
    "AslError",
    "Call",
    "Diagnostic",
    "Document",
    "DocumentNotFound",
    "Event",
    "ExecutionBusy",
    "ExecutionExists",
    "ExecutionNotFound",
    "InvalidDocument",
    "InvalidTest",
    "NotJson",
    "Program",
    "Report",
    "RequestNotFound",
    "Result",
    "Severity",
    "StateError",
    "StateResult",
    "Store",
    "StoreDamaged",
    "StoreError",
    "TaskTokens",
    "VirtualClock",
    "WallClock",
    "arun",
    "check",
    "compile",
    "load",
    "load_mocks",
    "open_store",
    "run",
    "test_state",
    "variable_references",
]

_LAZY = {
    "AnswerRefused": "asl.states.decisions",
    "ExecutionBusy": "asl.executions",
    "ExecutionExists": "asl.executions",
    "ExecutionNotFound": "asl.executions",
    "RequestNotFound": "asl.executions",
    "Store": "asl.executions",
    "StoreDamaged": "asl.stores.sqlite",
    "StoreError": "asl.stores.sqlite",
    "Call": "asl.engine.agent",
    "Diagnostic": "asl.core.diagnostics",
    "Document": "asl.core.document",
    "Event": "asl.engine.history",
    "Program": "asl.program",
    "Report": "asl.core.diagnostics",
    "Result": "asl.engine.result",
    "Severity": "asl.core.diagnostics",
    "StateResult": "asl.hosts.trial",
    "TaskTokens": "asl.hosts.tokens",
    "VirtualClock": "asl.hosts.clock",
    "WallClock": "asl.hosts.clock",
}


_NO_INPUT: dict[str, Any] = {}
"""Never changed: executions share data, they do not edit it."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'asl' has no attribute {name!r}")


def load(
    what: What,
    *,
    name: str | None = None,
    format: str | None = None,
    resource: str | None = None,
    variables: Mapping[str, Json] | None = None,
    root: str | os.PathLike[str] | None = None,
    imports: Callable[[str], What] | Mapping[str, What] | None = None,
    parameters: Mapping[str, Json] | None = None,
) -> Document:
    """Read a document from a path, text, bytes, dict or open file, with all that it imports.

    A string that begins with `{` or has several lines is text, any other a path. In a template of
    SAM or CloudFormation and in a Terraform file, `resource` names the state machine; it may be
    left out where there is only one. `variables` are the values of placeholders (`${Name}`) and of
    parameters there.

    Files that a document imports, or that a template names, are read below its own folder, or below
    `root`. `imports` provides everything else by its source: what a URL or an entry of a registry
    stands for. `parameters` are the values for a document with `Parameters` that runs by itself.

    Raises InvalidDocument (with every fault and its place), DocumentNotFound, and AslError where it
    is not clear which state machine is meant or a parameter is not declared. What is wrong with an
    import is found by `check`.
    """
    from asl.compose import load as load_document

    return load_document(
        what,
        name=name,
        format=format,
        resource=resource,
        variables=variables or {},
        root=root,
        imports=imports,
        parameters=parameters,
    )


def check(
    document: Document | What,
    *,
    profile: str | Profile = "default",
    strict: bool = False,
    agents: Collection[str] | None = None,
    resources: Collection[str] | None = None,
    express: bool = False,
) -> Report:
    """Check a document and return everything found, ordered by place; `report.ok` if no error.

    `strict` makes every warning an error. `agents` and `resources` are the names and patterns that
    are registered; `express` checks for an express execution. What is right but not executed by
    this version is reported as information (`EXEC-...`).
    """
    from asl.checks import check as check_document
    from asl.checks.aws import unreadable

    chosen = _profile(profile)
    try:
        loaded = _document(document)
    except InvalidDocument as refusal:
        if not chosen.aws:
            raise
        raise InvalidDocument(unreadable(refusal.report)) from None
    return check_document(
        loaded,
        chosen,
        strict=strict,
        agents=agents,
        resources=resources,
        express=express,
    )


def variable_references(document: Document | What) -> dict[str, list[str]]:
    """Return the variables that each state reads, by its name: AWS's `variableReferences`.

    States that read none are left out; names are sorted and have no dollar. Raises InvalidDocument
    for what cannot be read; a document with other errors is taken as far as it goes.
    """
    from asl.checks.variables import references
    from asl.checks.workflow import taken_apart
    from asl.core.profile import DEFAULT

    return references(taken_apart(_document(document).value, DEFAULT))


def compile(
    document: Document | What,
    *,
    profile: str | Profile = "default",
    ignore_blocks: bool = False,
) -> Program:
    """Check a document and compile it; raises InvalidDocument, which carries the report.

    A document that uses something which this version does not execute is refused;
    `ignore_blocks` runs it without its agent blocks: their limits are not enforced.
    """
    from asl.checks import check as check_document
    from asl.compiler import compile_workflow
    from asl.compose import runnable

    loaded, chosen = runnable(_document(document)), _profile(profile)
    report = check_document(loaded, chosen, for_run=True, ignore_blocks=ignore_blocks)
    report.raise_for_errors()
    return compile_workflow(loaded.whole, chosen, loaded.name)


def run(
    workflow: Program | Document | What,
    input: Json = _NO_INPUT,
    *,
    agents: Mapping[str, Any] | None = None,
    resources: Mapping[str, Any] | None = None,
    mocks: Mapping[str, Any] | None = None,
    tokens: TaskTokens | None = None,
    workflows: Mapping[str, Program | Document | What] | None = None,
    profile: str | Profile | None = None,
    clock: str | Clock = "wall",
    name: str | None = None,
    express: bool = False,
    prices: Mapping[str, Any] | None = None,
    buckets: Mapping[str, Any] | None = None,
    listener: Callable[[Event], None] | None = None,
    approvals: Any = None,
    notify: Any = None,
    requestor: str | None = None,
    ignore_blocks: bool = False,
) -> Result:
    """Run a workflow to its end and return what it came to; blocks the caller.

    `agents` binds the names of the document: a function `(parameters)` or `(parameters, call)`,
    plain or async, `"module:function"`, or a script (`{"return": ...}`). `resources` does the same
    for `Resource` (with `*` in patterns), `mocks` for Task states by their names. `tokens` is the
    desk where the outside answers `.waitForTaskToken` and activities; `workflows` are those that
    `startExecution` may start, by name or ARN. An absent input is `{}`. `name` names the execution,
    `express` makes it an express one. `clock` is `"wall"`, `"virtual"` or a clock object. `prices`
    gives the price of one input token by model, for `States.EstimateCost`. `buckets` maps the
    buckets of distributed Maps to folders, to URLs of object stores or to dictionaries. `listener`
    gets every event.

    `approvals` answers for people: a function `(request)` or `(request, call)`, plain or async,
    that returns an option, an answer object, or None for later. Without it an Approval makes the
    execution `PAUSED`, and `result.pending` says what is asked. `notify` hears of every request.
    `requestor` is who starts the execution.

    A failed workflow is a result. Raises InvalidDocument for a document with errors, NotJson for an
    input that is no JSON value (it is copied), and AslError for other misuse.
    """
    from asl.hosts.local import drive
    from asl.hosts.run import execute

    program = _program(workflow, profile, ignore_blocks)
    _check_name(name)
    services = _services(program, tokens, workflows, ignore_blocks)
    services.prices = _prices(prices)
    _ask(services, approvals, notify)
    registry = _registry(agents, resources, mocks, services)
    chosen = _clock(clock)
    _refuse_running_loop()
    return drive(
        execute(
            program,
            input,
            registry.find,
            chosen,
            name=name,
            express=express,
            foreign=True,
            prices=services.prices,
            buckets=_buckets(buckets),
            listener=listener,
            services=services,
            requestor=requestor,
        ),
        chosen,
    )


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
    from asl.program import Program

    if document is None:
        return dict(load(file, case, machine=machine))
    if isinstance(document, Program):
        steps = [step for each in document.machines.values() for step in each.steps.values()]
        states, name = {step.name: step.type for step in steps}, document.name
    else:
        from asl.checks.workflow import taken_apart
        from asl.core.profile import DEFAULT

        loaded = _document(document)
        nodes = taken_apart(loaded.value, DEFAULT).nodes()
        states, name = {node.name: node.value.get("Type", "") for node in nodes}, loaded.name
    return dict(load(file, case, machine=machine, states=states, workflow=name))


async def arun(
    workflow: Program | Document | What,
    input: Json = _NO_INPUT,
    *,
    agents: Mapping[str, Any] | None = None,
    resources: Mapping[str, Any] | None = None,
    mocks: Mapping[str, Any] | None = None,
    tokens: TaskTokens | None = None,
    workflows: Mapping[str, Program | Document | What] | None = None,
    profile: str | Profile | None = None,
    clock: str | Clock = "wall",
    name: str | None = None,
    express: bool = False,
    prices: Mapping[str, Any] | None = None,
    buckets: Mapping[str, Any] | None = None,
    listener: Callable[[Event], None] | None = None,
    approvals: Any = None,
    notify: Any = None,
    requestor: str | None = None,
    ignore_blocks: bool = False,
) -> Result:
    """Run a workflow on the running asyncio event loop; see `run`.

    Cancelling the call cancels the execution and all it has started. On a virtual clock the
    execution gets an event loop of its own, in a thread.
    """
    from asl.hosts.clock import WallClock
    from asl.hosts.run import execute

    program = _program(workflow, profile, ignore_blocks)
    _check_name(name)
    services = _services(program, tokens, workflows, ignore_blocks)
    services.prices = _prices(prices)
    _ask(services, approvals, notify)
    registry = _registry(agents, resources, mocks, services)
    chosen = _clock(clock)
    in_event_loop = isinstance(chosen, WallClock)
    work = execute(
        program,
        input,
        registry.find,
        chosen,
        name=name,
        express=express,
        foreign=True,
        prices=services.prices,
        buckets=_buckets(buckets),
        listener=listener,
        in_event_loop=in_event_loop,
        services=services,
        requestor=requestor,
    )
    if in_event_loop:
        return await work
    from asyncio import get_running_loop

    from asl.hosts.local import drive
    from asl.hosts.threads import run_in_thread

    result: Result = await run_in_thread(get_running_loop(), drive, work, chosen)
    return result


def open_store(
    path: str | os.PathLike[str],
    *,
    synchronous: str = "FULL",
    clock: str | Clock = "wall",
    **bindings: Any,
) -> Store:
    """Open a file of executions that survive their process; it is made where there is none.

    `bindings` are those of `run` (agents, resources, ...) and hold for every execution of the
    store. `synchronous` is SQLite's: with `FULL` what is acknowledged survives a loss of power,
    with `NORMAL` the death of the process. Raises StoreError for a file that cannot be used.
    """
    from asl.executions import Store

    return Store(path, synchronous=synchronous, clock=clock, **bindings)


def test_state(
    definition: Document | What,
    input: Json = _NO_INPUT,
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
) -> StateResult:
    """Run one state alone, as AWS's TestState does; blocks the caller.

    `definition` is a state, or a document in which `state` names one, in a branch or a processor as
    well. `mock` answers instead of its work: `{"result": value}` or `{"errorOutput": {"error": ...,
    "cause": ...}}`; a Task without one asks `agents` and `resources`. `context` is the whole
    context object, `variables` are there before the state. `level` is `INFO`, or `DEBUG` or `TRACE`
    for what becomes of the data on the way. `configuration` has AWS's names: `retrierRetryCount`,
    `mapIterationFailureCount`, `errorCausedByState`, `mapItemReaderData`.

    A state that fails is a result. Raises InvalidTest for what AWS refuses to test, InvalidDocument
    for a definition with errors, and AslError for other misuse.
    """
    from asl.hosts.services import Services
    from asl.hosts.trial import tested

    loaded, chosen_profile = _document(definition), _profile(profile)
    registry = _registry(agents, resources, None, Services())
    chosen = _clock(clock)
    _refuse_running_loop()
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
        find=registry.find,
        clock=chosen,
    )


test_state.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for one of its own


def _document(what: Document | What) -> Document:
    from asl.core.document import Document

    return what if isinstance(what, Document) else load(what)


def _program(
    workflow: Program | Document | What, profile: str | Profile | None, ignore_blocks: bool
) -> Program:
    from asl.program import Program

    if not isinstance(workflow, Program):
        return compile(
            workflow, profile="default" if profile is None else profile, ignore_blocks=ignore_blocks
        )
    if profile is not None or ignore_blocks:
        raise AslError("a program is compiled already: give profile and ignore_blocks to compile")
    return workflow


def _profile(profile: str | Profile) -> Profile:
    from asl.core.profile import PROFILES, Profile

    if isinstance(profile, Profile):
        return profile
    if not isinstance(profile, str) or profile not in PROFILES:
        raise AslError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
    return PROFILES[profile]


def _prices(prices: Mapping[str, Any] | None) -> dict[str, Decimal]:
    from decimal import Decimal, InvalidOperation

    try:
        return {model: Decimal(str(price)) for model, price in (prices or {}).items()}
    except InvalidOperation:
        raise AslError(f"prices are numbers or their texts, by model, not {prices!r}") from None


def _buckets(buckets: Mapping[str, Any] | None) -> Mapping[str, Bucket]:
    if not buckets:
        return {}
    from asl.buckets import bound

    return bound(buckets)


def _check_name(name: str | None) -> None:
    if name is not None and not (isinstance(name, str) and name.isprintable() and name):
        raise AslError(f"an execution's name is a printable text, not {name!r}")


def _clock(clock: str | Clock) -> Clock:
    from asl.hosts.clock import VirtualClock, WallClock

    if clock == "virtual":
        return VirtualClock()
    if clock == "wall":
        return WallClock()
    if isinstance(clock, str) or not hasattr(clock, "new_event_loop"):
        raise AslError(f"no clock {clock!r}; there are 'wall', 'virtual' and clock objects")
    return clock


def _services(
    program: Program,
    tokens: TaskTokens | None,
    workflows: Mapping[str, Program | Document | What] | None,
    ignore_blocks: bool,
) -> Services:
    """Gather what a run offers to its states; what they may start is compiled as the run's own."""
    from asl.hosts.services import Services
    from asl.program import Program

    if tokens is not None:
        from asl.hosts.tokens import TaskTokens

        if not isinstance(tokens, TaskTokens):
            raise AslError(f"tokens is a desk, asl.TaskTokens(), not {tokens!r}")
    if workflows is None:
        return Services(program, tokens)
    if not isinstance(workflows, Mapping):
        raise AslError(f"workflows are a mapping from names to documents, not {workflows!r}")
    return Services(
        program,
        tokens,
        {
            name: workflow
            if isinstance(workflow, Program)
            else compile(workflow, profile=program.profile, ignore_blocks=ignore_blocks)
            for name, workflow in workflows.items()
        },
    )


def _ask(services: Services, approvals: Any, notify: Any) -> None:
    """Let a run ask the caller's function for people, and tell people by another."""
    for name, function in (("approvals", approvals), ("notify", notify)):
        if function is not None and not callable(function):
            raise AslError(f"{name} is a function that takes a request, not {function!r}")
    services.notify = notify
    if approvals is not None:
        from asl.agents.function import function_agent

        services.approvals = function_agent(approvals)


def _registry(
    agents: Mapping[str, Any] | None,
    resources: Mapping[str, Any] | None,
    mocks: Mapping[str, Any] | None,
    services: Services,
) -> Registry:
    from asl.agents.registry import Registry

    registry = Registry(agents, resources, mocks, services.agent)
    if services.workflows is not None:
        services.find = registry.without_mocks().find
    return registry


def _refuse_running_loop() -> None:
    import sys

    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        raise AslError("asl.run blocks, and an event loop is running here: await asl.arun instead")
