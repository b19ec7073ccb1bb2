"""How expressions name values: what an output has, or what a transformation takes out."""

import keyword
import re
from collections.abc import Callable, Container
from typing import Final, NamedTuple, Protocol

from asl.core.diagnostics import Severity
from asl.core.values import Json
from asl.dialects.codemie.writing.scope import TASK
from asl.dialects.names import FreshNames
from asl.dialects.terms import INPUT, DataPath, Step

__all__ = ["READ", "Context", "Extracted", "Loss", "OutputNames", "ValueNames", "is_extractable"]


class Loss(NamedTuple):
    """What an expression does not say."""

    code: str
    message: str
    severity: Severity | None = None


READ: Final = Loss("L-COERCE", "a text is read as the value that it contains, and true equals 1")
_ABSENT: Final = Loss("L-PRESENT", "a missing value is null")
_KEYWORDS: Final = frozenset((*keyword.kwlist, "keys", "true", "false", "null"))


class ValueNames(Protocol):
    """How expressions of one place name values."""

    def name(self, path: DataPath) -> str | None:
        """Return the expression for the value of a path, None if it has none."""

    def optional(self, path: DataPath) -> str | None:
        """Return the expression for the value of a path that may lead nowhere, if it has one."""

    def present(self, path: DataPath) -> tuple[str, Loss | None] | None:
        """Return the condition that a value is there, and what that does not say."""

    def coerces(self, path: DataPath) -> bool:
        """Whether a text that says a value is that value there."""

    def is_text(self, path: DataPath) -> bool:
        """Whether the value of a path is the text of an answer."""

    def guard(self, path: DataPath) -> str:
        """Return the condition without which naming a value fails; nothing where it never does."""


class OutputNames:
    """Names in the output of the state that decides itself, which is at a place of the data."""

    def __init__(self, place: tuple[Step, ...]) -> None:
        self.place = place

    def within(self, path: DataPath) -> tuple[Step, ...] | None:
        """Return the steps of a path from the output on, None if it leads elsewhere."""
        own = len(self.place)
        fits = path.root == INPUT and path.steps[:own] == self.place
        return path.steps[own:] if fits else None

    def name(self, path: DataPath) -> str | None:
        """Return where a path leads in the output: `kind`, `user['age']`."""
        steps = self.within(path)
        if not steps or not is_name(steps[0]):
            return None
        return str(steps[0]) + "".join(f"[{each!r}]" for each in steps[1:])

    def optional(self, path: DataPath) -> str | None:
        """Return a value within the output, None where there is no such."""
        name, present = self.name(path), self.present(path)
        return name if name is None or present is None else f"({name} if {present[0]} else None)"

    def present(self, path: DataPath) -> tuple[str, Loss | None] | None:
        """Each step must lead to an object for the next one to be looked for."""
        steps = self.within(path)
        if not steps or self.name(path) is None or any(isinstance(e, int) for e in steps):
            return None
        said, holder = [f"{steps[0]!r} in keys"], str(steps[0])
        for step in steps[1:]:
            said.append(f"isinstance({holder}, dict) and {step!r} in {holder}")
            holder += f"[{step!r}]"
        return " and ".join(said), READ if len(steps) > 1 else None

    def coerces(self, path: DataPath) -> bool:
        """Only texts at the root of an output are read."""
        return len(self.within(path) or ()) == 1

    def is_text(self, path: DataPath) -> bool:
        return False

    def guard(self, path: DataPath) -> str:
        found = self.present(path)
        return "" if found is None else found[0]


class Extracted:
    """Names of a transformation that takes everything out of the context."""

    def __init__(
        self, place: Callable[[DataPath], tuple[Step, ...] | None], taken: FreshNames | None = None
    ) -> None:
        self.place = place
        self.names: dict[tuple[Step, ...], str] = {}
        self._taken = taken or FreshNames(_KEYWORDS, "_")

    def name(self, path: DataPath) -> str | None:
        """Return the name of a path, which is a new one when it is met first."""
        found = self.place(path)
        if found is None or not is_extractable(found):
            return None
        if found not in self.names:
            base = re.sub(r"\W+", "_", "_".join(map(str, found)), flags=re.ASCII).strip("_")
            base = f"at_{base}" if not base or base[0].isdecimal() else base
            self.names[found] = self._taken.new(base)
        return self.names[found]

    def optional(self, path: DataPath) -> str | None:
        """Return the name of what is extracted, which is null if it is missing."""
        return Extracted.name(self, path)

    def present(self, path: DataPath) -> tuple[str, Loss | None] | None:
        """What is missing is extracted as null."""
        name = self.name(path)
        return None if name is None else (f"{name} is not None", _ABSENT)

    def coerces(self, path: DataPath) -> bool:
        """Everything is at the root of what the transformation gives."""
        return True

    def is_text(self, path: DataPath) -> bool:
        return False

    def guard(self, path: DataPath) -> str:
        return ""

    def mappings(self) -> list[dict[str, Json]]:
        """Return the mappings of the transformation."""
        return [
            {"output_field": name, "type": "extract", "source_path": ".".join(map(str, steps))}
            for steps, name in self.names.items()
        ]


class Context(Extracted):
    """Names in the context: what is not just a key of it is taken out first."""

    def __init__(
        self,
        place: Callable[[DataPath], tuple[Step, ...] | None],
        answers: Container[Step],
        taken: FreshNames,
    ) -> None:
        super().__init__(place, taken)
        self.answers = answers

    def name(self, path: DataPath) -> str | None:
        """Return a key, or a value within an object; what an answer has within is extracted."""
        found = self.place(path)
        if not found or not is_name(found[0]) or found[0] == TASK:
            return super().name(path)
        if len(found) > 1 and found[0] in self.answers:
            return super().name(path)
        return str(found[0]) + "".join(f"[{each!r}]" for each in found[1:])

    def present(self, path: DataPath) -> tuple[str, Loss | None] | None:
        """What is missing is extracted as null."""
        name = super().name(path)
        return None if name is None else (f"{name} is not None", _ABSENT)

    def coerces(self, path: DataPath) -> bool:
        """A transformation takes values as they are."""
        return False

    def is_text(self, path: DataPath) -> bool:
        found = self.place(path)
        return found is not None and len(found) == 1 and found[0] in self.answers


def is_extractable(steps: tuple[Step, ...]) -> bool:
    """Whether a transformation can take out what is at a path: no index counts from the end."""
    return not any("." in str(each) or str(each).startswith("-") for each in steps)


def is_name(step: Step) -> bool:
    """Whether an expression may have a key as a name."""
    plain = isinstance(step, str) and step.isidentifier() and step.isascii()
    return plain and step not in _KEYWORDS
