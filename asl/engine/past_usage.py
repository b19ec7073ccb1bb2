"""What a call of an agent will use, concluded from what its calls have used before (8.11)."""

from typing import Final

from asl.core.values import Json
from asl.engine.amounts import NOTHING, UNKNOWN, kept, larger, read_back, summed
from asl.states.blocks.budget import Amounts

__all__ = ["PastUsage"]


TOKENS: Final = {name: each for name, each in NOTHING.items() if name != "MaxCost"}
"""The usage of a call without tokens, of unknown cost."""


class PastUsage:
    """The largest usage of the agents and tools of a run, by the keys of their calls."""

    def __init__(self) -> None:
        self.own: dict[str, Amounts] = {}
        """The largest usage of one call; replaced, never changed."""
        self.within: dict[str, Amounts] = {}
        """The largest usage of all calls within one call."""
        self.unbounded: set[str] = set()
        """The keys of calls that have used more than the bounds of the document."""
        self._known: dict[str, Amounts] = {}
        """Both usages together."""

    def expect(self, key: str, sizes: Amounts) -> tuple[Amounts, Amounts]:
        """Return what a call will use at most: itself, and with the calls within it.

        Args:
            key: Names the calls to conclude from.
            sizes: The bounds that the document gives; they hold as long as they were kept to.
        """
        own = self.own.get(key, UNKNOWN)
        if not sizes:
            return own, self._known.get(key, UNKNOWN)
        own = larger(own, sizes) if key in self.unbounded else {**own, **sizes}
        within = self.within.get(key, UNKNOWN)
        return own, {name: size + within.get(name, 0) for name, size in own.items()}

    def learn(
        self,
        key: str,
        used: Amounts,
        within: Amounts = UNKNOWN,
        sizes: Amounts = UNKNOWN,
        *,
        priced: bool = True,
    ) -> None:
        """Take note of what a call has used.

        Args:
            key: Names the calls that are like it.
            used: Its own usage.
            within: The usage of the calls within it.
            sizes: The bounds that the document gave.
            priced: Whether its cost is known.
        """
        nothing = NOTHING if priced else TOKENS
        own, inner = self.own.get(key, nothing), self.within.get(key, UNKNOWN)
        if any(size < used.get(name, 0) for name, size in sizes.items()):
            self.unbounded.add(key)
        known = {**nothing, **used} if own is nothing else _most(own, {**nothing, **used})
        if within is not UNKNOWN and (most := larger(inner, within)) != inner:
            self.within[key] = most
        elif known is own:
            return
        self.own[key] = known
        self._add_up(key)

    def _add_up(self, key: str) -> None:
        own, within = self.own[key], self.within.get(key)
        self._known[key] = own if within is None else {**own, **summed(own, within)}

    # Persistence

    def written(self) -> dict[str, Json]:
        """Return it as JSON."""
        return {
            "largest": {key: kept(known) for key, known in self.own.items()},
            "within": {key: kept(known) for key, known in self.within.items()},
            "unbounded": sorted(self.unbounded),
        }

    def restore(self, written: Json) -> None:
        """Add what was written."""
        self.unbounded.update(written.get("unbounded", ()))
        within = written.get("within", {})
        for key, known in written.get("largest", {}).items():
            self.learn(key, read_back(known), read_back(within.get(key, {})) or UNKNOWN)


def _most(known: Amounts, used: Amounts) -> Amounts:
    """Return the larger of each; *known* itself if nothing is larger."""
    for name, each in used.items():
        if name not in known or each > known[name]:
            known = {**known, name: each}
    return known
