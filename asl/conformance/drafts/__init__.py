"""Draft cases for the paths through a document.

Each path is executed with computed inputs and answers; its result becomes the expectation of the
case. A path that no inputs take, for example because a template makes its data, is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import asl
from asl.conformance.case import NAME
from asl.conformance.drafts.facts import TEXT
from asl.conformance.drafts.paths import RunInputs, WorkflowPath, find_paths, required_inputs
from asl.conformance.drafts.search import MORE_STEPS, Attempts, search
from asl.conformance.recorder import literal
from asl.core.document import UNNAMED, Document
from asl.core.values import Json, compact
from asl.dialects.registry import dialect
from asl.engine.memory import ProcessMemory
from asl.engine.result import Result
from asl.graphs.labels import catcher_label

__all__ = ["UntakenPath", "draft_cases"]


BOUNDS: Final = {"max_transitions": 10_000, "max_effects": 1_000}
"""Bounds of an attempt: one that does not leave a loop ends soon."""


class UntakenPath(NamedTuple):
    """The beginning of paths that no execution took."""

    names: tuple[str, ...]
    """The states up to the one that is not reached or fails."""
    why: str
    """The actual course of the execution."""


def draft_cases(
    document: Document, limit: int, profile: str = "default", data: Json = None
) -> tuple[list[dict[str, Json]], list[UntakenPath], bool]:
    """Return the cases of taken paths, the untaken paths, and whether all paths were tried.

    Args:
        document: The document to test.
        limit: The maximum number of paths.
        profile: The profile of the cases.
        data: An input to begin with; None to compute one from the expressions of the states.

    Raises:
        InvalidDocument: The document cannot be run.
    """
    # The name of the case's run: random values and names in the output depend on it.
    program = asl.compile(document, profile=profile)
    program = replace(program, name=UNNAMED, profile=program.profile.with_limits(**BOUNDS))
    machine = document.composed_value
    cases: dict[str, dict[str, Json]] = {}
    missed: list[UntakenPath] = []
    dead: list[WorkflowPath] = []
    backend = machine.get("Memory", {}).get("Backend", "memory")
    found, complete = find_paths(machine, limit)
    agents = dict(_asides(machine))
    buckets: dict[str, dict[str, str]] = {name: {} for name in _written(machine)}
    unsaid = tuple(dialect(document.dialect).sample_data(document))
    usual = [answer for _, answer in unsaid]

    def run(given: RunInputs) -> Result:
        memory = {each: ProcessMemory() for each in ("memory", backend)}
        bound: dict[str, Any] = {"mocks": given.mocks, "agents": agents, "memory": memory}
        places: Any = {each: {} for each in buckets}
        return asl.run(program, given.data, clock="virtual", name=NAME, buckets=places, **bound)

    attempt = Attempts(run)
    for way in found:
        if any(way[: len(each)] == each for each in dead):
            continue
        if attempt.left <= -MORE_STEPS:
            complete = False
            break
        begins = _begins(machine, way, unsaid, data)
        given, result, reached, taken = search(machine, way, begins, usual, attempt)
        if not taken:
            dead.append(way[:reached])
            names = tuple(step.name for step in way[: reached + 1])
            missed.append(UntakenPath(names, _left(way, result)))
            continue
        if data is None:
            given, result = _lean(given, result, attempt)
        course = compact(_course(result))
        if course in cases:  # several paths pause at the same approval
            continue
        cases[course] = {
            "id": f"{document.name}/{len(cases) + 1}",
            "title": _titled(machine, way, result),
            "input": given.data,
            **({"mocks": given.mocks} if given.scripts else {}),
            **({"agents": agents} if agents else {}),
            **({"buckets": buckets} if buckets else {}),
            **({} if backend == "memory" else {"memory": [backend]}),
            "expect": _expected(result),
        }
    return list(cases.values()), missed, complete


def _begins(
    machine: Mapping[str, Json], way: WorkflowPath, unsaid: Sequence[tuple[Json, Json]], known: Json
) -> Iterator[RunInputs]:
    """Yield the first inputs to try for a path: with an item for each Map, then with none.

    A *known* input is tried unchanged, then completed with the needs of the path, then changed.
    """
    seen: list[RunInputs] = []
    for items in (True, False):
        for data, answer in unsaid:
            given = required_inputs(machine, way, data, answer, items=items)
            for each in (given.data,) if known is None else _inputs(known, given.data):
                other = given._replace(data=each)
                if other not in seen:
                    seen.append(other)
                    yield other


def _inputs(known: Json, needed: Json) -> tuple[Json, ...]:
    return known, _merged(needed, known), _merged(known, needed)


def _merged(value: Json, other: Json) -> Json:
    """Return a value with the members of another one, which win."""
    if type(value) is not dict or type(other) is not dict:
        return other
    return {**value, **{key: _merged(value.get(key), each) for key, each in other.items()}}


def _lean(given: RunInputs, result: Result, attempt: Attempts) -> tuple[RunInputs, Result]:
    """Remove members of the input that the path does not need, as long as steps are left."""
    for name in given.data if type(given.data) is dict else ():
        if attempt.left <= 0:
            break
        rest = {key: each for key, each in given.data.items() if key != name}
        other = given._replace(data=rest)
        instead = attempt(other)
        if _course(instead) == _course(result):
            given, result = other, instead
    return given, result


def _course(result: Result) -> list[Json]:
    """Return the events of a result with their errors, without data."""
    return [[each.type, each.path, each.details.get("error")] for each in result.events]


def _titled(machine: Mapping[str, Json], way: WorkflowPath, result: Result) -> str:
    """Return the title of a case: its states, with the errors that were caught."""
    catchers = {
        step.name: machine["States"][step.name]["Catch"][step.index]
        for step in way
        if step.by == "catch"
    }
    told = {name: f" ({catcher_label(catcher)})" for name, catcher in catchers.items()}
    return " > ".join(name + told.get(name, "") for name in result.visited)


def _expected(result: Result) -> dict[str, Json]:
    """Return the expectations of a case with this result."""
    expect: dict[str, Json] = {"status": result.status, "visited": result.visited}
    if result.ok:
        expect["output"] = literal(result.output)
    elif result.error is not None:
        expect["error"] = result.error
    return expect


def _left(way: WorkflowPath, result: Result) -> str:
    """Describe where an execution left a path."""
    names = [step.name for step in way]
    for expected, found in zip(names, result.visited, strict=False):
        if expected != found:
            return f"it continues at {found} instead of {expected}"
    last = result.visited[-1] if result.visited else names[0]
    if result.status == "FAILED":
        cause = (result.cause or "").partition("\n")[0]
        told = ": ".join(part for part in (result.error, cause) if part)
        return f"{last} fails with {told}" if told else f"{last} fails without an error name"
    return f"it ends at {last}: {result.status}"


def _asides(part: Json) -> Iterator[tuple[str, Json]]:
    """Yield the agents outside of Tasks (rules, validators, debates), with their answers."""
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


def _written(part: Json) -> Iterator[str]:
    """Yield the buckets of result writers; `TEXT` for a computed name."""
    if type(part) is list:
        for each in part:
            yield from _written(each)
    elif type(part) is dict:
        writer = part.get("ResultWriter")
        if type(writer) is dict and "Resource" in writer:
            given = writer.get("Parameters", writer.get("Arguments"))
            name = given.get("Bucket", TEXT) if type(given) is dict else TEXT
            yield TEXT if type(name) is not str or name.startswith("{%") else name
        for each in part.values():
            yield from _written(each)


_ANSWERS: Mapping[str, Json] = {
    "Check": {"valid": True},
    "Validator": {"valid": True},
    "Using": {"summary": "text"},
}
"""Field that names an agent -> its answer: rules, validators, summarizers."""
