"""Killed workers and servers lose nothing: a sample of `python -m tests.temporal.kills`."""

from pathlib import Path

import pytest

from tests.temporal.kills import scene
from tests.temporal.servers import run


def test_killed_workers_and_a_killed_server_lose_nothing(tmp_path: Path) -> None:
    run(scene(tmp_path, kills=3, executions=2, pause=0.5, workers=2, budget={}))


@pytest.mark.full
def test_200_kills_lose_nothing(tmp_path: Path) -> None:
    run(scene(tmp_path, kills=200, executions=40, pause=1.5))
