"""A Task with a policy, and an agent that asks for tools one after the other."""

from collections.abc import Callable
from typing import Any, TypeVar

import asl

Json = Any
F = TypeVar("F", bound=Callable[..., Any])


def shows(*tags: str) -> Callable[[F], F]:
    """Say which fields of a policy a test shows: `effect:Sandbox/CPU`, `violation:Sandbox/CPU`."""

    def mark(test: F) -> F:
        test.shown = tags  # type: ignore[attr-defined]
        return test

    return mark


def task(policy: Json = None, **fields: Json) -> Json:
    """A workflow of one Task, with a policy unless that is None."""
    state = {"Type": "Task", "Agent": "A", "End": True, **fields}
    if policy is not None:
        state["Tools"] = policy
    return {"StartAt": "T", "States": {"T": state}}


def use(tool: Any, arguments: Json = None, policy: Json = None, **options: Any) -> asl.Result:
    """Run an agent that uses one tool, `tool`, and returns its answer."""
    document = task(policy, ResultSelector={"answer.$": "$[0]"})
    calls = [{"tool": "tool", "arguments": arguments or {}}]
    return asl.run(document, agents={"A": {"use": calls}}, tools={"tool": tool}, **options)


def answer(result: asl.Result) -> Json:
    """Return what the tool answered."""
    assert result.ok, (result.error, result.cause)
    return result.output["answer"]


def told(result: asl.Result) -> list[tuple[str, str, str | None]]:
    """Return what the history tells of tools: `(event, tool, error)`."""
    return [
        (event.type, event.details["tool"], event.details.get("error"))
        for event in result.events
        if event.type in ("ToolCalled", "ToolRefused")
    ]
