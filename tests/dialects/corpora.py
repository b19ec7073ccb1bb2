"""Documents that others wrote, in every language, where their folder is at hand."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import asl
from asl.core.document import Document
from asl.dialects import load

__all__ = ["PRESENT", "corpus"]

FOLDER: Final = Path(__file__).resolve().parents[3] / "shared"
PRESENT: Final = FOLDER.is_dir()
FILES: Final = {
    "asl": ("corpus/agent-asl", "*.json"),
    "codemie": ("corpus/codemie", "*.yaml"),
    "contenox": ("corpus/contenox", "*.json"),
    "flujo": ("corpus/flujo", "*.yaml"),
}
RECORDED: Final = FOLDER / "corpus" / "aws" / "open.jsonl"


@cache
def corpus(language: str) -> dict[str, Document]:
    """Return the documents of a language that have no errors, by the names of their files."""
    found = {}
    for name, what in _written(language):
        try:
            document = load(what, dialect=language)
        except asl.InvalidDocument:
            continue
        if asl.check(document).ok and "States" in document.composed_value:
            found[name] = document
    return found


def _written(language: str) -> Iterator[tuple[str, Any]]:
    if language == "amazon":
        yield from _recorded()
        return
    folder, pattern = FILES[language]
    for path in sorted((FOLDER / folder).glob(pattern)):
        if path.name != "cases.yaml":
            yield path.name, path.read_bytes()


def _recorded() -> Iterator[tuple[str, Any]]:
    """Yield one machine of each family of recordings."""
    families = set()
    for line in RECORDED.read_bytes().splitlines():
        case = json.loads(line)
        known = case["family"] in families or case["kind"] != "execute"
        if not known and "definition" in case:
            families.add(case["family"])
            yield case["id"], case["definition"]
