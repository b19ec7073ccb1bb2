"""Mocks from mock configuration files of Step Functions Local."""

from __future__ import annotations

import os
from typing import Any

from asl.agents.mock_file import load_mocks as load
from asl.checks.workflow import taken_apart
from asl.core.document import Document, Loadable
from asl.core.profile import DEFAULT
from asl.documents.loading import resolve_document
from asl.program import Program

__all__ = ["load_mocks"]


def load_mocks(
    file: str | os.PathLike[str],
    case: str,
    *,
    machine: str | None = None,
    document: Program | Document | Loadable | None = None,
) -> dict[str, Any]:
    """Read a test case of a mock configuration file of Step Functions Local.

    Args:
        file: Path of the file.
        case: Name of the test case.
        machine: Name of the state machine; needed if the file has several and neither the name of
            the document nor that of the case tells which one.
        document: Document whose Task states the case may mock; None to accept any name.

    Returns:
        The mocks by state, for `asl.run(..., mocks=...)`.

    Raises:
        AslError: The file or the case is invalid; the message has a line with the place of each
            fault.
    """
    if document is None:
        return dict(load(file, case, machine=machine))
    if isinstance(document, Program):
        steps = [step for each in document.machines.values() for step in each.steps.values()]
        states, name = {step.name: step.type for step in steps}, document.name
    else:
        loaded = resolve_document(document)
        nodes = taken_apart(loaded.value, DEFAULT).nodes()
        states, name = {node.name: node.value.get("Type", "") for node in nodes}, loaded.name
    return dict(load(file, case, machine=machine, states=states, workflow=name))
