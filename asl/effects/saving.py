"""Saving an execution: what a checkpoint is made of, and where it is put."""

from __future__ import annotations

from math import inf

from asl.core.diagnostics import did_you_mean
from asl.core.errors import StateError
from asl.effects.runtime import RuntimeContext
from asl.engine.checkpoints import Checkpoint, Names, Storage, record_of
from asl.engine.frame import Frame
from asl.engine.written import written_spending
from asl.states.effects import Saving
from asl.states.errors import Raised

__all__ = ["saved"]

OWN = "default"
"""The storage that is always there: with the execution itself."""


def saved(runtime: RuntimeContext, names: Names, at: Frame, saving: Saving) -> Checkpoint:
    """Return a new checkpoint; it stands in its storage, unless that is the execution's own."""
    storage = None if saving.storage == OWN else _storage(runtime, saving.storage)
    execution = at.execution
    at.now = created = runtime.now()
    id, name = names.new(execution.id, saving.name)
    data = saving.leave(record_of(id, name, created))
    checkpoint = Checkpoint(
        id=id,
        name=name,
        execution=execution.id,
        workflow=execution.workflow_id,
        definition=execution.definition,
        created=created,
        expires=None if saving.lifetime == inf else created + saving.lifetime,
        storage=saving.storage,
        next=saving.next,
        data=data,
        variables=at.variables,
        spent=written_spending(execution),
        redrives=execution.redrives,
        path=at.place,
    )
    if storage is not None:
        try:
            storage[id] = checkpoint.to_json()
        except Exception as error:
            # A storage is foreign code: anything it raises is its failure.
            message = f"the checkpoint {name!r} cannot be saved: {type(error).__name__}: {error}"
            raise Raised("States.TaskFailed", message) from error
    names.take(id, name)
    return checkpoint


def _storage(runtime: RuntimeContext, name: str) -> Storage:
    storages = runtime.serving().storages
    try:
        return storages[name]
    except KeyError:
        known = [OWN, *storages]
        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise StateError("States.Runtime", f"no storage {name!r} is registered ({hint})") from None
