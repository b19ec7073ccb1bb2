"""Documents of other languages with any value in any place: read as what is right, or refused."""

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import asl
from asl.core.document import Document
from asl.core.source import Source


def spoilt(data: st.DataObject, whole: Any, value: Any) -> Any:
    """Return a copy in which a value is in another's place, or nothing is."""
    copied = copy.deepcopy(whole)
    holder, key = data.draw(st.sampled_from(_places(copied)))
    if data.draw(st.booleans()):
        holder[key] = value
    else:
        del holder[key]
    return copied


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in list(pairs):
        found.append((value, key))
        if isinstance(each, dict | list):
            found += _places(each)
    return found


def read_or_refused(
    value: Any, codes: str, read: Callable[[Document], Document], restored: Callable[[Any], Any]
) -> None:
    """It becomes a document that is right and comes back, or has findings with codes of its own."""
    try:
        document = read(Document(value, Source()))
    except asl.InvalidDocument as refusal:
        assert all(each.code.startswith(codes) for each in refusal.report.errors)
        return
    report = asl.check(document)
    assert report.ok, str(report.errors)
    assert restored(document.value) == value
