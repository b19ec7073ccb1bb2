"""Projects: separate stores behind one server, each with its documents and executions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from asl.executions import Store
from asl.server.access.principal import Principal
from asl.server.streams import EventHub
from asl.service.arns import RequestScope
from asl.service.service import ACCOUNT, REGION, StatesService

__all__ = ["DEFAULT", "Access", "ServerProject", "make_project"]

DEFAULT: Final = "default"
"""Name of the only project of a server with one store."""


@dataclass(frozen=True, slots=True)
class ServerProject:
    """A store with its registered documents.

    Attributes:
        name: Name of the project.
        service: The registered state machines, with the rules of the native profile.
        amazon: The same with the rules of AWS.
        scope: Account and region of their ARNs.
        hub: Streams of events.
        bindings: Bindings of its executions.
    """

    name: str
    service: StatesService
    amazon: StatesService
    scope: RequestScope
    hub: EventHub
    bindings: Mapping[str, Any]

    @property
    def store(self) -> Store:
        """The store of executions."""
        return self.service.store


def make_project(
    name: str,
    store: Store,
    bindings: Mapping[str, Any],
    account: str = ACCOUNT,
    region: str = REGION,
) -> ServerProject:
    """Return the project of a store."""
    return ServerProject(
        name,
        StatesService(store, "default", bindings),
        StatesService(store, "aws", bindings),
        RequestScope(account, region),
        EventHub(store),
        bindings,
    )


@dataclass(frozen=True, slots=True)
class Access:
    """One request: the project that it is about, and who sends it."""

    project: ServerProject
    principal: Principal

    @property
    def store(self) -> Store:
        """The store of the project."""
        return self.project.store
