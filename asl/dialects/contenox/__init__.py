"""Task chains of Contenox: tasks with handlers, and branches with operators, in JSON."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from asl.core.diagnostics import Finding
from asl.core.document import Document
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.core.values import Json
from asl.dialects.base import Dialect, Written
from asl.dialects.plain import Plain

__all__ = ["DIALECT"]

_TASKS = re.compile(r"""^["']?tasks["']?[ \t]*:""", re.MULTILINE)
_HANDLER = re.compile(r"""\b(?:handler|type)["']?[ \t]*:""")
_OTHER = re.compile(
    r"""^["']?(?:States|StartAt|states|steps|Resources)["']?[ \t]*:""", re.MULTILINE
)


def _of_text(text: str) -> bool:
    found = _TASKS.search(text) is not None and _HANDLER.search(text) is not None
    return found and _OTHER.search(text) is None


def _of_value(value: Mapping[str, Any]) -> bool:
    if "tasks" not in value or any(key in value for key in ("StartAt", "states", "steps")):
        return False
    tasks = value["tasks"]
    listed = [each for each in (tasks if type(tasks) is list else ()) if type(each) is dict]
    return (
        not listed  # the reader says what is wrong
        or any("handler" in each or "transition" in each for each in listed)
        or all("id" in each and "type" in each for each in listed)
    )


def _read(
    what: Source | Document,
    limits: Limits = DEFAULT_LIMITS,
    *,
    profile: str | None = None,
    external_exits: bool = False,
    approve: tuple[str, ...] = (),
) -> Document:
    from asl.dialects.contenox.reading import read

    return read(
        what, limits, profile=profile, external_exits=external_exits, approve=tuple(approve)
    )


def _write(document: Document, *, profile: str = "union") -> Written:
    from asl.dialects.contenox.writing import write

    return write(document, profile=profile)


def _lost(document: Document) -> Iterable[Finding]:
    from asl.dialects.contenox.restoring import lost

    return lost(document)


def _plain(document: Document) -> tuple[dict[str, Json], Plain]:
    from asl.dialects.contenox.plain import plain

    return plain(document)


DIALECT = Dialect(
    "contenox",
    "Contenox task chain",
    _of_text,
    _of_value,
    _read,
    _write,
    _lost,
    reading=frozenset(("profile", "external_exits", "approve")),
    writing=frozenset(("profile",)),
    plain=_plain,
)
