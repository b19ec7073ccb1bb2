"""The language itself, in JSON; with names for resources, their Tasks ask agents."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from asl.core.diagnostics import Finding
from asl.core.document import Document
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.base import Coverage, Dialect, WriterResult
from asl.dialects.formatter import format_json
from asl.dialects.names import NAMES, NameTable, lost_integration, renamed
from asl.states.machines import nested_machines

__all__ = ["DIALECT"]


def _never(what: str | Mapping[str, Any]) -> bool:
    return False


def _write(document: Document, names: Mapping[str, str] | None = None) -> WriterResult:
    found = NameTable(names)
    losses: list[Finding] = []
    value = document.composed_value
    if names:
        value = _machine(value, "", found, losses)
        found.all_used()
    return WriterResult(value, format_json(value), tuple(losses))


def _machine(
    machine: Mapping[str, Any], pointer: str, names: NameTable, losses: list[Finding]
) -> dict[str, Json]:
    """Return a machine in which named resources are agents."""
    states = {
        name: _state(state, f"{pointer}/States/{escape(name)}", names, losses)
        for name, state in machine["States"].items()
    }
    return {**machine, "States": states}


def _state(
    state: Mapping[str, Any], pointer: str, names: NameTable, losses: list[Finding]
) -> dict[str, Json]:
    made = dict(state)
    for steps, inner in nested_machines(state):
        way = "".join(f"/{step}" for step in steps)
        machine = _machine(inner, f"{pointer}{way}", names, losses)
        if len(steps) == 1:
            made[str(steps[0])] = machine
        else:
            listed = made[str(steps[0])]
            made[str(steps[0])] = [machine if each is inner else each for each in listed]
    agent = names.of(state["Resource"]) if type(state.get("Resource")) is str else None
    if agent is None:
        return made
    losses += _lost(state["Resource"], f"{pointer}/Resource")
    return renamed(made, "Resource", "Agent", agent)


def _lost(resource: str, pointer: str) -> Iterator[Finding]:
    message = lost_integration(resource)
    if message is not None:
        yield Finding("L-INTEGRATION", message, pointer)


def _objects(document: Document) -> Iterable[tuple[Json, Json]]:
    yield {}, {}


DIALECT = Dialect(
    "asl",
    "Agent State Language",
    _never,
    _never,
    None,
    _write,
    write_options=frozenset((NAMES,)),
    sample_data=_objects,
    coverage=partial(Coverage, complete=True),
    file_ending=".asl.json",
)
