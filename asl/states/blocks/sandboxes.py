"""What the sandboxes of tools cannot carry out here."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from asl.core.values import Json
from asl.states.base import Node
from asl.states.blocks.policy import processors

__all__ = ["missing_of_sandbox"]

DEFAULT: Final = "process"
"""The environment of a sandbox that names none."""


def missing_of_sandbox(block: Mapping[str, Json], node: Node | None) -> Iterator[tuple[str, str]]:
    """Yield the settings of a sandbox that its environment cannot carry out, and why."""
    sandbox = block.get("Sandbox")
    if type(sandbox) is not dict or block.get("Sandboxed") is False:
        return
    kind = sandbox.get("Environment", DEFAULT)
    for field, why in _CANNOT.get(kind, ()) if type(kind) is str else ():
        if field in sandbox and why(sandbox[field]):
            message = (
                f"{field!r} of a sandbox {kind!r} cannot be carried out here: {why(sandbox[field])}"
            )
            yield f"/Sandbox/{field}", message


def _always(why: str) -> Callable[[Json], str]:
    return lambda value: why


def _fraction(value: Json) -> str:
    try:
        return "" if processors(value).is_integer() else "a process has whole processors"
    except ValueError:
        return ""


_CANNOT: Final[Mapping[str, tuple[tuple[str, Callable[[Json], str]], ...]]] = {
    "vm": (("Environment", _always("there is no virtual machine")),),
    "process": (("Image", _always("it runs the program that is there")), ("CPU", _fraction)),
    "wasm": (
        ("Image", _always("it runs the module that the tool names")),
        ("CPU", _always("it has no share of processors")),
        ("Network", lambda value: "it has no network" if value is True else ""),
    ),
}
"""By environment: the fields that it cannot carry out, with why it cannot a value."""
