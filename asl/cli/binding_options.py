"""Options that bind the names of a document to implementations."""

import os
from collections.abc import Container, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

import asl
from asl.agents.function import DocumentFunction
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
from asl.cli.console import print_warnings, stdout_to_stderr
from asl.cli.function_options import FUNCTIONS, RUNTIME, bind_functions
from asl.core.document import Document, Loadable
from asl.core.errors import AslError
from asl.core.lazy import lazy_pattern
from asl.core.python_imports import import_object
from asl.documents.defined_agents import unbound_code
from asl.effects.delivery import Sinks, named_sink
from asl.engine.memory import Memory
from asl.program import Program

if TYPE_CHECKING:
    from asl.aws import Integrations
    from asl.executions import Store

__all__ = [
    "AGENT",
    "BindingOptions",
    "Deployment",
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
        "--allow-code",
        is_flag=True,
        help="Import the Python functions that the document names, from its folder.",
    ),
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
    FUNCTIONS,
    RUNTIME,
    click.option(
        "--aws", is_flag=True, help="Call AWS for resources and buckets without a binding."
    ),
    click.option(
        "--aws-endpoint",
        "aws_endpoints",
        metavar="URL",
        multiple=True,
        help="The same at the address of an emulator, such as http://127.0.0.1:4566.",
    ),
)


_FLAGS = (
    *(
        "--agents",
        "--agent",
        "--allow-code",
        "--bucket",
        "--mock",
        "--workflow",
        "--notify",
        "--request-link",
    ),
    *("--memory", "--pool", "--sink", "--policy", "--functions", "--runtime"),
    *("--aws", "--aws-endpoint"),
)
"""The options in the order of the fields of `BindingOptions`."""
LOCAL_KEY: Final = "test"
"""Key of an emulator, which needs none."""
_PASSWORD = lazy_pattern("://[^/@]*:[^/@]*@")


class Deployment(NamedTuple):
    """Where the clients of functions and Tasks find services.

    Attributes:
        region: The region; None for that of the environment.
        service: URL of this command's own Step Functions; None without one.
    """

    region: str | None = None
    service: str | None = None


NOWHERE: Final = Deployment()


