"""Beginning anew: from where an execution failed, or from a checkpoint of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from asl.bindings import Bindings, bind
from asl.core.errors import AslError
from asl.core.values import Json
from asl.engine.checkpoints import (
    Checkpoint,
    CheckpointNotFound,
    Storage,
    chosen,
    definition_hash,
    refuse_unfit,
)
from asl.engine.events import ENDINGS, RESUMED
from asl.engine.past import at_checkpoint, refuse_status, resumption
from asl.executions.errors import ExecutionNotRedrivable
from asl.executions.kept import UNSUCCESSFUL, Kept
from asl.program import Program
from asl.stores.executions import Stored, top_of
from asl.stores.journal import StoreJournal
from asl.stores.redrive import displaced, missing, void

__all__ = ["Again", "redriven", "redriving", "rewinding"]

REDRIVEN = "ExecutionRedriven"


Refuse: TypeAlias = "Callable[[Program, str | None], object]"
"""Raises BindingsMissing for a program that lacks bindings from a state on."""
Again: TypeAlias = Callable[[Stored, Refuse], None]
"""Lets an execution that has ended begin anew; refuses before anything changes."""


def redriving(kept: Kept, stored: Stored, corrected: Program | None) -> Again:
    """Return what redrives an execution, by a corrected document if there is one.

    Raises:
        ExecutionNotRedrivable: It is a part of another one and would get a document of its own.
    """
    top = top_of(kept.session, stored.name)
    if corrected is not None and stored.name != top:
        raise ExecutionNotRedrivable(
            f"the execution {stored.name!r} is a part of {top!r} and keeps its document: redrive "
            "that one, with a document of its own or with none"
        )
    return lambda known, refuse: redriven(kept, known, refuse, corrected)


def rewinding(
    kept: Kept, checkpoint: str | None, other: Program | None, force: bool, given: Bindings
) -> Again | None:
    """Return what puts an execution back to a checkpoint, None without one.

    Raises:
        AslError: There is another document, or force, without a checkpoint.
    """
    if checkpoint is None:
        if other is not None or force:
            raise AslError("another document, and force, are for going on from a checkpoint")
        return None
    storages = bind(given).services.storages
    return lambda known, refuse: rewound(kept, known, refuse, checkpoint, other, force, storages)


def redriven(kept: Kept, known: Stored, refuse: Refuse, corrected: Program | None = None) -> None:
    """Let an execution go on from where it failed; raises ExecutionNotRedrivable."""
    if known.status not in UNSUCCESSFUL:
        what = f"Execution is {known.status} and cannot be redriven"
        if known.status in ("RUNNING", "PAUSED"):
            what += ": resume it"
        raise ExecutionNotRedrivable(what)
    key, program = _chosen(kept, known, corrected)
    journal = kept.journal(known)
    lacking = missing(program, journal.positions, journal.answers)
    if lacking:
        raise ExecutionNotRedrivable(
            f"the document has not what the execution {known.name!r} stands at: "
            + ", ".join(lacking)
        )
    former = program if corrected is None else kept.program(known)
    others = displaced(program, former, journal.answers)
    if others:
        raise ExecutionNotRedrivable(
            f"branches that have ended stand at other places in the document: {', '.join(others)}"
        )
    refuse(program, journal.positions.get("", {}).get("state"))
    for answer in void(journal.positions, journal.answers):
        journal.drop_answer(answer)
    journal.drop_vain_requests()
    details = {"redriveCount": known.redrives + 1}
    _begin(kept, journal, known, key, kept.now(), REDRIVEN, details)


def rewound(
    kept: Kept,
    known: Stored,
    refuse: Refuse,
    name: str,
    other: Program | None,
    force: bool,
    storages: Mapping[str, Storage],
) -> None:
    """Put an execution back to a checkpoint; raises CheckpointRefused where it cannot go on."""
    if known.status != "RUNNING":  # else its process has died
        refuse_status(known.name, known.status)
    key, program = _chosen(kept, known, other)
    checkpoint, now = chosen(kept.checkpoints(known), name), kept.now()
    definition = definition_hash(program.document)
    refuse_unfit(checkpoint, now, definition, program.machine.steps, force)
    checkpoint = _fetched(checkpoint, storages)
    refuse(program, checkpoint.next)
    journal = kept.journal(known)
    position = {
        **at_checkpoint(checkpoint, journal.visits, now),
        "records": journal.recorded.get("", 0),
        "usage": ["0", 0] if journal.spending is None else journal.spending[0],
    }
    journal.put_position("", position)
    journal.close_requests()
    details = resumption(checkpoint, known.redrives + 1)
    _begin(kept, journal, known, key, now, RESUMED, details)


def _chosen(kept: Kept, known: Stored, other: Program | None) -> tuple[str, Program]:
    """Return hash and program of the document with which an execution goes on."""
    if other is None:
        return known.document, kept.program(known)
    return kept.put_program(other), other


def _fetched(checkpoint: Checkpoint, storages: Mapping[str, Storage]) -> Checkpoint:
    """Return a checkpoint with what another storage holds of it."""
    if checkpoint.storage == "default":
        return checkpoint
    try:
        found = storages[checkpoint.storage][checkpoint.id]
    except KeyError:
        raise CheckpointNotFound(
            f"the storage {checkpoint.storage!r} has no checkpoint {checkpoint.id!r}"
        ) from None
    return replace(checkpoint, data=found["data"], variables=found["variables"])


def _begin(
    kept: Kept,
    journal: StoreJournal,
    known: Stored,
    document: str,
    now: float,
    event: str,
    details: dict[str, Json],
) -> None:
    """Write how the execution has ended and that it goes on."""
    ending = None
    if known.ended is not None:
        ending = known.ended, ENDINGS[known.status], kept.ending(known)
    if document != known.document:
        details = {**details, "document": document, "replaced": known.document}
    journal.put_life(now, known.redrives + 1, event, details, ending, document)
    kept.session.flush()
