"""Bindings: who answers for the names in a document, and what a run of it may use."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from inspect import Parameter, signature
from typing import Any, Final, NamedTuple, TypedDict, TypeVar

from asl.agents.function import function_agent, is_awaited
from asl.agents.registry import Registry
from asl.core.diagnostics import did_you_mean
from asl.core.document import Document, Loadable
from asl.core.environment import has_running_loop
from asl.core.errors import AslError
from asl.core.profile import Profile
from asl.core.values import Json, compact, fits
from asl.documents.compiling import compile
from asl.documents.loading import document_of
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
from asl.engine.events import Event
from asl.engine.memory import Memory
from asl.program import Program
from asl.states.numbers import amount
from asl.states.objects import Bucket
from asl.stores.checkpoint_folder import CheckpointFolder

__all__ = [
    "NO_INPUT",
    "Bindings",
    "Bound",
    "NoOptions",
    "bind",
    "check_forms",
    "check_input",
    "check_name",
    "clock_of",
    "refuse_running_loop",
    "refuse_unknown",
    "startable",
    "takes_bindings",
    "with_siblings",
]


NO_INPUT: dict[str, Any] = {}
"""The input where none is given. Never changed: executions share data, they do not edit it."""


class Bindings(TypedDict, total=False):
    """The options of `asl.run` that say who answers for names and what a run may use.

    `help(asl.run)` explains each: `agents`, `resources`, `mocks`, `tools`, `tokens`, `workflows`,
    `prices`, `buckets`, `pools`, `memory`, `approvals`, `notify`, `request_link`, `listener`,
    `sinks`, `checkpoints`, `policy` and `middleware`. None is the same as absent. A function of
    yours that passes them on takes `**bindings: Unpack[asl.Bindings]`.
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


class NoOptions(TypedDict):
    """No option at all: what a function takes beside those that it names (`refuse_unknown`)."""


_NAMES: Final = Bindings.__annotations__.keys()
_Public = TypeVar("_Public", bound=Callable[..., object])


def takes_bindings(function: _Public) -> _Public:
    """Show every option of `Bindings` in the signature of a function that takes `**bindings`.

    `help` and `inspect.signature` read it there; type checkers read it from `Unpack[Bindings]`.
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
    """Raise TypeError for an option that a function does not take, worded as by Python 3.13.

    Older versions do not name the nearest option.
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
"""What the bindings lead to that are mappings from names."""


_STARTS: Final = re.compile(r":(?:aws-sdk:sfn|states):start(?:Sync)?Execution")


def startable(
    document: Document, given: Mapping[str, Program | Document | Loadable] | None
) -> Mapping[str, Program | Document | Loadable] | None:
    """Return the workflows that a document may start: those given, and those of its template.

    The others of a template are read only for a document that starts executions.
    """
    if document.siblings is None or not _STARTS.search(compact(document.value)):
        return given
    return {**document.siblings(), **(given or {})} or given


def with_siblings(
    workflow: Program | Document | Loadable, bindings: Bindings
) -> tuple[Program | Document, Bindings]:
    """Return a workflow, read, and its bindings with the others of its template as workflows."""
    if isinstance(workflow, Program):
        return workflow, bindings
    document = document_of(workflow)
    found = startable(document, bindings.get("workflows"))
    return document, bindings if found is None else {**bindings, "workflows": found}


class Bound(NamedTuple):
    """The bindings of one run, ready for its effects."""

    find: Find
    services: Services
    buckets: Mapping[str, Bucket]
    listener: Callable[[Event], None] | None


def bind(
    bindings: Bindings, program: Program | None = None, *, ignore_blocks: bool = False
) -> Bound:
    """Make bindings ready for runs of *program*; raises AslError for what cannot be bound."""
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
    _ask(services, bindings.get("approvals"), bindings.get("notify"))
    if (link := bindings.get("request_link")) is not None:
        from asl.notifiers import request_link

        services.request_link = request_link(link)
    registry = Registry(
        bindings.get("agents"),
        bindings.get("resources"),
        bindings.get("mocks"),
        partial(aws_service_agent, services),
        bindings.get("tools"),
        aws=program is not None and program.profile.aws,
    )
    services.boxes = registry.tools
    services.without_mocks = lambda: registry.without_mocks().find
    return Bound(
        registry.find, services, _buckets(bindings.get("buckets")), bindings.get("listener")
    )


def check_forms(bindings: Bindings) -> None:
    """Raise AslError for one that is no mapping of names, or a listener that cannot listen."""
    for name, what in _NAMED.items():
        given = bindings.get(name)
        if given is not None and not isinstance(given, Mapping):
            found = type(given).__name__
            raise AslError(f"{name} are a mapping from names to {what}, not {found}")
        other = next((key for key in given or () if type(key) is not str), None)
        if other is not None:
            raise AslError(f"{name} are a mapping from names to {what}: {other!r} is no name")
    listener: Any = bindings.get("listener")
    if not (listener is None or callable(listener) or hasattr(listener, "of")):
        found = type(listener).__name__
        raise AslError(f"a listener is a function that takes an event, not {found}")
    if callable(listener) and is_awaited(listener):
        raise AslError("a listener is called and not awaited: let it be a plain function")
    _check_middleware(bindings.get("middleware"))


