"""The workflow that holds the registered resources of a queue: state machines, versions, ...

Clients send changes as updates and ask for what has changed since a version. A change is refused if
one of its resources has changed since the version that its client has read.
"""

from __future__ import annotations

from typing import Final, NotRequired, TypedDict

import orjson
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from asl.core.values import Json
from asl.temporal.payloads import pack, unpack

__all__ = [
    "CHANGES",
    "COMMIT",
    "CONFLICT",
    "FULL",
    "REGISTRY",
    "Changes",
    "CommitMessage",
    "RegistryWorkflow",
    "ResourceRow",
]

REGISTRY: Final = "asl.Registry"
"""Type of the workflow."""
COMMIT: Final = "asl.registry.commit"
CHANGES: Final = "asl.registry.changes"
"""Names of the update and of the query."""
CONFLICT: Final = "RegistryConflict"
FULL: Final = "RegistryFull"
"""Types of the refusals."""
MAX_EVENTS: Final = 2000
"""Events of a run after which the registry continues in another one."""
MAX_SIZE: Final = 1_800_000
"""Bytes of the largest packed content: Temporal refuses inputs of 2 MB."""

ResourceRow = tuple[str, str, str, int, str | None]
"""ARN, kind, owner, number and content as JSON text; without content it is deleted."""


class RegistryStart(TypedDict):
    """Input of the workflow."""

    content: NotRequired[str]
    """Packed content of the former run: its version, resources and documents."""


class CommitMessage(TypedDict):
    """Changes of one transaction."""

    base: int
    """Version that the client has read."""
    resources: str
    """Packed rows."""
    documents: str
    """Packed texts of further documents by hash."""


class Changes(TypedDict):
    """What has changed since a version."""

    version: int
    whole: bool
    """Whether it is the whole content: what is not in it is deleted."""
    resources: list[ResourceRow]
    documents: dict[str, str]


@workflow.defn(name=REGISTRY, sandboxed=False)
class RegistryWorkflow:
    """Holds resources until it is terminated."""

    @workflow.init
    def __init__(self, start: RegistryStart) -> None:
        content: Json = unpack(start["content"]) if "content" in start else [0, [], {}]
        self._version: int = content[0]
        self._first = self._version
        """Version at the start of this run, which knows no earlier changes."""
        self._rows: dict[str, tuple[int, ResourceRow]] = {
            row[0]: (self._version, row) for row in content[1]
        }
        """Version and row of each resource; deleted ones remain until the next run."""
        self._documents: dict[str, tuple[int, str]] = {
            key: (self._version, text) for key, text in content[2].items()
        }
        self._size = len(start.get("content", ""))
        """Size of the packed content, or more."""

    @workflow.run
    async def run(self, start: RegistryStart) -> None:
        """Wait for updates, and continue in a new run before the history is too long."""
        await workflow.wait_condition(self._is_long)
        workflow.continue_as_new(RegistryStart(content=self._packed()))

    def _is_long(self) -> bool:
        info = workflow.info()
        return info.is_continue_as_new_suggested() or info.get_current_history_length() > MAX_EVENTS

    def _packed(self) -> str:
        rows = [row for _, row in self._rows.values() if row[4] is not None]
        used = {orjson.loads(row[4] or "{}").get("document") for row in rows}
        documents = {key: text for key, (_, text) in self._documents.items() if key in used}
        return pack([self._version, rows, documents])

    @workflow.update(name=COMMIT)
    def commit(self, message: CommitMessage) -> int:
        """Make changes and return their version."""
        self._version += 1
        for key, text in unpack(message["documents"]).items():
            self._documents.setdefault(key, (self._version, text))
        for row in unpack(message["resources"]):
            self._rows[row[0]] = self._version, row
        self._size += _size(message)
        return self._version

    @commit.validator
    def check(self, message: CommitMessage) -> None:
        """Check that changes can be made.

        Raises:
            ApplicationError: A resource has changed meanwhile, or the registry is full.
        """
        rows = unpack(message["resources"])
        for arn, *_ in rows:
            if self._rows.get(arn, (0,))[0] > message["base"]:
                raise ApplicationError(arn, type=CONFLICT, non_retryable=True)
        if any(row[4] is not None for row in rows) and self._size + _size(message) > MAX_SIZE:
            self._size = len(self._packed())
            if self._size + _size(message) > MAX_SIZE:
                count = f"{len(self._rows)} resources"
                raise ApplicationError(count, type=FULL, non_retryable=True)

    @workflow.query(name=CHANGES)
    def changes(self, since: int) -> str:
        """Return what has changed since a version, packed."""
        whole = since < self._first
        since = -1 if whole else since
        found = Changes(
            version=self._version,
            whole=whole,
            resources=[row for version, row in self._rows.values() if version > since],
            documents={key: text for key, (version, text) in self._documents.items()
                       if version > since},
        )  # fmt: skip
        return pack(found)


def _size(message: CommitMessage) -> int:
    return len(message["resources"]) + len(message["documents"])
