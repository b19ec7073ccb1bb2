"""The pages in a browser: live colours, keys, phone width, no scripts, large histories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from threading import Event
from time import perf_counter
from typing import Any

import pytest

import asl
import asl.server
from asl.stores.audit import list_entries
from tests.server.browser import browser_page
from tests.server.pages import ASK, PICK

pytest.importorskip("jinja2")

WORK = {
    "StartAt": "Draft",
    "States": {
        "Draft": {"Type": "Task", "Agent": "Writer", "Next": "Both"},
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {
                    "StartAt": name,
                    "States": {name: {"Type": "Task", "Agent": "Writer", "End": True}},
                }
                for name in ("Left", "Right")
            ],
            "End": True,
        },
    },
}
MANY = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": {
                "StartAt": "Work",
                "States": {"Work": {"Type": "Task", "Agent": "Writer", "End": True}},
            },
            "End": True,
        }
    },
}


SAY = {
    "StartAt": "Say",
    "States": {
        "Say": {"Type": "Task", "Agent": "Speaker", "Streaming": {"Enabled": True}, "End": True}
    },
}


class Service:
    """A running service whose agent waits until it is released."""

    def __init__(self) -> None:
        self.released = Event()
        self.store = asl.open_store("memory:", agents={"Writer": self._write, "Speaker": self._say})
        self.url = ""

    def _write(self, data: Any) -> Any:
        self.released.wait(20)
        return {"text": "done"}

    async def _say(self, data: Any, call: asl.Call) -> str:
        call.report_chunk("Hello ")
        while not self.released.is_set():
            await asyncio.sleep(0.01)
        call.report_chunk("Bo")
        return "Hello Bo"

    def start(self, document: dict[str, Any], data: Any, name: str) -> str:
        """Start an execution and return the address of its page."""
        self.store.start(document, data, name=name)
        return f"{self.url}/ui/executions/{name}"


@pytest.fixture
def service() -> Iterator[Service]:
    from asl.service.server import serving

    found = Service()
    with found.store, serving(asl.server.app(found.store, local=True)) as url:
        found.url = url
        yield found
        found.released.set()


def node(page: Any, name: str, status: str) -> Any:
    """Return the state of the graph with a name and a status."""
    return page.locator(f'.graph [data-status="{status}"]').filter(has_text=name)


def test_states_are_coloured_live(service: Service) -> None:
    """No request is needed from the reader: the graph, the status and the events follow."""
    with browser_page() as page:
        page.goto(service.start(WORK, {"a": 1}, "live"))
        node(page, "Draft", "RUNNING").wait_for()
        service.released.set()
        page.locator('h1 .status[data-status="SUCCEEDED"]').wait_for()
        for name in ("Draft", "Left", "Right"):
            node(page, name, "SUCCEEDED").first.wait_for()
        page.locator(".event", has_text="ExecutionSucceeded").wait_for()
        page.locator(".graph a", has_text="Draft").click()
        page.locator("#state h2", has_text="Draft").wait_for()
        page.locator("#state summary", has_text="Result").wait_for()
        page.locator(".event", has_text="TaskScheduled").first.click()
        page.locator("#event h3", has_text="TaskScheduled").wait_for()


def test_an_answer_grows_live(service: Service) -> None:
    """The words of an agent are shown while it speaks, then the output of its state."""
    with browser_page() as page:
        page.goto(f"{service.start(SAY, {}, 'live')}?state=/States/Say")
        while page.locator(".live-answer").count() == 0:
            page.reload()
        page.locator(".live-answer", has_text="Hello").wait_for()
        service.released.set()
        page.locator('#state pre[aria-label="Output"]', has_text="Hello Bo").wait_for()


ACCESSIBLE = """() => [...document.querySelectorAll("input, select, textarea, button, summary, a")]
  .filter((each) => each.type !== "hidden" && each.getClientRects().length)
  .filter((each) => !(each.labels?.length || each.ariaLabel || each.textContent.trim()
    || each.closest("[aria-label]")))
  .map((each) => each.outerHTML)"""


@pytest.mark.parametrize("path", ["executions", "executions/x", "inbox", "documents", "costs"])
def test_fields_and_buttons_have_names(service: Service, path: str) -> None:
    """Every field has a label, every button and link a text."""
    service.released.set()
    service.store.run(ASK, {"amount": 90}, name="x")
    with browser_page() as page:
        page.goto(f"{service.url}/ui/{path}")
        assert page.evaluate(ACCESSIBLE) == []


def test_a_request_is_approved_by_keys(service: Service) -> None:
    """j goes to the second request, Enter opens it, c writes a comment, 1 approves."""
    for name in ("x", "y"):
        service.start(ASK, {"amount": 90}, name)
    with browser_page() as page:
        page.goto(f"{service.url}/ui/inbox")
        while page.locator("[data-request]").count() < 2:
            page.reload()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/inbox/*")
        page.keyboard.press("c")
        page.keyboard.type("fine")
        page.keyboard.press("Escape")
        page.keyboard.press("1")
        page.locator(".notice.good", has_text="recorded").wait_for()
        assert page.locator("[data-request]").count() == 1
    (answered,) = list_entries(service.store.session)
    assert (answered.action, answered.details) == ("request.answer", {"approval": "pay"})


def test_a_phone_without_scripts_decides_on_items(service: Service) -> None:
    """360 pixels wide, no horizontal scrolling, plain forms."""
    service.start(PICK, {"items": [{"title": "a" * 200}, "b"]}, "x")
    options = {"viewport": {"width": 360, "height": 740}, "java_script_enabled": False}
    with browser_page(**options) as page:
        page.goto(f"{service.url}/ui/inbox")
        while page.locator("[data-request]").count() < 1:
            page.reload()
        page.locator("[data-request]").click()
        box = page.locator("#request").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
        page.locator('[name="item:0"][value=approve]').check()
        page.locator('[name="item:1"][value=reject]').check()
        page.get_by_role("button", name="Decide as marked").click()
        page.locator(".notice.good", has_text="recorded").wait_for()


@pytest.mark.parametrize("path", ["executions", "inbox", "documents", "costs", "audit", "compare"])
def test_a_page_fits_a_phone(service: Service, path: str) -> None:
    service.released.set()
    service.store.run(WORK, {"text": "w" * 300}, name="n" * 70)
    with browser_page(viewport={"width": 360, "height": 740}) as page:
        page.goto(f"{service.url}/ui/{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_json_is_checked_while_it_is_written(service: Service) -> None:
    with browser_page() as page:
        page.goto(f"{service.url}/ui/documents")
        page.locator("[name=name]").fill("Work")
        page.locator("[name=text]").fill(json.dumps(WORK))
        page.get_by_role("button", name="Publish").click()
        page.wait_for_url("**/documents/Work")
        page.locator("[name=input]").fill('{"a": ')
        page.get_by_role("button", name="Start").click()
        assert page.locator("[name=input]:invalid").count() == 1
        page.locator("[name=input]").fill('{"a": 1}')
        page.get_by_role("button", name="Start").click()
        page.wait_for_url("**/executions/*")
        page.locator(".notice", has_text="The execution was started.").wait_for()


def run_many(service: Service, items: int, name: str) -> str:
    """Run an execution with six events for each item and return the address of its page."""
    service.released.set()
    service.store.run(MANY, {"items": [*range(items)]}, name=name)
    return f"{service.url}/ui/executions/{name}"


def test_events_are_loaded_where_they_are_seen(service: Service) -> None:
    address = run_many(service, 400, "many")
    with browser_page() as page:
        page.goto(address)
        assert page.locator("a.event").count() < 400
        page.locator("#events").scroll_into_view_if_needed()
        page.locator(".events").evaluate("element => { element.scrollTop = element.scrollHeight; }")
        page.locator(".event", has_text="ExecutionSucceeded").wait_for()
        assert page.locator("a.event").count() < 1000


@pytest.mark.full
@pytest.mark.parametrize(("items", "seconds"), [(165, 1.0), (4160, 3.0)])
def test_large_histories_are_shown_fast(service: Service, items: int, seconds: float) -> None:
    """1,000 events within a second, 25,000 within three: the fastest of three first views."""
    addresses = [run_many(service, items, f"many-{number}") for number in range(3)]
    times = []
    with browser_page() as page:
        page.goto(f"{service.url}/ui/executions")
        for address in addresses:
            begin = perf_counter()
            page.goto(address, wait_until="load")
            page.locator(".event", has_text="ExecutionStarted").wait_for()
            times.append(perf_counter() - begin)
    assert min(times) < seconds