def _check_middleware(given: object) -> None:
    """Raise AslError for what is no list of async functions."""
    if given is None:
        return
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise AslError(f"middleware is a list of async functions, not {type(given).__name__}")
    for each in given:
        if not (callable(each) and is_awaited(each)):
            raise AslError(f"middleware is awaited: {each!r} is no async function")


def _services(bindings: Bindings, program: Program | None, ignore_blocks: bool) -> Services:
    """Gather what a run offers to its states; what they may start is compiled as the run's own."""
    tokens, workflows = bindings.get("tokens"), bindings.get("workflows")
    if tokens is not None and not isinstance(tokens, TaskTokens):
        raise AslError(f"tokens is a desk, asl.TaskTokens(), not {tokens!r}")
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
        most = written if isinstance(written, Decimal) else amount(written)
        if most is None or not (most.is_finite() and most >= 0):
            raise AslError(f"what is in the pool {name!r} is an amount of money, not {written!r}")
        found[name] = most
    return found


def _ask(services: Services, approvals: Any, notify: Any) -> None:
    """Let a run ask the caller's function for people, and tell people by another."""
    if notify is not None:
        from asl.notifiers import bound

        services.notify = bound(notify)
    if approvals is not None:
        if not callable(approvals):
            raise AslError(f"approvals is a function that takes a request, not {approvals!r}")
        services.approvals = function_agent(approvals)


def _policy(policy: object) -> OperatorPolicy:
    if not isinstance(policy, str | os.PathLike | Mapping):
        found = type(policy).__name__
        raise AslError(f"'policy' must be the path of a policy or a mapping, got {found}")
    return read_policy(policy)


def _memory(memory: Any) -> dict[str, Memory]:
    if memory is None:
        return {}
    from asl.memories import bound

    return bound(memory)


def _buckets(buckets: Mapping[str, Any] | None) -> Mapping[str, Bucket]:
    if not buckets:
        return {}
    from asl.buckets import bound

    return bound(buckets)


def _sends(services: Services) -> bool:
    """Whether a document of the run may send events to channels."""
    programs = (services.program, *(services.workflows or {}).values())
    return any(each is not None and each.sends for each in programs)


def _sinks(sinks: Mapping[str, Any] | None, services: Services) -> Mapping[str, Any]:
    """Return what takes the events of channels; raises AslError where a channel has nobody."""
    found = {
        name: named_sink(sink) if isinstance(sink, str) else sink
        for name, sink in (sinks or {}).items()
    }
    for name, sink in found.items():
        if not callable(sink):
            raise AslError(f"the sink {name!r} is a function that takes an event, not {sink!r}")
        if is_awaited(sink):
            raise AslError(
                f"the sink {name!r} is called in a thread of its own and not awaited: let it be a "
                "plain function"
            )
    for program in (services.program, *(services.workflows or {}).values()):
        if program is not None:
            delivery_of(program.document.get, found)
            for machine in program.machines.values():
                if machine.scope is not None:
                    delivery_of(machine.scope.document.get, found)
    return found


def _storages(checkpoints: Mapping[str, Any] | None) -> Mapping[str, Storage]:
    """Return the storages of checkpoints; `file` is a folder of the user, if nothing else."""
    storages: dict[str, Storage] = {"file": CheckpointFolder()}
    for name, storage in (checkpoints or {}).items():
        if isinstance(storage, str) or hasattr(storage, "__fspath__"):
            storages[name] = CheckpointFolder(storage)
        elif hasattr(storage, "__setitem__"):
            storages[name] = storage
        else:
            raise AslError(f"a storage of checkpoints is a folder or a mapping, not {storage!r}")
    return storages


# Other things that every run is given


def check_input(data: Json, profile: Profile) -> None:
    """Raise AslError for an input that is longer than the quota of the profile."""
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
    """Raise AslError for what cannot name an execution."""
    if name is not None and not (isinstance(name, str) and name.isprintable() and name):
        raise AslError(f"an execution's name is a printable text, not {name!r}")


def clock_of(clock: str | Clock) -> Clock:
    """Return the clock of a name, or the clock itself; raises AslError for anything else."""
    if clock == "virtual":
        return VirtualClock()
    if clock == "wall":
        return WallClock()
    if isinstance(clock, str | type) or not hasattr(clock, "new_event_loop"):
        raise AslError(f"no clock {clock!r}; there are 'wall', 'virtual' and clock objects")
    return clock


def refuse_running_loop() -> None:
    """Raise AslError where an event loop is running: a call that blocks would stop it."""
    if has_running_loop():
        raise AslError("asl.run blocks, and an event loop is running here: await asl.arun instead")
