"""What the states of a chain are called: by its tasks, and by what stands beside them."""

from collections.abc import Iterable
from typing import Final

from asl.dialects.contenox.chain import END

__all__ = ["Naming"]

MAX_NAME: Final = 80
BESIDE: Final = ("if", "gate", "ask", "denied")
"""What may stand beside a task: its branches, and what asks people about its calls of tools."""


class Naming:
    """The names of the states of a chain; the reader gives them, whoever reads the states asks."""

    def __init__(self, tasks: Iterable[str]) -> None:
        self.names: dict[tuple[str, str], str] = {}
        self.parts: dict[str, tuple[str, str]] = {}
        # The author's names come first, so that no other state has one of them.
        listed = [*tasks]
        for task in (*listed, END):
            self._give(task, "")
        self._give(END, "failed")
        for task in listed:
            for beside in BESIDE:
                self._give(task, beside)

    def _give(self, task: str, beside: str) -> None:
        wanted = f"{task}:{beside}" if beside else task
        base = wanted if len(wanted) <= MAX_NAME else wanted[: MAX_NAME - 6]
        found, count = base, 1
        while found in self.parts:
            count += 1
            found = f"{base}~{count}"
        self.names[task, beside] = found
        self.parts[found] = (task, beside)

    def name(self, task: str, beside: str = "") -> str:
        """Return the name of a task's state, or of one beside it, unlike all others."""
        return self.names[task, beside]

    def task(self, name: str, *beside: str) -> str | None:
        """Return the task of whose state, or of what beside it, this is the name; else None."""
        task, what = self.parts.get(name, (END, ""))
        return task if task != END and what in ("", *beside) else None
