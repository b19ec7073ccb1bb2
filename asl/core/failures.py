"""The catalogue of error names: one entry of `failures.toml` for every name of the language."""

import os
from functools import cache
from typing import NamedTuple

__all__ = ["Failure", "all_failures"]

USUALLY = "A retrier or catcher matches it by this name, States.TaskFailed or States.ALL."


class Failure(NamedTuple):
    """One error name: a short title, what leads to it, what matches it, and what to do about it."""

    name: str
    title: str
    explain: str
    matched: str
    hint: str | None

    @property
    def family(self) -> str:
        """Who raises it: `States`, the language, or an `Agent`."""
        return self.name.partition(".")[0]


@cache
def all_failures() -> tuple[Failure, ...]:
    """Every error name that the language reserves or that is raised by itself."""
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "failures.toml"), "rb") as file:
        entries = tomllib.load(file)
    return tuple(_failure(name, **entry) for name, entry in entries.items())


def _failure(
    name: str, title: str, explain: str, matched: str = USUALLY, hint: str | None = None
) -> Failure:
    return Failure(name, title, explain.strip(), matched, hint)
