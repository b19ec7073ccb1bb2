"""Redrive of failed executions, and restart from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from asl.bindings import Bindings, bind
from asl.core.errors import AslError
from asl.core.pointers import escape, unescape
from asl.core.values import Json, copy_foreign
from asl.engine.checkpoints import (
    Checkpoint,
    CheckpointNotFound,
    Storage,
    definition_hash,
    require_compatible,
    select_checkpoint,
)
from asl.engine.events import ENDINGS, RESUMED
from asl.engine.exception_mapping import map_exceptions
from asl.engine.resume_point import checkpoint_position, require_resumable, resumption_details
from asl.executions.errors import ExecutionNotRedrivable
from asl.executions.execution_reader import REDRIVABLE, ExecutionReader
from asl.program import Machine, Program
from asl.stores.executions import StoredExecution, top_of
from asl.stores.journal import StoreJournal

__all__ = [
    "Restart",
    "discarded_answers",
    "displaced_branches",
    "missing_states",
    "prepare_redrive",
    "prepare_rewind",
    "redrive",
]


def discarded_answers(positions: Mapping[str, Json], answers: Mapping[str, Json]) -> Iterator[str]:
    """Yield the keys of the answers to discard: the failures of children of failed forks."""
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


def missing_states(
    program: Program, positions: Mapping[str, Json], answers: Mapping[str, Json]
) -> list[str]:
    """Return the current states of an execution that *program* lacks, sorted."""
    ended = {key for key, answer in answers.items() if key.endswith("]") and answer[3] is None}
    lacking: set[str] = set()
    for path, name in set(_standing(positions, answers)):
        if not _is_within(path, ended):
            lacking.update(_lacking(program, path, name))
    return sorted(lacking)


def displaced_branches(program: Program, former: Program, answers: Mapping[str, Json]) -> list[str]:
    """Return the branches of *program* that differ from the ended ones at their places, sorted.

    Outcomes are stored by the place of the branch, where the *former* program had another one.
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
    """Return the machine of a program at a path, None if it is unknown."""
    machine: Machine | None = program.machine
    for name, index in _forks(path):
        step = None if machine is None else machine.steps.get(name)
        machine = None if step is None else program.forked_machine(step, index)
    return machine


def _forks(path: str) -> Iterator[tuple[str, str]]:
    """Yield the forking state and the index of the child, from the top machine down."""
    for fork in path.split("/")[1:]:
        place, _, index = fork[:-1].rpartition("[")
        yield unescape(place.rpartition("@")[0]), index


def _is_within(path: str, ended: set[str]) -> bool:
    """Return whether a machine or an enclosing one has ended."""
    while path and path not in ended:
        path = path.rpartition("/")[0]
    return bool(path)


def _standing(
    positions: Mapping[str, Json], answers: Mapping[str, Json]
) -> Iterator[tuple[str, str]]:
    """Yield path and state of the active machines and their effects."""
    for path, position in positions.items():
        if position["state"] is not None:
            yield path, position["state"]
    for key in answers:
        path, _, place = key.rpartition("/")
        name, at, _ = place.rpartition("@")
        if at:
            yield path, unescape(name)


def _lacking(program: Program, path: str, name: str) -> Iterator[str]:
    """Yield the missing state on the path to a machine or in it."""
    machine: Machine | None = program.machine
    for around, index in _forks(path):
        assert machine is not None
        step = machine.steps.get(around)
        if step is None:
            yield f"{machine.pointer}/States/{escape(around)}"
            return
        machine = program.forked_machine(step, index)
        if machine is None:
            if step.type != "Include":  # its machine may be known only at run time
                yield f"what runs within {step.pointer}"
            return
    assert machine is not None
    if name not in machine.steps:
        yield f"{machine.pointer}/States/{escape(name)}"


REDRIVEN = "ExecutionRedriven"


RequireBindings: TypeAlias = "Callable[[Program, str | None], object]"
"""Raises BindingsMissing for a program that lacks bindings from a state on."""
Restart: TypeAlias = Callable[[StoredExecution, RequireBindings], None]
"""Restarts an ended execution; raises before anything changes."""


def prepare_redrive(
    reader: ExecutionReader, stored: StoredExecution, corrected: Program | None
) -> Restart:
    """Return a function that redrives an execution, with a corrected document if there is one.

    Raises:
        ExecutionNotRedrivable: Another execution started it, and a document is given.
    """
    top = top_of(reader.session, stored.name)
    if corrected is not None and stored.name != top:
        raise ExecutionNotRedrivable(
            f"the execution {stored.name!r} is a part of {top!r} and keeps its document: redrive "
            "that one, with a document of its own or with none"
        )
    return lambda known, refuse: redrive(reader, known, refuse, corrected)


