"""The chain under construction: its tasks, their names, what is known, and what is lost."""

import re
from collections.abc import Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding, Severity
from asl.core.values import Json
from asl.dialects.contenox.chain import END
from asl.dialects.contenox.reader import ENGINE
from asl.dialects.contenox.round_trip import kept
from asl.dialects.contenox.writing.knowledge import Cause, Knowledge
from asl.dialects.lowering import Flow
from asl.dialects.missing_values import missing_value_loss
from asl.dialects.names import FreshNames, computed
from asl.dialects.terms import Term
from asl.engine.definitions import AgentDefinition

__all__ = ["LEFT_OUT", "ChainBuilder"]

LEFT_OUT: Final = "it is left out"
"""What becomes of a field that a chain does not have."""
_NAMES: Final = (END, "input", "previous_output", "last_error")
_OF_MACHINE: Final = frozenset(
    ("StartAt", "States", "Comment", "QueryLanguage", "Version", "Metadata")
)
_CONTEXT: Final = 131_072
"""The context budget of a chain: with none the engine refuses every result of a tool."""


class ChainBuilder:
    """One chain under construction.

    Args:
        value: Value of the document.
        flow: Its steps.
        agents: Definitions of agents by their names.
        given: The data in which a run begins, over the variables of the chain.
        seed: Whether the chain is for the documented language instead of an engine.
    """

    def __init__(
        self,
        value: Mapping[str, Any],
        flow: Flow,
        agents: Mapping[str, AgentDefinition],
        given: Term,
        *,
        seed: bool,
    ) -> None:
        self.value = value
        self.flow = flow
        self.agents = agents
        self.given = given
        self.seed = seed
        self.losses: list[Finding] = []
        self.tasks: list[dict[str, Json]] = []
        self.known: dict[str, Knowledge] = {}
        """What is known in front of each step that was reached."""
        self.added: list[dict[str, Json]] = []
        """Tasks that end the chain behind the step at work."""
        self.apart: set[str] = set()
        """Steps whose answer does not select what follows, although a Choice is behind them."""
        self.selecting: dict[str, str] = {}
        """Steps whose answer does, by the place of the Choice."""
        self.entries = {flow.start}
        """Steps that must have a task: the first one, and those that failures lead to."""
        for step in flow.steps.values():
            self.entries.update(each.target for each in step.handlers)
        self._ids: dict[str, str] = {}
        self._taken = FreshNames(_NAMES, "_")
        for name in flow.steps:
            self.id(name)

    def report(
        self,
        code: str,
        message: str,
        pointer: str,
        instead: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report a loss."""
        self.losses.append(Finding(code, message, pointer, instead, at_key=True, severity=severity))

    def lose(self, cause: Cause) -> None:
        """Note that a lost value is read: the Choice behind its tool gets a task of its own."""
        if cause.pointer in self.selecting:
            self.apart.add(self.selecting[cause.pointer])

    def begin(self) -> None:
        """Discard what was written to learn; report losses of the document as a whole."""
        self.losses, self.tasks, self.added = [], [], []
        if kept(self.value) is not None:
            self.report(
                "L-CHANGED",
                "the document has changed since it was read from a chain",
                "/Metadata",
                "a new chain is written",
            )
        for field in self.value:
            if field not in _OF_MACHINE:
                message = f"a chain has no {field!r}"
                self.report("CX-META", message, f"/{field}", LEFT_OUT, Severity.ERROR)
        self.losses += missing_value_loss(self.value)

    def written(self) -> dict[str, Json]:
        """Return the chain, once its tasks are written."""
        comment = self.value.get("Comment")
        head: dict[str, Json] = {"id": _slug(str(comment or self.flow.start))}
        if type(comment) is str:
            head["description"] = comment
        if not self.seed:
            head["x-engine"] = ENGINE
            if any("tools" in each for each in self.tasks):
                head["token_limit"] = _CONTEXT
        return {**head, "tasks": [*self.tasks]}

    def id(self, name: str) -> str:
        """Return the name of the task of a step, or of one that is added to it."""
        if name not in self._ids:
            wanted = name.lstrip("${% .") or "task" if computed(name) else name or "task"
            if wanted.endswith("_error"):  # so ends the variable of a task that has failed
                wanted = f"{wanted.removesuffix('_error')}_2"
            self._ids[name] = self._taken.new(wanted)
        return self._ids[name]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "chain"
