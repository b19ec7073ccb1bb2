"""The fields of states that no task has, or only computes late: each is reported."""

from typing import Final

from asl.dialects.contenox.writing.chain import LEFT
from asl.dialects.contenox.writing.state import State

__all__ = ["report"]

_DATA: Final = frozenset(
    (
        *("InputPath", "OutputPath", "ResultSelector", "ResultPath"),
        *("Parameters", "Arguments", "Output", "Assign"),
    )
)
_OF_ALL: Final = frozenset(("Type", "Comment", "QueryLanguage", "Next", "End")) | _DATA


def report(state: State, said: frozenset[str] | None) -> None:
    """Report every field of a state beside *said*; nothing where that is None."""
    if said is None:
        return  # all of it is reported by what stands in
    for field in state.value:
        plain = field.removesuffix(".$")
        if field not in _OF_ALL and field not in said and plain != "Metadata":
            state.lost("CX-META", f"no task has {plain!r}", state.at(field), *LEFT)
