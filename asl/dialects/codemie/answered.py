"""Whose answers are there for sure in front of each state of a workflow, on all ways."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from asl.dialects.plain import leads

__all__ = ["Answered", "last_of", "of_workflow"]

_BESIDE: Final = re.compile(r"(:(?:if|fork|each|gate))?(~\d+)?$")


def of_workflow(name: str) -> str:
    """Return the state of the workflow to which one of the document belongs."""
    return _BESIDE.sub("", name)


def last_of(iteration: Mapping[str, Any], workers: Collection[str]) -> str | None:
    """Return the worker whose answers are what comes of an iteration, None if there is none."""
    ends = (
        of_workflow(name)
        for name, state in iteration["ItemProcessor"]["States"].items()
        if state.get("End")
    )
    return next((each for each in ends if each in workers), None)


class Answered:
    """The keys of a document's answers, by the state in front of which they are there for sure."""

    def __init__(self, document: Mapping[str, Any], keys: Mapping[str, str]) -> None:
        self.keys = keys
        """Under which key the answer of each state stands."""
        self.before: dict[str, frozenset[str]] = {}
        self._machine(document, frozenset())

    def _machine(self, machine: Mapping[str, Any], given: frozenset[str]) -> frozenset[str]:
        """Follow all ways through a machine; return what is there at its end."""
        states, ends = machine["States"], dict[str, frozenset[str]]()
        before = {machine["StartAt"]: given}
        todo = [*before]
        while todo:
            name = todo.pop()
            self.before[name] = before[name]
            after = self._after(name, states[name], before[name])
            if states[name].get("End"):
                ends[name] = after
            for target in leads(states[name]):
                new = before[target] & after if target in before else after
                if target in states and new != before.get(target):
                    before[target] = new
                    todo.append(target)
        return frozenset.intersection(*ends.values()) if ends else given

    def _after(self, name: str, state: Mapping[str, Any], given: frozenset[str]) -> frozenset[str]:
        match state["Type"]:
            case "Parallel":
                return given.union(*(self._machine(each, given) for each in state["Branches"]))
            case "Map":
                self._machine(state["ItemProcessor"], given)
                last = last_of(state, self.keys)
                return given if last is None else given | {self.keys[last]}
        own = of_workflow(name)
        made = state["Type"] in ("Task", "Pass") and own in self.keys
        return given | {self.keys[own]} if made else given
