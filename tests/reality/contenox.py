"""Runs behaviour cases of Contenox chains: scripted answers in, what was seen out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import asl
from asl.core.document import Document
from asl.core.values import Json

Attempt = dict[str, Any]


@dataclass
class Answers:
    """Scripted answers by task and by tool; what models were asked, and how often."""

    tasks: Mapping[str, list[Attempt]]
    tools: Mapping[str, list[Attempt]]
    attempts: dict[str, int] = field(default_factory=dict)
    prompts: dict[str, list[str]] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)

    def agents(self, names: Iterator[str]) -> dict[str, Any]:
        return {name: self._agent(name) for name in names}

    def _agent(self, name: str) -> Any:
        def agent(parameters: Any, call: Any) -> Json:
            count = self.attempts[name] = self.attempts.get(name, 0) + 1
            if "calls" in parameters:
                return [self._result(each["name"]) for each in parameters["calls"]]
            if "prompt" in parameters:
                self.prompts.setdefault(name, []).append(parameters["prompt"])
            listed = self.tasks[name]
            return answer(listed[min(count, len(listed)) - 1])

        return agent

    def _result(self, tool: str) -> Json:
        listed = [each for each in self.tools[tool] if "pause" not in each]
        count = self.used[tool] = self.used.get(tool, 0) + 1
        chosen = listed[min(count, len(listed)) - 1]
        return chosen if "error" in chosen else chosen["output"]


def answer(attempt: Attempt) -> Json:
    if "error" in attempt:
        raise asl.StateError("Tool.Failed", attempt["error"])
    if attempt.get("timeout"):
        raise asl.StateError("States.Timeout", "it never answers")
    if "tool_calls" in attempt or "finish" in attempt:
        return {
            "content": attempt.get("output", ""),
            "tool_calls": attempt.get("tool_calls", []),
            "finish_reason": attempt.get("finish", "stop"),
        }
    found: Json = attempt["output"]
    return found


def agents_of(document: Document) -> Iterator[str]:
    for state in document.value["States"].values():
        if state["Type"] == "Task":
            yield state["Agent"]


def paused(case: Mapping[str, Any]) -> list[str]:
    """The tools that wait for people in a case."""
    tools = case.get("tools", {})
    return [name for name in tools if any("pause" in each for each in tools[name])]


def run(document: Document, case: Mapping[str, Any]) -> dict[str, Any]:
    """Run a case and return what it came to, in the words of the cases."""
    answers = Answers(case.get("agents", {}), case.get("tools", {}))
    given = case["input"]
    if "vars" in case:
        given = {"input": given, "vars": case["vars"]}
    result = asl.run(
        document,
        given,
        agents=answers.agents(agents_of(document)),
        approvals=lambda request: "approve",
        clock="virtual",
    )
    data = last_data(result)
    seen: dict[str, Any] = {
        "status": result.status,
        "path": path(result),
        "attempts": answers.attempts,
        "evals": evals(result),
        "prompts": answers.prompts,
        "output": result.output,
        "failure": f"{result.error}: {result.cause}",
        "vars": {**data.get("variables", {}), "previous_output": data.get("output")},
    }
    seen["vars"]["input"] = data.get("input")
    if result.error == "States.NoChoiceMatched":
        seen["failure"] = "no matching transition"
    if isinstance(result.output, dict) and "messages" in result.output:
        messages = result.output["messages"]
        seen["output_roles"] = [each["role"] for each in messages]
        seen["output_last"] = messages[-1]["content"]
    return seen


def last_data(result: Any) -> dict[str, Any]:
    """The data that the last state but the end was left with."""
    found: dict[str, Any] = {}
    for event in result.events:
        if event.type.endswith("StateEntered") and isinstance(event.details["input"], dict):
            found = event.details["input"]
    return found


def evals(result: Any) -> list[str]:
    """What tasks have evaluated to, one after the other."""
    found = []
    for event in result.events:
        if event.type in ("TaskStateExited", "PassStateExited"):
            output = event.details["output"]
            if isinstance(output, dict) and "eval" in output:
                found.append(output["eval"])
    return found


def path(result: Any) -> list[str]:
    """The tasks in the order in which they were entered."""
    found: list[str] = []
    for event in result.events:
        if event.type.endswith("StateEntered"):
            name, kind = event.path[-1], event.type.removesuffix("StateEntered")
            if kind == "Approval":
                found += [name.split(":")[0], "<resume>"]
            elif kind in ("Task", "Pass", "Fail") and name != "end:failed":
                found.append(name)
    return found
