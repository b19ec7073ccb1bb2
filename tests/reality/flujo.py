"""Runs behaviour cases of Flujo blueprints: scripted answers in, what was seen out."""

from collections.abc import Iterator, Mapping
from typing import Any

import asl
from asl.core.document import Document
from asl.core.values import Json

Attempt = dict[str, Any]


def agents_of(machine: Mapping[str, Any]) -> Iterator[str]:
    """The agents that a machine asks, with those of the machines in it."""
    for state in machine["States"].values():
        if state["Type"] == "Task":
            yield state["Agent"]
        for branch in state.get("Branches", ()):
            yield from agents_of(branch)
        if "ItemProcessor" in state:
            yield from agents_of(state["ItemProcessor"])


def run(document: Document, case: Mapping[str, Any]) -> dict[str, Any]:
    """Run a case and return what it came to, in the words of the cases."""
    calls: list[list[Json]] = []
    used: dict[str, int] = {}

    def agent(name: str) -> Any:
        short = name.rpartition(":")[2]
        script: list[Attempt] = case["agents"].get(short, [])

        def answering(parameters: Any) -> Json:
            calls.append([short, parameters["input"]])
            count = used[short] = used.get(short, 0) + 1
            attempt = script[min(count, len(script)) - 1]
            if "error" in attempt:
                raise asl.StateError("Tool.Failed", attempt["error"])
            given: Json = parameters["input"]
            return given if attempt["output"] == "$input" else attempt["output"]

        return answering

    answers = iter(case.get("resume", ()))
    given = case["input"]
    result = asl.run(
        document,
        {"input": given, "context": case.get("context", {})},
        agents={name: agent(name) for name in agents_of(document.value)},
        approvals=lambda request: next(answers, None),
        clock="virtual",
    )
    data = last_data(result)
    return {
        "status": result.status,
        "states": states(result),
        "calls": calls,
        "output": result.output["output"] if result.ok else None,
        "context": result.output["context"] if result.ok else data.get("context"),
        "paused_at": result.pending[0]["state"].partition(">")[0] if result.pending else None,
        "message": result.pending[0]["promptText"] if result.pending else None,
        "max_hops_reached": result.ok and result.output.get("max_hops_reached"),
        "failure": f"{result.error}: {result.cause}",
    }


def last_data(result: Any) -> dict[str, Any]:
    """The data that the last state was entered with."""
    found: dict[str, Any] = {}
    for event in result.events:
        if event.type.endswith("StateEntered") and isinstance(event.details["input"], dict):
            found = event.details["input"]
    return found


def states(result: Any) -> list[str]:
    """The states of the machine in the order in which they were entered, with the answers."""
    found: list[str] = []
    for event in result.events:
        if event.type in ("HopStarted", "TerminalReached"):
            found.append(event.details["state"])
        elif event.type == "ApprovalStateExited":
            found.append("<resume>")
    return found
