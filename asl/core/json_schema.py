"""Load the library jsonschema, without the grammars of formats that nothing here checks."""

import sys
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

__all__ = ["jsonschema"]

GRAMMARS: Final = "rfc3987_syntax"
"""Compiles 38 grammars when it is imported, which takes seconds of processor time."""


@cache
def jsonschema() -> Any:
    """Return the module jsonschema; what it needs for the format `iri` is imported when used."""
    deferred = "jsonschema" not in sys.modules and GRAMMARS not in sys.modules
    if deferred and find_spec(GRAMMARS) is not None:
        sys.modules[GRAMMARS] = _Deferred(GRAMMARS)
    try:
        import jsonschema as library
    finally:
        if isinstance(sys.modules.get(GRAMMARS), _Deferred):
            del sys.modules[GRAMMARS]
    return library


class _Deferred(ModuleType):
    """Stands for the module while jsonschema is imported."""

    @staticmethod
    def is_valid_syntax(term: str, value: str) -> bool:
        """Whether a value has the syntax of a term, as the module itself decides."""
        from importlib import import_module

        return bool(import_module(GRAMMARS).is_valid_syntax(term, value))