class BindingOptions(NamedTuple):
    """The values of the options, unparsed."""

    agent_files: tuple[str, ...]
    agent_pairs: tuple[str, ...]
    allow_code: bool
    bucket_pairs: tuple[str, ...]
    mock_cases: tuple[str, ...]
    workflow_pairs: tuple[str, ...]
    channels: tuple[str, ...]
    request_links: tuple[str, ...]
    memory_places: tuple[str, ...]
    pool_pairs: tuple[str, ...]
    sink_pairs: tuple[str, ...]
    policy_files: tuple[str, ...]
    templates: tuple[str, ...]
    runtime_pairs: tuple[str, ...]
    aws: bool
    aws_endpoints: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        """The options as words of a command, without the passwords of URLs."""
        words: list[str] = []
        given: dict[str, tuple[str, ...] | bool] = dict(zip(_FLAGS, self, strict=True))
        for flag, values in given.items():
            if isinstance(values, bool):
                words += [flag] * values
                continue
            for value in values:
                words += [flag, _PASSWORD.sub("://...@", value)]
        return words

    def with_templates(self, documents: Iterable[str]) -> "BindingOptions":
        """Return the options with the documents of a command for `--functions` without a file."""
        if "" not in self.templates:
            return self
        named = (each for each in self.templates if each)
        return self._replace(templates=tuple(dict.fromkeys((*named, *documents))) or ("",))

    def record(self, store: "Store") -> None:
        """Record the options with the next executions of a store, for hints of later commands."""
        if self.options:
            store.record_command(self.options, os.getcwd())

    def bindings(
        self,
        document: "Program | Document | None",
        origin: Origin = DEFAULT_ORIGIN,
        *,
        quiet: bool = False,
        watch: bool = False,
        deployment: Deployment = NOWHERE,
    ) -> Bindings:
        """Return the bindings for a run; the last one of a name counts.

        Args:
            document: The document to run; None for any document, without mocks.
            origin: How the files of `--workflow` are read.
            quiet: Whether to omit the warnings about agents files, and what functions are bound.
            watch: Whether to reload the functions of templates when their code changes.
            deployment: Where clients find services.

        Raises:
            UsageError: `--mock` is used without a document, or `--functions` without a template.
            AslError: An option or a file is invalid.
        """
        if document is None and self.mock_cases:
            raise click.UsageError("--mock needs a document: use it with 'asl run'")
        if document is None and self.allow_code:
            text = "--allow-code needs a document: bind its functions with --agent"
            raise click.UsageError(text)
        bound = bind_agents(self.agent_files, self.agent_pairs, quiet=quiet)
        endpoint = [bound.aws.get("endpoint"), *self.aws_endpoints][-1]
        variables = _client_variables(endpoint, deployment)
        if self.allow_code and document is not None:
            bound.agents.update(_code(document, bound.agents))
        return {
            "agents": bound.agents,
            "resources": {
                **self._functions(bound.resources, origin, variables, quiet=quiet, watch=watch),
                **bound.resources,
            },
            "mocks": {
                **bound.mocks,
                **(_load_mocks(self.mock_cases, document) if document else {}),
            },
            "tools": {**bound.servers, **bound.tools},
            "buckets": dict(
                split_pair(each, "NAME=FOLDER", "--bucket") for each in self.bucket_pairs
            ),
            "workflows": _startable_workflows(document, read_workflows(self.workflow_pairs, origin))
            or None,
            "notify": self.channels or None,
            "request_link": self.request_links[-1] if self.request_links else None,
            "memory": _memories(self.memory_places, bound) or None,
            "pools": dict(split_pair(each, "NAME=AMOUNT", "--pool") for each in self.pool_pairs),
            "sinks": _named_sinks(self.sink_pairs),
            "policy": self.policy_files[-1] if self.policy_files else None,
            "aws": self._integrations(bound.aws, endpoint, deployment.region),
        }

    def _functions(
        self,
        bound: Iterable[str],
        origin: Origin,
        variables: Mapping[str, str],
        *,
        quiet: bool,
        watch: bool,
    ) -> Mapping[str, Any]:
        """Return the Lambda functions of `--functions` by ARN."""
        if not self.templates:
            if self.runtime_pairs:
                raise click.UsageError("--runtime needs --functions")
            return {}
        return bind_functions(
            self.templates,
            self.runtime_pairs,
            bound,
            origin,
            variables,
            watch=watch,
            quiet=quiet,
        )

    def _integrations(
        self, settings: Mapping[str, Any], endpoint: str | None, region: str | None
    ) -> "Integrations | None":
        """Return the calls of AWS's services; None if neither an option nor a file asks for them.

        Args:
            settings: The section `aws` of the agents files.
            endpoint: Address of an emulator; None for AWS itself.
            region: The region if the settings have none.
        """
        if not (self.aws or self.aws_endpoints or settings):
            return None
        from asl.aws import integrations

        return integrations(
            endpoint_url=endpoint,
            region=settings.get("region", region),
            services=settings.get("services"),
        )


def _client_variables(endpoint: str | None, deployment: Deployment) -> dict[str, str]:
    """Return the environment variables by which the clients of functions find services."""
    variables: dict[str, str] = {}
    if deployment.region is not None:
        variables |= {"AWS_REGION": deployment.region, "AWS_DEFAULT_REGION": deployment.region}
    if deployment.service is not None:
        variables["AWS_ENDPOINT_URL_SFN"] = deployment.service
        variables["AWS_DISABLE_HOST_PREFIX_INJECTION"] = "true"
    if endpoint is not None:
        variables["AWS_ENDPOINT_URL"] = endpoint
        if os.environ.keys().isdisjoint(("AWS_ACCESS_KEY_ID", "AWS_PROFILE")):
            variables |= {"AWS_ACCESS_KEY_ID": LOCAL_KEY, "AWS_SECRET_ACCESS_KEY": LOCAL_KEY}
    return variables


