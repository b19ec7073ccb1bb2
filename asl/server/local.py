"""Actions of the user of this machine on a store, for commands."""

from __future__ import annotations

import asyncio

from asl.core.document import Document
from asl.core.environment import user_name
from asl.executions import Store
from asl.server.access.principal import PERMISSIONS, Principal
from asl.server.audit import record_action
from asl.server.documents import publish_document
from asl.server.projects import DEFAULT, Access, make_project
from asl.service.arns import RequestScope
from asl.service.service import ACCOUNT, REGION

__all__ = ["local_access", "publish"]


def local_access(store: Store, scope: RequestScope | None = None) -> Access:
    """Return the access of the user of this machine to a store.

    Args:
        store: The store.
        scope: Account and region of its ARNs; None for the usual ones.
    """
    user = Principal(user_name(), frozenset(PERMISSIONS), "local")
    place = scope or RequestScope(ACCOUNT, REGION)
    return Access(make_project(DEFAULT, store, {}, place.account, place.region), user)


def publish(access: Access, document: Document) -> str:
    """Publish a document and return its name.

    Raises:
        InvalidDocument: It has errors.
        ServiceError: Its name is not allowed, or it is too large.
    """
    revision = asyncio.run(publish_document(access.project, document))
    details = {"version": revision.version, "hash": revision.hash}
    record_action(access, "document.publish", revision.name, details)
    return revision.name
