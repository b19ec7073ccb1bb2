"""Options that bind the names of a document to implementations."""

import os
from collections.abc import Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import asl
from asl.agents.registry import FileBindings
from asl.bindings import Bindings, find_startable_workflows
from asl.cli.arguments import (
    AGENTS,
    DEFAULT_ORIGIN,
    Command,
    Origin,
    read_workflows,
    report_as_usage,
    split_pair,
    with_options,
)
from asl.cli.console import stdout_to_stderr, warn
from asl.core.document import Document, Loadable
from asl.core.errors import AslError
from asl.core.lazy import lazy_pattern
from asl.core.python_imports import import_object
from asl.effects.delivery import Sinks, named_sink
from asl.engine.memory import Memory
from asl.program import Program

if TYPE_CHECKING:
    from asl.executions import Store

__all__ = [
    "AGENT",
    "BindingOptions",
    "bind_agents",
    "binding_options",
]

AGENT = click.option(
    "--agent",
    "agent_pairs",
    metavar="NAME=MODULE:FUNCTION",
    multiple=True,
    help="Bind an agent to a Python function.",
)
_OPTIONS = (
    AGENTS,
    AGENT,
    click.option(
        "--bucket",
        "bucket_pairs",
        metavar="NAME=FOLDER",
        multiple=True,
        help="Bind a bucket of a distributed Map to a folder or the URL of an object store.",
    ),
    click.option(
        "--mock",
        "mock_cases",
        metavar="FILE#CASE",
        multiple=True,
        help="Mock Tasks by a test case of a mock file of Step Functions Local.",
    ),
    click.option(
        "--workflow",
        "workflow_pairs",
        metavar="NAME=FILE",
        multiple=True,
        help="Bind a workflow that the document may start, by name or ARN.",
    ),
    click.option(
        "--notify",
        "channels",
        metavar="CHANNEL",
        multiple=True,
        help="Send approval requests to console, jsonl:FILE or apprise:URL.",
    ),
    click.option(
        "--request-link",
        "request_links",
        metavar="URL",
        multiple=True,
        help="Link to a request in notifications: https://host/requests/{request}.",
    ),
    click.option(
        "--memory",
        "memory_places",
        metavar="[BACKEND=]WHERE",
        multiple=True,
        help="Storage of Memory blocks: a file, redis://... or dynamodb://TABLE.",
    ),
    click.option(
        "--pool",
        "pool_pairs",
        metavar="NAME=AMOUNT",
        multiple=True,
        help="Set the amount of money in a budget pool.",
    ),
    click.option(
        "--sink",
        "sink_pairs",
        metavar="CHANNEL=WHERE",
        multiple=True,
        help="Send the events of a channel to stdout, jsonl:FILE or module:function.",
    ),
    click.option(
        "--policy",
        "policy_files",
        metavar="FILE",
        envvar="ASL_POLICY",
        type=click.Path(),
        multiple=True,
        help="Operator policy: the tools, hosts, files and images that documents may use.",
    ),
)


_FLAGS = (
    *("--agents", "--agent", "--bucket", "--mock", "--workflow", "--notify", "--request-link"),
    *("--memory", "--pool", "--sink", "--policy"),
)
"""The options in the order of the fields of `BindingOptions`."""
_PASSWORD = lazy_pattern("://[^/@]*:[^/@]*@")


