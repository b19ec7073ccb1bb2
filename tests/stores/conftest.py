"""Where the stores of tests are: most tests hold for every backend."""

from pathlib import Path
from typing import TypeAlias

import pytest

from asl.stores.memory import MemoryBackend

Place: TypeAlias = Path | MemoryBackend


@pytest.fixture(params=["sqlite", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for a store, which whoever opens it again finds as it was left."""
    return tmp_path / "runs.db" if request.param == "sqlite" else MemoryBackend()


def another(place: Place, number: int) -> Place:
    """Return a new place of the same kind."""
    return MemoryBackend() if isinstance(place, MemoryBackend) else place.with_name(f"{number}.db")
