"""What tests of pages share: documents, a client that sends forms, and HTML as elements."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any, NamedTuple

from starlette.testclient import TestClient

import asl

ORIGIN = {"origin": "http://localhost:8083"}
HOSTILE = "<b onclick=\"x\">'bold'</b> \u202eevil \u05d0\u05d1 " + "long" * 30
"""A text that must never be markup, nor reverse its neighbours."""
ASK = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Approval",
            "Prompt": {"Title": "Pay?", "Amount.$": "$.amount"},
            "Options": ["pay", "drop"],
            "Editable": {"Fields": ["$.amount"], "ResultPath": "$.agreed"},
            "Policy": {"RequireReason": True},
            "ResultPath": "$.decision",
            "End": True,
        }
    },
}
PICK = {
    "StartAt": "Pick",
    "States": {
        "Pick": {
            "Type": "Approval",
            "Prompt": "Which?",
            "ItemsPath": "$.items",
            "BatchMode": {"MinApproved": 0.5},
            "ResultPath": "$",
            "End": True,
        }
    },
}


class Element(NamedTuple):
    """An element of a page with its text."""

    tag: str
    attributes: dict[str, str]
    text: list[str]


class _Reader(HTMLParser):
    """Collects the elements of a page, each with all text within it."""

    VOID = frozenset({"meta", "link", "input", "br", "rect", "circle", "path", "polygon"})

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.shown: list[str] = []
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, [])
        self.elements.append(element)
        if tag not in self.VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}, []))

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            if self._open.pop().tag == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1].tag != "textarea":
            self.shown.append(data)
        for each in self._open:
            each.text.append(data)


class Page:
    """A page that was fetched."""

    def __init__(self, text: str) -> None:
        reader = _Reader()
        reader.feed(text)
        self.elements = reader.elements
        self.shown = "".join(reader.shown)
        """All texts but those of fields, which are exact."""

    def all(self, tag: str, **attributes: str) -> Iterator[Element]:
        """Yield the elements with a tag and attributes; `_` in a name is `-`."""
        wanted = {name.strip("_").replace("_", "-"): value for name, value in attributes.items()}
        for each in self.elements:
            if each.tag == tag and wanted.items() <= each.attributes.items():
                yield each

    def text(self, tag: str, **attributes: str) -> str:
        """Return the text of the first element with a tag and attributes."""
        found = next(self.all(tag, **attributes))
        return " ".join("".join(found.text).split())

    def value(self, name: str) -> str:
        """Return the value of a field of a form."""
        return next(self.all("input", name=name)).attributes["value"]


def get(api: TestClient, path: str, **options: Any) -> Page:
    """Fetch a page."""
    answer = api.get(f"/ui/{path}", **options)
    assert answer.status_code == 200, answer.text
    return Page(answer.text)


def post(api: TestClient, path: str, data: dict[str, Any], **options: Any) -> Any:
    """Send a form as a browser does, without following where it leads."""
    tokens = Page(api.get("/ui/documents").text).all("input", name="csrf")
    for token in tokens:
        data = {"csrf": token.attributes["value"], **data}
    return api.post(f"/ui/{path}", headers=ORIGIN, follow_redirects=False, data=data, **options)


def paused(store: asl.Store, document: dict[str, Any], data: Any, name: str) -> dict[str, Any]:
    """Start an execution that waits for a person, and return the request."""
    result = store.run(document, data, name=name, requestor="ann")
    assert result.status == "PAUSED"
    return result.pending[0]
