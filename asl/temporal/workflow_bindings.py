"""What a start gives to the workflow of an execution, as JSON: documents, prices, and the budget of
an operator's policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from asl.bindings import Bindings
from asl.core.document import Document, Loadable, read
from asl.core.values import Json, copy_foreign
from asl.documents.compiling import resolve_program
from asl.program import Program
from asl.stores.errors import StoreError
from asl.temporal.payloads import GivenBindings

__all__ = ["given_bindings", "refuse_approvals"]


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
    if (policy := bindings.get("policy")) is not None:
        value = read(dict(policy) if isinstance(policy, Mapping) else policy).value
        if "Budget" in value:  # the rest applies to calls, by the policy of their worker
            given["policy"] = {"Budget": value["Budget"]}
    return given


def refuse_approvals(bindings: Bindings) -> None:
    """Refuse a function that decides on requests: the workflow itself waits for answers.

    Raises:
        StoreError: There is one.
    """
    if bindings.get("approvals") is not None:
        raise StoreError(
            "the binding 'approvals' has no effect on Temporal: answer requests with "
            "'store.answer' or 'asl approve'"
        )


def _document(workflow: Program | Document | Loadable, program: Program) -> Json:
    if not isinstance(workflow, Program):
        workflow = resolve_program(workflow, program.profile, False)
    return cast("Json", workflow.document)
