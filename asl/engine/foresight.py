"""What a call of an agent will use, by what its calls have used so far (8.11)."""

from asl.core.values import Json
from asl.engine.accounts import Account
from asl.engine.admission import UNKNOWN
from asl.engine.amounts import NOTHING, kept, larger, read_back, summed
from asl.states.blocks.budget import Amounts

__all__ = ["Foresight"]


class Foresight:
    """What is known of the agents of one execution."""

    def __init__(self) -> None:
        self.own: dict[str, Amounts] = {}
        """The most that one call of an agent has used, by its name; replaced, never changed."""
        self.within: dict[str, Amounts] = {}
        """The most that was used within one call of it, by the calls that were made there."""
        self.largest: dict[str, Amounts] = {}
        """Both together."""
        self._known: dict[str, tuple[Amounts, Amounts, Amounts]] = {}
        """By the name of an agent: that, the limits of the state that has called it last, and what
        is known of a call beforehand by both."""

    def of(self, agent: str, own: Account | None) -> Amounts:
        """Return what is known of a call: no more than before, and than its state may spend."""
        largest = self.largest.get(agent, UNKNOWN)
        if own is None:
            return largest
        if not own.untouched:
            return {**largest, **own.rest}
        before, most, known = self._known.get(agent, (NOTHING, NOTHING, NOTHING))
        if before is not largest or most is not own.most:
            known = {**largest, **own.most}
            self._known[agent] = largest, own.most, known
        return known

    def of_inner(self, agent: str, own: Account | None) -> Amounts:
        """Return what is known of a call within a call: as much as before, if its state has that.

        Its state allows both together what it allows.
        """
        known = self.largest.get(agent, UNKNOWN)
        if own is None:
            return known
        return {
            **known,
            **{name: min(rest, known.get(name, rest)) for name, rest in own.rest.items()},
        }

    def learn(self, agent: str, used: Amounts, within: Amounts = UNKNOWN) -> None:
        """Take note of what a call has used, and of what was used *within* it."""
        own = self.own.get(agent, NOTHING)
        known = {**NOTHING, **used} if own is NOTHING else _most(own, used)
        inner = self.within.get(agent, UNKNOWN)
        if within is not UNKNOWN and (most := larger(inner, within)) != inner:
            self.within[agent] = most
        elif known is own:
            return
        self.own[agent] = known
        self._add_up(agent)

    def _add_up(self, agent: str) -> None:
        own, within = self.own[agent], self.within.get(agent)
        self.largest[agent] = own if within is None else {**own, **summed(own, within)}

    # Keeping

    def written(self) -> Json:
        """Return it as JSON."""
        return {
            "largest": {agent: kept(known) for agent, known in self.own.items()},
            "within": {agent: kept(known) for agent, known in self.within.items()},
        }

    def restore(self, written: Json) -> None:
        """Know what was written."""
        self.own = {agent: read_back(each) for agent, each in written.get("largest", {}).items()}
        self.within = {agent: read_back(each) for agent, each in written.get("within", {}).items()}
        for agent in self.own:
            self._add_up(agent)


def _most(known: Amounts, used: Amounts) -> Amounts:
    """Return the larger of each; what is *known* itself if nothing is larger."""
    for name, each in used.items():
        if each > known[name]:
            known = {**known, name: each}
    return known
