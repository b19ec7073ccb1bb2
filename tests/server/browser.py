"""A page in headless Chromium; tests that need one are skipped where it is missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@contextmanager
def browser_page(**context: Any) -> Iterator[Any]:
    """Yield a new page; errors of its scripts and requests to other origins fail the test.

    Args:
        context: Options of the browser's context, such as `java_script_enabled` or `viewport`.
    """
    faults: list[str] = []
    with any_page(**context) as page:
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("http://127.0.0.1:", "data:", "blob:"))
                else faults.append(request.url)
            ),
        )
        yield page
    assert faults == []


@contextmanager
def any_page(**context: Any) -> Iterator[Any]:
    """Yield a new page, whatever it does."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        try:
            page = browser.new_context(**context).new_page()
            page.set_default_timeout(15_000)
            yield page
        finally:
            browser.close()
