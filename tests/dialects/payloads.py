"""What agents get in different languages, compared by values."""

import json
import re
from collections.abc import Iterator
from typing import Any

from asl.core.values import compact, json_equal

__all__ = ["received", "same_payload"]

Json = Any


def received(payload: Json, dialect: str) -> Json:
    """Return what an agent gets to work with, without what its platform adds."""
    if not isinstance(payload, dict):
        return payload
    if dialect == "flujo" and payload.keys() == {"input", "context"}:
        return payload["input"]
    if dialect == "contenox" and "provider" in payload:
        args = payload.get("args") or {}
        return {**args, "input": payload.get("input")} if args else payload.get("input")
    return {key: each for key, each in payload.items() if key not in ("history", "provider")}


def same_payload(one: Json, other: Json) -> bool:
    """Whether two payloads hold the same values, one of them perhaps as a text.

    A value within a text is one that is separate there: a text that shows a list does not hold its
    items, nor one that shows an object its members.
    """
    if json_equal(one, other) or json_equal(_bare(one), _bare(other)):
        return True
    wanted, found = [*_of_text(one)] if isinstance(one, str) else [one], [*_shown(other)]
    words = " ".join(each for each in found if isinstance(each, str))
    return all(_holds(found, words, each) for each in wanted)


def _bare(value: Json) -> Json:
    """Return the only member of an object, and a text that is JSON as what it says."""
    if isinstance(value, dict) and len(value) == 1:
        return _bare(next(iter(value.values())))
    parts = [*_shown(value)] if isinstance(value, str) else []
    return parts[0] if len(parts) == 1 else value


def _shown(value: Json) -> Iterator[Json]:
    """Yield the values that a payload shows: members of objects, and the parts of texts."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _shown(each)
    elif isinstance(value, str):
        yield from _of_text(value)
    else:
        yield value


def _of_text(text: str) -> Iterator[Json]:
    """Yield the parts of a text: JSON arrays and objects in it as values, the rest as texts."""
    start, at = 0, 0
    while at < len(text):
        if text[at] in "[{":
            try:
                value, end = json.JSONDecoder().raw_decode(text, at)
            except ValueError:
                pass
            else:
                if text[start:at].strip():
                    yield text[start:at].strip()
                yield value
                start = at = end
                continue
        at += 1
    if text[start:].strip():
        yield text[start:].strip()


def _holds(found: list[Json], words: str, value: Json) -> bool:
    """Whether values, or the words among them, hold a value."""
    if any(json_equal(value, each) for each in found):
        return True
    if isinstance(value, dict | list):
        return isinstance(value, dict) and all(_holds(found, words, e) for e in value.values())
    text = value if isinstance(value, str) else compact(value)
    if not text:
        return True  # what is shown never lacks an empty text
    forms = {text, str(value)} | ({"<nil>", "None", "null", ""} if value is None else set())
    return any(_is_word(each, words) for each in forms)


def _is_word(text: str, words: str) -> bool:
    """Whether a text occurs in others, but not as a part of a word."""
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", words) is not None
