"""`asl lsp`: the language server for editors."""

import os
import sys
from pathlib import Path
from time import monotonic

import click

from asl.cli.arguments import read_agents_files, select_profile
from asl.cli.console import Exit
from asl.cli.project import find_project
from asl.core.environment import require_extra
from asl.editor.project import ProjectNames
from asl.sources.repository import is_document_name

__all__ = ["lsp_command"]

_FRESH = 5.0
"""Seconds for which the names of a project are used again."""
_MAX_WORKFLOWS = 1000


@click.command("lsp")
def lsp_command() -> Exit:
    """Serve editors: diagnostics, completion, hover, navigation and formatting.

    Speaks the Language Server Protocol on standard input and output; editors start it.

    \f
    Raises:
        AslError: The package of the extra "editor" is missing.
    """
    require_extra("pygls", "editor", "'asl lsp'")
    from asl.editor.server import create_server

    # pygls closes what it writes to; standard output is flushed when the command ends.
    output = open(os.dup(sys.stdout.fileno()), "wb")  # noqa: SIM115
    create_server(_ProjectCache().find).start_io(stdout=output)
    return Exit.OK


class _ProjectCache:
    """The projects of folders, each read again after some seconds."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, ProjectNames]] = {}

    def find(self, folder: str) -> ProjectNames:
        """Return the project of a folder; raises AslError for one that cannot be read."""
        known = self._known.get(folder)
        if known is None or monotonic() - known[0] > _FRESH:
            known = self._known[folder] = (monotonic(), _read_project(folder))
        return known[1]


def _read_project(folder: str) -> ProjectNames:
    project = find_project(folder)
    bound = read_agents_files(project.agents) if project.agents else None
    workflows = (each.name.split(".")[0] for each in Path(folder).iterdir() if _is_workflow(each))
    return ProjectNames(
        select_profile(project.profile or "default", ()),
        project.variables,
        None if bound is None else [*bound.agents],
        None if bound is None else [*bound.resources],
        sorted({*workflows})[:_MAX_WORKFLOWS],
    )


def _is_workflow(path: Path) -> bool:
    return is_document_name(path.name) and ".agents." not in os.path.basename(path)
