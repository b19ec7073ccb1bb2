"""Bindings: the implementations of the names in a document, and the services of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, TypeVar

from asl.agents.function import function_agent, is_awaited
from asl.agents.registry import AgentRegistry
from asl.core.diagnostics import did_you_mean
from asl.core.document import Document, Loadable
from asl.core.environment import has_running_loop
from asl.core.errors import AslError
from asl.core.lazy import lazy_pattern
from asl.core.profile import Profile
from asl.core.values import Json, compact, fits
from asl.dialects import agent_definitions
from asl.documents.compiling import compile
from asl.documents.loading import resolve_document
from asl.effects.aws_services import aws_service_agent
from asl.effects.clock import Clock, VirtualClock, WallClock
from asl.effects.delivery import delivery_of, named_sink
from asl.effects.middleware import Middleware
from asl.effects.operator_policy import read_policy
from asl.effects.prices import Prices
from asl.effects.services import Services
from asl.effects.task_tokens import TaskTokens
from asl.effects.tool_registry import OperatorPolicy
from asl.engine.agent import Find
from asl.engine.checkpoints import Storage
from asl.engine.definitions import AgentDefinition
from asl.engine.events import Event
from asl.engine.memory import Memory
from asl.program import Program
from asl.states.map_data import Bucket
from asl.states.numbers import parse_amount
from asl.stores.checkpoint_folder import CheckpointFolder

if TYPE_CHECKING:
    from asl.aws import Integrations

__all__ = [
    "NO_INPUT",
    "Bindings",
    "NoOptions",
    "ResolvedBindings",
    "add_template_workflows",
    "bind",
    "check_forms",
    "check_input",
    "check_name",
    "find_startable_workflows",
    "refuse_running_loop",
    "refuse_unknown",
    "resolve_clock",
    "takes_bindings",
]


NO_INPUT: dict[str, Any] = {}
"""The default input; never changed."""


class Bindings(TypedDict, total=False):
    """The options of `asl.run` that bind names in the document and provide services.

    `help(asl.run)` explains each: `agents`, `resources`, `mocks`, `tools`, `tokens`, `workflows`,
    `prices`, `buckets`, `pools`, `memory`, `approvals`, `notify`, `request_link`, `listener`,
    `sinks`, `checkpoints`, `policy`, `middleware` and `aws`. None means absent. A function that
    passes them on takes `**bindings: Unpack[asl.Bindings]`.
    """

    agents: Mapping[str, Any] | None
    resources: Mapping[str, Any] | None
    mocks: Mapping[str, Any] | None
    tools: Mapping[str, Any] | None
    tokens: TaskTokens | None
    workflows: Mapping[str, Program | Document | Loadable] | None
    prices: Mapping[str, Any] | None
    buckets: Mapping[str, Any] | None
    pools: Mapping[str, Any] | None
    memory: str | os.PathLike[str] | Memory | Mapping[str, Any] | None
    approvals: Callable[..., object] | None
    notify: str | Callable[..., object] | Iterable[Any] | None
    request_link: str | None
    listener: Callable[[Event], None] | None
    sinks: Mapping[str, Any] | None
    checkpoints: Mapping[str, Any] | None
    policy: str | os.PathLike[str] | Mapping[str, Any] | None
    middleware: Sequence[Middleware] | None
    aws: Integrations | None


class NoOptions(TypedDict):
    """No options: the type of keyword arguments that `refuse_unknown` refuses."""


_NAMES: Final = Bindings.__annotations__.keys()
_Public = TypeVar("_Public", bound=Callable[..., object])


def takes_bindings(function: _Public) -> _Public:
    """Show every option of `Bindings` in the signature of a function that takes `**bindings`.

    `help` and `inspect.signature` read it there; type checkers read `Unpack[Bindings]`.
    """
    written = signature(function)
    named = [each for each in written.parameters.values() if each.kind is not each.VAR_KEYWORD]
    more = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=each.__forward_arg__)
        for name, each in Bindings.__annotations__.items()
        if name not in written.parameters
    ]
    function.__dict__["__signature__"] = written.replace(parameters=named + more)
    return function


def refuse_unknown(function: Callable[..., object], given: Mapping[str, object]) -> None:
    """Refuse options that a function does not take.

    Raises:
        TypeError: There is one; the message has Python 3.13's words and names the nearest option.
    """
    if given.keys() <= _NAMES:
        return
    unknown = next(name for name in given if name not in _NAMES)
    hint = did_you_mean(unknown, signature(function).parameters)
    raise TypeError(
        f"{function.__qualname__}() got an unexpected keyword argument {unknown!r}"
        + (f". {hint[0].upper()}{hint[1:]}" if hint else "")
    )


_NAMED: Final[Mapping[str, str]] = {
    "agents": "agents",
    "resources": "agents",
    "mocks": "agents",
    "tools": "tools",
    "workflows": "documents",
    "buckets": "folders",
    "pools": "amounts of money",
    "sinks": "functions",
    "checkpoints": "folders",
}
"""The values of the bindings that are mappings from names, for messages."""


_STARTS: Final = lazy_pattern(r":(?:aws-sdk:sfn|states):start(?:Sync)?Execution")


def find_startable_workflows(
    document: Document, given: Mapping[str, Program | Document | Loadable] | None
) -> Mapping[str, Program | Document | Loadable] | None:
    """Return the workflows that a document may start: the bound ones and those of its template.

    The template's other workflows are read only if the document starts executions.
    """
    if document.siblings is None or not _STARTS.search(compact(document.value)):
        return given
    return {**document.siblings(), **(given or {})} or given


def add_template_workflows(
    workflow: Program | Document | Loadable, bindings: Bindings
) -> tuple[Program | Document, Bindings]:
    """Load a workflow; return it and its bindings with the workflows of its template added."""
    if isinstance(workflow, Program):
        return workflow, bindings
    document = resolve_document(workflow)
    found = find_startable_workflows(document, bindings.get("workflows"))
    return document, bindings if found is None else {**bindings, "workflows": found}


class ResolvedBindings(NamedTuple):
    """The resolved bindings of one run."""

    find: Find
    services: Services
    buckets: Mapping[str, Bucket]
    listener: Callable[[Event], None] | None


def bind(
    bindings: Bindings, program: Program | None = None, *, ignore_blocks: bool = False
) -> ResolvedBindings:
    """Resolve the bindings for runs of *program*.

    Raises:
        AslError: A binding is invalid.
    """
    check_forms(bindings)
    services = _services(bindings, program, ignore_blocks)
    services.prices = _prices(bindings.get("prices"))
    services.pools = _pools(bindings.get("pools"))
    if bindings.get("sinks") or _sends(services):
        services.sinks = _sinks(bindings.get("sinks"), services)
    services.storages = _storages(bindings.get("checkpoints"))
    services.memory = _memory(bindings.get("memory"))
    if (policy := bindings.get("policy")) is not None:
        services.policy = _policy(policy)
    services.middleware = tuple(bindings.get("middleware") or ())
    integrations = _integrations(bindings.get("aws"))
    buckets = _buckets(bindings.get("buckets"))
    if integrations is not None:
        services.aws, buckets = integrations.agent, integrations.buckets(buckets)
    _ask(services, bindings.get("approvals"), bindings.get("notify"))
    if (link := bindings.get("request_link")) is not None:
        from asl.notifiers import request_link

        services.request_link = request_link(link)
    registry = AgentRegistry(
        bindings.get("agents"),
        bindings.get("resources"),
        bindings.get("mocks"),
        partial(aws_service_agent, services),
        bindings.get("tools"),
        fallback=services.aws,
        aws=program is not None and program.profile.aws,
        definitions=_definitions(services),
    )
    services.definitions = agent_definitions
    services.boxes = registry.tools
    services.without_mocks = lambda: registry.without_mocks().find
    return ResolvedBindings(registry.find, services, buckets, bindings.get("listener"))


def _definitions(services: Services) -> Mapping[str, AgentDefinition]:
    """Return the agents that the documents of a run define; those of the first one win."""
    programs = (*(services.workflows or {}).values(), services.program)
    found: dict[str, AgentDefinition] = {}
    for each in programs:
        if each is not None:
            found |= agent_definitions(each.document)
    return found


def check_forms(bindings: Bindings) -> None:
    """Check the types of bindings.

    Raises:
        AslError: A binding has the wrong type.
    """
    for name, what in _NAMED.items():
        given = bindings.get(name)
        if given is not None and not isinstance(given, Mapping):
            found = type(given).__name__
            raise AslError(f"'{name}' must be a mapping from names to {what}, got {found}")
        other = next((key for key in given or () if type(key) is not str), None)
        if other is not None:
            raise AslError(
                f"'{name}' must be a mapping from names to {what}, got the key {other!r}"
            )
    listener: Any = bindings.get("listener")
    if not (listener is None or callable(listener) or hasattr(listener, "of")):
        found = type(listener).__name__
        raise AslError(f"'listener' must be a function that takes an event, got {found}")
    if callable(listener) and is_awaited(listener):
        raise AslError("'listener' must be a plain function, got an async one")
    _check_middleware(bindings.get("middleware"))


def _check_middleware(given: object) -> None:
    """Raise AslError unless the value is a list of async functions."""
    if given is None:
        return
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        found = type(given).__name__
        raise AslError(f"'middleware' must be a list of async functions, got {found}")
    for each in given:
        if not (callable(each) and is_awaited(each)):
            raise AslError(f"'middleware' must be a list of async functions, got {each!r} in it")


def _services(bindings: Bindings, program: Program | None, ignore_blocks: bool) -> Services:
    """Return the services of a run; workflows that it may start are compiled like its own."""
    tokens, workflows = bindings.get("tokens"), bindings.get("workflows")
    if tokens is not None and not isinstance(tokens, TaskTokens):
        raise AslError(f"'tokens' must be an asl.TaskTokens(), got {tokens!r}")
    if workflows is None or program is None:
        return Services(program, tokens)
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


def _prices(prices: Mapping[str, Any] | None) -> Prices:
    return Prices(prices)


def _pools(pools: Mapping[str, Any] | None) -> dict[str, Decimal]:
    if not pools:
        return {}
    found: dict[str, Decimal] = {}
    for name, written in pools.items():
        most = written if isinstance(written, Decimal) else parse_amount(written)
        if most is None or not (most.is_finite() and most >= 0):
            raise AslError(f"the pool {name!r} must be an amount of money, got {written!r}")
        found[name] = most
    return found


def _ask(services: Services, approvals: Any, notify: Any) -> None:
    """Set the functions that answer approval requests and send notifications."""
    if notify is not None:
        from asl.notifiers import bind_channels

        services.channels = bind_channels(notify)
    if approvals is not None:
        if not callable(approvals):
            raise AslError(
                f"'approvals' must be a function that takes a request, got {approvals!r}"
            )
        services.approvals = function_agent(approvals)


def _integrations(given: object) -> Integrations | None:
    if given is None:
        return None
    from asl.aws import Integrations

    if not isinstance(given, Integrations):
        raise AslError(f"'aws' must be an asl.aws.integrations(...), got {given!r}")
    return given


def _policy(policy: object) -> OperatorPolicy:
    if not isinstance(policy, str | os.PathLike | Mapping):
        found = type(policy).__name__
        raise AslError(f"'policy' must be the path of a policy or a mapping, got {found}")
    return read_policy(policy)


def _memory(memory: Any) -> dict[str, Memory]:
    if memory is None:
        return {}
    from asl.memories import bind_memory

    return bind_memory(memory)


def _buckets(buckets: Mapping[str, Any] | None) -> Mapping[str, Bucket]:
    if not buckets:
        return {}
    from asl.buckets import bind_buckets

    return bind_buckets(buckets)


def _sends(services: Services) -> bool:
    """Return whether a document of the run may send events to channels."""
    programs = (services.program, *(services.workflows or {}).values())
    return any(each is not None and each.has_channels for each in programs)


def _sinks(sinks: Mapping[str, Any] | None, services: Services) -> Mapping[str, Any]:
    """Return the sinks by name; raise AslError for a channel without a sink."""
    found = {
        name: named_sink(sink) if isinstance(sink, str) else sink
        for name, sink in (sinks or {}).items()
    }
    for name, sink in found.items():
        if not callable(sink):
            raise AslError(
                f"the sink {name!r} must be a function that takes an event, got {sink!r}"
            )
        if is_awaited(sink):
            raise AslError(f"the sink {name!r} must be a plain function, got an async one")
    for program in (services.program, *(services.workflows or {}).values()):
        if program is not None:
            delivery_of(program.document.get, found)
            for machine in program.machines.values():
                if machine.scope is not None:
                    delivery_of(machine.scope.document.get, found)
    return found


def _storages(checkpoints: Mapping[str, Any] | None) -> Mapping[str, Storage]:
    """Return the storages of checkpoints; `file` is a folder of the user by default."""
    storages: dict[str, Storage] = {"file": CheckpointFolder()}
    for name, storage in (checkpoints or {}).items():
        if isinstance(storage, str) or hasattr(storage, "__fspath__"):
            storages[name] = CheckpointFolder(storage)
        elif hasattr(storage, "__setitem__"):
            storages[name] = storage
        else:
            raise AslError(
                f"the storage {name!r} in 'checkpoints' must be a folder or a mapping, "
                f"got {storage!r}"
            )
    return storages


# Other arguments of a run


def check_input(data: Json, profile: Profile) -> None:
    """Check the size of the input against the profile's quota.

    Raises:
        AslError: It is larger.
    """
    most = profile.quotas.input_characters
    if most is None or fits(data, most):  # no text has more characters than bytes
        return
    length = len(compact(data))
    if length > most:
        raise AslError(
            f"the input has {length:,} characters as JSON, profile {profile.name!r} takes {most:,} "
            "(lift it: --quota input_characters=none, or with_quotas(input_characters=None))"
        )


def check_name(name: str | None) -> None:
    """Check the name of an execution.

    Raises:
        AslError: An execution cannot have it.
    """
    if name is not None and not (isinstance(name, str) and name.isprintable() and name):
        raise AslError(f"the name of an execution must be printable text, got {name!r}")


def resolve_clock(clock: str | Clock) -> Clock:
    """Return the clock of a name, or a clock object itself.

    Raises:
        AslError: The value is neither.
    """
    if clock == "virtual":
        return VirtualClock()
    if clock == "wall":
        return WallClock()
    if isinstance(clock, str | type) or not hasattr(clock, "new_event_loop"):
        raise AslError(f"'clock' must be 'wall', 'virtual' or a clock object, got {clock!r}")
    return clock


def refuse_running_loop() -> None:
    """Check that no event loop is running, which a blocking call would stop.

    Raises:
        AslError: One is running.
    """
    if has_running_loop():
        raise AslError("asl.run blocks the running event loop: use await asl.arun instead")
