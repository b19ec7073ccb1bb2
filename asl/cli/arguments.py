"""What several commands take: documents, input, profiles and agents."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict

import click

from asl.cli.streams import colour, warn
from asl.core.errors import AslError, InvalidDocument
from asl.core.profile import PROFILES
from asl.core.values import Json

if TYPE_CHECKING:
    from asl.agents.bound import Bindings
    from asl.bindings import Bindings as RunBindings
    from asl.core.document import Document
    from asl.engine.memory import Memory
    from asl.program import Program

__all__ = [
    "AS_IT_IS",
    "PROFILE",
    "Given",
    "Origin",
    "binding_options",
    "bindings",
    "filled_pools",
    "memories",
    "mocks",
    "named",
    "named_folders",
    "origin_options",
    "read_document",
    "read_documents",
    "read_input",
    "read_table",
    "workflows",
]

Command: TypeAlias = Callable[..., Any]

PROFILE = click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="default",
    show_default=True,
    help="How to read the language.",
)


class Given(NamedTuple):
    """Who answers for the names of a document, as the command line says it."""

    agent_files: tuple[str, ...]
    agent_pairs: tuple[str, ...]
    bucket_pairs: tuple[str, ...]
    mock_cases: tuple[str, ...]
    workflow_pairs: tuple[str, ...]
    channels: tuple[str, ...]
    memory_places: tuple[str, ...]
    pool_pairs: tuple[str, ...]
    sink_pairs: tuple[str, ...]

    def bindings(self, document: "Program") -> "RunBindings":
        """Return what `Store.resume` takes, for an execution that a store has kept."""
        bound = bindings(self.agent_files, self.agent_pairs)
        return {
            "agents": bound.agents,
            "resources": bound.resources,
            "mocks": {**bound.mocks, **mocks(self.mock_cases, document)},
            "tools": {**bound.servers, **bound.tools},
            "buckets": named_folders(self.bucket_pairs),
            "workflows": workflows(self.workflow_pairs, AS_IT_IS) or None,
            "notify": self.channels or None,
            "memory": memories(self.memory_places, bound) or None,
            "pools": filled_pools(self.pool_pairs),
            "sinks": named_sinks(self.sink_pairs),
        }


def binding_options(command: Command) -> Command:
    """Add the options that say who answers for the names of a document, as the argument `given`."""

    @click.option(
        "--agents",
        "agent_files",
        metavar="FILE",
        multiple=True,
        help="Agents file: who answers for the names in the document.",
    )
    @click.option(
        "--agent",
        "agent_pairs",
        metavar="NAME=MODULE:FUNCTION",
        multiple=True,
        help="Bind one agent to a Python function.",
    )
    @click.option(
        "--bucket",
        "bucket_pairs",
        metavar="NAME=FOLDER",
        multiple=True,
        help="Where a distributed Map finds a bucket: a folder, or the URL of an object store.",
    )
    @click.option(
        "--mock",
        "mock_cases",
        metavar="FILE#CASE",
        multiple=True,
        help="Answer Tasks from a test case of a mock file of Step Functions Local.",
    )
    @click.option(
        "--workflow",
        "workflow_pairs",
        metavar="NAME=FILE",
        multiple=True,
        help="A workflow that the document may start, by name or ARN.",
    )
    @click.option(
        "--notify",
        "channels",
        metavar="CHANNEL",
        multiple=True,
        help="Tell people what they are asked: console, jsonl:FILE or apprise:URL.",
    )
    @click.option(
        "--memory",
        "memory_places",
        metavar="[BACKEND=]WHERE",
        multiple=True,
        help="Where Memory blocks keep their values: a file, redis://..., dynamodb://TABLE.",
    )
    @click.option(
        "--pool",
        "pool_pairs",
        metavar="NAME=AMOUNT",
        multiple=True,
        help="How much money there is in a pool that budgets name.",
    )
    @click.option(
        "--sink",
        "sink_pairs",
        metavar="CHANNEL=WHERE",
        multiple=True,
        help="Take the events of a channel, by name or type: stdout, jsonl:FILE, module:function.",
    )
    @wraps(command)
    def with_bindings(
        *args: Any,
        agent_files: tuple[str, ...],
        agent_pairs: tuple[str, ...],
        bucket_pairs: tuple[str, ...],
        mock_cases: tuple[str, ...],
        workflow_pairs: tuple[str, ...],
        channels: tuple[str, ...],
        memory_places: tuple[str, ...],
        pool_pairs: tuple[str, ...],
        sink_pairs: tuple[str, ...],
        **options: Any,
    ) -> Any:
        given = Given(
            agent_files,
            agent_pairs,
            bucket_pairs,
            mock_cases,
            workflow_pairs,
            channels,
            memory_places,
            pool_pairs,
            sink_pairs,
        )
        return command(*args, given=given, **options)

    return with_bindings


class Origin(TypedDict):
    """How a document is taken from a file.

    It is what `--dialect`, `--reading`, `--resource`, `--var`, `--vars`, `--root` and `--param`
    say.
    """

    dialect: str | None
    reading: Mapping[str, Json]
    resource: str | None
    variables: Mapping[str, Json]
    defaults: Mapping[str, Json]
    root: str | None
    parameters: Mapping[str, Json]


AS_IT_IS: Origin = {
    "dialect": None,
    "reading": {},
    "resource": None,
    "variables": {},
    "defaults": {},
    "root": None,
    "parameters": {},
}
"""A document by itself."""


def origin_options(command: Command) -> Command:
    """Add the options that say how a document is taken from a file, as the argument `origin`."""

    @click.option(
        "--dialect", metavar="NAME", help="Language of the document, if not by its shape."
    )
    @click.option(
        "--reading",
        "options",
        metavar="NAME",
        multiple=True,
        help="Option of its language: NAME, NAME=TEXT or NAME:=JSON.",
    )
    @click.option("--resource", metavar="NAME", help="State machine of a template.")
    @click.option(
        "--var", "pairs", metavar="NAME=VALUE", multiple=True, help="Value of a placeholder."
    )
    @click.option(
        "--vars", "files", metavar="FILE", multiple=True, help="Values from a JSON or YAML file."
    )
    @click.option("--root", metavar="FOLDER", help="Where files lie that may be imported or named.")
    @click.option(
        "--param",
        "values",
        metavar="NAME=TEXT",
        multiple=True,
        help="Value of a parameter; NAME:=JSON for what is no text.",
    )
    @wraps(command)
    def with_origin(
        *args: Any,
        dialect: str | None,
        options: tuple[str, ...],
        resource: str | None,
        pairs: tuple[str, ...],
        files: tuple[str, ...],
        root: str | None,
        values: tuple[str, ...],
        **others: Any,
    ) -> Any:
        origin: Origin = {
            "dialect": dialect,
            "reading": dict(map(_option, options)),
            "resource": resource,
            "variables": dict(map(_pair, pairs)),
            "defaults": {name: value for file in files for name, value in read_table(file).items()},
            "root": root,
            "parameters": dict(map(_parameter, values)),
        }
        return command(*args, origin=origin, **others)

    return with_origin


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--var")
    return name, value


def _option(text: str) -> tuple[str, Json]:
    return _parameter(text, "--reading") if "=" in text else (text, True)


def _parameter(text: str, option: str = "--param") -> tuple[str, Json]:
    from asl.core.json_text import read_data

    name, equals, value = text.partition("=")
    if not name.removesuffix(":") or not equals:
        message = f"{text!r} is neither NAME=TEXT nor NAME:=JSON"
        raise click.BadParameter(message, param_hint=option)
    if not name.endswith(":"):
        return name, value
    try:
        return name[:-1], read_data(value)
    except ValueError as fault:
        raise click.BadParameter(f"{value!r} is not JSON: {fault}", param_hint=option) from None


def read_table(file: str) -> dict[str, Json]:
    """Read values by name from a JSON or YAML file."""
    from asl.sources.values import read_values

    with _faults_are_usage():
        return read_values(Path(file))


def read_document(name: str, origin: Origin) -> "Document":
    """Read the document of this file, of standard input for `-`."""
    from asl.dialects import load

    if name == "-":
        return load(sys.stdin.buffer.read(), name="<stdin>", **origin)
    document = load(_path(name), **origin)
    if document.dialect == "asl" and document.value.keys().isdisjoint(("StartAt", "States")):
        from asl.agents.file import is_agents_file

        if is_agents_file(document):
            raise AslError(f"{name!r} is an agents file: 'asl run DOC --agents {name}' uses it")
    return document


def read_documents(name: str, origin: Origin) -> "list[Document | InvalidDocument]":
    """Read every document of this file: a template may hold several."""
    from asl.dialects import load_each

    if name == "-":
        return load_each(sys.stdin.buffer.read(), name="<stdin>", **origin)
    return load_each(_path(name), **origin)


def _path(name: str) -> Path:
    if "://" in name:
        raise AslError(f"cannot read {name!r}: a document is a file, or - for standard input")
    return Path(name)


def read_input(text: str, option: str = "--input") -> Json:
    """Read the value that an option gives: JSON, `@FILE`, or `-` for standard input."""
    from asl.core.document import read_value

    with _faults_are_usage():
        if text == "-":
            return read_value(sys.stdin.buffer.read(), name="<stdin>", format="json").value
        if text.startswith("@"):
            return read_value(Path(text[1:])).value
        try:
            return read_value(text.encode(), name=option, format="json").value
        except InvalidDocument:
            if not os.path.isfile(text):
                raise
            raise AslError(f"{text!r} is a file: {option} @{text} reads it") from None


def bindings(files: Iterable[str], pairs: Iterable[str] = (), *, quiet: bool = False) -> "Bindings":
    """Bind what agents files and `NAME=module:function` pairs say; the last one wins.

    What is found in a file that stops nothing is told, unless *quiet*.

    Modules are looked for in the current folder and in that of each agents file.
    """
    from asl.agents.bound import Bindings
    from asl.agents.function import named_function

    bound = Bindings()
    _importable(".")
    for file in files:
        _importable(str(Path(file).parent))
        from asl.agents.file import load_bindings

        with _faults_are_usage():
            bound = bound | load_bindings(file, warn=None if quiet else warn)
    for pair in pairs:
        name, equals, function = pair.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{pair!r} is not NAME=module:function", param_hint="--agent")
        bound.agents[name] = named_function(function)
    return bound


def named_folders(pairs: Iterable[str]) -> dict[str, str]:
    """Return the folders (or URLs) of buckets that `NAME=FOLDER` pairs say; the last one wins."""
    found = {}
    for pair in pairs:
        name, equals, where = pair.partition("=")
        if not name or not equals or not where:
            raise click.BadParameter(f"{pair!r} is not NAME=FOLDER", param_hint="--bucket")
        found[name] = where
    return found


def memories(places: Iterable[str], files: "Bindings") -> "dict[str, Memory]":
    """Return the memories that agents files, `WHERE` and `BACKEND=WHERE` name; the last one wins.

    What `custom=module:name` names is a memory, or a function without parameters that makes one.
    """
    from asl.agents.function import imported
    from asl.memories import BACKENDS, bound

    found: dict[str, Memory] = bound(files.memory)
    for place in places:
        backend, equals, where = place.partition("=")
        if not equals or backend not in BACKENDS:
            found |= bound(place)
        elif backend == "custom":
            _importable(".")
            named = imported(where)
            found |= bound({backend: named() if callable(named) else named})
        else:
            found |= bound({backend: where})
    return found


def filled_pools(pairs: Iterable[str]) -> dict[str, str]:
    """Return the pools that `NAME=AMOUNT` pairs fill; the last one wins."""
    found = {}
    for pair in pairs:
        name, equals, most = pair.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{pair!r} is not NAME=AMOUNT", param_hint="--pool")
        found[name] = most
    return found


def named_sinks(pairs: Iterable[str]) -> dict[str, str]:
    """Return the sinks that `CHANNEL=WHERE` pairs name; the last one wins."""
    found = {}
    for pair in pairs:
        name, _, where = pair.partition("=")
        if not name or not where:
            raise click.BadParameter(f"{pair!r} is not CHANNEL=WHERE", param_hint="--sink")
        found[name] = where
    return found


def mocks(specs: Iterable[str], document: "Program | Document") -> dict[str, Any]:
    """Read the mocks that `FILE#Case` and `FILE#Machine/Case` say; the last one wins."""
    import asl

    found: dict[str, Any] = {}
    for spec in specs:
        file, mark, case = spec.rpartition("#")
        if not (file and mark and case):
            raise click.BadParameter(f"{spec!r} is not FILE#CASE", param_hint="--mock")
        with _faults_are_usage():
            found |= asl.load_mocks(file, case, document=document)
    return found


def workflows(pairs: Iterable[str], origin: Origin) -> "dict[str, Document]":
    """Read the documents that `NAME=FILE` pairs name; `FILE#RESOURCE` is one of a template."""
    found = {}
    for pair in pairs:
        name, equals, file = pair.partition("=")
        path, _, resource = file.partition("#")
        if not (name and equals and path):
            raise click.BadParameter(f"{pair!r} is not NAME=FILE", param_hint="--workflow")
        own: Origin = {
            **AS_IT_IS,
            "resource": resource or None,
            # not every file needs all of the variables
            "defaults": {**origin["defaults"], **origin["variables"]},
            "root": origin["root"],
        }
        found[name] = read_document(path, own)
    return found


def named(files: Iterable[str]) -> tuple[frozenset[str] | None, frozenset[str] | None]:
    """Return the agents and the resources that agents files bind; None without a file."""
    from asl.agents.file import load_bindings

    with _faults_are_usage():
        each = [load_bindings(file, build=False) for file in files]
    if not each:
        return None, None
    return (
        frozenset(name for bound in each for name in bound.agents),
        frozenset(name for bound in each for name in bound.resources),
    )


def _importable(folder: str) -> None:
    path = str(Path(folder).resolve())
    if path not in sys.path:
        sys.path.insert(0, path)


@contextmanager
def _faults_are_usage() -> Iterator[None]:
    """Turn faults of reading into wrong usage: it is not the document that has errors."""
    try:
        yield
    except InvalidDocument as refusal:
        from asl.core.render import render_text

        text = render_text(refusal.report, color=colour(sys.stderr))
        raise AslError(f"this cannot be used\n{text}") from None
