"""What all tests share: the option `--full`, how hard hypothesis tries, the bundled cases."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from asl.conformance import Case

settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("full", max_examples=2000, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--full`."""
    parser.addoption("--full", action="store_true", help="also run the tests marked 'full'")


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples hypothesis tries, and where parsed cases are cached."""
    settings.load_profile("full" if config.getoption("--full") else "quick")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        from tests.bundled import SHARED

        os.environ[SHARED] = _cache_folder(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """For `-m quick`, do not import modules without quick tests: it takes longer than they do."""
    if config.getoption("markexpr") != "quick" or not collection_path.match("test_*.py"):
        return None
    return "pytest.mark.quick" not in collection_path.read_text(encoding="utf-8") or None


def _cache_folder(config: pytest.Config) -> str:
    """Return the folder for parsed cases: in the cache of pytest, or of this run if it has none."""
    if config.pluginmanager.has_plugin("cacheprovider"):
        return str(config.cache.mkdir("cases"))
    folder = tempfile.TemporaryDirectory()
    config.add_cleanup(folder.cleanup)
    return folder.name


@pytest.fixture(scope="session")
def bundled() -> "list[Case]":
    """The cases that ship with the library."""
    from tests.bundled import bundled

    return bundled()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, unless it is asked for."""
    if config.getoption("--full"):
        return
    long = [item for item in items if "full" in item.keywords]
    items[:] = [item for item in items if "full" not in item.keywords]
    config.hook.pytest_deselected(items=long)