def binding_options(command: Command) -> Command:
    """Add the options for bindings; the command receives them as `binding`."""

    @wraps(command)
    def with_binding(*args: Any, **options: Any) -> Any:
        binding = BindingOptions(*[options.pop(field) for field in BindingOptions._fields])
        return command(*args, binding=binding, **options)

    return with_options(_OPTIONS, with_binding)


@stdout_to_stderr()
def bind_agents(
    files: Iterable[str], pairs: Iterable[str] = (), *, quiet: bool = False
) -> FileBindings:
    """Return the bindings of agents files and `NAME=module:function` pairs; the last one counts.

    Modules are imported from the installed packages, then from the folder of the agents file, then
    from the current folder.

    Args:
        files: Agents files.
        pairs: Pairs of `--agent`.
        quiet: Whether to omit the warnings about files.

    Raises:
        AslError: A file cannot be read or a function cannot be imported.
    """
    from asl.agents.adapters import named_agent

    bound = FileBindings()
    for file in files:
        from asl.agents.file import load_bindings

        with report_as_usage():
            bound = bound | load_bindings(file, warn=None if quiet else print_warnings)
    for each in pairs:
        name, function = split_pair(each, "NAME=module:function", "--agent")
        try:
            bound.agents[name] = named_agent(function, (Path(),))
        except AslError as error:
            raise AslError(f"--agent {name}: {error}") from None
    return bound


def _code(document: "Program | Document", agents: Container[str]) -> dict[str, Any]:
    """Import the functions that a document names without a binding.

    They are in the folder of the document; in the current folder for a stored program.
    """
    if isinstance(document, Document):
        value, folder = document.composed_value, Path(document.source.name or "").resolve().parent
    else:
        value, folder = document.document, Path()
    with stdout_to_stderr():
        return {
            name: DocumentFunction(import_object(str(each.code), (folder, Path())), each)
            for name, each in unbound_code(value, agents).items()
        }


def _startable_workflows(
    document: "Program | Document | None", given: "dict[str, Document]"
) -> "Mapping[str, Program | Document | Loadable] | None":
    """Return the workflows that a document may start, including those of its template."""
    return find_startable_workflows(document, given) if isinstance(document, Document) else given


def _memories(places: Iterable[str], files: FileBindings) -> "dict[str, Memory]":
    """Return the memories of agents files and of `WHERE` or `BACKEND=WHERE`; the last one counts.

    A word before `=` is a backend: write a path such as `a=b.db` as `./a=b.db`. The backend
    `custom=module:name` is a memory, or a function without parameters that returns one.
    """
    from asl.memories import BACKENDS, bind_memory

    found: dict[str, Memory] = bind_memory(files.memory)
    for place in places:
        backend, equals, where = place.partition("=")
        if place in BACKENDS:
            raise click.BadParameter(
                f"{place!r} has no place: use {place}=WHERE", param_hint="--memory"
            )
        if not equals or not backend.isidentifier():
            found |= bind_memory(place)
        elif backend == "custom":
            named = import_object(where, (Path(),))
            found |= bind_memory({backend: named() if callable(named) else named})
        else:
            found |= bind_memory({backend: where})
    return found


def _named_sinks(pairs: Iterable[str]) -> "Sinks":
    """Return the sinks of `CHANNEL=WHERE` pairs by channel; the last one counts."""
    named = dict(split_pair(each, "CHANNEL=WHERE", "--sink") for each in pairs)
    return {channel: named_sink(where, (Path(),)) for channel, where in named.items()}


def _load_mocks(specs: Iterable[str], document: "Program | Document") -> dict[str, Any]:
    """Read the mocks of `FILE#Case` and `FILE#Machine/Case`; the last one counts."""
    found: dict[str, Any] = {}
    for spec in specs:
        file, mark, case = spec.rpartition("#")
        if not (file and mark and case):
            raise click.BadParameter(
                f"{spec!r} does not have the form FILE#CASE", param_hint="--mock"
            )
        with report_as_usage():
            found |= asl.load_mocks(file, case, document=document)
    return found
