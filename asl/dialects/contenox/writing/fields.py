"""The fields of states that no task has, or only computes late: each is reported."""

from collections.abc import Mapping
from typing import Final

from asl.core.diagnostics import Severity
from asl.dialects.contenox.writing.chain import LEFT
from asl.dialects.contenox.writing.state import State

__all__ = ["report"]

_COMPUTED: Final[Mapping[str, str]] = {
    "InputPath": "CX-INPUTPATH",
    "OutputPath": "CX-OUTPUT",
    "ResultSelector": "CX-SELECTOR",
    "Output": "CX-OUTPUT",
    "Assign": "CX-OUTPUT",
    "Parameters": "CX-PASS",
}
"""Fields that may lead nowhere, and then fail a run in the state language."""
_DATA: Final = frozenset((*_COMPUTED, "ResultPath", "Arguments"))
_OF_ALL: Final = frozenset(("Type", "Comment", "QueryLanguage", "Next", "End")) | _DATA


def report(state: State, said: frozenset[str] | None) -> None:
    """Report every field of a state beside *said*; nothing where that is None."""
    if said is None:
        return  # all of it is reported by what stands in
    for field, code in _COMPUTED.items():
        computed = field != "Parameters" or state.value["Type"] == "Pass"
        if state.value.get(field, "$") != "$" and computed:
            told = "nothing is computed there until somebody asks for it"
            state.lost(code, told, state.at(field), severity=Severity.INFO)
    for field in state.value:
        plain = field.removesuffix(".$")
        if field not in _OF_ALL and field not in said and plain != "Metadata":
            state.lost("CX-META", f"no task has {plain!r}", state.at(field), *LEFT)
