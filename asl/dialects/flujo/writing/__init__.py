"""Write a document as a blueprint.

A machine whose ways do not cross becomes a list of steps, with conditional steps for its branches
and loop steps for its rounds. Any other one becomes a state machine: a state for each state. What
was read from a blueprint and is unchanged is written as it was read.
"""

from collections.abc import Mapping
from typing import Any, Final

from asl.core.document import Document
from asl.core.values import Json
from asl.dialects import yaml_writer
from asl.dialects.base import Coverage, WriterResult
from asl.dialects.flujo.engine import ENGINE
from asl.dialects.flujo.round_trip import imported, kept, restored
from asl.dialects.flujo.writing.blueprint import written_steps
from asl.dialects.flujo.writing.declarations import Declarations
from asl.dialects.flujo.writing.losses import Losses
from asl.dialects.foreign_documents import unsaid
from asl.dialects.lowering import lower
from asl.dialects.missing_values import missing_value_loss
from asl.dialects.registry import meanings_of
from asl.engine.definitions import AgentDefinition, NoDefinitions

__all__ = ["COVERAGE", "write"]

_OF_MACHINE: Final = frozenset(
    ("StartAt", "States", "Comment", "QueryLanguage", "Version", "Metadata")
)

_OF_ALL: Final = ("Type", "QueryLanguage", "Next", "End", "Catch", "Retry")
_DATA: Final = ("InputPath", "OutputPath", "ResultPath", "ResultSelector", "Output", "Assign")
_GIVEN: Final = ("Parameters", "Arguments")
_REPLACED: Final = frozenset(("Fail", "Wait", "Checkpoint", "Debate", "Include", "Workflow"))
COVERAGE: Final = Coverage(
    {
        kind: frozenset((*_OF_ALL, *_DATA, *fields))
        for kind, fields in {
            "Task": ("Agent", "Resource", "TimeoutSeconds", *_GIVEN),
            "Pass": ("Result", "Parameters"),
            "Parallel": ("Branches", *_GIVEN),
            "Map": (
                *("ItemProcessor", "Iterator", "Items", "ItemsPath", "ItemSelector"),
                *("MaxConcurrency", "Parameters"),
            ),
            "Choice": ("Choices", "Default"),
            "Approval": ("Prompt", "Prompt.$", "Options", "Choices", "Default"),
            "Succeed": (),
        }.items()
    }
    | dict.fromkeys(_REPLACED, frozenset(_OF_ALL)),
    frozenset(("StartAt", "States", "QueryLanguage")),
    _REPLACED,
    lacks={"SubMachine": frozenset(("ProcessorConfig",))},
)
"""Fields that the writer writes, or reports itself."""


def write(
    document: Document,
    *,
    prompts: Mapping[str, str],
    agents: Mapping[str, AgentDefinition] = NoDefinitions,
) -> WriterResult:
    """Write a document as a blueprint.

    Args:
        document: The document.
        prompts: System prompts of agents by their names.
        agents: Definitions of agents by their names.

    Returns:
        The blueprint, with its losses.
    """
    value = document.composed_value
    blueprint = restored(value)
    if blueprint is not None:
        files = {path: yaml_writer.to_yaml(each) for path, each in imported(value).items()}
        reading = unsaid((kept(value) or {}).get("reading", {}))
        text = yaml_writer.to_yaml(blueprint)
        return WriterResult(blueprint, text, tuple(reading), files, restored=True)
    losses = Losses()
    if kept(value) is not None:
        losses.add("L-CHANGED", "the document was read from a blueprint and then changed", "")
    made = _blueprint(document, value, losses, Declarations(prompts, agents))
    return WriterResult(made, yaml_writer.to_yaml(made), tuple(losses.found))


def _blueprint(
    document: Document, value: Mapping[str, Any], losses: Losses, declarations: Declarations
) -> dict[str, Json]:
    made: dict[str, Json] = {"version": "0.1", "x-engine": ENGINE, "name": document.name}
    comment = value.get("Comment")
    if isinstance(comment, str):
        made["description"] = comment
    for key in value:
        if key not in _OF_MACHINE:
            losses.add("FL-META", f"a blueprint has no {key!r}", f"/{key}", at_key=True)
    losses.found |= dict.fromkeys(missing_value_loss(value))
    steps = written_steps(lower(value, meanings_of(document)), losses)
    if losses.agents:
        made["agents"] = declarations.of(losses.agents)
        for message in declarations.lost(losses.agents):
            losses.add("L-ACTOR", message, "", "complete them under agents")
    made["steps"] = steps
    return made
