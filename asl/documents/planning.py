"""Plans of documents: what they may do and cost, before they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asl.core.document import Document, Loadable
from asl.core.profile import Profile
from asl.documents.checking import check
from asl.documents.loading import document_of
from asl.effects.prices import Prices
from asl.graphs.planning import Plan, make_plan

__all__ = ["plan"]


def plan(
    document: Document | Loadable,
    *,
    profile: str | Profile = "default",
    prices: Mapping[str, Any] | None = None,
    limit: int = 100,
) -> Plan:
    """Say what a document may do before anything runs: its ways, whom it asks, what it may cost.

    No more than *limit* ways are listed. The bounds of cost and tokens hold for agents that keep to
    what budgets set aside for a call; without a limit there is none. `prices` are those of `run`.
    Raises InvalidDocument for a document with errors.
    """
    loaded = document_of(document)
    check(loaded, profile=profile).raise_for_errors()
    return make_plan(loaded.whole, Prices(prices), limit)
