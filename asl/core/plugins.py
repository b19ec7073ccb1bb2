"""Entry points of installed packages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from asl.core.errors import AslError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["blaming", "load_plugin", "plugin_error"]


def load_plugin(entry: EntryPoint) -> object:
    """Load the object of an entry point."""
    try:
        return entry.load()
    except (Exception, SystemExit) as fault:  # foreign code, which is run by its import
        reason = f"{type(fault).__name__}: {fault}"
        raise plugin_error(entry, f"cannot be loaded: {reason}") from fault


def plugin_error(entry: EntryPoint, problem: str) -> AslError:
    """Return the error of an entry point: `problem` is the rest of the sentence."""
    package = "" if entry.dist is None else f" (package {entry.dist.name!r})"
    return AslError(f"the entry point {entry.name!r} of {entry.group}{package} {problem}")


@contextmanager
def blaming(what: str) -> Iterator[None]:
    """Raise an AslError, which begins with *what*, for anything that code of a plug-in raises."""
    try:
        yield
    except AslError:
        raise
    except Exception as fault:  # foreign code
        raise AslError(f"{what}: {type(fault).__name__}: {fault}") from fault
