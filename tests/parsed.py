"""The modules of the package, each read and parsed once for all tests of a process."""

import ast
from functools import cache
from pathlib import Path

__all__ = ["parsed"]


@cache
def parsed(path: Path) -> tuple[str, ast.Module]:
    """Return the text and the tree of a module."""
    text = path.read_text(encoding="utf-8")
    return text, ast.parse(text)
