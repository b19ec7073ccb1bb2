"""What a dialect is: one module (or folder) and one row of the table (`asl.dialects`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from asl.core.document import Document

__all__ = ["Dialect"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One row of the table.

    `of_text` and `of_value` say by its shape whether a text in YAML, or a value, is of the dialect.
    `read(source or document, limits, **options)` makes a document of Agent State Language of
    either, whose findings are what there is to say about it; it raises InvalidDocument.
    """

    name: str
    title: str
    of_text: Callable[[str], bool]
    of_value: Callable[[Mapping[str, Any]], bool]
    read: Callable[..., Document]
