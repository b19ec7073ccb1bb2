"""The chain under construction: its tasks, their names, what is known, and what is lost."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.checks.workflow import handlers
from asl.core.diagnostics import Finding, Severity
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.contenox.chain import END
from asl.dialects.contenox.round_trip import kept
from asl.dialects.contenox.writing.knowledge import Env
from asl.dialects.jsonpath_form import missing_value_loss
from asl.dialects.names import FreshNames, computed

__all__ = ["ANYTHING", "LEFT", "Chain", "pointer"]

ANYTHING: Final = "otherwise"
"""What a choice evaluates to when no rule holds and there is no default."""
LEFT: Final = ("it is left out", Severity.ERROR)
"""What becomes of a field that a chain does not have."""
_NAMES: Final = frozenset((END, "input", "previous_output", "last_error", ANYTHING))
_OF_MACHINE: Final = frozenset(
    ("StartAt", "States", "Comment", "QueryLanguage", "Version", "Metadata")
)


class Chain:
    """One chain under construction, for the document of this value."""

    def __init__(self, value: Mapping[str, Any], profile: str) -> None:
        self.value = value
        self.seed = profile == "seed"
        self.states: Mapping[str, Any] = value["States"]
        self.losses: list[Finding] = []
        self.tasks: list[dict[str, Json]] = []
        self.ids: dict[str, str] = {}
        self._taken = FreshNames(_NAMES, "_")
        self.envs: dict[str, Env] = {}
        """What is known in front of each state that was reached."""
        self.entries = {value["StartAt"], *_caught(self.states)}
        """States that must have a task."""
        for name in self.states:
            self.id(name)

    def lost(
        self,
        code: str,
        message: str,
        pointer: str,
        instead: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report what the chain does not say."""
        self.losses.append(Finding(code, message, pointer, instead, at_key=True, severity=severity))

    def begun(self) -> None:
        """Forget what was written to learn; report what stands beside the states."""
        self.losses, self.tasks = [], []
        if kept(self.value) is not None:
            self.lost(
                "L-CHANGED",
                "the document is not the one that was read from a chain any more",
                "/Metadata",
                "the chain is written anew",
            )
        for field in self.value:
            if field not in _OF_MACHINE:
                self.lost("CX-META", f"a chain has no {field!r}", f"/{field}", *LEFT)
        self.losses += missing_value_loss(self.value)

    def written(self) -> dict[str, Json]:
        """Return the chain, now that its tasks are written."""
        comment = self.value.get("Comment")
        head: dict[str, Json] = {"id": _slug(str(comment or self.value["StartAt"]))}
        if type(comment) is str:
            head["description"] = comment
        return {**head, "tasks": [*self.tasks]}

    def id(self, name: str) -> str:
        """Return the name of the task of a state, or of what stands beside it."""
        if name not in self.ids:
            wanted = name.lstrip("${% .") or "task" if computed(name) else name or "task"
            if wanted.endswith("_error"):  # so ends the variable of a task that has failed
                wanted = f"{wanted.removesuffix('_error')}_2"
            self.ids[name] = self._taken.new(wanted)
        return self.ids[name]


def pointer(name: str, *steps: str | int) -> str:
    """Return the JSON Pointer of a place in a state."""
    return "/States" + "".join(f"/{escape(str(step))}" for step in (name, *steps))


def _caught(states: Mapping[str, Any]) -> Iterator[str]:
    """Yield the states that failures lead to."""
    for state in states.values():
        yield from (each["Next"] for _, each in handlers(state, "Catch") if "Next" in each)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "chain"
