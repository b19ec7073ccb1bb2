"""Checkpoints of executions, and the checks before an execution resumes from one.

A checkpoint is plain JSON. A *storage* holds it: any mapping from ids to JSON values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.lazy import lazy_pattern
from asl.core.values import Json
from asl.engine.ledger import Ledger
from asl.engine.limits import SpendingExecution
from asl.expr.times import format_timestamp

__all__ = [
    "Checkpoint",
    "CheckpointExpired",
    "CheckpointIncompatible",
    "CheckpointNames",
    "CheckpointNotFound",
    "CheckpointRefused",
    "NotResumable",
    "Storage",
    "checkpoint_record",
    "definition_hash",
    "require_compatible",
    "select_checkpoint",
]

LEDGER = 3
"""Key of the ledger in the stored spending."""
AUTOMATIC = lazy_pattern(r"auto-([0-9]{1,15})")


class CheckpointRefused(AslError):
    """An execution cannot be resumed from the checkpoint; `error` is the error name."""

    error: str


class CheckpointNotFound(CheckpointRefused):
    """The execution has no such checkpoint."""

    error = "States.CheckpointNotFound"


class CheckpointExpired(CheckpointRefused):
    """The checkpoint is older than its `TTL` allows."""

    error = "States.CheckpointExpired"


class CheckpointIncompatible(CheckpointRefused):
    """The document has changed, or the checkpoint was saved in a Map or a branch."""

    error = "States.CheckpointIncompatible"


class NotResumable(CheckpointRefused):
    """The execution is running, is paused or has succeeded."""

    error = "States.Runtime"


class Storage(Protocol):
    """A storage of checkpoints by id, such as a dictionary."""

    def __setitem__(self, id: str, checkpoint: Json, /) -> object: ...

    def __getitem__(self, id: str, /) -> Json:
        """Return the value of an id; raise KeyError without one."""
        ...


class Checkpoint(NamedTuple):
    """A saved execution (companion, 3.2); times in epoch seconds."""

    id: str
    name: str
    execution: str
    """Id of the execution."""
    workflow: str
    """Id of the workflow."""
    definition: str
    """SHA-256 of the document's canonical JSON."""
    created: float
    expires: float | None
    """None for never."""
    storage: str
    next: str | None
    """Name of the state from which to continue; None if nothing is left to do."""
    data: Json
    """Input of that state."""
    variables: Mapping[str, Json]
    spent: Json
    """Spending of the execution (`asl.engine.journal_values.write_spending`)."""
    redrives: int = 0
    path: tuple[str | int, ...] = ()
    """Where it was saved: names of states and indices; empty at the top level."""

    @property
    def record(self) -> dict[str, Json]:
        """The output of the state that saved the checkpoint."""
        return checkpoint_record(self.id, self.name, self.created)

    def to_json(self) -> dict[str, Json]:
        """Return the checkpoint as a JSON object with the names of the specification."""
        (cost, tokens, *_), *_ = self.spent
        expires = None if self.expires is None else format_timestamp(self.expires)
        return {
            "id": self.id,
            "name": self.name,
            "executionId": self.execution,
            "workflowId": self.workflow,
            "definitionHash": self.definition,
            "createdAt": format_timestamp(self.created),
            "expiresAt": expires,
            "storage": self.storage,
            "resumeAt": self.next,
            "data": self.data,
            "variables": dict(self.variables),
            "usage": {"cost": float(cost), "tokens": tokens},
            "redriveCount": self.redrives,
            "path": list(self.path),
        }

    def budget(self, execution: SpendingExecution) -> dict[str, Json]:
        """Return the budget report of the execution as `budget`; {} without a budget."""
        if len(self.spent) <= LEDGER:
            return {}
        return {"budget": Ledger.read(execution, self.spent[LEDGER]).report()}

    def to_record(self) -> Json:
        """Return the checkpoint as a JSON object for `read`."""
        fields = {name: getattr(self, name) for name in self._fields}
        return {**fields, "variables": dict(self.variables), "path": list(self.path)}

    @classmethod
    def read(cls, kept: Json) -> Checkpoint:
        """Return the checkpoint of a JSON object made by `to_record`."""
        return cls(**{**kept, "path": tuple(kept["path"])})


