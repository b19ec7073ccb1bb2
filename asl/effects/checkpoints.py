"""Checkpoints of a running execution: what they hold, and their storages."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

from asl.core.diagnostics import did_you_mean
from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.checkpoints import Checkpoint, CheckpointNames, Storage, checkpoint_record
from asl.engine.exception_mapping import map_exceptions
from asl.engine.frame import Frame
from asl.engine.journal_values import write_spending
from asl.states.effects import CheckpointRequest
from asl.states.errors import RaisedError

__all__ = ["OWN", "make_checkpoint", "store_checkpoint"]

OWN: Final = "default"
"""Name of the storage within the execution, which always exists."""


def make_checkpoint(
    names: CheckpointNames, frame: Frame, request: CheckpointRequest, created: float
) -> Checkpoint:
    """Return a new checkpoint of an execution, not yet saved.

    Args:
        names: Names of its checkpoints so far.
        frame: The machine that saves it.
        request: What to save.
        created: Time in epoch seconds.
    """
    execution = frame.execution
    frame.now = created
    id, name = names.new(execution.id, request.name)
    data = request.leave(checkpoint_record(id, name, created))
    return Checkpoint(
        id=id,
        name=name,
        execution=execution.id,
        workflow=execution.workflow_id,
        definition=execution.definition,
        created=created,
        expires=None if request.lifetime == inf else created + request.lifetime,
        storage=request.storage,
        next=request.next,
        data=data,
        variables=frame.variables,
        spent=write_spending(execution),
        redrives=execution.redrives,
        path=frame.place,
    )


def store_checkpoint(storages: Mapping[str, Storage], checkpoint: Mapping[str, Json]) -> None:
    """Save a checkpoint in its storage.

    Args:
        storages: The bound storages by name.
        checkpoint: The checkpoint as a JSON object.

    Raises:
        StateError: States.Runtime for an unknown storage, States.TaskFailed if it fails.
    """
    name = checkpoint["storage"]
    if name not in storages:
        known = [OWN, *storages]
        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise StateError("States.Runtime", f"no storage {name!r} is registered ({hint})")
    failed = f"the checkpoint {checkpoint['name']!r} cannot be saved"
    with map_exceptions(
        lambda text: RaisedError("States.TaskFailed", f"{failed}: {text}"), lambda error: False
    ):
        storages[name][checkpoint["id"]] = checkpoint
