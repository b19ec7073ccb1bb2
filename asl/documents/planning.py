"""Plans of documents: what they may do and cost, before they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asl.checks import require_values
from asl.core.document import Document, Loadable
from asl.core.profile import Profile
from asl.documents.checking import check
from asl.documents.loading import resolve_document
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
    """Show the paths, agents and maximum cost of a document without running it.

    Args:
        document: A document (`asl.load`), or its path, text or dict.
        profile: Rules of the language: `"default"`, `"aws"`, `"lenient"` or a `Profile`.
        prices: Price of one token by model, as for `asl.run`.
        limit: Maximum number of paths to list; 100 by default.

    Returns:
        The plan. Its bounds of cost and tokens hold for agents that use no more than budgets
        reserve for a call; without a limit there is no bound.

    Raises:
        InvalidDocument: The document has errors.
    """
    loaded = resolve_document(document)
    check(loaded, profile=profile).raise_for_errors()
    require_values(loaded)
    return make_plan(loaded.composed_value, Prices(prices), limit)
