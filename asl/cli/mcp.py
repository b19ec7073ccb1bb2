"""`asl mcp`: workflows as tools of the Model Context Protocol."""

import asyncio
import os
from collections.abc import Iterator, Mapping

import click

from asl.agents.sections import is_agents_file
from asl.cli import console
from asl.cli.arguments import Origin, origin_options, read_documents, read_folder
from asl.cli.binding_options import BindingOptions, binding_options
from asl.cli.console import Exit
from asl.core.diagnostics import InvalidDocument
from asl.core.document import Document
from asl.core.environment import require_extra, user_name
from asl.core.errors import AslError
from asl.documents.checking import check
from asl.executions import Store, open_store

__all__ = ["mcp_command"]


@click.command("mcp")
@click.argument("documents", metavar="[DOC...]", nargs=-1)
@click.option(
    "--store",
    "store_file",
    metavar="FILE",
    help="Store of executions; by default in memory, until the client ends.",
)
@click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Time to wait for the end of an execution before its status is returned.",
)
@click.option("--no-answers", is_flag=True, help="Offer no tool that answers requests.")
@origin_options
@binding_options
def mcp_command(
    documents: tuple[str, ...],
    store_file: str | None,
    wait: float,
    no_answers: bool,
    origin: Origin,
    binding: BindingOptions,
) -> Exit:
    """Serve workflows as tools of the Model Context Protocol, on standard streams.

    DOC is a document or a folder, by default the current one. Each workflow is a tool; further
    tools show and stop executions, list requests and answer them. Configure an assistant to start
    this command.

    \b
        asl mcp flows/ --agents agents.yaml --store runs.db

    \f
    Raises:
        AslError: There is no workflow, or the package of the extra "mcp" is missing.
    """
    require_extra("mcp", "mcp", "'asl mcp'")
    workflows: dict[str, Document] = {}
    for document in _documents(documents or (".",), origin):
        report = check(document)
        if not report.ok:
            raise InvalidDocument(report)
        if document.name in workflows:
            raise AslError(f"two workflows have the name {document.name!r}")
        workflows[document.name] = document
    if not workflows:
        raise AslError("there is no workflow: name documents, or a folder that has some")
    bindings = binding.bindings(None, origin)
    with open_store(store_file or "memory:", **bindings) as store:
        binding.record(store)
        asyncio.run(_serve(store, workflows, wait, not no_answers))
    return Exit.OK


def _documents(names: tuple[str, ...], origin: Origin) -> Iterator[Document]:
    """Yield the documents of files and folders.

    Raises:
        InvalidDocument: One cannot be read.
    """
    for name in names:
        groups = (
            [found for _, found in read_folder(name, origin)]
            if os.path.isdir(name)
            else [read_documents(name, origin)]
        )
        for each in (document for group in groups for document in group):
            if isinstance(each, InvalidDocument):
                raise each
            if not is_agents_file(each):
                yield each


async def _serve(
    store: Store, workflows: Mapping[str, Document], wait: float, answers: bool
) -> None:
    from asl.mcp_server import WorkflowTools, mcp_server, serve_standard_streams

    tools = WorkflowTools(store, workflows, user_name(), wait=wait, answers=answers)
    names = ", ".join(workflows)
    console.print_message(f"asl: {console.count_noun(len(workflows), 'workflow')}: {names}")
    async with store.runner():
        await serve_standard_streams(mcp_server(tools))
