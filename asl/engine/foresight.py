"""What a call of an agent will use, by what its calls have used so far (8.11)."""

from asl.core.values import Json
from asl.engine.accounts import Account
from asl.engine.admission import UNKNOWN
from asl.engine.amounts import NOTHING, kept, read_back
from asl.states.blocks.budget import Amounts

__all__ = ["Foresight"]


class Foresight:
    """What is known of the agents of one execution."""

    def __init__(self) -> None:
        self.largest: dict[str, Amounts] = {}
        """The most that one call of an agent has used, by its name; replaced, never changed."""
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

    def learn(self, agent: str, used: Amounts) -> None:
        """Take note of what a call has used."""
        largest = self.largest.get(agent, NOTHING)
        if largest is NOTHING:
            self.largest[agent] = {**NOTHING, **used}
            return
        for name, each in used.items():
            if each > largest[name]:
                self.largest[agent] = largest = {**largest, name: each}

    # Keeping

    def written(self) -> Json:
        """Return it as JSON."""
        return {agent: kept(known) for agent, known in self.largest.items()}

    def restore(self, written: Json) -> None:
        """Know what was written."""
        self.largest = {agent: read_back(known) for agent, known in written.items()}
