"""Amazon States Language, whose documents are read as documents of this language."""

from collections.abc import Mapping
from typing import Any

from asl.core.document import Document
from asl.dialects.base import Coverage, Dialect, WriterResult

__all__ = ["DIALECT"]


def _matches_nothing(what: str | Mapping[str, Any]) -> bool:
    return False


def _write(document: Document, names: Mapping[str, str] | None = None) -> WriterResult:
    from asl.dialects.amazon.writing import write

    return write(document, names)


def _coverage() -> Coverage:
    from asl.dialects.amazon.writing import coverage

    return coverage()


DIALECT = Dialect(
    "amazon",
    "Amazon States Language",
    _matches_nothing,
    _matches_nothing,
    None,
    _write,
    write_options=frozenset(("names",)),
    coverage=_coverage,
    file_ending=".asl.json",
)
