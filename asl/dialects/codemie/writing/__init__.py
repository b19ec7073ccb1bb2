"""From a document of the state language to a workflow, and what that cannot say.

The steps of the document are printed in the words of the language: their terms become texts with
placeholders, scripts of transformations and conditions. The dialect has less control and no routes
for errors. What it has no words for becomes the nearest that it has, or nothing, and is reported
either way.
"""

from collections.abc import Collection, Mapping
from typing import Final

from asl.core.document import Document
from asl.dialects.base import Coverage, WriterResult
from asl.dialects.codemie.round_trip import restored
from asl.dialects.codemie.writing import branches, tasks, transforms
from asl.dialects.codemie.writing.approvals import approval
from asl.dialects.codemie.writing.fields import CARRIED, REPORTED
from asl.dialects.codemie.writing.machine import WorkflowMachine, Writers
from asl.dialects.codemie.writing.scope import ContextScope, Places, keys_of, without_merges
from asl.dialects.codemie.writing.workflow import Workflow
from asl.dialects.lowering import lower
from asl.dialects.registry import meanings_of
from asl.dialects.yaml_writer import to_yaml

__all__ = ["COVERAGE", "write"]

WRITERS: Final = Writers(
    {
        "Task": tasks.task,
        "Choice": transforms.choice,
        "Map": branches.iteration,
        "Parallel": branches.fork,
        "Pass": transforms.pass_,
        "Wait": transforms.idle,
        "Checkpoint": transforms.idle,
        "Approval": approval,
        "Fail": transforms.fail,
        "Debate": tasks.stand_in,
        "Include": tasks.stand_in,
        "Workflow": tasks.stand_in,
    },
    tasks.prepare,
    {"Map": branches.workers, "Parallel": branches.branches},
)
"""How each state type is written."""
_REPLACED: Final = frozenset(("Wait", "Checkpoint", "Debate", "Include", "Workflow"))
"""State types that are left out, or that an assistant replaces."""
_OF_STAND_IN: Final = frozenset(("Type", "QueryLanguage", "Next", "End", "ResultPath", "Retry"))
COVERAGE: Final = Coverage(
    {
        **{kind: fields | REPORTED for kind, fields in CARRIED.items()},
        **dict.fromkeys(("Include", "Workflow"), _OF_STAND_IN),
        "Debate": _OF_STAND_IN | {"Topic"},
        **dict.fromkeys(("Wait", "Checkpoint"), REPORTED),
    },
    frozenset(("StartAt", "States", "QueryLanguage")),
    _REPLACED,
    lacks={
        "Retrier": frozenset(("JitterStrategy",)),
        "ChoiceRule": frozenset(("Assign",)),
        "SubMachine": frozenset(("ProcessorConfig",)),
    },
)
"""What is carried, or reported by the writer itself."""


def write(
    document: Document,
    tools: Collection[str] = (),
    *,
    prompts: Mapping[str, str],
) -> WriterResult:
    """Write a document as a workflow; one that was read from a workflow becomes that again.

    Args:
        document: The document.
        tools: The agents that are tools there; all others are assistants.
        prompts: The system prompts of assistants, where they are known.

    Returns:
        The workflow, and what it does not say.
    """
    found = restored(document.value)
    if found is not None:
        return WriterResult(found, to_yaml(found), restored=True)
    flow = without_merges(lower(document.composed_value, meanings_of(document)))
    places = Places.of(flow)
    keys = keys_of(flow, places)
    workflow = Workflow(document.composed_value, frozenset(tools), prompts, *keys)
    workflow.begun()
    WorkflowMachine(workflow, WRITERS, flow, ContextScope(places)).write()
    config = workflow.config()
    return WriterResult(config, to_yaml(config), workflow.losses)
