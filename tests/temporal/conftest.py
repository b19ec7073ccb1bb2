"""A development server for the tests of one process."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.temporal.servers import find_binary, run


@pytest.fixture(scope="session")
def target() -> Iterator[str]:
    """The host and port of a development server."""
    binary = find_binary("temporal")
    options = {"dev_server_existing_path": binary, "dev_server_log_level": "error"}
    env = run(WorkflowEnvironment.start_local(**options))
    yield env.client.service_client.config.target_host
    run(env.shutdown())


@pytest.fixture
def address(target: str) -> str:
    """The address of an empty store."""
    return f"temporal://{target}/default?queue={uuid4().hex[:8]}"
