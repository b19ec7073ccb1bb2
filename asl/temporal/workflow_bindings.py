"""What a start gives to the workflow of an execution: documents and prices, as JSON."""

from __future__ import annotations

from typing import cast

from asl.bindings import Bindings
from asl.core.document import Document, Loadable
from asl.core.values import Json, copy_foreign
from asl.documents.compiling import resolve_program
from asl.program import Program
from asl.temporal.payloads import GivenBindings

__all__ = ["given_bindings"]


def given_bindings(program: Program, bindings: Bindings) -> GivenBindings:
    """Return the bindings that the workflow of an execution itself needs.

    Args:
        program: The compiled document.
        bindings: The bindings of the store.

    Raises:
        AslError: One of the documents is invalid.
    """
    given: GivenBindings = {}
    if workflows := bindings.get("workflows"):
        given["workflows"] = {name: _document(each, program) for name, each in workflows.items()}
    if prices := bindings.get("prices"):
        given["prices"] = copy_foreign(dict(prices))
    if pools := bindings.get("pools"):
        given["pools"] = {name: str(amount) for name, amount in pools.items()}
    return given


def _document(workflow: Program | Document | Loadable, program: Program) -> Json:
    if not isinstance(workflow, Program):
        workflow = resolve_program(workflow, program.profile, False)
    return cast("Json", workflow.document)
