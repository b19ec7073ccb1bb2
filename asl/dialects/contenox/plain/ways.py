"""Where the branches of tasks lead: by way of Passes that put something into the data."""

from collections.abc import Mapping
from typing import Any

from asl.core.values import Json
from asl.dialects.contenox.chain import END, Branch, StateNames, Task
from asl.dialects.contenox.plain.keys import TEXT, picked
from asl.dialects.contenox.plain.values import Values
from asl.dialects.expressions import said
from asl.dialects.jsonpath_form import path_to

__all__ = ["Ways"]


class Ways:
    """The ways of one chain."""

    def __init__(self, values: Values, naming: StateNames) -> None:
        self.values = values
        self.made = values.made
        self.states = values.value["States"]
        self.naming = naming
        self.ends: dict[str, str] = {}
        """The states that end a run, by the key of what it comes to."""

    def along(self, name: str, task: Task, branch: Branch | None, following: str) -> str:
        """Return where a branch leads: by way of what is composed on it."""
        composition = self.composition(name, task, branch.compose if branch else None)
        return self.via(composition, name, self.target(task, following))

    def target(self, task: Task, name: str) -> str:
        return self.end(task) if self.states[name]["Type"] == "Succeed" else name

    def end(self, task: Task) -> str:
        """Return the state that ends a run behind a task."""
        key = self.values.keys[task.id]
        if key not in self.ends:
            state: dict[str, Json] = {"Type": "Succeed", "OutputPath": self.values.at(task.id)}
            self.ends[key] = self.made.add(END, state, self.naming.name(END))
        return self.ends[key]

    def composition(
        self, name: str, task: Task, compose: Mapping[str, Any] | None
    ) -> list[dict[str, Json]]:
        """Return the fields of the Passes that take a variable out of what a task has left."""
        if not compose:
            return []
        variable, path = compose["with_var"], picked(compose)
        if path is None or variable not in self.values.picks:
            self.made.lost("L-TRANSFORM", "nothing is composed", name, "Output")
            return []
        message = f"{path!r} finds nothing in a text of JSON, which fails the run"
        self.made.lost("L-REQUIRED", message, name, hint="let it be an object or a list")
        place = path_to(self.values.keys[variable])
        return [{"InputPath": self.values.at(task.id) + path[1:], "ResultPath": place}]

    def via(self, passes: list[dict[str, Json]], name: str, following: str) -> str:
        """Return where to go for a state behind Passes with these fields."""
        for each in reversed(passes):
            state: dict[str, Json] = {"Type": "Pass", **each, "Next": following}
            following = self.made.add(f"{name}:then", state, name)
        return following

    def placing(self, parts: list[str], key: str) -> list[dict[str, Json]]:
        """Return the fields of the Passes that put a text of these parts under a key."""
        place = path_to(key)
        if parts == [place]:
            return [{}]
        ending, value = said(parts)
        if not ending:
            return [{"Result": value, "ResultPath": place}]
        if str(value).startswith("$"):
            return [{"InputPath": value, "ResultPath": place}]
        made: dict[str, Json] = {"Parameters": {f"{TEXT}.$": value}, "ResultPath": place}
        if key in self.values.composed:
            return [made]
        return [made, {"InputPath": f"{place}.{TEXT}", "ResultPath": place}]
