"""The language itself, in JSON."""

import json
from collections.abc import Mapping
from typing import Any

from asl.core.document import Document
from asl.core.source import Limits, Source
from asl.dialects.base import Dialect, Written

__all__ = ["DIALECT"]


def _never(what: str | Mapping[str, Any]) -> bool:
    return False


def _read(what: Source | Document, limits: Limits) -> Document:
    raise AssertionError("documents of the language are read without a detour")


def _write(document: Document) -> Written:
    value = document.whole
    return Written(value, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


DIALECT = Dialect("asl", "Agent State Language", _never, _never, _read, _write)
