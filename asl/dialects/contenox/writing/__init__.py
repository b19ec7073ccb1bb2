"""From a document of the state language to a chain of tasks, and what that cannot express.

A chain has no data that all tasks share, no states in parallel and one task behind a failure. What
it has no form for becomes the nearest that it has, or nothing, and is reported either way.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from asl.core.diagnostics import Finding, Severity
from asl.core.document import Document
from asl.core.printable import printable_json
from asl.core.values import Json
from asl.dialects.base import Coverage, WriterResult
from asl.dialects.contenox.round_trip import reading_of, restored
from asl.dialects.contenox.writing.chain import ChainBuilder
from asl.dialects.contenox.writing.knowledge import GIVEN, variable
from asl.dialects.contenox.writing.machine import OF_ALL, ChainWriter
from asl.dialects.contenox.writing.states import CALLED, FIELDS
from asl.dialects.foreign_documents import unsaid
from asl.dialects.lowering import lower
from asl.dialects.registry import meanings_of
from asl.dialects.terms import Record
from asl.engine.definitions import AgentDefinition, NoDefinitions

__all__ = ["COVERAGE", "write"]

_OF_CALL: Final = (OF_ALL - {"Parameters", "Arguments"}) | {"TimeoutSeconds", "Retry", "Catch"}
_WITHOUT_CALL: Final = OF_ALL - {"Parameters", "Arguments"}
_UNSHAPED: Final = frozenset(("InputPath", "OutputPath", "Output", "Assign"))
"""Fields that have no effect where a tool asks people."""
COVERAGE: Final = Coverage(
    {
        **{kind: fields | OF_ALL for kind, fields in FIELDS.items()},
        **dict.fromkeys(CALLED, _OF_CALL),
        **dict.fromkeys(("Wait", "Checkpoint"), _WITHOUT_CALL),
        "Approval": (_OF_CALL - _UNSHAPED) | {"Choices", "Default"},
    },
    frozenset(("StartAt", "States", "QueryLanguage")),
    frozenset((*CALLED, "Wait", "Checkpoint")),
)
"""What is written, or reported by the writer itself."""

_OTHERS: Final = "fields of the input"
"""Name of a variable for what a document may read next to the `input` in its input."""
_NAMED: Final = Record(variable(_OTHERS), (("input", GIVEN),))
"""The data of a document that reads nothing else: then a chain is given just that."""


def write(
    document: Document,
    *,
    profile: str = "union",
    agents: Mapping[str, AgentDefinition] = NoDefinitions,
) -> WriterResult:
    """Write a document as a chain; one that was read from a chain becomes that again.

    Args:
        document: A document without errors but missing states and files.
        profile: `seed` to write what is documented, anything else to write for the engine.
        agents: Definitions of agents by their names.

    Returns:
        The chain, with its losses.
    """
    found = restored(document.composed_value)
    if found is not None:
        reading = tuple(unsaid(reading_of(document.composed_value)))
        return WriterResult(found, _text(found), reading, restored=True)
    flow = lower(document.composed_value, meanings_of(document))
    value, seed = document.composed_value, profile == "seed"
    plain, named = (
        _written(ChainBuilder(value, flow, agents, given, seed=seed)) for given in (GIVEN, _NAMED)
    )
    if plain.text != named.text and _OTHERS not in named.text and _places(named) <= _places(plain):
        told = "a chain gets the value of 'input', and no other input"
        hint = "give the value of 'input' as the input"
        where = flow.steps[flow.start].pointer
        return replace(named, given=Finding("L-INPUT", told, where, hint, at_key=True))
    return plain


def _written(chain: ChainBuilder) -> WriterResult:
    made = ChainWriter(chain).write()
    return WriterResult(made, _text(made), tuple(dict.fromkeys(chain.losses)))


def _places(written: WriterResult) -> set[tuple[str, str, Severity | None]]:
    return {(loss.code, loss.pointer, loss.severity) for loss in written.losses}


def _text(chain: Mapping[str, Json]) -> str:
    return printable_json(json.dumps(chain, ensure_ascii=False, indent=2)) + "\n"
