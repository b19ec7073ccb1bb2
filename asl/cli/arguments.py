"""Arguments of several commands: documents, inputs and profiles."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import click

from asl.cli.console import has_colour
from asl.cli.project import Project
from asl.core.diagnostics import InvalidDocument
from asl.core.document import Document, is_workflow, read_value
from asl.core.errors import AslError
from asl.core.json_text import read_data
from asl.core.profile import PROFILES, Profile, profile_named
from asl.core.values import Json

if TYPE_CHECKING:
    from asl.agents.registry import FileBindings

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
    "origin_options",
    "read_agents_files",
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
    """Return a profile with changed quotas.

    Args:
        name: Name of the profile.
        quotas: Changes as `NAME=VALUE`.

    Raises:
        BadParameter: A quota is unknown or invalid.
    """
    try:
        found = profile_named(":".join((name, *quotas)))
    except AslError as error:
        raise click.BadParameter(str(error), param_hint="--quota") from None
    assert found is not None  # click has checked the name
    return found


def _check_stdin_once(
    ctx: click.Context, parameter: click.Parameter, names: tuple[str, ...]
) -> Any:
    if names.count("-") > 1:
        raise click.UsageError("standard input can be read only once: use - once")
    return names


DOCUMENTS = click.argument(
    "documents", metavar="DOC...", nargs=-1, required=True, callback=_check_stdin_once
)


def list_files(name: str) -> list[str]:
    """Return the documents and agents files of a folder, sorted; for a file, its name.

    Raises:
        UsageError: The folder has none.
    """
    if name == "-" or not os.path.isdir(name):
        return [name]
    from asl.sources.repository import is_document_name

    found = sorted(str(each) for each in Path(name).rglob("*") if is_document_name(each.name))
    if not found:
        endings = "*.asl.json, *.asl.yaml, *.agents.json or *.agents.yaml"
        raise click.UsageError(f"the folder {name!r} has no {endings}: name the files")
    return found


class Origin(TypedDict):
    """How a document is read from a file.

    The values of `--dialect`, `--reading`, `--resource`, `--var`, `--vars`, `--root` and `--param`.
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
"""The origin without any option."""


