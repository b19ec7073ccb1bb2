"""Blueprints in plain JSONPath: the output of a step under a key, the context at the root.

The machine of a document is looked at twice: to learn which values meet in one place, and to write
it with a key for each of those.
"""

from collections.abc import Iterator
from typing import Any, Final

from asl.core.document import Document
from asl.core.values import Json
from asl.dialects.flujo.plain.effects import operations
from asl.dialects.flujo.plain.frame import unframed
from asl.dialects.flujo.plain.machine import Machine
from asl.dialects.flujo.plain.places import START, Env, Makers, Places
from asl.dialects.flujo.plain.terms import Call, term_of
from asl.dialects.flujo.plain.values import FAILED, Whole
from asl.dialects.flujo.reader import METADATA
from asl.dialects.jsonpath_form import JsonPathForm
from asl.dialects.names import FreshNames
from asl.states.machines import nested_machines

__all__ = ["plain"]

INPUT: Final = "input"


def plain(document: Document) -> tuple[dict[str, Json], JsonPathForm]:
    """Return the machine of a blueprint in plain JSONPath, and what it does not say."""
    value = unframed(document.value)
    calls = [*_calls(value)]
    sunk = frozenset(_sunk(calls))
    names = {*_names(value)}
    machines = value["Metadata"][METADATA].get("machines", {}).values()
    authored = {each: name for made in machines for name, each in made.get("names", {}).items()}
    places = Places({FAILED, *sunk})
    places.made(START, INPUT)
    env: Env = {"previous_step": Makers((START,))}
    for _ in range(2):
        whole = Whole(places, sunk, FreshNames(names), authored)
        machine = Machine(whole, value, (), {**env})
        machine.learn()
        whole.looking = False
        said = machine.said()
        if not places.settled:
            places.settle()
            env |= {f"@{path}": Makers((START,)) for path in _begun(places)}
    kept = {key: value[key] for key in ("Comment",) if key in value}
    start = value["StartAt"]
    whole.made.unrefused(start)
    message = f"the input has a name: it is $.{INPUT}, with the context beside it"
    hint = 'give the input as {"input": ..., and the fields of the context}'
    whole.made.named(message, start, hint)
    agents = value["Metadata"][METADATA]["blueprint"].get("agents") or {}
    texts = {name: each.get("system_prompt") for name, each in agents.items()}
    whole.made.prompts = {
        name: each for name, each in texts.items() if isinstance(each, str) and each != name
    }
    return {**kept, **said}, whole.made


def _begun(places: Places) -> Iterator[str]:
    """Yield where the input of a run stands."""
    yield places.record(START)
    yield from (there for _, there in places.copies(START))


def _names(machine: Any) -> Iterator[str]:
    for name, state in machine["States"].items():
        yield name
        for _, inner in nested_machines(state):
            yield from _names(inner)


def _calls(machine: Any) -> Iterator[Call]:
    """Yield the functions whose value is the data behind a state."""
    for state in machine["States"].values():
        holders = [state, *state.get("Choices", ()), *state.get("Catch", ())]
        for holder in holders:
            term = term_of(holder["Output"]) if "Output" in holder else None
            while isinstance(term, Call):
                yield term
                term = term.given[0] if term.given else None
        for _, inner in nested_machines(state):
            yield from _calls(inner)


def _sunk(calls: list[Call]) -> Iterator[str]:
    """Yield the fields of the context that steps write."""
    for call in calls:
        if call.name in ("set", "merge"):
            yield str(call.literal(2)).removeprefix("context.").partition(".")[0]
        for operation in operations(call):
            yield str(operation["path"]).partition(".")[0]
        for index in range(len(call.given)):
            flags = call.literal(index)
            if isinstance(flags, dict) and isinstance(flags.get("sink_to"), str):
                yield flags["sink_to"].partition(".")[0]
