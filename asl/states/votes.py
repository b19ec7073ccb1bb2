"""Votes: what the voters of a debate have said last, and how far they agree (companion 2.5)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from asl.core.values import Json, is_number

__all__ = ["Tally", "counted"]

KEYS = ("vote", "decision", "position")
"""Where a response says what its agent votes for; the first that holds a vote counts."""


class Tally(NamedTuple):
    """What came of a count."""

    votes: dict[str, Json]
    """The vote of every voter, None for an abstention."""
    leading: tuple[Json, ...]
    """The options with the most votes, each as its first voter wrote it."""
    agreement: float
    """The share of all voters who are for a leading option."""

    def agreed(self, threshold: float | None) -> bool:
        """Whether one option has so large a share; without a threshold more than half."""
        enough = self.agreement > 0.5 if threshold is None else self.agreement >= threshold
        return enough and len(self.leading) == 1

    @property
    def tied(self) -> bool:
        """Whether several options have the most votes."""
        return len(self.leading) > 1


def counted(voters: Sequence[str], latest: Mapping[str, Json]) -> Tally:
    """Count the votes in the latest response of each of the *voters*."""
    votes = {voter: _vote(latest.get(voter)) for voter in voters}
    options: dict[Json, list[Json]] = {}
    for vote in votes.values():
        if vote is not None:
            options.setdefault(_option(vote), []).append(vote)
    most = max(map(len, options.values()), default=0)
    leading = tuple(given[0] for given in options.values() if len(given) == most)
    return Tally(votes, leading, most / len(voters) if voters else 0.0)


def _vote(response: Json) -> Json:
    if type(response) is not dict:
        return None
    said = (response.get(key) for key in KEYS)
    return next((each for each in said if isinstance(each, str | bool) or is_number(each)), None)


def _option(vote: Json) -> Json:
    """Return what is the same for equal votes: texts regardless of case and outer blanks."""
    return (type(vote) is bool, vote.strip().casefold() if type(vote) is str else vote)
