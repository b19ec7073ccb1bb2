"""The fields of states that no task has, or only computes late: each is reported."""

from typing import Final

from asl.dialects.contenox.writing.chain import LEFT
from asl.dialects.contenox.writing.state import State
from asl.states.schemas import inert_fields

__all__ = ["OF_ALL", "report"]

_DATA: Final = frozenset(
    (
        *("InputPath", "OutputPath", "ResultSelector", "ResultPath"),
        *("Parameters", "Arguments", "Output", "Assign"),
    )
)
OF_ALL: Final = frozenset(("Type", "QueryLanguage", "Next", "End")) | _DATA
"""Fields of all states that are carried, or reported where they have an effect."""


def report(state: State, said: frozenset[str] | None) -> None:
    """Report every field of a state beside *said*; nothing where that is None."""
    if said is None:
        return  # all of it is reported by what stands in
    inert = inert_fields(f"states:{state.value['Type']}")
    for field in state.value:
        plain = field.removesuffix(".$")
        if field not in OF_ALL and field not in said and field not in inert:
            state.lost("CX-META", f"no task has {plain!r}", state.at(field), *LEFT)
