"""Real processes die at every named instant and at any other; what was promised holds."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from asl.effects.journaled import results
from asl.stores import backend, journal
from tests.stores.kills.broken import VARIANTS
from tests.stores.kills.laws import Whole
from tests.stores.kills.lives import Server, server
from tests.stores.kills.trial import Deaths, Trial, whole

POINTS = {*results.FAIL_POINTS, *journal.FAIL_POINTS, *backend.FAIL_POINTS}
KILLS = {"chain": 4, "whole": 20, "wide": 6, "group": 4, "free": 8}
"""How many lives are killed in each scene."""
FULL = 50
"""How many times as many are in the full run."""


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with server() as started:
        yield started


@pytest.fixture(scope="module")
def undisturbed(
    running: Server, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Whole, Counter[str]]]:
    return cache(lambda scene: whole(running, tmp_path_factory.mktemp(scene), scene))


Undisturbed = Callable[[str], tuple[Whole, Counter[str]]]


def test_every_named_instant_is_reached(undisturbed: Undisturbed) -> None:
    """What is never reached is never tried."""
    assert undisturbed("whole")[1].keys() == POINTS


@pytest.mark.parametrize("scene", KILLS)
def test_executions_survive(
    scene: str,
    running: Server,
    undisturbed: Undisturbed,
    tmp_path: Path,
    pytestconfig: pytest.Config,
) -> None:
    """However often and whenever their processes die, they come to what they come to undisturbed.

    No recorded answer is asked for again, no timer moves, the histories and the journal are whole.
    """
    expected, reached = undisturbed(scene)
    deaths = Deaths(reached, seed=len(scene))
    kills = KILLS[scene] * (FULL if pytestconfig.getoption("--full") else 1)
    while deaths.died.total() < kills or reached.keys() - deaths.died.keys():
        trial = Trial(running, tmp_path, scene, deaths.died.total())
        faults = list(trial.run(deaths, expected))
        assert not faults, "\n".join([*faults, "after these lives:", *trial.lives])
        deaths.died += trial.died


@pytest.mark.parametrize("variant", VARIANTS)
def test_planted_faults_are_found(
    variant: str, running: Server, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    """A harness that finds nothing proves nothing."""
    for seed in range(10):
        for scene in ("chain", "whole", "wide", "free"):
            expected, reached = undisturbed(scene)
            trial = Trial(running, tmp_path, scene, seed, variant)
            if next(trial.run(Deaths(reached, seed), expected), None):
                return
    pytest.fail(f"{variant}: 30 trials found nothing")
