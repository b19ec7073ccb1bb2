"""Coverage: which states and transitions of documents the cases have taken.

It is read from the events of the cases, so it works with any interpreter that reports them.
Rules of a Choice that lead to the same state are one transition; the beginning and the end of a
machine are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from asl.conformance.case import Case
from asl.conformance.local import children_listener
from asl.conformance.runner import CaseResult
from asl.core.diagnostics import InvalidDocument
from asl.core.document import Document, read
from asl.core.values import Json, compact
from asl.documents.loading import resolve_document
from asl.engine.result import Result
from asl.graphs.model import MISSING, GraphState, MachineGraph, Transition, graph_of
from asl.program import Program

__all__ = [
    "CoverageGap",
    "CoverageRun",
    "DocumentCoverage",
    "coverage_of",
    "record_runs",
    "with_events",
]

EVENTS, CHILDREN = "events", "children"


class CoverageGap(NamedTuple):
    """What no case has taken: where it is written, and in words what it is."""

    place: str
    what: str


@dataclass(frozen=True, slots=True)
class DocumentCoverage:
    """How much of one document was taken; states and transitions are taken and all of them."""

    name: str
    states: tuple[int, int]
    transitions: tuple[int, int]
    missed: tuple[CoverageGap, ...]

    def to_json(self) -> dict[str, Json]:
        """Return it as a JSON object."""
        return {
            "document": self.name,
            "states": dict(zip(("taken", "all"), self.states, strict=True)),
            "transitions": dict(zip(("taken", "all"), self.transitions, strict=True)),
            "missed": [each._asdict() for each in self.missed],
        }


@dataclass(slots=True)
class _Taken:
    """What was taken of one document; places are pointers of states and machines."""

    name: str
    document: Document
    machine: MachineGraph
    states: set[str] = field(default_factory=set)
    ways: set[tuple[str, str, str, bool | None]] = field(default_factory=set)
    """Pointer of a machine, source, target, and whether an error was caught; None if unknown."""


class CoverageRun(NamedTuple):
    """The events of one execution, and the document that it ran."""

    document: Document
    events: Sequence[Mapping[str, Json]]
    tells_catchers: bool
    """Whether a catch is an event: with AWS it is none."""


def record_runs(run: Callable[..., Result], runs: list[CoverageRun]) -> Callable[..., Result]:
    """Return `asl.run` or its like, which adds every execution to *runs*."""

    def recorded_run(workflow: Any, *arguments: Any, **options: Any) -> Result:
        if isinstance(workflow, Program):
            document = read(dict(workflow.document), name=workflow.name)
        else:
            document = workflow = resolve_document(workflow)
        children: list[Json] = []
        if options.get("listener") is None:
            options["listener"] = children_listener(children)
        result = run(workflow, *arguments, **options)
        profile = options.get("profile")
        told = getattr(profile, "name", profile) != "aws"
        runs.append(
            CoverageRun(document, [*(each.to_json() for each in result.events), *children], told)
        )
        return result

    return recorded_run


def with_events(case: Case) -> Case:
    """Return a case whose events are asked for, and those of items, whatever it expects."""
    return replace(case, also=(EVENTS, CHILDREN))


def coverage_of(
    verdicts: Iterable[CaseResult], runs: Iterable[CoverageRun] = ()
) -> list[DocumentCoverage]:
    """Return what cases and other runs have taken of each document, in the order of the first ones.

    Those of the same document count together, whether they passed or not. A document that is
    refused has no part in it.
    """
    known: dict[str, _Taken | None] = {}
    for verdict in verdicts:
        case, events = verdict.case, verdict.observation.get(EVENTS)
        if not events:
            continue
        key = compact([case.document, case.document_text, case.dialect, case.parameters])
        if key not in known:
            known[key] = _begun(case)
        taken = known[key]
        if taken is not None:
            walk = _Walk(taken, tells_catchers=case.profile != "aws")
            walk.follow([*events, *verdict.observation.get(CHILDREN, ())])
    for run in runs:
        name = run.document.source.name or run.document.name
        key = compact([name, run.document.composed_value])
        taken = known.get(key)
        if taken is None:
            known[key] = taken = _Taken(name, run.document, graph_of(run.document.composed_value))
        _Walk(taken, tells_catchers=run.tells_catchers).follow(run.events)
    return [_covered(taken) for taken in known.values() if taken is not None]


def _begun(case: Case) -> _Taken | None:
    from asl.dialects import load

    text = case.document_text
    try:
        document = load(
            dict(case.document or {}) if text is None else text.encode(),
            dialect=case.dialect,
            reading=case.reading or None,
            files=case.files,
            parameters=case.parameters or None,
            name=case.document_name or None,
        )
    except InvalidDocument:
        return None
    return _Taken(case.document_name or case.location, document, graph_of(document.composed_value))


class _Walk:
    """Follows the events of one execution through the graph of its document."""

    def __init__(self, taken: _Taken, *, tells_catchers: bool) -> None:
        self.taken = taken
        self.tells_catchers = tells_catchers
        """Whether a catch is an event: with AWS it is none."""
        self.left: dict[tuple[str | int, ...], tuple[str, bool | None]] = {}
        """The state that each machine has left last, and whether an error was caught there."""
        self.caught: set[tuple[str | int, ...]] = set()
        """The states in which an error was caught, until they are left."""

    def follow(self, events: Sequence[Mapping[str, Json]]) -> None:
        for event in events:
            place = tuple(event["path"])
            if event["type"] == "ErrorCaught":
                self.caught.add(place)
            elif event["type"].endswith("StateEntered"):
                self._entered(place[:-1], place[-1])
            elif event["type"].endswith("StateExited"):
                caught = place in self.caught if self.tells_catchers else None
                self.left[place[:-1]] = place[-1], caught
                self.caught.discard(place)

    def _entered(self, within: tuple[str | int, ...], name: str) -> None:
        machine = _machine(self.taken.machine, within)
        if machine is None:  # of another document, which a state includes
            return
        state = next((each for each in machine.states if each.name == name), None)
        if state is not None:
            self.taken.states.add(state.pointer)
        if within in self.left:
            source, caught = self.left.pop(within)
            self.taken.ways.add((machine.pointer, source, name, caught))


def _machine(machine: MachineGraph, within: Sequence[str | int]) -> MachineGraph | None:
    """Return the machine at a path of states and indices of branches or items."""
    for name, index in zip(within[::2], within[1::2], strict=False):
        inner = next((each.machines for each in machine.states if each.name == name), ())
        if len(inner) > 1:  # branches, one after the other; all items have the same machine
            inner = inner[int(index) :]
        if not inner:
            return None
        machine = inner[0]
    return machine


def _covered(taken: _Taken) -> DocumentCoverage:
    """Judge a document state by state; the ways out of one that was never entered go without."""
    states, ways, missed = [0, 0], [0, 0], []
    for machine in _machines(taken.machine):
        for state in machine.states:
            out = _ways_out(machine, state)
            walked = [way for way in out if _is_walked(taken, machine, way)]
            entered = state.pointer in taken.states
            states[0] += entered
            states[1] += state.type != MISSING
            ways[0] += len(walked)
            ways[1] += len(out)
            if not entered:
                missed.append((state, f"{state.name!r} is never entered"))
            else:
                missed += [(state, _words(way)) for way in out if way not in walked]
    told = tuple(CoverageGap(_place(taken, state), what) for state, what in missed)
    return DocumentCoverage(taken.name, (states[0], states[1]), (ways[0], ways[1]), told)


def _machines(machine: MachineGraph) -> Iterator[MachineGraph]:
    yield machine
    for state in machine.states:
        for inner in state.machines:
            yield from _machines(inner)


def _ways_out(machine: MachineGraph, state: GraphState) -> list[Transition]:
    """Return the transitions to other states, one for all rules that lead to the same state."""
    found: dict[tuple[object, bool], Transition] = {}
    for each in machine.transitions:
        if each.source == state.name and each.kind != "end":
            found.setdefault((each.target, each.kind == "catch"), each)
    return list(found.values())


def _is_walked(taken: _Taken, machine: MachineGraph, way: Transition) -> bool:
    return any(
        (machine.pointer, way.source, way.target, told) in taken.ways
        for told in (way.kind == "catch", None)
    )


def _words(way: Transition) -> str:
    when = f" ({way.label})" if way.label else ""
    return f"{way.source!r} never goes to {way.target!r}{when}"


def _place(taken: _Taken, state: GraphState) -> str:
    document, pointer = taken.document.origin(state.pointer)
    line = document.locate(pointer, at_key=True).line
    name = document.source.name or taken.name
    return name if line is None else f"{name}:{line}"
