"""What all tests share: the option `--full`, and how hard hypothesis tries."""

import fcntl
import os
import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from asl.conformance import Case

settings.register_profile("quick", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("full", max_examples=2000, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--full`."""
    parser.addoption("--full", action="store_true", help="also run the tests marked 'full'")


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples hypothesis tries."""
    settings.load_profile("full" if config.getoption("--full") else "quick")


@pytest.fixture(scope="session")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> "list[Case]":
    """The cases that ship with the library, read once for all processes of a run.

    To read them takes longer than to run them.
    """
    from asl.conformance import load_suite

    if "PYTEST_XDIST_WORKER" not in os.environ:
        return load_suite()
    with open(tmp_path_factory.getbasetemp().parent / "bundled", "a+b") as shared:
        fcntl.flock(shared, fcntl.LOCK_EX)
        shared.seek(0)
        if read := shared.read():
            cases: list[Case] = pickle.loads(read)
            return cases
        cases = load_suite()
        shared.write(pickle.dumps(cases))
        return cases


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what takes long, unless it is asked for."""
    if config.getoption("--full"):
        return
    skip = pytest.mark.skip(reason="long; run with --full")
    for item in items:
        if "full" in item.keywords:
            item.add_marker(skip)
