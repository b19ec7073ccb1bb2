"""Paths of events: names and definitions of their states."""

from collections.abc import Iterator
from typing import TypeAlias

from asl.core.pointers import escape
from asl.core.printable import printable
from asl.core.values import Json
from asl.states.machines import nested_machines

__all__ = ["Path", "definition", "in_jsonata", "in_template", "state_name", "state_pointer"]

Path: TypeAlias = tuple[str | int, ...]
"""Names of states and indices of branches or items, outermost first."""


def state_name(path: Path) -> str:
    """Return the name of the state at a path: `Each[2] / Work`."""
    text = ""
    for part in path:
        text += f"[{part}]" if type(part) is int else f" / {part}" if text else str(part)
    return printable(text)


def state_pointer(workflow: Json, path: Path) -> str:
    """Return the JSON Pointer of the state at a path."""
    *_, (_, pointer) = _machines(workflow, path)
    return f"{pointer}/States/{escape(str(path[-1]))}"


def definition(workflow: Json, path: Path) -> Json:
    """Return the definition of the state at a path."""
    *_, (machine, _) = _machines(workflow, path)
    return machine["States"][path[-1]]


def in_jsonata(workflow: Json, path: Path) -> bool:
    """Return whether the state at a path uses JSONata."""
    language = "JSONPath"
    for machine, pointer in _machines(workflow, path):
        if pointer.endswith("/Template"):
            language = "JSONPath"
        language = machine.get("QueryLanguage", language)
    return bool(definition(workflow, path).get("QueryLanguage", language) == "JSONata")


def in_template(workflow: Json, path: Path) -> bool:
    """Return whether the state at a path is in a template with parameters."""
    return any(machine.get("Parameters") for machine, _ in _machines(workflow, path))


def _machines(workflow: Json, path: Path) -> Iterator[tuple[Json, str]]:
    """Yield the machines around a state, outermost first, each with its JSON Pointer."""
    machine, pointer = workflow, ""
    yield machine, pointer
    for name, index in zip(path[0:-1:2], path[1::2], strict=True):
        state = machine["States"][name]
        pointer += f"/States/{escape(str(name))}"
        steps, machine = next(
            (steps, machine)
            for steps, machine in nested_machines(state)
            if len(steps) == 1 or steps[1] == index
        )
        pointer += "".join(f"/{step}" for step in steps)
        yield machine, pointer
