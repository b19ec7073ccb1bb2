"""How conditions name what the paths of a Choice lead to."""

import keyword
import re
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from asl.core.diagnostics import Severity
from asl.core.values import Json
from asl.dialects.codemie.writing.results import Result
from asl.dialects.names import FreshNames

__all__ = ["READ", "Extracted", "Loss", "Output", "Reads"]


class Loss(NamedTuple):
    """What a condition does not say."""

    code: str
    message: str
    severity: Severity | None = None


READ: Final = Loss("L-COERCE", "a text that says a value is that value there, and true is 1")
_ABSENT: Final = Loss("L-PRESENT", "what is missing is null there")
_KEYWORDS: Final = frozenset((*keyword.kwlist, "keys", "true", "false", "null"))


class Reads(Protocol):
    """How conditions name what the paths of one Choice lead to."""

    def name(self, path: Json) -> str | None:
        """Return the name of a path; None if it has none."""

    def present(self, path: Json) -> tuple[str, Loss | None] | None:
        """Return the condition that something is there, and what that does not say."""

    def coerces(self, path: Json) -> bool:
        """Whether a text that says a value is that value there."""


class Extracted:
    """Names of a transformation that extracts everything from the context."""

    def __init__(self, way: Callable[[Json], tuple[str, ...] | None]) -> None:
        self.way = way
        self.names: dict[str, str] = {}
        self._taken = FreshNames(_KEYWORDS, "_")

    def name(self, path: Json) -> str | None:
        """Return the name of a path, which is a new one when it is met first."""
        found = self.way(path)
        if not found:
            return None
        dotted = ".".join(found)
        if dotted not in self.names:
            base = re.sub(r"\W+", "_", dotted).strip("_") or "value"
            base = f"at_{base}" if base[:1].isdecimal() else base
            self.names[dotted] = self._taken.new(base)
        return self.names[dotted]

    def present(self, path: Json) -> tuple[str, Loss | None] | None:
        """What is missing is extracted as null."""
        name = self.name(path)
        return None if name is None else (f"{name} is not None", _ABSENT)

    def coerces(self, path: Json) -> bool:
        """Everything stands at the root of what the transformation gives."""
        return True

    def mappings(self) -> list[Json]:
        """Return the mappings of the transformation."""
        return [
            {"output_field": name, "type": "extract", "source_path": path}
            for path, name in self.names.items()
        ]


class Output:
    """Names in the output of the state that decides itself."""

    def __init__(self, result: Result) -> None:
        self.result = result

    def name(self, path: Json) -> str | None:
        """Return where a path leads in the output: `kind`, `user['age']`."""
        way = self.result.within(path)
        if not way or way[0] in _KEYWORDS or way[0].isdecimal():
            return None
        return way[0] + "".join(f"[{_index(step)}]" for step in way[1:])

    def present(self, path: Json) -> tuple[str, Loss | None] | None:
        """Each step must lead to an object for the next one to be looked for."""
        way = self.result.within(path)
        if self.name(path) is None or not way or any(step.isdecimal() for step in way):
            return None
        said, holder = [f"{way[0]!r} in keys"], way[0]
        for step in way[1:]:
            said.append(f"isinstance({holder}, dict) and {step!r} in {holder}")
            holder += f"[{step!r}]"
        return " and ".join(said), READ if len(way) > 1 else None

    def coerces(self, path: Json) -> bool:
        """Only texts at the root of an output are read."""
        return len(self.result.within(path) or ()) == 1


def _index(step: str) -> str:
    plain = step.isascii() and step.isdecimal() and step in ("0", step.lstrip("0"))
    return step if plain else repr(step)