def prepare_rewind(
    reader: ExecutionReader,
    checkpoint: str | None,
    other: Program | None,
    force: bool,
    given: Bindings,
) -> Restart | None:
    """Return a function that restarts an execution from a checkpoint, None without one.

    Raises:
        AslError: `document` or `force` is given without a checkpoint.
    """
    if checkpoint is None:
        if other is not None or force:
            raise AslError("'document' and 'force' need 'from_checkpoint'")
        return None
    storages = bind(given).services.storages
    return lambda known, refuse: rewind(reader, known, refuse, checkpoint, other, force, storages)


def redrive(
    reader: ExecutionReader,
    known: StoredExecution,
    refuse: RequireBindings,
    corrected: Program | None = None,
) -> None:
    """Restart an execution from the states that failed.

    Raises:
        ExecutionNotRedrivable: It did not fail, or the document lacks its current states.
    """
    if known.status not in REDRIVABLE:
        what = f"Execution is {known.status} and cannot be redriven"
        if known.status in ("RUNNING", "PAUSED"):
            what += ": resume it"
        raise ExecutionNotRedrivable(what)
    key, program = _chosen(reader, known, corrected)
    journal = reader.journal(known)
    lacking = missing_states(program, journal.positions, journal.answers)
    if lacking:
        raise ExecutionNotRedrivable(
            f"the document lacks current states of the execution {known.name!r}: "
            + ", ".join(lacking)
        )
    former = program if corrected is None else reader.program(known)
    others = displaced_branches(program, former, journal.answers)
    if others:
        raise ExecutionNotRedrivable(
            f"branches that have ended are at other places in the document: {', '.join(others)}"
        )
    refuse(program, journal.positions.get("", {}).get("state"))
    for answer in discarded_answers(journal.positions, journal.answers):
        journal.drop_answer(answer)
    journal.drop_vain_requests()
    details = {"redriveCount": known.redrives + 1}
    _begin(reader, journal, known, key, reader.now(), REDRIVEN, details)


def rewind(
    reader: ExecutionReader,
    known: StoredExecution,
    refuse: RequireBindings,
    name: str,
    other: Program | None,
    force: bool,
    storages: Mapping[str, Storage],
) -> None:
    """Restart an execution from a checkpoint.

    Raises:
        CheckpointRefused: It cannot continue from the checkpoint.
    """
    if known.status != "RUNNING":  # otherwise its process has died
        require_resumable(known.name, known.status)
    key, program = _chosen(reader, known, other)
    checkpoint, now = select_checkpoint(reader.checkpoints(known), name), reader.now()
    definition = definition_hash(program.document)
    require_compatible(checkpoint, now, definition, program.machine.steps, force)
    checkpoint = _fetched(checkpoint, storages)
    refuse(program, checkpoint.next)
    journal = reader.journal(known)
    position = {
        **checkpoint_position(checkpoint, journal.visits, now),
        "records": journal.recorded.get("", 0),
        "usage": ["0", 0] if journal.spending is None else journal.spending[0],
    }
    journal.put_position("", position)
    journal.close_requests()
    details = resumption_details(checkpoint, known.redrives + 1)
    _begin(reader, journal, known, key, now, RESUMED, details)


def _chosen(
    reader: ExecutionReader, known: StoredExecution, other: Program | None
) -> tuple[str, Program]:
    """Return hash and program of the document with which an execution continues."""
    if other is None:
        return known.document, reader.program(known)
    return reader.put_program(other), other


def _fetched(checkpoint: Checkpoint, storages: Mapping[str, Storage]) -> Checkpoint:
    """Return a checkpoint with its data, which another storage may hold."""
    if checkpoint.storage == "default":
        return checkpoint
    name, id = checkpoint.storage, checkpoint.id
    unreadable = f"the storage {name!r} cannot return the checkpoint {id!r}"
    try:
        with map_exceptions(
            lambda text: CheckpointNotFound(f"{unreadable}: {text}"),
            lambda error: isinstance(error, KeyError),
        ):
            found = copy_foreign(storages[name][id])
    except KeyError:
        raise CheckpointNotFound(f"the storage {name!r} has no checkpoint {id!r}") from None
    if not (type(found) is dict and "data" in found and type(found.get("variables")) is dict):
        raise CheckpointNotFound(f"{unreadable}: what it returns is no checkpoint")
    return checkpoint._replace(data=found["data"], variables=found["variables"])


def _begin(
    reader: ExecutionReader,
    journal: StoreJournal,
    known: StoredExecution,
    document: str,
    now: float,
    event: str,
    details: dict[str, Json],
) -> None:
    """Record the end of the execution and its restart."""
    ending = None
    if known.ended is not None:
        ending = known.ended, ENDINGS[known.status], reader.end_details(known)
    if document != known.document:
        details = {**details, "document": document, "replaced": known.document}
    journal.put_life(now, known.redrives + 1, event, details, ending, document)
    reader.session.flush()
