"""From a document of the state language to a chain of tasks, and what that cannot say.

A chain has no data that all tasks share, no states side by side and one way out of a failure. What
it has no words for becomes the nearest that it has, or nothing, and is reported either way.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from asl.checks import check
from asl.core.diagnostics import Finding, Severity
from asl.core.document import Document
from asl.core.printable import printable_json
from asl.core.profile import LENIENT
from asl.core.values import Json
from asl.dialects.base import Coverage, WriterResult
from asl.dialects.contenox.round_trip import reading_of, restored
from asl.dialects.contenox.writing import approvals, choices, ends, passes, tasks
from asl.dialects.contenox.writing.chain import Chain, pointer
from asl.dialects.contenox.writing.fields import OF_ALL
from asl.dialects.contenox.writing.machine import GIVEN, Kind, Machine
from asl.dialects.contenox.writing.values import Members, Part, Value
from asl.dialects.foreign_documents import unsaid

__all__ = ["COVERAGE", "write"]

_TASK: Final = ("Agent", "Resource", "TimeoutSeconds", "Retry", "Catch")
KINDS: Final[Mapping[str, Kind]] = {
    "Task": Kind(tasks.task, frozenset(_TASK)),
    "Choice": Kind(choices.choice, frozenset(("Choices", "Default"))),
    "Pass": Kind(passes.pass_, frozenset(("Result",))),
    "Wait": Kind(passes.skipped),
    "Checkpoint": Kind(passes.skipped),
    "Succeed": Kind(ends.succeed, frozenset()),
    "Fail": Kind(ends.fail, frozenset(("Error", "Cause"))),
    "Approval": Kind(approvals.approval),
    "Parallel": Kind(tasks.stand_in),
    "Map": Kind(tasks.stand_in),
    "Debate": Kind(tasks.stand_in),
    "Include": Kind(tasks.stand_in),
    "Workflow": Kind(tasks.stand_in),
}
"""How each state type is written."""
_OF_CALL: Final = (OF_ALL - {"Parameters", "Arguments"}) | {"TimeoutSeconds", "Retry", "Catch"}
_UNSHAPED: Final = frozenset(("InputPath", "OutputPath", "Output", "Assign"))
"""Fields that have no effect where a tool asks people."""
COVERAGE: Final = Coverage(
    {
        **{name: kind.fields | OF_ALL for name, kind in KINDS.items() if kind.fields is not None},
        **{name: _OF_CALL for name, kind in KINDS.items() if kind.fields is None},
        **dict.fromkeys(("Wait", "Checkpoint"), OF_ALL - {"Parameters", "Arguments"}),
        "Approval": (_OF_CALL - _UNSHAPED) | {"Choices", "Default"},
    },
    frozenset(("StartAt", "States", "QueryLanguage")),
    frozenset(name for name, kind in KINDS.items() if kind.fields is None),
    lacks={"ChoiceRule": frozenset(("Assign",))},
)
"""What is carried, or reported by the writer itself."""

_OTHERS: Final = "fields of the input"
"""Stands for what a document may read beside the `input` in its input."""
NAMED: Final = Members(Part(_OTHERS), (("input", GIVEN),))
"""The data of a document that reads nothing else: then a chain is given just that."""


def write(document: Document, *, profile: str = "union") -> WriterResult:
    """Write a document as a chain; one that was read from a chain becomes that again.

    With the profile `seed` tools are called hooks, as documented; with any other as engines do.
    Raises InvalidDocument for a document with errors.
    """
    found = restored(document.composed_value)
    if found is not None:
        reading = tuple(unsaid(reading_of(document.composed_value)))
        return WriterResult(found, _text(found), reading, restored=True)
    check(document, LENIENT).raise_for_errors()
    plain, named = (_written(document.composed_value, profile, given) for given in (GIVEN, NAMED))
    if plain.text != named.text and _OTHERS not in named.text and _places(named) <= _places(plain):
        message = "a chain is given what stands under 'input', and nothing beside it"
        hint = "give the value of 'input' as the input"
        where = pointer(document.composed_value["StartAt"])
        return replace(named, given=Finding("L-INPUT", message, where, hint, at_key=True))
    return plain


def _written(value: Mapping[str, Json], profile: str, given: Value) -> WriterResult:
    chain = Chain(value, profile)
    made = Machine(chain, KINDS, given).written()
    return WriterResult(made, _text(made), tuple(dict.fromkeys(chain.losses)))


def _places(written: WriterResult) -> set[tuple[str, str, Severity | None]]:
    return {(loss.code, loss.pointer, loss.severity) for loss in written.losses}


def _text(chain: Mapping[str, Json]) -> str:
    return printable_json(json.dumps(chain, ensure_ascii=False, indent=2)) + "\n"
