"""Registered state machines, versions, aliases and activities, as rows."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from asl.core.values import Json, encode
from asl.stores.backend import Write
from asl.stores.session import Session
from asl.stores.statements import PARAMETER, Delete, Insert, Select
from asl.stores.tables import RESOURCE

__all__ = [
    "Resource",
    "committed_resource",
    "delete_resource",
    "find_resource",
    "list_resources",
    "put_resource",
    "write_of",
]

COLUMNS: Final = ("arn", "kind", "owner", "number", "body")
FIND = Select(RESOURCE, COLUMNS, {"arn": PARAMETER}, checked=True)
LIST = Select(
    RESOURCE,
    COLUMNS,
    {"kind": PARAMETER, "owner": PARAMETER},
    order=("number", "arn"),
    checked=True,
)
PUT = Insert(RESOURCE, COLUMNS, "update", ("body",))
DELETE = Delete(RESOURCE, {"arn": PARAMETER})


class Resource(NamedTuple):
    """A registered resource.

    Attributes:
        arn: Its ARN, unique in the store.
        kind: Its kind, such as `stateMachine`.
        owner: ARN of the resource that it is part of; the prefix of region and account for others.
        number: Position among the resources of the same kind and owner.
        body: Its content.
    """

    arn: str
    kind: str
    owner: str
    number: int
    body: dict[str, Any]


def find_resource(session: Session, arn: str) -> Resource | None:
    """Return the resource of an ARN, None without one.

    Raises:
        StoreDamaged: Its row is damaged.
    """
    found = session.select(FIND, arn)
    return _read(session, found[0]) if found else None


def committed_resource(session: Session, arn: str) -> Resource | None:
    """Return the committed resource of an ARN, without writing pending changes; None without one.

    Raises:
        StoreDamaged: Its row is damaged.
    """
    found = session.read_one(FIND, arn)
    return None if found is None else _read(session, found)


def list_resources(session: Session, kind: str, owner: str) -> list[Resource]:
    """Return the resources of a kind and an owner, in the order of their numbers.

    Raises:
        StoreDamaged: A row is damaged.
    """
    return [_read(session, row) for row in session.select(LIST, kind, owner)]


def put_resource(session: Session, resource: Resource) -> None:
    """Add a resource, or replace its content, with the next commit."""
    change, values = write_of(session, resource)
    session.write(change, *values)


def write_of(session: Session, resource: Resource) -> Write:
    """Return the change that adds a resource or replaces its content."""
    arn, kind, owner, number, body = resource
    return PUT, (arn, kind, owner, number, session.values.pack(encode(body)))


def delete_resource(session: Session, arn: str) -> None:
    """Delete a resource with the next commit, if there is one."""
    session.write(DELETE, arn)


def _read(session: Session, row: tuple[Any, ...]) -> Resource:
    arn, kind, owner, number, body, whole = row
    session.check(whole == 1, f"the resource {arn!r}")
    value: Json = session.values.unpack(body)
    session.check(type(value) is dict, f"the resource {arn!r}")
    return Resource(arn, kind, owner, number, value)
