"""Runs behaviour cases of CodeMie workflows: scripted actors in, what was seen out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import asl
from asl.core.document import Document
from asl.core.source import DEFAULT_LIMITS
from asl.core.values import Json
from asl.core.yaml_schema import CORE
from asl.core.yaml_text import loads

STATUSES = {"SUCCEEDED": "succeeded", "PAUSED": "interrupted", "FAILED": "failed"}


@dataclass
class Actors:
    """Scripted outputs by actor; what each state was asked, and how often."""

    scripts: Mapping[str, Any]
    calls: dict[str, int] = field(default_factory=dict)
    inputs: dict[str, list[Json]] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    seen: set[Any] = field(default_factory=set)

    def agents(self) -> dict[str, Any]:
        return {name: self._agent(name) for name in self.scripts}

    def _agent(self, name: str) -> Any:
        def agent(parameters: Json, call: Any) -> Json:
            state = plain(call.state_name)
            visit = (call.at.path, call.at.visit)
            self.attempts[state] = self.attempts.get(state, 0) + 1
            if visit not in self.seen:
                self.seen.add(visit)
                asked = parameters["task"] if "history" in parameters else parameters
                self.inputs.setdefault(state, []).append(asked)
            return self._answer(name)

        return agent

    def _answer(self, name: str) -> Json:
        script = self.scripts[name]
        number = self.calls[name] = self.calls.get(name, 0) + 1
        if isinstance(script, list):
            script = script[min(number, len(script)) - 1]
        if isinstance(script, dict) and "error" in script:
            raise asl.StateError(f"CM.{script['error']}")
        return script


def plain(name: str) -> str:
    """The name of a state as its author wrote it."""
    return name.split("~")[0].split(":")[0]


def run(document: Document, case: Mapping[str, Any]) -> dict[str, Any]:
    """Run a case and return what it came to, in the words of the cases."""
    actors = Actors(case.get("agents", {}))
    decisions = iter(case.get("resume", ()))

    def decide(request: Json) -> Json:
        decision = next(decisions, None)
        if decision is None:
            return None
        return {"approval": decision["decision"], "input": decision.get("input")}

    result = asl.run(
        document,
        case.get("input", {}),
        agents=actors.agents(),
        approvals=decide,
        clock="virtual",
    )
    seen: dict[str, Any] = {"status": STATUSES[result.status], "inputs": actors.inputs}
    if result.error == "CM.Aborted":
        seen["status"] = "cancelled"
    elif result.error is not None:
        seen["error"] = result.error
    data = result.output if result.ok else last_output(result)
    if isinstance(data, dict):
        seen["context"] = {key: value for key, value in data.items() if key != "cm"}
        seen["result"] = data.get("cm", {}).get("last")
    seen["visited"] = visited(result)
    seen["attempts"] = actors.attempts
    gates = [
        each["approval"]
        for each in seen["visited"]
        if isinstance(each, dict) and "approval" in each
    ]
    seen["at"] = gates[-1] if gates else None
    return seen


def last_output(result: Any) -> Json:
    found: Json = result.execution.input
    for event in result.events:
        if event.type.endswith("StateExited") and len(event.path) == 1:
            found = event.details["output"]
    return found


def visited(result: Any) -> list[Any]:
    """The states in order; branches nested."""
    root: list[Any] = []
    for event in result.events:
        if not event.type.endswith("StateEntered"):
            continue
        holder = root
        *way, name = event.path
        for index in way[1::2]:
            (branches,) = holder[-1].values()
            while len(branches) <= index:
                branches.append([])
            holder = branches[index]
        holder += shown(event.type.removesuffix("StateEntered"), name)
    if result.error is not None and root and root[-1] == {"each": []}:
        root.pop()
    return root


def shown(kind: str, name: str) -> Iterator[Any]:
    if kind == "Map":
        yield {"each": []}
    elif kind == "Parallel":
        yield {"parallel": []}
    elif kind == "Approval":
        yield {"approval": plain(name)}
    elif kind in ("Task", "Pass") and plain(name) != "end":
        yield plain(name)


def cases(text: str) -> list[dict[str, Any]]:
    value, _, faults = loads(text, DEFAULT_LIMITS, CORE)
    assert not faults
    return list(value)
