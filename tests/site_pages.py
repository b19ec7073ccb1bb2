"""The built site in a browser: `mkdocs build`, then `python -m tests.site_pages`.

No page asks another origin for anything, has an error in its scripts or is wider than a phone; the
search finds a rule by its code; the playground checks, draws and runs a document, if Pyodide was
installed when the site was built. Without Chromium nothing is tried.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from playwright.sync_api import Page, sync_playwright

SITE = Path(__file__).resolve().parents[1] / "build" / "site"
PAGES = (
    *("index.html", "contents.html", "cli.html", "rules.html", "CHANGELOG.html"),
    *("reference/rules/V-TOP-03.html", "reference/fields/states-Map.html"),
    *("reference/commands.html", "reference/functions.html", "tutorials/operations.html"),
    "examples/index.html",
)
"""Pages of every kind."""
PHONE = {"width": 390, "height": 844}
PATIENCE = 60_000
"""Milliseconds that loading Python may take on a busy machine."""


class Handler(SimpleHTTPRequestHandler):
    """Serves the site without a log."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}

    def log_message(self, format: str, *arguments: object) -> None:
        """Write nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port while the block runs, and return its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def check_pages(page: Page, base: str) -> Iterator[str]:
    """Yield what is wrong with the pages."""
    for name in PAGES:
        page.goto(base + name)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE["width"]:
            yield f"{name} is {width} pixels wide on a phone"


def check_search(page: Page, base: str) -> Iterator[str]:
    """Yield what is wrong with the search."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(base)
    page.fill("[data-md-component=search-query]", "V-TOP-03")
    first = page.locator(".md-search-result__item").first
    first.wait_for(timeout=PATIENCE)
    text = first.inner_text()
    if "V-TOP-03" not in text.partition("\n")[0]:
        yield f"the search for V-TOP-03 finds first {text!r}"


def check_playground(page: Page, base: str) -> Iterator[str]:
    """Yield what is wrong with the playground."""
    page.goto(f"{base}playground.html")
    expected = {"run": "SUCCEEDED", "graph": "", "check": "No findings."}
    for call, text in expected.items():
        page.click(f"button[data-call={call}]")
        shown = page.locator(f".playground-output[data-shows={call}]")
        shown.wait_for(timeout=PATIENCE)
        if text not in shown.inner_text():
            yield f"{call} in the playground shows {shown.inner_text()!r}"
    page.fill("[name=document]", '{"StartAt": "A", "States": {}}')
    page.click("button[data-call=check]")
    page.locator(".playground-findings a", has_text="V-TOP-03").wait_for(timeout=PATIENCE)


def check_site(base: str, browser: str) -> Iterator[str]:
    """Yield what is wrong with the site at a URL."""
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
            viewport=PHONE
        )
        requested: list[str] = []
        failures: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        page.on("pageerror", lambda error: failures.append(f"a script fails: {error}"))
        yield from check_pages(page, base)
        yield from check_search(page, base)
        if (SITE / "assets" / "pyodide").is_dir():
            yield from check_playground(page, base)
        own = (base, f"blob:{base}", "data:")
        yield from (f"{url} is requested" for url in requested if not url.startswith(own))
        yield from failures


def main() -> int:
    """Print what is wrong and return the exit code."""
    browser = shutil.which("chromium")
    if browser is None:
        print("no chromium: the site is not looked at")
        return 0
    with served(SITE) as base:
        faults = list(check_site(base, browser))
    print("\n".join(faults) or "the site works in a browser")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