class BindingOptions(NamedTuple):
    """What the options say, each as it was written."""

    agent_files: tuple[str, ...]
    agent_pairs: tuple[str, ...]
    bucket_pairs: tuple[str, ...]
    mock_cases: tuple[str, ...]
    workflow_pairs: tuple[str, ...]
    channels: tuple[str, ...]
    request_links: tuple[str, ...]
    memory_places: tuple[str, ...]
    pool_pairs: tuple[str, ...]
    sink_pairs: tuple[str, ...]
    policy_files: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        """The options as words of a command; passwords in URLs are left out."""
        words: list[str] = []
        for flag, values in zip(_FLAGS, self, strict=True):
            for value in values:
                words += [flag, _PASSWORD.sub("://...@", value)]
        return words

    def record(self, store: "Store") -> None:
        """Record the options with the executions that *store* runs from here on, if there are any.

        The hints of later commands repeat them.
        """
        if self.options:
            store.record_command(self.options, os.getcwd())

    def bindings(
        self,
        document: "Program | Document | None",
        origin: Origin = DEFAULT_ORIGIN,
        *,
        quiet: bool = False,
    ) -> Bindings:
        """Return what a run of the document takes; of what is said twice the last one wins.

        Without a document, what a run of any document takes: mocks are for one of them.
        """
        if document is None and self.mock_cases:
            raise click.UsageError("--mock is for one document: name it with 'asl run'")
        bound = bind_agents(self.agent_files, self.agent_pairs, quiet=quiet)
        return {
            "agents": bound.agents,
            "resources": bound.resources,
            "mocks": {**bound.mocks, **(_mocks(self.mock_cases, document) if document else {})},
            "tools": {**bound.servers, **bound.tools},
            "buckets": dict(
                split_pair(each, "NAME=FOLDER", "--bucket") for each in self.bucket_pairs
            ),
            "workflows": _startable(document, read_workflows(self.workflow_pairs, origin)) or None,
            "notify": self.channels or None,
            "request_link": self.request_links[-1] if self.request_links else None,
            "memory": _memories(self.memory_places, bound) or None,
            "pools": dict(split_pair(each, "NAME=AMOUNT", "--pool") for each in self.pool_pairs),
            "sinks": _sinks(self.sink_pairs),
            "policy": self.policy_files[-1] if self.policy_files else None,
        }


def binding_options(command: Command) -> Command:
    """Add the options that bind the names of a document, as the argument `binding`."""

    @wraps(command)
    def with_binding(*args: Any, **options: Any) -> Any:
        binding = BindingOptions(*[options.pop(field) for field in BindingOptions._fields])
        return command(*args, binding=binding, **options)

    return with_options(_OPTIONS, with_binding)


@stdout_to_stderr()
def bind_agents(
    files: Iterable[str], pairs: Iterable[str] = (), *, quiet: bool = False
) -> FileBindings:
    """Bind what agents files and `NAME=module:function` pairs say; the last one wins.

    What is found in a file that stops nothing is told, unless *quiet*.

    Modules are looked for in the folder of the agents file that names them and in the current
    one, after all that is installed.
    """
    from asl.agents.adapters import named_agent

    bound = FileBindings()
    for file in files:
        from asl.agents.file import load_bindings

        with report_as_usage():
            bound = bound | load_bindings(file, warn=None if quiet else warn)
    for each in pairs:
        name, function = split_pair(each, "NAME=module:function", "--agent")
        try:
            bound.agents[name] = named_agent(function, (Path(),))
        except AslError as error:
            raise AslError(f"--agent {name}: {error}") from None
    return bound


def _startable(
    document: "Program | Document | None", given: "dict[str, Document]"
) -> "Mapping[str, Program | Document | Loadable] | None":
    """Return the workflows that a document may start, with those of its own template."""
    return find_startable_workflows(document, given) if isinstance(document, Document) else given


def _memories(places: Iterable[str], files: FileBindings) -> "dict[str, Memory]":
    """Return the memories that agents files, `WHERE` and `BACKEND=WHERE` name; the last one wins.

    A word before `=` is a backend; a path with such a beginning is written `./a=b.db`. What
    `custom=module:name` names is a memory, or a function without parameters that makes one.
    """
    from asl.memories import BACKENDS, bind_memory

    found: dict[str, Memory] = bind_memory(files.memory)
    for place in places:
        backend, equals, where = place.partition("=")
        if place in BACKENDS:
            raise click.BadParameter(f"say where it is: {place}=WHERE", param_hint="--memory")
        if not equals or not backend.isidentifier():
            found |= bind_memory(place)
        elif backend == "custom":
            named = import_object(where, (Path(),))
            found |= bind_memory({backend: named() if callable(named) else named})
        else:
            found |= bind_memory({backend: where})
    return found


def _sinks(pairs: Iterable[str]) -> "Sinks":
    """Return the sinks that `CHANNEL=WHERE` pairs name; the last one wins."""
    named = dict(split_pair(each, "CHANNEL=WHERE", "--sink") for each in pairs)
    return {channel: named_sink(where, (Path(),)) for channel, where in named.items()}


def _mocks(specs: Iterable[str], document: "Program | Document") -> dict[str, Any]:
    """Read the mocks that `FILE#Case` and `FILE#Machine/Case` say; the last one wins."""
    found: dict[str, Any] = {}
    for spec in specs:
        file, mark, case = spec.rpartition("#")
        if not (file and mark and case):
            raise click.BadParameter(f"{spec!r} is not FILE#CASE", param_hint="--mock")
        with report_as_usage():
            found |= asl.load_mocks(file, case, document=document)
    return found