def checkpoint_record(id: str, name: str, created: float) -> dict[str, Json]:
    """Return the output of a state that saves a checkpoint."""
    made = format_timestamp(created)
    return {"checkpoint": {"name": name, "id": id, "createdAt": made}}


class CheckpointNames:
    """The names and unique ids of the checkpoints of one execution."""

    def __init__(self, ids: Iterable[tuple[str, str]] = ()) -> None:
        self._ids: set[str] = set()
        self._automatic = 0
        for id, name in ids:
            self.take(id, name)

    def take(self, id: str, name: str) -> None:
        """Register a saved checkpoint."""
        self._ids.add(id)
        automatic = AUTOMATIC.fullmatch(name)
        if automatic:
            self._automatic = max(self._automatic, int(automatic[1]))

    def free(self, id: str) -> None:
        """Forget a checkpoint that could not be saved."""
        self._ids.discard(id)

    def new(self, execution: str, name: str | None) -> tuple[str, str]:
        """Return id and name of a new checkpoint.

        Args:
            execution: Id of the execution.
            name: Name in the document; None for an automatic checkpoint.
        """
        if name is None:
            name = f"auto-{self._automatic + 1}"
        id, number = f"{execution}-{name}", 1
        while id in self._ids:
            number += 1
            id = f"{execution}-{name}-{number}"
        return id, name


def definition_hash(document: Mapping[str, Json]) -> str:
    """Return the SHA-256 of a document's canonical JSON, which ignores the order of members."""
    import json

    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    from hashlib import sha256  # loads OpenSSL

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def select_checkpoint(checkpoints: Iterable[Checkpoint], name: str) -> Checkpoint:
    """Return the checkpoint with this id, or the latest with this name.

    Raises:
        CheckpointNotFound: There is none.
    """
    known = list(checkpoints)
    found = [each for each in known if each.id == name]
    found = found or [each for each in known if each.name == name]
    if not found:
        raise CheckpointNotFound(f"there is no checkpoint {name!r}{_others(known, name)}")
    return found[-1]


def _others(known: list[Checkpoint], name: str) -> str:
    if not known:
        return ": the execution has saved none"
    hint = did_you_mean(name, dict.fromkeys(each.name for each in known))
    return f" ({hint})" if hint else f": the latest one is {known[-1].name!r}"


def require_compatible(
    checkpoint: Checkpoint, now: float, definition: str, states: Iterable[str], force: bool
) -> None:
    """Check that an execution can be resumed from a checkpoint (companion, 3.3).

    Args:
        checkpoint: The checkpoint.
        now: Current time in epoch seconds.
        definition: Hash of the document to resume with.
        states: Names of the states of its top machine.
        force: Whether a changed document is accepted.

    Raises:
        CheckpointExpired: The checkpoint has expired.
        CheckpointIncompatible: It was saved in a Map or a branch, or the document has changed.
    """
    name = checkpoint.name
    if checkpoint.expires is not None and now >= checkpoint.expires:
        since = format_timestamp(checkpoint.expires)
        raise CheckpointExpired(f"the checkpoint {name!r} has expired at {since}")
    if checkpoint.path:
        place = " / ".join(map(str, checkpoint.path))
        raise CheckpointIncompatible(
            f"the checkpoint {name!r} was saved within {place}: an execution can be resumed at its "
            "top level only, as the siblings there are at other places"
        )
    if checkpoint.definition != definition and not force:
        raise CheckpointIncompatible(
            f"the document is another one than when {name!r} was saved: force it, if the state "
            f"{checkpoint.next!r} means the same there"
        )
    if checkpoint.next is not None and checkpoint.next not in states:
        raise CheckpointIncompatible(
            f"the document has no state {checkpoint.next!r}, where {name!r} resumes"
        )
