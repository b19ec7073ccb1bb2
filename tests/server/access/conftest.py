"""Fixtures for the tests of access."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

import asl
from tests.server.access.people import Clock, served


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Iterator[asl.Store]:
    with asl.open_store("memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def client(store: asl.Store) -> Iterator[TestClient]:
    with served(store) as found:
        yield found
