"""One state of a document, isolated from its machine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from asl.core.values import Json
from asl.states import type_of
from asl.states.machines import nested_machines

__all__ = ["SingleState", "isolate_state", "states_of"]


@dataclass(frozen=True, slots=True)
class SingleState:
    """A state and the properties of its machine that apply to it."""

    name: str
    state: Mapping[str, Json]
    language: str = "JSONPath"
    """Query language of the machine."""
    in_map: bool = False
    """Whether it belongs to the processor of a Map."""


def states_of(
    machine: Mapping[str, Json], language: str = "JSONPath", in_map: bool = False
) -> Iterator[SingleState]:
    """Yield every state of a valid machine, including those of machines within it."""
    language = machine.get("QueryLanguage", language)
    for name, state in machine["States"].items():
        if type(state) is not dict:
            continue  # a parameter of a template
        yield SingleState(name, state, language, in_map)
        in_items = in_map or type_of(state).iterates
        for _, inner in nested_machines(state):
            yield from states_of(inner, language, in_items)


def isolate_state(subject: SingleState) -> tuple[dict[str, Json], dict[str, str]]:
    """Return a workflow of the state alone, and the original name of each of its other states.

    Each transition of the state ends the workflow, under a name that no state of the document has,
    because a state may lead to itself.
    """
    stands_for: dict[str, str] = {}

    def led(holder: Json) -> Json:
        if type(holder) is not dict:  # the checks report it
            return holder
        aside: dict[str, Json] = dict(holder)
        for key in ("Next", "Default"):
            if type(target := holder.get(key)) is str:
                aside[key] = f"{subject.name} > {target}"
                stands_for[aside[key]] = target
        return aside

    state = led(subject.state)
    for several in ("Choices", "Catch"):
        if type(state.get(several)) is list:
            state[several] = [led(each) for each in state[several]]
    ends = {name: {"Type": "Succeed"} for name in stands_for}
    workflow = {
        "QueryLanguage": subject.language,
        "StartAt": subject.name,
        "States": {subject.name: state, **ends},
    }
    return workflow, stands_for