def _check_folder(ctx: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    if name is not None and not os.path.isdir(name):
        raise click.BadParameter(f"{name!r} is not a folder", param_hint="--root")
    return name


ROOT = click.option(
    "--root",
    metavar="FOLDER",
    callback=_check_folder,
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
    """Add options to a command in their order."""
    for option in reversed([*options]):
        command = option(command)
    return command


def origin_options(command: Command) -> Command:
    """Add the options for reading a document; the command receives them as `origin`."""

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
            "reading": dict(map(_parse_reading, options)),
            "resource": resource,
            "variables": dict(
                split_pair(each, "NAME=VALUE", "--var", empty=True) for each in pairs
            ),
            "defaults": {
                **_project_variables(),
                **{name: value for file in files for name, value in read_table(file).items()},
            },
            "root": root,
            "parameters": dict(map(_parse_parameter, values)),
        }
        return command(*args, origin=origin, **others)

    return with_options(_ORIGIN, with_origin)


def _project_variables() -> Mapping[str, Json]:
    """Return the placeholder values of the project."""
    project = click.get_current_context().obj
    return project.variables if isinstance(project, Project) else {}


def split_pair(text: str, form: str, option: str, *, empty: bool = False) -> tuple[str, str]:
    """Split `NAME=VALUE` at the first equals sign.

    Args:
        text: The value of an option.
        form: The form to show in the error, such as `NAME=FILE`.
        option: Name of the option.
        empty: Whether the value may be empty.

    Raises:
        BadParameter: The text has another form.
    """
    name, equals, value = text.partition("=")
    if not name or not equals or not (value or empty):
        raise click.BadParameter(f"{text!r} does not have the form {form}", param_hint=option)
    return name, value


def value_or_text(text: str) -> Json:
    """Return the value of a JSON text; any other text unchanged."""
    try:
        return read_data(text)
    except ValueError:
        return text


def _parse_reading(text: str) -> tuple[str, Json]:
    return _parse_parameter(text, "--reading") if "=" in text else (text, True)


def _parse_parameter(text: str, option: str = "--param") -> tuple[str, Json]:
    name, equals, value = text.partition("=")
    if not name.removesuffix(":") or not equals:
        message = f"{text!r} does not have the form NAME=TEXT or NAME:=JSON"
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
    """Read a document from a file, or from standard input for `-`.

    Raises:
        InvalidDocument: It cannot be read as a document.
        AslError: The file does not exist or is an agents file.
    """
    from asl.dialects import load

    if name == "-":
        return load(sys.stdin.buffer.read(), name="<stdin>", **origin)
    document = load(_path(name), **origin)
    if document.value.keys().isdisjoint(("StartAt", "States")):
        from asl.agents.sections import is_agents_file

        if is_agents_file(document):
            raise AslError(f"{name!r} is an agents file: use it in 'asl run DOC --agents {name}'")
    return document


def read_documents(name: str, origin: Origin) -> "list[Document | InvalidDocument]":
    """Read all documents of a file; a template may have several."""
    from asl.dialects import load_each

    if name == "-":
        return load_each(sys.stdin.buffer.read(), name="<stdin>", **origin)
    return load_each(_path(name), **origin)


def read_folder(
    folder: str, origin: Origin
) -> "Iterator[tuple[str, list[Document | InvalidDocument]]]":
    """Yield each template, document and agents file of a folder with its documents.

    A file that a template names is read as part of the template, not by itself. Templates may name
    any file of the repository.
    """
    from asl.dialects import load_each
    from asl.dialects.registry import has_marks
    from asl.sources.read_context import repository_of
    from asl.sources.repository import find_files, is_document_name

    templates, documents = find_files(folder, has_marks)
    origin = {**origin, "root": origin["root"] or repository_of(folder)}
    used: set[str] = set()
    found: dict[str, list[Document | InvalidDocument]] = {}
    for file in templates:
        try:
            found[file] = load_each(Path(file), templates_only=True, used=used, **origin)
        except InvalidDocument as refusal:
            found[file] = [refusal]
    found = {file: each for file, each in found.items() if os.path.realpath(file) not in used}
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
        raise AslError(f"cannot read {name!r}: DOC must be a file, or - for standard input")
    return Path(name)


def read_input(text: str, option: str = "--input") -> Json:
    """Read the value of an option: JSON, `@FILE`, or `-` for standard input.

    Raises:
        AslError: The text is not JSON, or the file cannot be read.
    """
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
            raise AslError(f"{text!r} is a file: use {option} @{text}") from None


@contextmanager
def report_as_usage() -> Iterator[None]:
    """Turn the InvalidDocument of an input or agents file into a usage error.

    Raises:
        AslError: The body raises InvalidDocument.
    """
    try:
        yield
    except InvalidDocument as refusal:
        from asl.core.render.text import render_text

        text = render_text(refusal.report, color=has_colour(sys.stderr))
        document = refusal.report.document
        name = "the text" if document is None else document.source.name
        raise AslError(f"{name} cannot be used\n{text}") from None


AGENTS = click.option(
    "--agents",
    "agent_files",
    metavar="FILE",
    multiple=True,
    help="Agents file that binds the names of the document.",
)


def read_workflows(pairs: Iterable[str], origin: Origin) -> "dict[str, Document]":
    """Read the documents of `NAME=FILE` or `NAME=FILE#RESOURCE` pairs by name."""
    found = {}
    for each in pairs:
        name, file = split_pair(each, "NAME=FILE", "--workflow")
        path, _, resource = file.partition("#")
        own: Origin = {
            **DEFAULT_ORIGIN,
            "resource": resource or None,
            # as defaults, because not every file uses all of the variables
            "defaults": {**origin["defaults"], **origin["variables"]},
            "root": origin["root"],
        }
        found[name] = read_document(path, own)
    for document in [*found.values()]:  # ARNs contain the name in the template
        if document.deployed is not None:
            found.setdefault(document.deployed, document)
    return found


def read_agents_files(files: Iterable[str]) -> "FileBindings":
    """Return what agents files bind, as it is written there; the last file wins."""
    from asl.agents.file import load_bindings
    from asl.agents.registry import FileBindings

    bound = FileBindings()
    with report_as_usage():
        for file in files:
            bound = bound | load_bindings(file, build=False)
    return bound
