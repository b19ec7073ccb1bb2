"""Languages of documents, and conversion between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asl.core.document import Document, Loadable, open_source, read
from asl.dialects import NATIVE, converted
from asl.dialects import detect as by_shape
from asl.dialects import load as load_document
from asl.dialects.base import Conversion

__all__ = ["convert", "detect"]


def convert(
    document: Document | Loadable,
    to: str,
    *,
    implicit_retry: bool = True,
    reading: Mapping[str, Any] | None = None,
    **writing: Any,
) -> Conversion:
    """Return a document in another language: `text`, `document` (its value), `losses`, `ok`.

    `to` is `asl`, `amazon`, `codemie`, `contenox`, `flujo`, or what a package offers under the
    entry point `asl.dialects`. Each loss is a diagnostic: `error` where behaviour is lost,
    `warning` where it is approximated; its hint says what was done instead. `ok` if no
    behaviour is lost. Without *implicit_retry* the retries are left out that a platform makes
    unasked; that and other options for `reading` are for what is read here. All further options are
    the writer's (docs/convert.md): `names` say what agents are called at Amazon, and what resources
    are called here; `tools` which agents are no assistants in a workflow.

    Raises InvalidDocument for what cannot be read, and AslError for a language or an option that is
    not known.
    """
    if not isinstance(document, Document):
        asked = {} if implicit_retry else {"implicit_retry": False}
        document = load_document(document, reading={**asked, **(reading or {})})
    return converted(document, to, writing)


def detect(what: Loadable) -> str:
    """Return the name of the language that a document is written in, by its shape.

    That is `asl` for the state language itself, Amazon's included, and for what has no other shape.
    Nothing is checked. Raises DocumentNotFound for a path without a file.
    """
    found = by_shape(read(what) if isinstance(what, dict) else open_source(what))
    return NATIVE if found is None else found.name
