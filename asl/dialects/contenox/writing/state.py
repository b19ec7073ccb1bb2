"""One state of the document at work: what it reads, and the tasks that it becomes."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from asl.core.diagnostics import Severity
from asl.core.values import Json
from asl.dialects.contenox.writing.chain import Chain, pointer
from asl.dialects.contenox.writing.knowledge import Env
from asl.dialects.contenox.writing.meanings import Reader
from asl.dialects.contenox.writing.values import Constant, Unknown, Value, Why

__all__ = ["State", "Way", "default"]

Way: TypeAlias = tuple[str, Env]
"""A state that follows, and what is known when it does."""


class State:
    """One state of the document, with what is known where it stands."""

    def __init__(self, chain: Chain, name: str, env: Env) -> None:
        self.chain = chain
        self.name = name
        self.value: Mapping[str, Any] = chain.states[name]
        self.env = env
        language = self.value.get("QueryLanguage", chain.value.get("QueryLanguage", "JSONPath"))
        self.jsonata = language == "JSONata"
        self.raw = env.data
        self.input = env.data
        """What the state works on: behind an `InputPath`, a part of the raw input."""
        if not self.jsonata and "InputPath" in self.value:
            path = self.value["InputPath"]
            why = ("CX-INPUTPATH", self.at("InputPath"))
            self.input = Constant({}) if path is None else self.reader(why).expression(path)

    def knowing(self, env: Env) -> "State":
        """Return the state as it is where something else is known."""
        return State(self.chain, self.name, env)

    @property
    def id(self) -> str:
        """The name of the task of the state."""
        return self.chain.id(self.name)

    # Places and losses

    def at(self, *steps: str | int) -> str:
        """Return the JSON Pointer of a place in the state."""
        return pointer(self.name, *steps)

    def lost(
        self,
        code: str,
        message: str,
        pointer: str | None = None,
        instead: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report what no task says; without a pointer, about the state as a whole."""
        self.chain.lost(code, message, pointer or self.at(), instead, severity)

    # Data

    def reader(self, why: Why, result: Value | None = None, *, caught: bool = False) -> Reader:
        """Return what reads the fields of the state."""
        source = self.raw if self.jsonata else self.input
        return Reader(self.env, source, result or Unknown(), why, caught)

    # Tasks

    def add(self, task: dict[str, Json]) -> None:
        """Add a task; that of the state itself gets its comment."""
        comment = self.value.get("Comment")
        if type(comment) is str and comment and task["id"] == self.id:
            id, *rest = task.items()
            task = dict([id, ("description", comment), *rest])
        self.chain.tasks.append(task)

    def then(self, branches: list[Json], on_failure: str | None = None) -> None:
        """Give the task that was added last its branches, or its way out of a failure."""
        task = self.chain.tasks[-1]
        transition: dict[str, Json] = dict(task.get("transition") or {})
        if on_failure is not None:
            transition["on_failure"] = on_failure
        transition["branches"] = branches
        task["transition"] = transition


def default(goto: str) -> dict[str, Json]:
    """Return the branch that is taken when no other is."""
    return {"operator": "default", "when": "", "goto": goto}
