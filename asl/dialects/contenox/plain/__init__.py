"""Chains in plain JSONPath: every task's output under its name, conditions on that."""

from asl.core.document import Document
from asl.core.values import Json
from asl.dialects.contenox.chain import Chain
from asl.dialects.contenox.plain.machine import Machine
from asl.dialects.contenox.reader import METADATA
from asl.dialects.jsonpath_form import JsonPathForm

__all__ = ["plain"]


def plain(document: Document) -> tuple[dict[str, Json], JsonPathForm]:
    """Return the machine of a chain in plain JSONPath, and what it does not say."""
    about = document.value["Metadata"][METADATA]
    machine = Machine(Chain(about["chain"], about["profile"]), document.value)
    return machine.written(), machine.made
