"""The extension for Visual Studio Code: the page of its preview, and its own tests."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from asl.editor.edited import EditedDocument
from asl.editor.graph import draw_document
from tests.server.browser import browser_page

EXTENSION = Path(__file__).resolve().parents[2] / "editors" / "vscode"
MEDIA = EXTENSION / "media"
ORIGIN = "http://127.0.0.1:1"
"""Where the files of the page are, without a server."""
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
EDITOR = "window.posted = []; window.acquireVsCodeApi = () => ({postMessage: m => posted.push(m)});"
NAME = "<img src=x onerror=alert(1)>"
DOCUMENT = {
    "StartAt": "First",
    "States": {"First": {"Type": "Pass", "Next": NAME}, NAME: {"Type": "Succeed"}},
}


@contextmanager
def preview(scheme: str) -> Iterator[Any]:
    """Yield the page of the preview, as the extension fills it in."""

    def serve(route: Any) -> None:
        file = MEDIA / route.request.url.rpartition("/")[2]
        text = file.read_text(encoding="utf-8")
        for name, value in {
            "source": ORIGIN,
            "nonce": "abc",
            "script": f"{ORIGIN}/preview.js",
            "style": f"{ORIGIN}/preview.css",
        }.items():
            text = text.replace("{{" + name + "}}", value)
        route.fulfill(body=text, content_type=TYPES[file.suffix])

    with browser_page(color_scheme=scheme) as page:
        page.add_init_script(EDITOR)
        page.route(f"{ORIGIN}/**", serve)
        page.goto(f"{ORIGIN}/preview.html")
        yield page


SEND = """message => new Promise(done => {
  addEventListener("message", () => setTimeout(done), {once: true});
  postMessage(message, "*");
})"""


def send(page: Any, message: dict[str, Any]) -> None:
    page.evaluate(SEND, message)


def show(page: Any) -> None:
    document = EditedDocument("file:///a.asl.json", None, json.dumps(DOCUMENT), 1)
    (drawn,) = draw_document(document)["graphs"]
    send(page, {"type": "show", "svg": drawn["svg"], "message": ""})


def test_preview_shows_marks_and_opens() -> None:
    """The state at the cursor is marked, a click opens a state, and names are text."""
    colours = {}
    for scheme in ("light", "dark"):
        with preview(scheme) as page:
            show(page)
            assert page.locator("svg text.name").all_text_contents() == ["First", NAME]
            send(page, {"type": "select", "pointer": "/States/First"})
            marked = page.locator(".current")
            assert marked.get_attribute("data-pointer") == "/States/First"
            outline = marked.locator(".state").evaluate(
                "each => getComputedStyle(each).strokeWidth"
            )
            assert outline == "3px"
            page.locator("text.name", has_text="First").click()
            sent = [{"type": "ready"}, {"type": "open", "pointer": "/States/First"}]
            assert page.evaluate("posted") == sent
            send(page, {"type": "select", "pointer": ""})
            assert marked.count() == 0
            colours[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colours["light"] != colours["dark"]


def test_preview_keeps_the_drawing_of_a_text_with_errors() -> None:
    """The last drawing remains, with the message."""
    with preview("light") as page:
        show(page)
        send(page, {"type": "show", "svg": "", "message": "the document has errors"})
        assert page.locator("#message").inner_text() == "the document has errors"
        assert page.locator("svg").count() == 1


@pytest.mark.skipif(
    not (EXTENSION / "node_modules").is_dir() or shutil.which("npm") is None,
    reason="the packages of the extension are not installed: editors/vscode/check",
)
def test_extension() -> None:
    """Its own tests pass with this Python."""
    done = subprocess.run(
        ["npm", "test", "--silent"],
        cwd=EXTENSION,
        env={**os.environ, "ASL_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
