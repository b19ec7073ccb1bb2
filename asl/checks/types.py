"""What each state type finds wrong with its states."""

from collections.abc import Iterator

from asl.checks.workflow import Workflow
from asl.core.diagnostics import Finding
from asl.states import type_of

__all__ = ["check"]


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield what is wrong with states of their types."""
    for node in workflow.nodes():
        yield from type_of(node.value).check(node)
