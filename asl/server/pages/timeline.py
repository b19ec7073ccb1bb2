"""The timeline of an execution: a bar for each visit, with long waits compressed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from asl.server.pages.history import StateVisit

__all__ = ["Bar", "Gap", "Timeline", "timeline_of"]

MOST_BARS: Final = 120
GAP: Final = 0.07
"""Share of the working time that a compressed wait takes."""
SHORTEST_GAP: Final = 1.0
"""Seconds of the shortest wait that is compressed."""
THINNEST: Final = 0.25
"""Percent of the width that a bar has at least."""


class Bar(NamedTuple):
    """A visit as a bar; positions in percent of the width."""

    visit: StateVisit
    depth: int
    left: float
    width: float
    seconds: float


class Gap(NamedTuple):
    """A wait that is drawn shorter than it is."""

    left: float
    width: float
    seconds: float


class Timeline(NamedTuple):
    """The bars of an execution.

    Attributes:
        bars: The bars, in the order of their starts.
        gaps: Compressed waits.
        hidden: Number of visits without a bar.
        seconds: Duration of the execution.
    """

    bars: Sequence[Bar]
    gaps: Sequence[Gap]
    hidden: int
    seconds: float


def timeline_of(visits: Sequence[StateVisit], started: float, now: float) -> Timeline:
    """Return the timeline of an execution.

    Args:
        visits: The visits of its states.
        started: Start of the execution in epoch seconds.
        now: Its end, or the present.
    """
    shown = _shown(visits)
    ends = [now if each.ended is None else max(each.ended, each.entered) for each in shown]
    scale = _Scale(_busy(shown, ends), started, max([now, *ends]))
    bars = []
    for visit, end in zip(shown, ends, strict=True):
        left = min(scale.percent(visit.entered), 100 - THINNEST)
        width = max(scale.percent(end) - left, THINNEST)
        depth = sum(isinstance(step, str) for step in visit.path) - 1
        bars.append(Bar(visit, depth, left, width, end - visit.entered))
    return Timeline(bars, scale.gaps, len(visits) - len(shown), max(0.0, now - started))


def _shown(visits: Sequence[StateVisit]) -> list[StateVisit]:
    """Return the visits with a bar: those of outer states first."""
    by_depth = sorted(visits, key=lambda each: (len(each.path), each.first))[:MOST_BARS]
    return sorted(by_depth, key=lambda each: each.first)


def _busy(visits: Sequence[StateVisit], ends: Sequence[float]) -> list[tuple[float, float]]:
    """Return when states work: the times of visits that neither wait nor hold others."""
    outer = {each.path[:length] for each in visits for length in range(1, len(each.path))}
    spans = sorted(
        (each.entered, end)
        for each, end in zip(visits, ends, strict=True)
        if not each.is_waiting and each.path not in outer and end > each.entered
    )
    merged: list[tuple[float, float]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


class _Scale:
    """Maps times to positions; waits take at most a share of the working time."""

    def __init__(self, busy: Sequence[tuple[float, float]], start: float, end: float) -> None:
        working = sum(last - first for first, last in busy)
        longest = max(working * GAP, SHORTEST_GAP) if working else end - start
        edges = sorted({start, end, *(each for span in busy for each in span)})
        edges = [each for each in edges if start <= each <= end]
        starts = {first for first, _ in busy}
        self._edges, self._places = edges, [0.0]
        squeezed = []
        for left, right in pairwise(edges):
            length = right - left
            if left not in starts and length > longest:
                squeezed.append((len(self._places) - 1, length))
                length = longest
            self._places.append(self._places[-1] + length)
        self._whole = self._places[-1] or 1.0
        self.gaps = [
            Gap(
                100 * self._places[index] / self._whole,
                100 * (self._places[index + 1] - self._places[index]) / self._whole,
                seconds,
            )
            for index, seconds in squeezed
        ]

    def percent(self, time: float) -> float:
        """Return the position of a time in percent."""
        index = max(0, min(bisect_right(self._edges, time) - 1, len(self._edges) - 2))
        if len(self._edges) < 2:
            return 0.0
        left, right = self._edges[index], self._edges[index + 1]
        share = min(1.0, max(0.0, (time - left) / (right - left))) if right > left else 0.0
        low, high = self._places[index], self._places[index + 1]
        return 100 * (low + share * (high - low)) / self._whole
