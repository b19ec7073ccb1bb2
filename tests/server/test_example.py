"""The example application: a page in a browser, from the first word to the answer."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.browser import browser_page

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "article-approval" / "app.py"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    pytest.importorskip("fastapi")
    from asl.service.server import serving

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the folder is in the repository
    spec = importlib.util.spec_from_file_location("example_app", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with serving(module.web) as found:
        yield found


def test_it_is_short() -> None:
    """Under 60 lines."""
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 60


def test_a_reader_sees_the_words_and_answers(url: str) -> None:
    """The text grows, the options appear, and a click ends the workflow."""
    with browser_page() as page:
        page.goto(url)
        page.fill("#topic", "lighthouses")
        page.click("text=Write")
        page.locator("#text", has_text="Dear reader").wait_for()
        page.click("text=publish")
        page.locator("#ask", has_text="Done.").wait_for()
        assert page.inner_text("#text").strip() == "Dear reader, this is about lighthouses."
