"""Cases for the ways through a document, each of which was tried.

What an execution came to that was given what a way needs is the case. A way that was not taken all
the same (its data comes out of a template that cannot be followed) is left to a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from asl.conformance.facts import TEXT
from asl.conformance.recorder import literal
from asl.conformance.ways import Way, needs, ways
from asl.core.values import Json

if TYPE_CHECKING:
    from asl.core.document import Document
    from asl.engine.result import Result

__all__ = ["Missed", "cases_of"]


class Missed(NamedTuple):
    """A way that was tried and not taken."""

    way: Way
    why: str
    """Where it was left, and for what."""


def cases_of(document: Document, limit: int) -> tuple[list[dict[str, Json]], list[Missed], bool]:
    """Return a case for each way that could be taken, the other ways, and whether these are all.

    No more than *limit* ways are tried. Raises InvalidDocument for a document that cannot be run.
    """
    import asl
    from asl.engine.memory import ProcessMemory

    program = asl.compile(document)
    machine = document.whole
    cases: dict[tuple[str, ...], dict[str, Json]] = {}
    missed: list[Missed] = []
    backend = machine.get("Memory", {}).get("Backend", "memory")
    every, agents = ways(machine), dict(_asides(machine))
    for _, way in zip(range(limit), every, strict=False):
        left: list[str] = []
        for unsaid in _UNSAID.get(document.dialect, (TEXT, {})):
            data, mocks = needs(machine, way, unsaid)
            memory = {each: ProcessMemory() for each in ("memory", backend)}
            given: dict[str, Any] = {"mocks": mocks, "agents": agents, "memory": memory}
            result = asl.run(program, data, clock="virtual", **given)
            if _taken(machine, way, result):
                break
            left.append(_left(way, result))
        else:
            missed.append(Missed(way, left[0]))
            continue
        if tuple(result.visited) in cases:  # several ways wait for the same people
            continue
        cases[tuple(result.visited)] = {
            "id": f"{document.name}/{len(cases) + 1}",
            "title": " > ".join(result.visited),
            "input": data,
            **({"mocks": mocks} if mocks else {}),
            **({"agents": agents} if agents else {}),
            **({} if backend == "memory" else {"memory": [backend]}),
            "expect": _expected(result),
        }
    return list(cases.values()), missed, next(every, None) is None


_UNSAID: Mapping[str, tuple[Json, ...]] = {"asl": ({},)}
"""What inputs and answers are where nothing is asked of them, by the language of the document.

Agents of other languages speak in texts.
"""


def _expected(result: Result) -> dict[str, Json]:
    """Return what a case expects that came to this."""
    expect: dict[str, Json] = {"status": result.status, "visited": result.visited}
    if result.ok:
        expect["output"] = literal(result.output)
    elif result.error is not None:
        expect["error"] = result.error
    return expect


def _taken(machine: Mapping[str, Json], way: Way, result: Result) -> bool:
    """Whether an execution went a way to its end, or waits for people on it.

    It may go round a loop of the way more often: how often is counted by the document.
    """
    names, visited = [step.name for step in way], result.visited
    if result.status == "PAUSED":
        return names[: len(visited)] == visited
    fails = machine["States"][names[-1]]["Type"] == "Fail"
    if (result.status == "FAILED") != fails:
        return False
    rounds = len(visited) > len(names) and set(visited) == set(names)
    return visited == names or (rounds and _straight(visited) == _straight(names))


def _straight(names: list[str]) -> list[str]:
    """Return the states of a way without the loops in it."""
    straight: list[str] = []
    for name in names:
        if name in straight:
            del straight[straight.index(name) + 1 :]
        else:
            straight.append(name)
    return straight


def _left(way: Way, result: Result) -> str:
    """Say where an execution has left a way."""
    names = [step.name for step in way]
    for expected, found in zip(names, result.visited, strict=False):
        if expected != found:
            return f"it goes on to {found} instead of {expected}"
    last = result.visited[-1] if result.visited else names[0]
    if result.status == "FAILED":
        cause = (result.cause or "").partition("\n")[0]
        told = f"{result.error}: {cause}" if cause else result.error
        return f"{last} fails with {told}"
    return f"it ends at {last}: {result.status}"


def _asides(part: Json) -> Iterator[tuple[str, Json]]:
    """Yield the agents that a document asks beside those of its Tasks, with what they answer."""
    if type(part) is list:
        for each in part:
            yield from _asides(each)
    elif type(part) is dict:
        for field, answer in _ANSWERS.items():
            if type(part.get(field)) is str:
                yield part[field], {"return": answer}
        if part.get("Type") == "Debate":
            for name in part.get("Agents", ()):
                yield name, {"return": {"response": TEXT}}
        for each in part.values():
            yield from _asides(each)


_ANSWERS: Mapping[str, Json] = {
    "Check": {"valid": True},
    "Validator": {"valid": True},
    "Using": {"summary": "text"},
}
"""What agents answer by the fields that name them: rules and validators, summarisers."""
