"""Where the parts of a converted document were written."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from asl.core.pointers import escape
from asl.core.values import Json
from asl.states.machines import nested_machines

__all__ = ["origins_of"]


def origins_of(
    value: Mapping[str, Any], parts: Iterable[tuple[Mapping[str, Json], str]]
) -> Iterator[tuple[str, str]]:
    """Yield where states and rules stand in a document, and where they are written.

    *parts* are those that were built, each with its JSON Pointer in the foreign document.
    """
    written = {id(part): pointer for part, pointer in parts}
    todo: list[tuple[Mapping[str, Any], str]] = [(value, "")]
    while todo:
        machine, base = todo.pop()
        for name, state in machine["States"].items():
            pointer = f"{base}/States/{escape(name)}"
            if id(state) in written:
                yield pointer, written[id(state)]
            for index, rule in enumerate(state.get("Choices", ())):
                if id(rule) in written:
                    yield f"{pointer}/Choices/{index}", written[id(rule)]
            for steps, inner in nested_machines(state):
                todo.append((inner, pointer + "".join(f"/{step}" for step in steps)))
