"""A chain and its tasks as the reader sees them, under the names of today."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from asl.dialects.foreign import Part

__all__ = ["END", "HANDLERS", "OPERATORS", "SYNONYMS", "Branch", "Chain", "Task"]

END: Final = "end"
"""The target that ends a run."""
SYNONYMS: Final[Mapping[str, str]] = {
    "prompt_to_condition": "condition_key",
    "prompt_to_int": "parse_number",
    "prompt_to_float": "parse_score",
    "prompt_to_range": "parse_range",
    "raw_string": "prompt_to_string",
    "model_execution": "chat_completion",
    "parse_command": "parse_transition",
    "hook": "tools",
    "embedding": "text_to_embedding",
}
"""The names that handlers have had, and the one that the reader knows."""
HANDLERS: Final = (
    "chat_completion",
    "execute_tool_calls",
    "tools",
    "route",
    "noop",
    "raise_error",
    "condition_key",
    "parse_number",
    "parse_score",
    "parse_range",
    "prompt_to_string",
    "prompt_to_js",
    "parse_transition",
    "parse_key_value",
    "text_to_embedding",
    "convert_to_openai_chat_response",
)
OPERATORS: Final[Mapping[str, str]] = {
    "equals": "equals",
    "not_equals": "not_equals",
    "contains": "contains",
    "not_contains": "not_contains",
    "starts_with": "starts_with",
    "ends_with": "ends_with",
    "gt": "gt",
    ">": "gt",
    "lt": "lt",
    "<": "lt",
    "in_range": "in_range",
    "range": "range",
    "edge_traversed_at_least": "edge_traversed_at_least",
    "default": "default",
}
"""Operators as they are written, and as they are called."""


@dataclass(frozen=True)
class Branch:
    """One branch: its value, and where that stands in the chain."""

    value: Mapping[str, Any]
    pointer: str

    @cached_property
    def operator(self) -> str:
        """The operator, without its old spellings."""
        written = self.value.get("operator", "")
        return OPERATORS.get(written, written)

    @cached_property
    def when(self) -> str:
        """The right-hand side, as text."""
        written = self.value.get("when", "")
        return written if isinstance(written, str) else str(written)

    @cached_property
    def key(self) -> tuple[str, str, str]:
        """What it asks: another branch with the same key is never taken."""
        return self.operator, self.when, self.value.get("edge", "")

    @property
    def goto(self) -> str:
        """The task that follows, END where the chain ends."""
        return self.value.get("goto") or END

    @property
    def compose(self) -> Mapping[str, Any] | None:
        """What is composed on the way."""
        return self.value.get("compose")


class Task(Part):
    """One task; its name is also that of its output."""

    @property
    def written_handler(self) -> str:
        """The handler as it is written."""
        return str(self.value.get("handler", self.value.get("type", "")))

    @cached_property
    def handler(self) -> str:
        """The handler, under its name of today or, where it is gone, its first one."""
        return SYNONYMS.get(self.written_handler, self.written_handler)

    @property
    def transition(self) -> Mapping[str, Any]:
        """Where it goes."""
        return self.value.get("transition") or {}

    @property
    def on_failure(self) -> str | None:
        """The task that follows a failure."""
        return self.transition.get("on_failure") or None

    @cached_property
    def branches(self) -> list[Branch]:
        """The branches as they are written."""
        written = self.transition.get("branches") or []
        base = f"{self.pointer}/transition/branches"
        return [Branch(each, f"{base}/{index}") for index, each in enumerate(written)]

    @property
    def config(self) -> Mapping[str, Any]:
        """What models are told beside the prompt."""
        return self.value.get("execute_config") or {}

    @property
    def tools(self) -> list[str] | None:
        """The tools that may be used, None where nothing is said."""
        found: list[str] | None = self.config.get("tools", self.config.get("hooks"))
        return found

    @property
    def tool(self) -> Mapping[str, Any]:
        """The tool that the handler `tools` calls."""
        return self.value.get("tools") or self.value.get("hook") or {}

    @property
    def provider(self) -> str:
        """Whose tool that is."""
        return str(self.tool.get("name") or self.tool.get("type") or "")

    @property
    def template(self) -> str:
        """What replaces its input, empty where nothing does."""
        return self.value.get("prompt_template") or ""

    @property
    def input_var(self) -> str:
        """The variable that is its input, empty for what moves along."""
        return self.value.get("input_var") or ""

    @property
    def retries(self) -> int:
        """How often it is tried again."""
        return max(0, self.value.get("retry_on_failure") or 0)

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield the tasks that may follow, END too, each with its place in the chain."""
        if self.on_failure is not None:
            yield self.on_failure, f"{self.pointer}/transition/on_failure"
        for branch in self.branches:
            yield branch.goto, f"{branch.pointer}/goto"


@dataclass(frozen=True)
class Chain:
    """A chain, and by which profile it is read: `seed`, `union` or `runtime`."""

    value: Mapping[str, Any]
    profile: str

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """The tasks by their names, in order."""
        return {
            str(each["id"]): Task(each, f"/tasks/{index}")
            for index, each in enumerate(self.value["tasks"])
        }

    @property
    def start(self) -> Task:
        """The first task."""
        return next(iter(self.tasks.values()))

    @property
    def tokens(self) -> str:
        """Whose words tasks evaluate to: `seed` or `union`."""
        return "seed" if self.profile == "seed" else "union"

    def ordered(self, task: Task) -> tuple[list[Branch], Branch | None]:
        """Return the branches that are tried in order, and the default behind them.

        One like an earlier one is left out.
        """
        before: dict[tuple[str, ...], Branch] = {}
        default: Branch | None = None
        for each in task.branches:
            if each.operator != "default":
                before.setdefault(each.key, each)
            else:
                default = default or each
                if self.profile == "seed":
                    break
        return [*before.values()], default

    def caught(self, task: Task) -> Branch | None:
        """Return the branch that takes a failure in the seed's reading, None in any other."""
        if self.profile != "seed" or task.on_failure is not None:
            return None
        if task.handler not in ("tools", "execute_tool_calls"):
            return None
        explicit, _ = self.ordered(task)
        for each in explicit:
            if each.operator == "equals" and each.when in ("failed", "error"):
                return each
        return None
