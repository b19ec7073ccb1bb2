"""Modules: collections of states with entry and exit points for Includes (Specification 9.4)."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from asl.core.diagnostics import Finding, did_you_mean
from asl.core.values import Json
from asl.states import type_of
from asl.states.base import has_output_label

__all__ = ["check", "check_points", "extract_machine"]

_WAYS = ("Next", "Choices", "Default")


def check(module: Mapping[str, Json], pointer: str) -> Iterator[Finding]:
    """Yield the faults in the entry and exit points that a module declares (V-MOD-01, V-MOD-02)."""
    if "StartAt" in module:
        message = "a module has no 'StartAt': the Include that uses it chooses"
        yield Finding("V-MOD-02", message, f"{pointer}/StartAt", at_key=True)
    exports, states = module.get("Exports"), module.get("States")
    known = states if type(states) is dict else {}
    for index, name in enumerate(exports if type(exports) is list else ()):
        unfilled = type(name) is str and "{{" in name and module.get("Parameters")
        if type(name) is str and name not in known and not unfilled:
            message = f"there is no state {name!r} in this module"
            yield Finding(
                "V-MOD-01", message, f"{pointer}/Exports/{index}", did_you_mean(name, known)
            )


def check_points(
    module: Mapping[str, Json], entry: Json, exit: Json, pointer: str
) -> Iterator[Finding]:
    """Yield the faults in the entry and exit points that an Include names (V-INC-04).

    *pointer* is that of the Include.
    """
    states, exports = module.get("States"), module.get("Exports")
    known = states if type(states) is dict else {}
    exported = [each for each in exports if type(each) is str] if type(exports) is list else []
    if type(entry) is not str:
        message = "'EntryPoint' says where to begin in a module"
        place = pointer if entry is None else f"{pointer}/EntryPoint"
        hint = f"one of {', '.join(exported)}" if exported else None
        yield Finding("V-INC-04", message, place, hint, at_key=entry is None)
    elif entry not in known:
        message = f"the module has no state {entry!r}"
        yield Finding("V-INC-04", message, f"{pointer}/EntryPoint", did_you_mean(entry, exported))
    elif entry not in exported:
        message = f"the module does not export {entry!r}"
        hint = "add it to the module's 'Exports'"
        yield Finding("V-INC-04", message, f"{pointer}/EntryPoint", hint)
    if exit is None:
        return
    if type(exit) is not str or exit not in known:
        message = f"the module has no state {exit!r}"
        yield Finding("V-INC-04", message, f"{pointer}/ExitPoint", did_you_mean(str(exit), known))
    elif type(known[exit]) is dict and known[exit].get("Type") == "Choice":
        message = (
            f"{exit!r} is a Choice: it selects the next state itself, so it cannot be the exit"
        )
        yield Finding("V-INC-04", message, f"{pointer}/ExitPoint")


def extract_machine(module: Mapping[str, Json], entry: str, exit: str | None) -> dict[str, Json]:
    """Return the machine of a module from *entry* to *exit*, or to the last state.

    A state without a transition continues with the next one in document order. Unreachable states
    are left out.
    """
    states: dict[str, Json] = dict(module["States"])
    following = dict(pairwise(states))
    language = module.get("QueryLanguage")
    for name, state in module["States"].items():
        if name == exit:
            states[name] = _ended(state)
        elif _falls_through(state, language):
            way = {"Next": following[name]} if name in following else {"End": True}
            states[name] = {key: state[key] for key in state if key != "End"} | way
    within = _reached(states, entry)
    kept = {name: state for name, state in states.items() if name in within}
    return {**module, "StartAt": entry, "States": kept}


def _reached(states: Mapping[str, Json], entry: str) -> set[str]:
    """Return the names of the states reachable from *entry*."""
    found: set[str] = set()
    todo = [entry]
    while todo:
        name = todo.pop()
        if name not in found and name in states:
            found.add(name)
            todo.extend(_targets(states[name]))
    return found


def _falls_through(state: Json, language: Json) -> bool:
    """Return whether a state of a module has no transition of its own."""
    if type(state) is not dict or not type_of(state).takes_next:
        return False
    label = has_output_label(state, state.get("QueryLanguage", language))
    return not (label or state.get("End") is True or any(way in state for way in _WAYS))


def _ended(state: Json) -> Json:
    if type(state) is not dict or type_of(state).terminal:
        return state
    return {key: state[key] for key in state if key not in _WAYS} | {"End": True}


def _targets(state: Json) -> Iterator[str]:
    if type(state) is not dict:
        return
    holders = [state]
    for field in ("Choices", "Catch"):
        entries = state.get(field)
        holders += [each for each in entries if type(each) is dict] if type(entries) is list else []
    for holder in holders:
        for field in ("Next", "Default"):
            if type(holder.get(field)) is str:
                yield holder[field]
