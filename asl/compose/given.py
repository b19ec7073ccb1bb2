"""What a caller says of the parts of a document."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from asl.compose.files import Fetch
from asl.core.document import Document, What, path_of
from asl.core.values import Json

__all__ = ["Given"]


class Given(NamedTuple):
    """What the caller says of the parts of a document."""

    what: What
    name: str | None
    root: str | os.PathLike[str] | None
    imports: Fetch | Mapping[str, What] | None
    files: Mapping[str, What] | None
    parameters: Mapping[str, Json] | None

    def path(self, document: Document) -> str | None:
        """The path of the file that was read, None for what is no file."""
        path = path_of(self.what) or getattr(self.what, "name", None)
        if not isinstance(path, str) or path.startswith("<"):
            return None
        return path if self.name is not None else document.source.name
