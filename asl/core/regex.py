"""Regular expressions of documents, which may come from strangers: RE2 matches in linear time."""

from functools import lru_cache
from typing import Any

__all__ = ["linear"]


@lru_cache(maxsize=256)
def linear(pattern: str, flags: str = "") -> Any:
    """Compile an expression; raises ValueError, which says why it is none.

    Look-around and back-references have no linear time, and are not known.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?{flags}){pattern}" if flags else pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise ValueError(said.decode() if isinstance(said, bytes) else str(said)) from None
