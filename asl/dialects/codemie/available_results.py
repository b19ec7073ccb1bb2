"""The answers that are available before each state of a workflow, on every path."""

from collections.abc import Mapping
from typing import Any

from asl.dialects.jsonpath_form import leads

__all__ = ["AvailableResults", "last_of"]


def last_of(iteration: Mapping[str, Any], owners: Mapping[str, str]) -> str | None:
    """Return the worker whose answers are the result of an iteration, None if there is none.

    *owners* are the states of the workflow to which those of the document belong.
    """
    states = iteration["ItemProcessor"]["States"].items()
    ends = (owners.get(name) for name, state in states if state.get("End"))
    return next((each for each in ends if each is not None), None)


class AvailableResults:
    """The keys of the answers that are available before each state, on every path."""

    def __init__(
        self, document: Mapping[str, Any], keys: Mapping[str, str], owners: Mapping[str, str]
    ) -> None:
        self.owners = owners
        self.keys = keys
        """The key of the answer of each state."""
        self.before: dict[str, frozenset[str]] = {}
        self._machine(document, frozenset())

    def _machine(self, machine: Mapping[str, Any], given: frozenset[str]) -> frozenset[str]:
        """Follow all paths through a machine; return the keys that are available at its end."""
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
                last = last_of(state, self.owners)
                return given if last is None else given | {self.keys[last]}
        own = self.owners.get(name, "")
        made = state["Type"] in ("Task", "Pass") and own in self.keys
        return given | {self.keys[own]} if made else given
