"""What several commands take: documents, the input, profiles."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

import click

from asl.cli.console import has_colour
from asl.cli.project import Project
from asl.core.diagnostics import InvalidDocument
from asl.core.document import Document, is_workflow, read_value
from asl.core.errors import AslError
from asl.core.json_text import read_data
from asl.core.profile import PROFILES, Profile, profile_named
from asl.core.values import Json

__all__ = [
    "AGENTS",
    "DEFAULT_ORIGIN",
    "DOCUMENTS",
    "PROFILE",
    "QUOTA",
    "ROOT",
    "Command",
    "Origin",
    "list_files",
    "names_in_agents_files",
    "origin_options",
    "read_document",
    "read_documents",
    "read_folder",
    "read_input",
    "read_table",
    "read_workflows",
    "report_as_usage",
    "select_profile",
    "split_pair",
    "value_or_text",
    "with_options",
]

Command: TypeAlias = Callable[..., Any]

PROFILE = click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="default",
    show_default=True,
    help="The rules to apply: those of asl, of AWS, or lenient ones.",
)


QUOTA = click.option(
    "--quota",
    "quotas",
    metavar="NAME=VALUE",
    multiple=True,
    help="Change a quota of the profile, such as max_effects=100000 or history_events=none.",
)


def select_profile(name: str, quotas: tuple[str, ...]) -> Profile:
    """Return the profile of this name with the quotas given on the command line."""
    try:
        found = profile_named(":".join((name, *quotas)))
    except AslError as error:
        raise click.BadParameter(str(error), param_hint="--quota") from None
    assert found is not None  # click has checked the name
    return found


def _once(ctx: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> Any:
    if names.count("-") > 1:
        raise click.UsageError("standard input can be read only once: name - once")
    return names


DOCUMENTS = click.argument("documents", metavar="DOC...", nargs=-1, required=True, callback=_once)


def list_files(name: str) -> list[str]:
    """List the documents and agents files of a folder, in alphabetical order; else the name."""
    if name == "-" or not os.path.isdir(name):
        return [name]
    from asl.sources.repository import is_document_name

    found = sorted(str(each) for each in Path(name).rglob("*") if is_document_name(each.name))
    if not found:
        endings = "*.asl.json, *.asl.yaml, *.agents.json or *.agents.yaml"
        raise click.UsageError(f"there is no {endings} in the folder {name!r}: name the files")
    return found


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
    parameters: Mapping[str, Json] | None


DEFAULT_ORIGIN: Origin = {
    "dialect": None,
    "reading": {},
    "resource": None,
    "variables": {},
    "defaults": {},
    "root": None,
    "parameters": {},
}
"""A document by itself."""


def _folder(ctx: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    if name is not None and not os.path.isdir(name):
        raise click.BadParameter(f"{name!r} is no folder", param_hint="--root")
    return name


ROOT = click.option(
    "--root",
    metavar="FOLDER",
    callback=_folder,
    help="Folder that contains all files that the document may import or name.",
)

_ORIGIN = (
    click.option(
        "--dialect", metavar="NAME", help="Language of the document; detected by default."
    ),
    click.option(
        "--reading",
        "options",
        metavar="NAME",
        multiple=True,
        help="Option of the dialect: NAME, NAME=TEXT or NAME:=JSON.",
    ),
    click.option("--resource", metavar="NAME", help="Select the state machine of a template."),
    click.option(
        "--var",
        "pairs",
        metavar="NAME=VALUE",
        multiple=True,
        help="Set a placeholder of the document.",
    ),
    click.option(
        "--vars",
        "files",
        metavar="FILE",
        multiple=True,
        help="Read placeholders from a JSON or YAML file.",
    ),
    ROOT,
    click.option(
        "--param",
        "values",
        metavar="NAME=TEXT",
        multiple=True,
        help="Set a parameter to a text, or to JSON with NAME:=JSON.",
    ),
)


def with_options(options: Iterable[Callable[[Command], Command]], command: Command) -> Command:
    """Add options to a command, in their order."""
    for option in reversed([*options]):
        command = option(command)
    return command


def origin_options(command: Command) -> Command:
    """Add the options that say how a document is taken from a file, as the argument `origin`."""

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
            "variables": dict(
                split_pair(each, "NAME=VALUE", "--var", empty=True) for each in pairs
            ),
            "defaults": {
                **_project_variables(),
                **{name: value for file in files for name, value in read_table(file).items()},
            },
            "root": root,
            "parameters": dict(map(_parameter, values)),
        }
        return command(*args, origin=origin, **others)

    return with_options(_ORIGIN, with_origin)


def _project_variables() -> Mapping[str, Json]:
    """Return the values of placeholders that the project sets."""
    project = click.get_current_context().obj
    return project.variables if isinstance(project, Project) else {}


def split_pair(text: str, form: str, option: str, *, empty: bool = False) -> tuple[str, str]:
    """Split `NAME=VALUE`, which an option calls by its own *form*; a value may be *empty*."""
    name, equals, value = text.partition("=")
    if not name or not equals or not (value or empty):
        raise click.BadParameter(f"{text!r} is not {form}", param_hint=option)
    return name, value


def value_or_text(text: str) -> Json:
    """Return the value of a JSON text, and any other text as it is."""
    try:
        return read_data(text)
    except ValueError:
        return text


def _option(text: str) -> tuple[str, Json]:
    return _parameter(text, "--reading") if "=" in text else (text, True)


def _parameter(text: str, option: str = "--param") -> tuple[str, Json]:
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
    from asl.sources.repository import read_values

    with report_as_usage():
        return read_values(Path(file))


def read_document(name: str, origin: Origin) -> "Document":
    """Read the document of this file, of standard input for `-`."""
    from asl.dialects import load

    if name == "-":
        return load(sys.stdin.buffer.read(), name="<stdin>", **origin)
    document = load(_path(name), **origin)
    if document.value.keys().isdisjoint(("StartAt", "States")):
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


def read_folder(
    folder: str, origin: Origin
) -> "Iterator[tuple[str, list[Document | InvalidDocument]]]":
    """Yield every template, document and agents file below a folder with what is in it.

    A file that a template names is read as the template uses it, and not once more by itself.
    Templates may name any file of the repository.
    """
    from asl.dialects import load_each
    from asl.sources.read_context import repository_of
    from asl.sources.repository import find_files, is_document_name

    templates, documents = find_files(folder)
    origin = {**origin, "root": origin["root"] or repository_of(folder)}
    used: set[str] = set()
    found: dict[str, list[Document | InvalidDocument]] = {}
    for file in templates:
        try:
            found[file] = load_each(Path(file), templates_only=True, used=used, **origin)
        except InvalidDocument as refusal:
            found[file] = [refusal]
    for file in documents:
        if os.path.realpath(file) in used:
            continue
        try:
            each = read_documents(file, origin)
        except InvalidDocument as refusal:
            each = [refusal]
        found[file] = [
            document
            for document in each
            if is_document_name(file)
            or isinstance(document, InvalidDocument)
            or is_workflow(document.value)
        ]
    yield from sorted(found.items())


def _path(name: str) -> Path:
    if "://" in name:
        raise AslError(f"cannot read {name!r}: a document is a file, or - for standard input")
    return Path(name)


def read_input(text: str, option: str = "--input") -> Json:
    """Read the value that an option gives: JSON, `@FILE`, or `-` for standard input."""
    with report_as_usage():
        if text == "-":
            return read_value(sys.stdin.buffer.read(), name="<stdin>", format="json").value
        if text.startswith("@"):
            return read_value(Path(text[1:])).value
        try:
            return read_value(os.fsencode(text), name=option, format="json").value
        except InvalidDocument:
            if not os.path.isfile(text):
                raise
            raise AslError(f"{text!r} is a file: {option} @{text} reads it") from None


@contextmanager
def report_as_usage() -> Iterator[None]:
    """Turn faults of reading into wrong usage: it is not the document that has errors."""
    try:
        yield
    except InvalidDocument as refusal:
        from asl.core.render.text import render_text

        text = render_text(refusal.report, color=has_colour(sys.stderr))
        document = refusal.report.document
        name = "this" if document is None else document.source.name
        raise AslError(f"{name} cannot be used\n{text}") from None


AGENTS = click.option(
    "--agents",
    "agent_files",
    metavar="FILE",
    multiple=True,
    help="Agents file that binds the names of the document.",
)


def read_workflows(pairs: Iterable[str], origin: Origin) -> "dict[str, Document]":
    """Read the documents that `NAME=FILE` pairs name; `FILE#RESOURCE` is one of a template."""
    found = {}
    for each in pairs:
        name, file = split_pair(each, "NAME=FILE", "--workflow")
        path, _, resource = file.partition("#")
        own: Origin = {
            **DEFAULT_ORIGIN,
            "resource": resource or None,
            # not every file needs all of the variables
            "defaults": {**origin["defaults"], **origin["variables"]},
            "root": origin["root"],
        }
        found[name] = read_document(path, own)
    for document in [*found.values()]:  # an ARN has the name that a template gives
        if document.deployed is not None:
            found.setdefault(document.deployed, document)
    return found


def names_in_agents_files(
    files: Iterable[str],
) -> tuple[frozenset[str] | None, frozenset[str] | None]:
    """Return the agents and the resources that agents files bind; None without a file."""
    from asl.agents.file import load_bindings

    with report_as_usage():
        each = [load_bindings(file, build=False) for file in files]
    if not each:
        return None, None
    return (
        frozenset(name for bound in each for name in bound.agents),
        frozenset(name for bound in each for name in bound.resources),
    )
