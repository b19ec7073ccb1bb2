"""What several commands take: documents, input, profiles and agents."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asl.core.errors import AslError, InvalidDocument
from asl.core.profile import PROFILES
from asl.core.values import Json

if TYPE_CHECKING:
    from asl.agents.file import Bindings
    from asl.core.document import Document

__all__ = ["PROFILE", "bindings", "named", "read_document", "read_input"]

PROFILE = click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="default",
    show_default=True,
    help="How to read the language.",
)


def read_document(name: str) -> "Document":
    """Read the document of this file, of standard input for `-`."""
    from asl.core.document import read

    if name == "-":
        return read(sys.stdin.buffer.read(), name="<stdin>")
    return read(Path(name))


def read_input(text: str) -> Json:
    """Read the input that `--input` says: JSON, `@FILE`, or `-` for standard input."""
    from asl.core.document import read_value

    if text == "-":
        return _read(lambda: read_value(sys.stdin.buffer.read(), name="<stdin>").value)
    if text.startswith("@"):
        return _read(lambda: read_value(Path(text[1:])).value)
    return _read(lambda: read_value(text.encode(), name="--input", format="json").value)
