"""From a document of the state language to a workflow, and what that cannot say.

The dialect has less control and no routes for errors. What it has no words for becomes the nearest
that it has, or nothing, and is reported either way.
"""

from collections.abc import Collection, Mapping
from typing import Final

from asl.core.document import Document
from asl.dialects.base import Coverage, WriterResult
from asl.dialects.codemie.round_trip import restored
from asl.dialects.codemie.writing import branches, choices, gates, tasks, transforms
from asl.dialects.codemie.writing.fields import REPORTED
from asl.dialects.codemie.writing.machine import Kind, Machine
from asl.dialects.codemie.writing.workflow import Workflow
from asl.dialects.yaml_writer import to_yaml

__all__ = ["COVERAGE", "write"]

_TASK: Final = ("Agent", "Resource", "Parameters", "Arguments", "ResultPath", "Retry")
_MAP: Final = (
    *("ItemProcessor", "Iterator", "ItemsPath", "Items", "ItemSelector", "Parameters"),
    *("MaxConcurrency", "ResultPath"),
)
_PARALLEL: Final = frozenset(("Branches", "Parameters", "Arguments", "ResultPath"))
_APPROVAL: Final = ("Prompt", "Prompt.$", "Options", "Choices", "Default", "ResultPath")
_WAIT: Final = frozenset(("Seconds", "SecondsPath", "Timestamp", "TimestampPath"))
_CHECKPOINT: Final = frozenset(("Name", "Name.$", "Storage", "Storage.$", "TTL", "TTL.$"))
KINDS: Final[Mapping[str, Kind]] = {
    "Task": Kind(tasks.task, frozenset(_TASK)),
    "Choice": Kind(
        choices.choice, frozenset(("Choices", "Default")), choices.chooses, choices.chosen
    ),
    "Map": Kind(branches.iteration, frozenset(_MAP), branches.iterates, branches.iterated),
    "Parallel": Kind(branches.fork, _PARALLEL, branches.forks, branches.forked),
    "Pass": Kind(transforms.pass_, frozenset(("Result", "Parameters", "Output", "ResultPath"))),
    "Wait": Kind(transforms.skipped, _WAIT),
    "Checkpoint": Kind(transforms.skipped, _CHECKPOINT),
    "Approval": Kind(gates.approval, frozenset(_APPROVAL)),
    "Succeed": Kind(transforms.succeed, frozenset()),
    "Fail": Kind(transforms.fail, frozenset(("Error", "Cause"))),
    "Debate": Kind(tasks.stand_in),
    "Include": Kind(tasks.stand_in),
    "Workflow": Kind(tasks.stand_in),
}
"""How each state type is written."""
_REPLACED: Final = frozenset(("Wait", "Checkpoint", "Debate", "Include", "Workflow"))
"""State types that are left out, or that an assistant stands in for."""
_OF_STAND_IN: Final = frozenset(("Type", "QueryLanguage", "Next", "End", "ResultPath", "Retry"))
COVERAGE: Final = Coverage(
    {
        **{name: kind.fields | REPORTED for name, kind in KINDS.items() if kind.fields is not None},
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

    The agents of *tools* are tools there, all others assistants, with their *prompts* where they
    are known.
    """
    found = restored(document.value)
    if found is not None:
        return WriterResult(found, to_yaml(found), restored=True)
    workflow = Workflow(document.composed_value, frozenset(tools), prompts)
    workflow.begun()
    if type(document.composed_value.get("States")) is dict:
        Machine(workflow, KINDS, document.composed_value).written()
    config = workflow.config()
    return WriterResult(config, to_yaml(config), tuple(workflow.losses))
