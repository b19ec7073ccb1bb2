"""On what an execution has spent: by the categories, tags and attributions of its states (8.11)."""

from decimal import Decimal

from asl.core.values import Json, compact
from asl.engine.execution import Used, add_to, totals
from asl.states.blocks.budget import Limits

__all__ = ["Attribution"]

UNCATEGORIZED = "uncategorized"


class Attribution:
    """Cost and tokens by what the budgets of states say that they are spent on."""

    def __init__(self, track_by: tuple[str, ...] | None) -> None:
        self.track_by = track_by
        """The keys of attributions that are told of, None for all."""
        self.by_category: dict[str, tuple[Decimal, int]] = {}
        self.by_tag: dict[str, tuple[Decimal, int]] = {}
        self.by_attribution: dict[str, dict[str, tuple[Decimal, int]]] = {}

    def add(self, limits: Limits, used: Used) -> None:
        """Count what a call has used whose own limits are these."""
        cost, tokens = used.cost, used.tokens
        add_to(self.by_category, limits.category or UNCATEGORIZED, cost, tokens)
        for tag in limits.tags:
            add_to(self.by_tag, tag, cost, tokens)
        if limits.attribution is None:
            return
        for key, value in limits.attribution.items():
            if self.track_by is None or key in self.track_by:
                text = value if type(value) is str else compact(value)
                add_to(self.by_attribution.setdefault(key, {}), text, cost, tokens)

    def report(self) -> dict[str, Json]:
        """Return it as the usage of a result has it."""
        attributed = {key: totals(table) for key, table in self.by_attribution.items()}
        return {
            "byCategory": totals(self.by_category),
            "byTag": totals(self.by_tag),
            "byAttribution": attributed,
        }

    # Keeping

    def written(self) -> dict[str, Json]:
        """Return it as JSON."""
        return {
            "attributions": list(self.by_attribution),
            "tables": [
                {key: [str(cost), tokens] for key, (cost, tokens) in table.items()}
                for table in self._tables()
            ],
        }

    def restore(self, written: Json) -> None:
        """Stand as it was written."""
        self.by_attribution = {key: {} for key in written["attributions"]}
        for table, found in zip(self._tables(), written["tables"], strict=True):
            table.update({key: (Decimal(cost), tokens) for key, (cost, tokens) in found.items()})

    def _tables(self) -> list[dict[str, tuple[Decimal, int]]]:
        return [self.by_category, self.by_tag, *self.by_attribution.values()]
