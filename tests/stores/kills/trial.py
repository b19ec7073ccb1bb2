"""Bringing executions to their end through many lives."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any

from asl.executions import Store
from tests.stores.kills.laws import Laws, Whole
from tests.stores.kills.lives import EPOCH, End, Life, Server
from tests.stores.kills.scenes import decision, reply

__all__ = ["Deaths", "Trial", "whole"]

MOST = 60
"""Lives that are killed at most, and then again as many within which all must have ended."""
DOWN = (0.0, 0.0, 1.0, 20.0, 400.0, 4000.0)
"""Seconds for which nobody runs after a death."""
_numbers = count()


class Deaths:
    """How to die next: at each named instant once, then at any, or from outside at any time."""

    def __init__(self, reached: Mapping[str, int], seed: int) -> None:
        self.reached = reached
        """How often each instant is reached where nobody dies."""
        self.random = random.Random(seed)
        self.died: Counter[str] = Counter()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while True:
            yield self._next()

    def _next(self) -> dict[str, Any]:
        draw = self.random
        missing = sorted(self.reached.keys() - self.died.keys())
        kind = draw.random()
        if kind < 0.1:
            return {}
        if kind < 0.2:
            return {"after": draw.expovariate(50)}
        if kind < 0.5:
            return {"point": "*", "times": draw.randint(1, 40)}
        point = draw.choice(missing or sorted(self.reached))
        most = max(1, min(8, self.reached[point] // 4))
        return {"point": point, "times": draw.randint(1, most)}


class Trial:
    """One store and the lives that work on it."""

    def __init__(
        self, server: Server, folder: Path, scene: str, seed: int = 0, variant: str = ""
    ) -> None:
        place = folder / f"{scene}-{next(_numbers)}"
        self.server = server
        self.random = random.Random(seed)
        self.life = Life(scene, f"{place}.db", f"{place}.log", EPOCH, variant=variant)
        self.died: Counter[str] = Counter()
        """How often a life was killed at each instant."""
        self.reached: Counter[str] = Counter()
        """How often each instant was reached by lives that were not killed."""
        self.lives: list[str] = []
        """What each life was, to repeat it."""

    def run(self, deaths: Iterable[dict[str, Any]], whole: Whole | None) -> Iterator[str]:
        """Die these deaths, then come to the end; yield what is wrong on the way."""
        laws = self.laws = Laws(self.life.scene, Path(self.life.store), Path(self.life.log), whole)
        coming = islice(deaths, MOST)
        for _ in range(2 * MOST):
            end = self._live(next(coming, {}))
            if end.said:
                yield f"a life failed: {end.said}"
                return
            yield from laws.after_life("PAUSED" in end.statuses.values())
            self.life.answers, self.life.replies = [], []
            if end.killed:
                self.life.clock = max(self.life.clock, laws.now) + self.random.choice(DOWN)
            elif "PAUSED" in end.statuses.values():
                self._answer()
            else:
                break
        else:
            yield "it does not come to its end"
        if whole is not None:
            yield from laws.at_the_end()

    def _live(self, death: dict[str, Any]) -> End:
        life = self.life
        life.point, life.times, life.after = "", 0, None
        for name, value in death.items():
            setattr(life, name, value)
        self.laws.starts.append(life.clock)
        end = self.server.live(life)
        self.lives.append(f"at {life.clock - EPOCH:g}: {death}, {life.answers}, {end.statuses}")
        if end.killed:
            self.died[life.point or "from outside"] += 1
        self.reached.update(end.reached)
        return end

    def _answer(self) -> None:
        """Let people decide some of what they are asked, or time pass until something happens."""
        clock = max(self.life.clock, self.laws.now)
        with Store(self.life.store) as store:
            asked = [(each["requestId"], decision(each)) for each in store.pending()]
            awaited = [(each["taskToken"], reply(each)) for each in store.pending_callbacks()]
            wakes = [each.wake for each in store.executions(status="PAUSED") if each.wake]
        answers = [[id, option] for id, option in asked if option is not None]
        replies = [[token, output] for token, output in awaited if output is not None]
        if answers:
            self.life.answers = self.random.sample(answers, self.random.randint(1, len(answers)))
        if replies:
            self.life.replies = self.random.sample(replies, self.random.randint(1, len(replies)))
        if not (answers or replies) and wakes:
            clock = max(clock, *wakes)
        self.life.clock = clock + self.random.choice(DOWN)


def whole(server: Server, folder: Path, scene: str) -> tuple[Whole, Counter[str]]:
    """Return what comes of a scene that nobody disturbs, and how often each instant is reached."""
    trial = Trial(server, folder, scene)
    faults = list(trial.run((), None))
    assert not faults, "\n".join(faults)
    outcome = trial.laws.outcome()
    assert {each["status"] for each in outcome.values()} == {"SUCCEEDED"}, outcome
    return Whole(outcome, trial.laws.asked), trial.reached
