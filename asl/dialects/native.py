"""The language itself, in JSON."""

import json
from collections.abc import Mapping
from typing import Any

from asl.core.document import Document
from asl.dialects.base import Dialect, Written

__all__ = ["DIALECT"]


def _never(what: str | Mapping[str, Any]) -> bool:
    return False


def _write(document: Document) -> Written:
    value = document.whole
    return Written(value, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


DIALECT = Dialect("asl", "Agent State Language", _never, _never, None, _write)
