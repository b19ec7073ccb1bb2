"""A chain and its tasks as the reader sees them, under the names of today."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

__all__ = [
    "ECHO",
    "ECHOED",
    "END",
    "HANDLERS",
    "OPERATORS",
    "RAISED",
    "SYNONYMS",
    "Chain",
    "ChainBranch",
    "StateNames",
    "Task",
]

_INPUT: Final = "input"
"""The variable with the input of the chain."""
END: Final = "end"
"""The target that ends a run."""
ECHO: Final = "echo"
"""The tool of the engine that returns a text that it is given."""
ECHOED: Final = "{{.}}"
"""The output template that shows an answer as it is."""
RAISED: Final = "Contenox.RaiseError"
"""The error of a task that raises one."""
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


class ChainBranch:
    """A branch: its value and its place in the chain."""

    __slots__ = ("compose", "edge", "goto", "operator", "pointer", "value", "when")

    def __init__(self, value: Mapping[str, Any], pointer: str) -> None:
        self.value = value
        self.pointer = pointer
        written = value.get("operator", "")
        self.operator: str = OPERATORS.get(written, written)
        """The operator, without its old spellings."""
        when = value.get("when", "")
        self.when: str = when if type(when) is str else str(when)
        """The right-hand side, as text."""
        self.edge: str = value.get("edge", "")
        self.goto: str = value.get("goto") or END
        """The task that follows, END where the chain ends."""
        self.compose: Mapping[str, Any] | None = value.get("compose")
        """What is composed on the way."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What it asks: another branch with the same key is never taken."""
        return self.operator, self.when, self.edge


class Task:
    """A task: its value and its place in the chain."""

    def __init__(self, value: Mapping[str, Any], pointer: str) -> None:
        self.value = value
        self.pointer = pointer
        self.id = str(value["id"])
        """Its name, which is also that of its output."""
        self.written_handler = str(value.get("handler", value.get("type", "")))
        """The handler as it is written."""
        self.handler = SYNONYMS.get(self.written_handler, self.written_handler)
        """The handler, under its name of today or, where it is gone, its first one."""
        self.transition: Mapping[str, Any] = value.get("transition") or {}
        """Where it goes."""
        self.on_failure: str | None = self.transition.get("on_failure") or None
        """The task that follows a failure."""
        base = f"{pointer}/transition/branches"
        self.branches = [
            ChainBranch(each, f"{base}/{index}")
            for index, each in enumerate(self.transition.get("branches") or ())
        ]
        """The branches as they are written."""
        self.template: str = value.get("prompt_template") or ""
        """What replaces its input, empty where nothing does."""
        self.input_var: str = value.get("input_var") or ""
        """The variable that is its input, empty for what moves along."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Settings of the model."""
        return self.value.get("execute_config") or {}

    @property
    def tools(self) -> list[str] | None:
        """The allowed tools, `!name` for a forbidden one; None if the task does not list any."""
        listed: list[str] | None = self.config.get("tools", self.config.get("hooks"))
        hidden = [f"!{each}" for each in self.config.get("hide_tools") or ()]
        return [*(listed or ["*"]), *hidden] if hidden and listed != [] else listed

    @property
    def tool(self) -> Mapping[str, Any]:
        """The tool that the handler `tools` calls."""
        return self.value.get("tools") or self.value.get("hook") or {}

    @property
    def provider(self) -> str:
        """Whose tool that is."""
        return str(self.tool.get("name") or self.tool.get("type") or "")

    @property
    def echoes(self) -> bool:
        """Whether it only evaluates to a text that is filled in: the engine has a tool for that."""
        found = self.handler == "tools" and self.tool == {"name": ECHO}
        return found and bool(self.template) and self.value.get("output_template") == ECHOED

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

    def ordered(self, task: Task) -> tuple[list[ChainBranch], ChainBranch | None]:
        """Return the branches that are tried in order, and the default behind them.

        One like an earlier one is left out.
        """
        before: dict[tuple[str, ...], ChainBranch] = {}
        default: ChainBranch | None = None
        for each in task.branches:
            if each.operator != "default":
                before.setdefault(each.key, each)
            else:
                default = default or each
                if self.profile == "seed":
                    break
        return [*before.values()], default

    def rescue(self, task: Task) -> str | None:
        """Return the task that follows a failure of one, None where the run fails."""
        caught = self.caught(task)
        return task.on_failure if caught is None else caught.goto

    def source(self, task: Task) -> str | None:
        """Return the variable that moves along into a task, None if several may."""
        found = self._sources.get(task.id, frozenset())
        if task.id == self.start.id:
            return None if found or _INPUT in self._ambiguous else _INPUT
        return self._only(found)

    @property
    def last(self) -> str | None:
        """The variable that the run ends with, None if several may."""
        return self._only(self._sources.get(END, frozenset()))

    def _only(self, sources: frozenset[str]) -> str | None:
        return next(iter(sources)) if len(sources) == 1 and not sources & self._ambiguous else None

    @cached_property
    def _sources(self) -> Mapping[str, frozenset[str]]:
        """The tasks that lead to each task, and to the end."""
        found: dict[str, set[str]] = {}
        for task in self.tasks.values():
            targets = {each.goto for each in task.branches} or {END}
            rescue = self.rescue(task)
            for target in targets if rescue is None else {*targets, rescue}:
                found.setdefault(END if target not in self.tasks else target, set()).add(task.id)
        return {name: frozenset(each) for name, each in found.items()}

    @cached_property
    def _ambiguous(self) -> frozenset[str]:
        """The tasks whose variables may hold something else than their outputs."""
        composed = (
            str(each.compose.get("with_var"))
            for task in self.tasks.values()
            for each in task.branches
            if each.compose is not None
        )
        named = (
            each
            for each in self.tasks
            if each in (_INPUT, "previous_output", "last_error") or each.endswith("_error")
        )
        return frozenset((*composed, *named))

    @cached_property
    def rescuers(self) -> frozenset[str]:
        """The tasks that follow failures."""
        found = (self.rescue(each) for each in self.tasks.values())
        return frozenset(each for each in found if each is not None)

    def caught(self, task: Task) -> ChainBranch | None:
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


MAX_NAME: Final = 80
BESIDE: Final = ("if", "gate", "ask", "denied")
"""Kinds of additional states of a task: its branches, and the approval of its tool calls."""


class StateNames:
    """The names of the states of a chain, in both directions."""

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
        """Return the unique name of the state of a task, or of one of its additional states."""
        return self.names[task, beside]

    def task(self, name: str, *beside: str) -> str | None:
        """Return the task of a state, or of one of these kinds of additional states; else None."""
        task, what = self.parts.get(name, (END, ""))
        return task if task != END and what in ("", *beside) else None
