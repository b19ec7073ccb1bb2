"""Going on from where an execution failed: what has to be done again, and whether it can be.

The machines of an execution are a tree. Those that failed have a position at the state that did;
their finished children keep what they came to, unfinished ones go on where they stood.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from asl.core.pointers import escape, unescape
from asl.core.values import Json
from asl.program import Machine, Program

__all__ = ["displaced", "missing", "void"]


def void(positions: Mapping[str, Json], answers: Mapping[str, Json]) -> Iterator[str]:
    """Yield the answers that do not count any more: how children of failed forks have failed."""
    children: dict[str, list[str]] = {}
    for key in answers:
        if key.endswith("]"):
            children.setdefault(key[: key.rindex("[") + 1], []).append(key)
    failed = [""]
    while failed:
        path = failed.pop()
        position = positions.get(path, {})
        if "ordinal" not in position:
            continue
        fork = f"{path}/{escape(position['state'])}@{position['visit']}.{position['ordinal']}["
        for key in children.get(fork, ()):
            _, _, _, error, *_ = answers[key]
            if error is not None:
                yield key
                failed.append(key)


def missing(
    program: Program, positions: Mapping[str, Json], answers: Mapping[str, Json]
) -> list[str]:
    """Return the states at which an execution stands and that *program* does not have, sorted."""
    ended = {key for key, answer in answers.items() if key.endswith("]") and answer[3] is None}
    lacking: set[str] = set()
    for path, name in set(_standing(positions, answers)):
        if not _is_within(path, ended):
            lacking.update(_lacking(program, path, name))
    return sorted(lacking)


def displaced(program: Program, former: Program, answers: Mapping[str, Json]) -> list[str]:
    """Return the branches of *program* that are not those which have ended at their places, sorted.

    What a branch came to is known by its place: by the *former* program it began in another state.
    """
    found: set[str] = set()
    for key, answer in answers.items():
        if key.endswith("]") and answer[3] is None:
            begun, here = _machine(former, key), _machine(program, key)
            if begun is None or here is None or "Branches" not in here.pointer.split("/")[-2:]:
                continue
            if begun.start.name != here.start.name:
                found.add(here.pointer)
    return sorted(found)


def _machine(program: Program, path: str) -> Machine | None:
    """Return the machine that a program has at a path, None if it is not known."""
    machine: Machine | None = program.machine
    for name, index in _forks(path):
        step = None if machine is None else machine.steps.get(name)
        machine = None if step is None else program.forked(step, index)
    return machine


def _forks(path: str) -> Iterator[tuple[str, str]]:
    """Yield the state that forks and the index of the child, from the top machine down."""
    for fork in path.split("/")[1:]:
        place, _, index = fork[:-1].rpartition("[")
        yield unescape(place.rpartition("@")[0]), index


def _is_within(path: str, ended: set[str]) -> bool:
    """Whether a machine or one around it has ended."""
    while path and path not in ended:
        path = path.rpartition("/")[0]
    return bool(path)


def _standing(
    positions: Mapping[str, Json], answers: Mapping[str, Json]
) -> Iterator[tuple[str, str]]:
    """Yield path and state of what is alive: the positions of machines, and effects since then."""
    for path, position in positions.items():
        if position["state"] is not None:
            yield path, position["state"]
    for key in answers:
        path, _, place = key.rpartition("/")
        name, at, _ = place.rpartition("@")
        if at:
            yield path, unescape(name)


def _lacking(program: Program, path: str, name: str) -> Iterator[str]:
    """Yield the state that is not there, on the way to a machine or in it."""
    machine: Machine | None = program.machine
    for around, index in _forks(path):
        assert machine is not None
        step = machine.steps.get(around)
        if step is None:
            yield f"{machine.pointer}/States/{escape(around)}"
            return
        machine = program.forked(step, index)
        if machine is None:
            if step.type != "Include":  # what it holds may be known only when it runs
                yield f"what runs within {step.pointer}"
            return
    assert machine is not None
    if name not in machine.steps:
        yield f"{machine.pointer}/States/{escape(name)}"
