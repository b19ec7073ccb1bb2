"""Names: new ones, and what agents and resources are called in the language that is written."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.values import Json
from asl.expr.text_matching import compile_glob
from asl.states.task import COMPUTED

__all__ = [
    "NAMES",
    "FreshNames",
    "NameTable",
    "computed",
    "lost_integration",
    "provider_of",
    "renamed",
]

NAMES: Final = "names"
"""The option of a writer that takes them."""


class NameTable:
    """A caller's table of names; in its keys `*` matches any characters."""

    def __init__(self, given: Mapping[str, str] | None) -> None:
        self.given = given or {}
        self.patterns = [(key, compile_glob(key)) for key in self.given if "*" in key]
        self.asked: set[str] = set()
        self.used: set[str] = set()

    def of(self, name: str) -> str | None:
        """Return what is given for a name, the name itself before patterns; None if nothing is."""
        self.asked.add(name)
        key = next((key for key, matches in self.patterns if matches(name)), None)
        if name in self.given:
            key = name
        if key is None:
            return None
        self.used.add(key)
        return self.given[key]

    def all_used(self) -> None:
        """Raise AslError for an unused key."""
        for key in self.given:
            if key not in self.used:
                hint = did_you_mean(key, self.asked) or f"there is {', '.join(sorted(self.asked))}"
                raise AslError(f"the document has no name {key!r} ({hint})")


class FreshNames:
    """Names that are taken; new ones are found in few steps, however many collide."""

    def __init__(self, taken: Iterable[str] = (), mark: str = "~") -> None:
        self._taken = {*taken}
        self._mark = mark
        self._numbers: dict[str, int] = {}
        """The number up to which the names with a number are taken, by the name that was wanted."""

    def __contains__(self, name: object) -> bool:
        return name in self._taken

    def add(self, name: str) -> None:
        """Take a name."""
        self._taken.add(name)

    def new(self, wanted: str) -> str:
        """Take and return a name: the wanted one, or that with the next number behind the mark."""
        found, number = wanted, self._numbers.get(wanted, 1)
        while found in self._taken:
            number += 1
            found = f"{wanted}{self._mark}{number}"
        self._numbers[wanted] = number
        self._taken.add(found)
        return found


def computed(agent: str) -> bool:
    """Whether a name cannot be that of an agent: it looks like an expression (V-TASK-02)."""
    return agent.startswith(COMPUTED)


_FUNCTION: Final = re.compile(r"arn:[\w-]+:lambda:[^:]*:[^:]*:function:(.+)")


_STATES: Final = re.compile(r"arn:[\w-]+:states:[^:]*:[^:]*:(?:activity:)?(.+)")


def provider_of(resource: str) -> str:
    """Return what the ARN of a function, an activity or an integration calls it.

    Args:
        resource: The ARN; anything else is a name as it is.

    Returns:
        `fetch` of a function or an activity with that name, `lambda:invoke` of an integration.
    """
    arn = _STATES.fullmatch(resource) or _FUNCTION.fullmatch(resource)
    return resource if arn is None else arn[1]


_WAIT_SUFFIXES: Final = (".sync", ".sync:2", ".waitForTaskToken")
"""How the resource of a task ends whose answer comes later."""


def lost_integration(resource: str) -> str | None:
    """Return what is lost where an agent takes the place of a resource, None for a function."""
    if resource.endswith(_WAIT_SUFFIXES):
        return "a call there returns its result: it does not wait for a job or a token"
    if resource.startswith("arn:") and ":states:::" in resource:
        return "it gets the parameters of the integration, and must return its result"
    return None


def renamed(state: Mapping[str, Json], old: str, new: str, value: Json) -> dict[str, Json]:
    """Return a state with one field replaced by another with this value."""
    return {
        (new if field == old else field): value if field == old else each
        for field, each in state.items()
    }
