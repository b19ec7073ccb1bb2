"""`asl check`: errors and warnings of documents."""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from asl.checks import check
from asl.checks.aws import unreadable
from asl.cli import console
from asl.cli.arguments import (
    DOCUMENTS,
    PROFILE,
    QUOTA,
    Origin,
    origin_options,
    read_agents_files,
    read_documents,
    read_folder,
    read_workflows,
    select_profile,
)
from asl.cli.console import Exit
from asl.core.diagnostics import Diagnostic, InvalidDocument, Report, Severity
from asl.core.document import Document, read_value
from asl.core.errors import DocumentNotFound
from asl.core.profile import Profile
from asl.core.render.formats import RENDERERS
from asl.core.render.text import render_text
from asl.core.values import Json
from asl.documents.defined_agents import check_bound

if TYPE_CHECKING:
    from asl.agents.registry import FileBindings

__all__ = ["check_command"]


class BoundNames(TypedDict):
    """The names that are bound, None if unknown, and whether AWS's services are called."""

    bound: "FileBindings | None"
    workflows: Collection[str] | None
    aws: bool


class CheckSettings(TypedDict):
    """Options of a check."""

    strict: bool
    express: bool | None


@click.command("check")
@DOCUMENTS
@PROFILE
@QUOTA
@origin_options
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(RENDERERS)),
    default="text",
    show_default=True,
    help="Output format; github prints workflow annotations.",
)
@click.option(
    "--agents",
    "agent_files",
    metavar="FILE",
    multiple=True,
    help="Check this agents file too, and warn about names that it does not bind.",
)
@click.option(
    "--aws",
    is_flag=True,
    help="With --agents: resources that 'asl run --aws' calls are bound.",
)
@click.option(
    "--workflow",
    "workflow_pairs",
    metavar="NAME=FILE",
    multiple=True,
    help="Declare a workflow that may be started; warn about others.",
)
@click.option(
    "--express",
    is_flag=True,
    help="Check as an Express Workflow (with --profile aws), also if the document does not say.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
def check_command(
    documents: tuple[str, ...],
    profile: str,
    quotas: tuple[str, ...],
    origin: Origin,
    strict: bool,
    format_: str,
    agent_files: tuple[str, ...],
    aws: bool,
    workflow_pairs: tuple[str, ...],
    express: bool,
    quiet: bool,
) -> Exit:
    """Check documents and report errors and warnings.

    DOC is a JSON or YAML file, an agents file, a folder, or - for standard input. Every state
    machine of a template is checked unless --resource selects one. In a folder all templates,
    documents and agents files are checked; a definition that a template uses is checked with the
    values of the template. Exits with 3 if a document has errors.

    \f
    Raises:
        UsageError: The options contradict each other, or a folder has no documents.
    """
    chosen = select_profile(profile, quotas)
    if format_ == "aws" and not chosen.aws:
        raise click.UsageError("--format aws needs --profile aws")
    if aws and not agent_files:
        raise click.UsageError("--aws needs --agents: no resource is checked without it")
    bound = read_agents_files(agent_files) if agent_files else None
    startable = read_workflows(workflow_pairs, origin) or None
    if not origin["parameters"]:
        origin["parameters"] = None  # check a template for any parameters
    folders = {name for name in documents if name != "-" and os.path.isdir(name)}
    if folders and origin["resource"] is not None:
        raise click.UsageError("--resource needs a file, not a folder: name the template")
    if len(documents) > 1 or folders:  # not every document uses all of the variables
        origin["defaults"] = {**origin["defaults"], **origin["variables"]}
        origin["variables"] = {}
    reports: list[Report] = []
    missing = []
    checked = set(documents)
    names: BoundNames = {"bound": bound, "workflows": startable, "aws": aws}
    settings: CheckSettings = {"strict": strict, "express": express or None}
    for name in documents:
        try:
            for file, found in _read_files(name, origin, name in folders):
                checked.add(file)
                reports += _reports(found, chosen, names, settings)
        except DocumentNotFound as error:
            missing.append(error)
    reports = _without_repeats(reports)
    known = set(map(os.path.realpath, checked))
    reports += _agents_reports([f for f in agent_files if os.path.realpath(f) not in known], strict)
    shown = [_errors_only(each) for each in reports] if quiet else reports
    if any(shown) or (reports and not quiet) or format_ in ("json", "sarif", "aws"):
        console.write_result(_render(shown, format_))
    for unread in missing:
        console.print_message(f"asl: {unread}", style="red")
    if missing:
        return Exit.USAGE
    return Exit.OK if all(report.ok for report in reports) else Exit.INVALID


def _read_files(
    name: str, origin: Origin, is_folder: bool
) -> Iterator[tuple[str, list[Document | InvalidDocument]]]:
    """Yield a file, or the files of a folder, with their documents."""
    if not is_folder:
        try:
            yield name, read_documents(name, origin)
        except InvalidDocument as refusal:
            yield name, [refusal]
        return
    found = [*read_folder(name, origin)]
    if not any(documents for _, documents in found):
        message = f"the folder {name!r} has no template, document or agents file"
        raise click.UsageError(f"{message}: name the files")
    yield from found


def _reports(
    documents: Iterable[Document | InvalidDocument],
    profile: Profile,
    names: BoundNames,
    settings: CheckSettings,
) -> Iterator[Report]:
    from asl.agents.sections import is_agents_file

    for each in documents:
        if isinstance(each, InvalidDocument):
            yield unreadable(each.report) if profile.aws else each.report
        elif is_agents_file(each):
            from asl.agents.file import check_agents

            yield check_agents(each, strict=settings["strict"])
        else:
            yield from _of_document(each, profile, names, settings)


def _of_document(
    document: Document, profile: Profile, names: BoundNames, settings: CheckSettings
) -> Iterator[Report]:
    """Yield what is found in a document, and how far its own agents are bound."""
    bound, workflows = names["bound"], names["workflows"]
    if bound is None:
        yield check(document, profile, workflows=workflows, **settings)
        return
    report, defined = check_bound(
        document,
        profile,
        agents=bound.agents,
        resources=[*bound.resources, *_performed(bound.aws, names["aws"])],
        workflows=workflows,
        tools={**bound.servers, **bound.tools},
        **settings,
    )
    yield report
    if defined:
        yield defined


def _performed(settings: Mapping[str, Json], aws: bool) -> list[str]:
    """Return the patterns of the resources that `--aws` or the settings of a file switch on."""
    if not (aws or settings):
        return []
    from asl.aws.integrations import resource_patterns

    return resource_patterns(settings.get("services"), endpoint="endpoint" in settings)


def _without_repeats(reports: Iterable[Report]) -> list[Report]:
    """Return reports without repeated findings: several templates may use one definition."""
    seen: set[Diagnostic] = set()
    kept = []
    for report in reports:
        new = tuple(each for each in report if each not in seen)
        seen.update(new)
        kept.append(Report(new, report.document))
    return kept


def _agents_reports(files: Collection[str], strict: bool) -> Iterator[Report]:
    """Yield the reports of agents files with findings."""
    for file in sorted({*files}):
        from asl.agents.file import check_agents

        report = check_agents(read_value(Path(file)), strict=strict)
        if report:
            yield report


def _errors_only(report: Report) -> Report:
    return Report(report.of(Severity.ERROR), report.document)


def _render(reports: list[Report], format_: str) -> str:
    if format_ == "text":
        return render_text(reports, color=console.has_colour(sys.stdout))
    return RENDERERS[format_](reports)
