"""Paths of events: what they are called, and where they lead in the document."""

from typing import TypeAlias

from asl.core.diagnostics import escape
from asl.core.values import Json

__all__ = ["Path", "definition", "name_of", "pointer_of"]

Path: TypeAlias = tuple[str | int, ...]
"""Names of states and indices of branches or items, outermost first."""


def name_of(path: Path) -> str:
    """Name a state by its path: `Each[2] / Work`."""
    text = ""
    for part in path:
        text += f"[{part}]" if type(part) is int else f" / {part}" if text else str(part)
    return text


def pointer_of(workflow: Json, path: Path) -> str:
    """Return the JSON Pointer of the state at a path."""
    machine, pointer = workflow, ""
    for name, index in zip(path[0:-1:2], path[1::2], strict=True):
        state = machine["States"][name]
        pointer += f"/States/{escape(str(name))}"
        if "Branches" in state:
            machine = state["Branches"][index]
            pointer += f"/Branches/{index}"
        else:
            field = "ItemProcessor" if "ItemProcessor" in state else "Iterator"
            machine = state[field]
            pointer += f"/{field}"
    return f"{pointer}/States/{escape(str(path[-1]))}"


def definition(workflow: Json, path: Path) -> Json:
    """Return the definition of the state at a path."""
    value = workflow
    for token in pointer_of(workflow, path).split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if type(value) is list else value[key]
    return value
