"""Values as texts: paths in them become placeholders."""

from collections.abc import Mapping
from typing import Final

from asl.core.pointers import escape
from asl.core.values import Json, compact
from asl.dialects.codemie.functions.placeholders import find_placeholders
from asl.dialects.codemie.writing.machine import Machine, State
from asl.dialects.codemie.writing.results import ITEM, steps
from asl.dialects.expressions import TextReference, parts_of
from asl.expr.templates import SUFFIX

__all__ = ["arguments", "filled", "instruction"]

_TASKS: Final = ("task", "prompt", "instruction", "input")
"""Parameters that are the text of an assistant's task, rather than a part of it."""


def instruction(machine: Machine, name: str, state: State, given: Json, where: str) -> str:
    """Return the text that an assistant gets for its parameters: a line for each."""
    lines: list[str] = []
    template = "Arguments" not in state
    if type(given) is dict:
        for key, each in given.items():
            dynamic = template and key.endswith(SUFFIX)
            plain = key.removesuffix(SUFFIX) if dynamic else key
            text = filled(machine, each, f"{where}/{escape(key)}", dynamic=dynamic)
            if plain in _TASKS:
                lines.insert(0, text)
            else:
                lines.append(f"{plain}: {text}")
    elif given is not None:
        lines.append(filled(machine, given, where, dynamic=False))
    if not lines:
        machine.lost(
            "L-PARAMETERS",
            "an assistant gets a text, not the data",
            machine.at(name),
            "the text is the comment, or the name of the state",
        )
        lines.append(str(state.get("Comment") or name))
    return "\n".join(lines)


def arguments(
    machine: Machine, given: Mapping[str, Json], where: str, *, template: bool
) -> dict[str, Json]:
    """Return the arguments that a tool gets for its parameters, which may be a *template*."""
    made: dict[str, Json] = {}
    for key, each in given.items():
        place, dynamic = f"{where}/{escape(key)}", template and key.endswith(SUFFIX)
        if each == "":
            message = "an empty argument is left out there, or filled in from the context"
            machine.lost("L-PARAMETERS", message, place)
        if dynamic:
            message = "an argument that is null is left out"
            hint = "let the tool take null where nothing is given"
            machine.lost("L-PARAMETERS", message, place, hint)
        if dynamic or type(each) is str:
            plain = key.removesuffix(SUFFIX) if dynamic else key
            made[plain] = filled(machine, each, place, dynamic=dynamic)
        elif type(each) is dict:
            made[key] = arguments(machine, each, place, template=template)
        else:
            made[key] = each
    return made


def filled(machine: Machine, value: Json, pointer: str, *, dynamic: bool) -> str:
    """Return a value as a text with placeholders; *dynamic* says that it is an expression."""
    if type(value) is not str:
        if dynamic or "$" in compact(value):
            machine.lost(
                "L-PARAMETERS",
                "only texts and paths are filled in",
                pointer,
                "it is text",
                key=False,
            )
        return compact(value)
    queried = value.startswith("{%") and value.endswith("%}")
    if not dynamic and not queried:
        if any(each.steps is not None for each in find_placeholders(value)):
            message = "what stands between double braces is filled in there"
            machine.lost("L-PARAMETERS", message, pointer, "where the context has it", key=False)
        return value
    found = _placeholder(machine, value)
    if found is not None:
        return found
    if queried:
        code, message = "L-JSONATA", "a workflow has no JSONata"
    else:
        code = "L-CONTEXT" if value[:2] == "$$" else "L-INTRINSIC" if "(" in value else "L-PATH"
        message = f"no placeholder says {value!r}"[:200]
    machine.lost(code, message, pointer, "the text is left", key=False)
    return value


def _placeholder(machine: Machine, value: str) -> str | None:
    """Return what fills in the value of an expression, None if nothing does."""
    if way := _way(machine, value):
        return _braced(way)
    parts = parts_of(value)
    return _joined(machine, parts) if parts else None


def _way(machine: Machine, path: str) -> tuple[str, ...] | None:
    """Return the keys and positions along which a placeholder leads; an item is `task`."""
    found = machine.meant(path)
    if not machine.item or not (found == "$" or found.startswith(ITEM)):
        return machine.workflow.way(found)
    within = steps(f"${found.removeprefix(ITEM)}" if found != "$" else found)
    return None if within is None else ("task", *within)


def _joined(machine: Machine, parts: list[str]) -> str | None:
    """Return a text of parts, None if a path is no placeholder or something else would be one."""
    made, meant = "", []
    for each in parts:
        text = str(each)
        if isinstance(each, TextReference):
            way = _way(machine, text)
            if not way:
                return None
            text = _braced(way)
            meant.append((len(made), len(made) + len(text)))
        made += text
    found = [(each.start, each.end) for each in find_placeholders(made)]
    return made if found == meant else None


def _braced(way: tuple[str, ...]) -> str:
    """Return the placeholder of a place in the context."""
    said = "".join(f"[{step}]" if step.isdecimal() else f".{step}" for step in way)
    return f"{{{{{said.lstrip('.')}}}}}"
