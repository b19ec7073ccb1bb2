"""Scripts of tasks that answer immediately, for interpreters without a virtual clock."""

from collections import Counter
from collections.abc import Mapping

from asl.core.json_patterns import matches
from asl.core.values import Json

__all__ = ["TaskFailed", "TaskScripts"]


class TaskFailed(Exception):
    """A script raises an error of the workflow."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(error, cause)
        self.error = error
        self.cause = cause


class TaskScripts:
    """The scripts of one case.

    Args:
        request: A request of the protocol, with `mocks` and `resources`.
    """

    def __init__(self, request: Mapping[str, Json]) -> None:
        self.mocks = request.get("mocks", {})
        self.resources = request.get("resources", {})
        self.calls: Counter[int] = Counter()

    def answer(self, state: str, resource: str, payload: Json) -> Json:
        """Return the result of a task.

        Args:
            state: Name of the Task state.
            resource: Its `Resource`.
            payload: What the task receives.

        Raises:
            TaskFailed: The script raises an error.
            KeyError: No script belongs to the task.
        """
        if state in self.mocks:
            return self._answer(self.mocks[state], payload)
        found = next((name for name in (resource, "*") if name in self.resources), None)
        if found is None:
            raise KeyError(f"no script for the resource {resource!r}")
        return self._answer(self.resources[found], payload)

    def _answer(self, script: Mapping[str, Json], payload: Json) -> Json:
        if "sequence" in script:
            scripts = script["sequence"]
            turn = self.calls[id(script)]
            self.calls[id(script)] += 1
            return self._answer(scripts[min(turn, len(scripts) - 1)], payload)
        if "table" in script:
            rows = ((each.get("when", {"$any": True}), each["then"]) for each in script["table"])
            found = next(then for when, then in rows if matches(when, payload))
            return self._answer(found, payload)
        if "raise" in script:
            error = script["raise"]
            raise TaskFailed(error.get("Error") or "", error.get("Cause") or "")
        return payload if "echo" in script else script["return"]
